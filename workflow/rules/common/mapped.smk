# Which real samples are judged on their reference, and what of them. Functions and constants only.

MAPPABLE = one_of(
    name for name, own in STUDY.items() if own.reference and name not in DATASETS
)


def mapped_samples():
    """Real samples with a reference whose corrected or merged reads are judged on it."""
    if not config["mapped"]["enabled"]:
        return []
    return [
        name
        for name, own in STUDY.items()
        if own.reference
        and name not in DATASETS
        and (corrected_samples([name]) or name in merged_samples())
    ]


def index_of_reference(wildcards):
    """BWA's index of a sample's reference; none for other aligners."""
    if config["mapped"]["aligner"] != "bwa":
        return []
    return rules.index_reference.output.index


def align_commands(wildcards, input):
    """What writes the alignments of all lanes of a sample as SAM."""
    mates = " ".join(
        f"<(gzip -cdf {shlex.join(map(str, listed(files)))})"
        for files in (input.first, input.get("second", []))
        if listed(files)
    )
    reference = shlex.join(map(str, listed(input.reference)))
    prefix = "".join(path.removesuffix(".amb") for path in input.get("index", [])[:1])
    threads = config["mapped"]["threads"]
    # Batches of a fixed size: the number of threads does not change the result.
    return {
        "bwa": f"bwa mem -K 10000000 -t {threads} {prefix} {mates}",
        "minimap2": f"minimap2 -a -x sr -t {threads} {reference} {mates}",
    }[config["mapped"]["aligner"]]


def variants_if_known(wildcards):
    """The sample's VCF as a list of one or no path."""
    variants = STUDY[wildcards.sample].variants
    return [variants] if variants else []


def mapped_first(wildcards):
    """Corrected first mates, or single-end reads; none where correction is switched off."""
    name = wildcards.sample
    return arm_files(name, CORRECTED)[0] if corrected_samples([name]) else []


def mapped_second(wildcards):
    """Corrected second mates; none if single-end."""
    name = wildcards.sample
    return arm_files(name, CORRECTED)[1] if corrected_samples([name]) else []


def mapped_merged(wildcards):
    """The sample's merged reads; none where nothing is merged."""
    if wildcards.sample not in merged_samples():
        return []
    return [f"results/{wildcards.sample}/merge/merged.fastq.gz"]


def mapped_options(wildcards, input):
    """Options of ngsgpu evaluate mapped for the files that a sample has."""
    files = {
        "--in1": "raw_first",
        "--in2": "raw_second",
        "--out1": "first",
        "--out2": "second",
        "--merged": "merged",
        "--known": "variants",
    }
    given = [repeated(own, input.get(name, [])) for own, name in files.items()]
    return " ".join(filter(None, given))
