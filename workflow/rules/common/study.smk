# The study: all sets of reads by name, and which files hold what of each. Functions and constants
# only; everything that the other rule files look up by wildcard is here.

import re
import shlex
import zlib
from dataclasses import replace

CORRECTED = "corrected"
RAW = "raw"
NAME = "[A-Za-z0-9][A-Za-z0-9._-]*"
# What is compared: the reads as they are and, unless correction is switched off, corrected ones.
ARMS = [RAW] + [CORRECTED] * config["correct"]["enabled"]


def corrected_samples(names):
    """All of these samples, or none where correction is switched off."""
    return [name for name in names if config["correct"]["enabled"]]


def assembled_samples(names):
    """All of these samples, or none where assembly is switched off."""
    return [name for name in names if config["assemble"]["enabled"]]


def compared_samples(names):
    """All of these samples, or none where QUAST or assembly is switched off."""
    return [name for name in assembled_samples(names) if config["quast"]["enabled"]]


def check_switches():
    """Refuse a config in which a stage takes the reads of one that is switched off.

    Raises:
        WorkflowError: merging or extension is to take corrected reads, and there are none.
    """
    for stage in ("merge", "extend"):
        if config[stage]["reads"] not in ["none", *ARMS]:
            raise WorkflowError(
                f"{stage}.reads is 'corrected', but correct.enabled is false; set {stage}.reads "
                "to 'raw' or 'none'"
            )


check_switches()


def study_datasets():
    """Read the simulated sets that the config names."""
    if config["datasets"] is None:
        return {}
    return read_datasets(
        config["datasets"],
        workflow.source_path("../../schemas/datasets.schema.yaml"),
        set(config["genomes"]),
        config["simulate"]["chunks"],
    )


def study_samples():
    """Read the real samples that the config names."""
    if config["samples"] is None:
        return {}
    samples = read_samples(
        config["samples"], workflow.source_path("../../schemas/samples.schema.yaml")
    )
    for sample in samples.values():
        sample.first = [given(path) for path in sample.first]
        sample.second = [given(path) for path in sample.second]
        sample.reference = sample.reference and given(sample.reference)
        sample.variants = sample.variants and given(sample.variants)
        sample.truth = sample.truth and given(sample.truth)
    return samples


def given(path):
    """A path that the user wrote: it stays as it is where a module's results get a prefix.

    Reads that a rule fetches are no file of the user's, and with a default storage all inputs are
    there.
    """
    if Path(path).parent in (Path(DEMO_READS), Path(FETCHED)):
        return path
    if workflow.storage_settings.default_storage_provider:
        return path
    return local(path)


def check_formats(samples):
    """Refuse what only ngsgpu reads, where other programs get the reads of the sheet themselves.

    Raises:
        WorkflowError: names the first such file.
    """
    trim = config["trim"]
    if trim["engine"] == "ngsgpu" if trim["enabled"] else HOST:
        return
    unread = [".bam", ".ubam", ".cram", ".zst"] + [".bz2", ".xz"] * (
        not trim["enabled"]
    )
    for sample in samples.values():
        for path in [*sample.first, *sample.second]:
            if Path(path).suffix.lower() in unread:
                raise WorkflowError(
                    f"{config['samples']}: '{path}' is read by ngsgpu only: set trim.enabled to true "
                    "and trim.engine to ngsgpu, whose output all programs read, or convert it"
                )


def simulated_sample(dataset):
    """Say where the reads of a simulated set will be."""
    folder = f"results/{dataset.name}/simulate"
    return Sample(
        dataset.name,
        first=[f"{folder}/R1.fastq.gz"],
        second=[f"{folder}/R2.fastq.gz"],
        reference=reference_of(dataset),
        truth=dataset.truth and given(dataset.truth),
        group=dataset.group,
        settings=dataset.settings,
    )


def reference_of(dataset):
    """Path of the genome that a set is simulated from."""
    if dataset.reference.startswith(SYNTHETIC):
        return f"results/genomes/{dataset.reference.removeprefix(SYNTHETIC)}.fasta"
    return given(dataset.reference)


def all_samples(datasets, samples):
    """Put simulated and real sets together.

    Raises:
        WorkflowError: a name is in both sheets.
    """
    both = sorted(set(datasets) & set(samples))
    if both:
        raise WorkflowError(
            f"{config['samples']} and {config['datasets']} both name {', '.join(both)}; "
            "rename it in one of them"
        )
    return {
        name: simulated_sample(dataset) for name, dataset in datasets.items()
    } | samples


def one_of(names):
    """Regular expression that matches exactly these names (nothing, if there are none)."""
    return "|".join(sorted(map(re.escape, names))) or "(?!)"


def trimmed(samples):
    """Real samples with the files that trimming makes, unless it is switched off.

    Simulated reads have no adapters, and their truth has to be that of all of them. Published
    comparisons are made anew with the reads as they are, which all programs get.
    """
    if not config["trim"]["enabled"] or config["reproduce"]["stage"] != "none":
        return samples
    return {name: in_one_lane(own, "trim") for name, own in samples.items()}


