# What is extended, by which programs, and how it is assembled. Functions and constants only.

# How SPAdes gets extended reads: as single reads, or as merged pairs.
SPADES_OPTIONS = {"single": "-s", "merged": "--merged"}


def extended_samples(names=None):
    """Samples whose pairs are extended: none, or all (of those given) that have mates."""
    if config["extend"]["reads"] == "none":
        return []
    wanted = STUDY if names is None else names
    return [name for name in sorted(wanted) if STUDY[name].second]


def extenders():
    """Programs that extend pairs."""
    return ["ngsgpu"] + (["konnector"] if config["extend"]["konnector"] else [])


def extended_arm_first(wildcards):
    """Files of the first mates that are extended."""
    return arm_files(wildcards.sample, config["extend"]["reads"])[0]


def extended_arm_second(wildcards):
    """Files of the second mates that are extended."""
    return arm_files(wildcards.sample, config["extend"]["reads"])[1]


def extended_uses():
    """Names of the assemblies of extended reads."""
    if not config["assemble"]["enabled"]:
        return []
    return [
        f"{program}_{use}"
        for program in extenders()
        for use in config["extend"]["assemble"]
    ]


def extended_assemblies(names=None):
    """QUAST's reports on the assemblies of extended reads, if there are any."""
    if not config["extend"]["assemble"]:
        return []
    return expand(
        "results/{sample}/quast_extended/report.tsv", sample=extended_samples(names)
    )


def extended_truth():
    """Comparisons of extended reads with the truth."""
    return expand(
        "results/{sample}/evaluate/extension_{program}.json",
        sample=extended_samples(DATASETS),
        program=extenders(),
    )
