# What a study ends with. Functions only.
#
# Everything that is kept is a target, not the report alone: Snakemake makes anew only what it is
# asked for, so a file that no target names would stay away once it was deleted.

MULTIQC = ["results/multiqc/multiqc_report.html", "results/multiqc/multiqc_report_data"]

REPORT = [
    "results/report.html",
    "results/tables/report",
    "results/methods.md",
    "results/software_versions.yml",
]


def of_samples(names, *files):
    """The files of samples, named within each sample's folder."""
    return expand("results/{sample}/{file}", sample=sorted(names), file=files)


def trimmed_and_depleted():
    """Real reads after the stages that come before all others, and what those say of them."""
    names = trimmed_samples()
    found = [
        f"trim/{file}" for file in ("adapters.json", "adapters.fasta", "fastp.json")
    ]
    changed = [TRIMMED[name] for name in names] + [STUDY[name] for name in DEPLETED]
    is_indexed = HOST and host_index(None) == HOST_INDEX
    return [
        *of_samples(names, *found),
        *of_samples(DEPLETED, "deplete/stats.json"),
        *(path for own in changed for path in [*own.first, *own.second]),
        *([HOST_INDEX] if is_indexed else []),
    ]


def reads_and_corrections():
    """Simulated reads with their truth, corrected reads, and what the truth says of them."""
    simulated = expand(
        "simulate/{file}",
        file=["R1.fastq.gz", "R2.fastq.gz", "truth.sam.gz", "alignments.sam.gz"],
    )
    corrected = [
        path
        for name in corrected_samples(sorted(STUDY))
        for mate in arm_files(name, CORRECTED)
        for path in mate
    ]
    genomes = [
        own.reference.removeprefix(SYNTHETIC)
        for own in DATASETS.values()
        if own.reference.startswith(SYNTHETIC)
    ]
    drawn = expand("{genome}.{kind}", genome=genomes, kind=["fasta", "repeats.bed"])
    return [
        *expand("results/genomes/{file}", file=drawn),
        *of_samples(DATASETS, *simulated),
        *corrected,
        *of_samples(corrected_samples(STUDY), "correct/stats.json"),
        *of_samples(STUDY, *expand("kmers/{arm}.tsv", arm=ARMS)),
        *of_samples(
            corrected_samples(DATASETS),
            "evaluate/correction.json",
            "evaluate/correction.txt",
        ),
        *of_samples(mapped_samples(), "evaluate/mapped.json", "evaluate/mapped.txt"),
    ]


def merged_and_extended():
    """Merged and extended pairs, those that stay, and what the truth says of them."""
    kept = ["merged.fastq.gz", "unmerged_R1.fastq.gz", "unmerged_R2.fastq.gz"]
    extended = ["extended.fastq.gz", "remaining_R1.fastq.gz", "remaining_R2.fastq.gz"]
    merging = [f"merge/{file}" for file in [*kept, "inserts.txt", "stats.json"]]
    extension = expand("extend/{program}/{file}", program=extenders(), file=extended)
    judged = expand(
        "evaluate/extension_{program}.{kind}",
        program=extenders(),
        kind=["json", "txt"],
    )
    return [
        *of_samples(merged_samples(), *merging),
        *of_samples(
            set(DATASETS).intersection(merged_samples()),
            "evaluate/merging.json",
            "evaluate/merging.txt",
        ),
        *of_samples(extended_samples(), "extend/stats.json", *extension),
        *of_samples(extended_samples(DATASETS), *judged),
    ]


def assemblies():
    """Graphs and contigs of the reads as they were, corrected and extended, and QUAST's reports on them."""
    files = {
        SPADES: ["contigs.fasta", "scaffolds.fasta", "graph.gfa"],
        "ngsgpu": ["contigs.fasta", "graph.gfa", "stats.json"],
    }
    arms = [
        f"{assembly_folder(engine, arm)}/{file}"
        for engine in ENGINES
        for arm in ARMS
        for file in files.get(engine, ["contigs.fasta"])
    ]
    graphs = expand("unitigs/{arm}/{file}", arm=ARMS, file=["graph.gfa", "stats.json"])
    uses = expand("assembly/{use}/contigs.fasta", use=extended_uses())
    compared = (
        ["quast_extended/report.tsv", "quast_extended/report.html"]
        if uses and config["quast"]["enabled"]
        else []
    )
    return [
        *of_samples(STUDY if config["unitigs"]["enabled"] else [], *graphs),
        *of_samples(assembled_samples(STUDY), *arms),
        *of_samples(compared_samples(STUDY), "quast/report.tsv", "quast/report.html"),
        *of_samples(
            engines_compared(STUDY),
            "quast_engines/report.tsv",
            "quast_engines/report.html",
        ),
        *of_samples(extended_samples(), *uses, *compared),
    ]


def calls_and_databases():
    """Databases, what every sample was classified as by each, and reads of taxa."""
    built = expand("results/databases/{database}/db/manifest.json", database=BUILT)
    return [
        *built,
        *expand("results/databases/{database}/plan.json", database=DATABASES),
        *(path for database in DATABASES for path in partition_manifests(database)),
        *(
            path
            for name in STUDY
            for database in databases_of(name)
            for path in call_files(name, database)
        ),
        *judged_classifications("json"),
        *judged_classifications("txt"),
        *extracted_reads(),
    ]


def other_targets(wildcards):
    """What the study ends with besides the check that nothing failed.

    Raises:
        WorkflowError: there are no reads.
    """
    if not STUDY:
        raise WorkflowError(
            "the sheets of samples and data sets are empty: there is nothing to do"
        )
    return [
        *REPORT,
        "results/study.json",
        "results/status.tsv",
        *expand("results/versions/{tool}.txt", tool=tools_used()),
        *(MULTIQC if config["multiqc"] else []),
        *multiqc_content(),
        *trimmed_and_depleted(),
        *of_samples(CHAINS, CHAIN_RECORD),
        *reads_and_corrections(),
        *merged_and_extended(),
        *assemblies(),
        *calls_and_databases(),
        *merged_tables(),
        *reads_quality(),
    ]


def targets(wildcards):
    """What the study ends with.

    Raises:
        WorkflowError: there are no reads.
    """
    if REPRODUCED != "none":
        return REPRODUCTION
    # The first is not there, and Snakemake fails, as long as a sample has failed.
    return ["results/complete", *other_targets(wildcards)]