def host_files(named):
    """The files of the host that the config names: one, several or none."""
    paths = [named] if isinstance(named, str) else named or []
    return [given(path) for path in paths]


def depleted(samples):
    """Real samples with the files that depletion makes, if the config names a host.

    Simulated reads stay as they are: their truth has to be that of all of them.
    """
    if not HOST:
        return samples
    return {name: in_one_lane(own, "deplete") for name, own in samples.items()}


def in_one_lane(sample, stage):
    """A sample with the files that a stage before all others makes, its lanes in one."""
    folder = f"results/{sample.name}/{stage}"
    if not sample.second:
        return replace(sample, first=[f"{folder}/reads.fastq.gz"])
    first, second = (f"{folder}/R{mate}.fastq.gz" for mate in (1, 2))
    return replace(sample, first=[first], second=[second])


HOST = host_files(config["deplete"]["host"])
HOST_INDEX = "results/host/host.idx"
DATASETS = study_datasets()
SEQUENCED = study_samples()
check_formats(SEQUENCED)
TRIMMED = trimmed(SEQUENCED)
STUDY = all_samples(DATASETS, depleted(TRIMMED))
DEPLETED = SEQUENCED if HOST else {}
# Without a sheet, rules are taken one by one for samples that another workflow names.
SAMPLES = one_of(STUDY) if STUDY else NAME
PAIRED = one_of(name for name, own in STUDY.items() if own.second) if STUDY else NAME
SINGLE = (
    one_of(name for name, own in STUDY.items() if not own.second) if STUDY else NAME
)


wildcard_constraints:
    sample=SAMPLES,
    dataset=one_of(DATASETS),
    genome=one_of(config["genomes"]),
    arm=one_of(ARMS),
    chunk="[0-9]+",
    accession="[SED]RR[0-9]+",


def raw_first(wildcards):
    """Files of the first mates, or of single-end reads, before correction: one a lane."""
    return STUDY[wildcards.sample].first


def raw_second(wildcards):
    """Files of the second mates before correction; none if single-end."""
    return STUDY[wildcards.sample].second


def sequenced_first(wildcards):
    """Files of the first mates, or of single-end reads, as sequenced: one a lane."""
    return SEQUENCED[wildcards.sample].first


def sequenced_second(wildcards):
    """Files of the second mates as sequenced; none if single-end."""
    return SEQUENCED[wildcards.sample].second


def trimmed_first(wildcards):
    """Files of the first mates, or of single-end reads, before depletion: one a lane."""
    return TRIMMED[wildcards.sample].first


def trimmed_second(wildcards):
    """Files of the second mates before depletion; none if single-end."""
    return TRIMMED[wildcards.sample].second


def trimmed_samples(names=None):
    """Samples whose adapters are trimmed."""
    wanted = STUDY if names is None else names
    is_trimmed = TRIMMED is not SEQUENCED
    return [name for name in wanted if is_trimmed and name in TRIMMED]


def host_index(wildcards):
    """The index of the host: the user's, or one made of the user's sequences."""
    return HOST[0] if str(HOST[0]).endswith(".idx") else HOST_INDEX


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
    """The options -i and -I for the reads of one arm, lane by lane; BAM has both mates."""
    first, second = listed(input.first), listed(input.get("second", []))
    return " ".join([repeated("-i", first), repeated("-I", second * (second != first))])


def repeated(option, paths):
    """The option before each path, quoted for the shell."""
    return " ".join(f"{option} {shlex.quote(str(path))}" for path in listed(paths))


def listed(paths):
    """Paths as a list: a rule that was given a single one as its input has it as it stands."""
    return [paths] if isinstance(paths, str) else list(paths)


def linked(path, folder):
    """The path, or for one that assemblers cannot take (a space, a comma), a link in the folder."""
    if not re.search(r"[\s,]", path):
        return path
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", path)
    return f"{folder}/{zlib.crc32(path.encode()):08x}_{plain}"


def link_reads(wildcards, input, output):
    """Commands that make the links of ``linked``."""
    reads = [*listed(input.first), *listed(input.get("second", []))]
    links = [(path, linked(path, output.links)) for path in map(str, reads)]
    return " && ".join(
        [f"mkdir -p {shlex.quote(output.links)}"]
        + [
            f'ln -sf "$(realpath {shlex.quote(path)})" {shlex.quote(link)}'
            for path, link in links
            if link != path
        ]
    )


def spades_reads(wildcards, input, output):
    """Options of spades.py for the reads of one arm: all lanes are one library."""
    first, second = (
        [linked(str(path), output.links) for path in listed(reads)]
        for reads in (input.first, input.get("second", []))
    )
    if not second:
        return repeated("-s", first)
    return " ".join([repeated("--pe1-1", first), repeated("--pe1-2", second)])
