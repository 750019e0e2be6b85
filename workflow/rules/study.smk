# The study: all sets of reads by name, and which files hold what of each. Functions and constants
# only; everything that the other rule files look up by wildcard is here.

import re
import shlex

CORRECTED = "corrected"
RAW = "raw"
ARMS = [RAW, CORRECTED]


def study_datasets():
    """Read the simulated sets that the config names."""
    if config["datasets"] is None:
        return {}
    return read_datasets(
        config["datasets"],
        workflow.source_path("../schemas/datasets.schema.yaml"),
        set(config["genomes"]),
        config["simulate"]["chunks"],
    )


def study_samples():
    """Read the real samples that the config names."""
    if config["samples"] is None:
        return {}
    return read_samples(
        config["samples"], workflow.source_path("../schemas/samples.schema.yaml")
    )


def simulated_sample(dataset):
    """Say where the reads of a simulated set will be."""
    folder = f"results/{dataset.name}/simulate"
    return Sample(
        dataset.name,
        first=[f"{folder}/R1.fastq.gz"],
        second=[f"{folder}/R2.fastq.gz"],
        reference=reference_of(dataset),
        truth=dataset.truth,
    )


def reference_of(dataset):
    """Path of the genome that a set is simulated from."""
    if dataset.reference.startswith(SYNTHETIC):
        return f"results/genomes/{dataset.reference.removeprefix(SYNTHETIC)}.fasta"
    return dataset.reference


def all_samples(datasets, samples):
    """Put simulated and real sets together.

    Raises:
        WorkflowError: a name is in both sheets, or neither has a row.
    """
    both = sorted(set(datasets) & set(samples))
    if both:
        raise WorkflowError(
            f"{config['samples']} and {config['datasets']} both name {', '.join(both)}; "
            "rename it in one of them"
        )
    if not datasets and not samples:
        raise WorkflowError(
            "the sheets of samples and data sets are empty: there is nothing to do"
        )
    return {
        name: simulated_sample(dataset) for name, dataset in datasets.items()
    } | samples


def one_of(names):
    """Regular expression that matches exactly these names (nothing, if there are none)."""
    return "|".join(sorted(map(re.escape, names))) or "(?!)"


DATASETS = study_datasets()
STUDY = all_samples(DATASETS, study_samples())
PAIRED = one_of(name for name, sample in STUDY.items() if sample.second)
SINGLE = one_of(name for name, sample in STUDY.items() if not sample.second)


wildcard_constraints:
    sample=one_of(STUDY),
    dataset=one_of(DATASETS),
    genome=one_of(config["genomes"]),
    arm=one_of(ARMS),
    chunk="[0-9]+",


def raw_first(wildcards):
    """Files of the first mates, or of single-end reads, before correction: one a lane."""
    return STUDY[wildcards.sample].first


def raw_second(wildcards):
    """Files of the second mates before correction; none if single-end."""
    return STUDY[wildcards.sample].second


def arm_files(name, arm):
    """Files of the first mates (or of single-end reads) and of the second of a sample in an arm."""
    sample = STUDY[name]
    if arm == RAW:
        return sample.first, sample.second
    folder = f"results/{name}/correct"
    if not sample.second:
        return [f"{folder}/reads.fastq.gz"], []
    return [f"{folder}/R1.fastq.gz"], [f"{folder}/R2.fastq.gz"]


def arm_first(wildcards):
    """Files of the first mates, or of single-end reads, in one arm of the comparison."""
    return arm_files(wildcards.sample, wildcards.arm)[0]


def arm_second(wildcards):
    """Files of the second mates in one arm of the comparison; none if single-end."""
    return arm_files(wildcards.sample, wildcards.arm)[1]


def merged_samples():
    """Samples whose pairs are merged: none, or all that have mates."""
    if config["merge"]["reads"] == "none":
        return []
    return [name for name, sample in STUDY.items() if sample.second]


def merged_arm_first(wildcards):
    """Files of the first mates that are merged."""
    return arm_files(wildcards.sample, config["merge"]["reads"])[0]


def merged_arm_second(wildcards):
    """Files of the second mates that are merged."""
    return arm_files(wildcards.sample, config["merge"]["reads"])[1]


def reference_if_known(wildcards):
    """The sample's reference as a list of one or no path."""
    reference = STUDY[wildcards.sample].reference
    return [reference] if reference else []


def arm_reads(wildcards, input):
    """The options -i and -I for the reads of one arm, lane by lane."""
    return " ".join([repeated("-i", input.first), repeated("-I", input.second)])


def repeated(option, paths):
    """The option before each path, quoted for the shell."""
    return " ".join(f"{option} {shlex.quote(str(path))}" for path in paths)


def spades_reads(wildcards, input):
    """Options of spades.py for the reads of one arm: all lanes are one library."""
    if not input.second:
        return repeated("-s", input.first)
    return " ".join(
        [repeated("--pe-1 1", input.first), repeated("--pe-2 1", input.second)]
    )
