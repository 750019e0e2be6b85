# What MultiQC is shown, and how. Functions and constants only.

ARM_NAMES = {RAW: "uncorrected", CORRECTED: "corrected"}


def shown_as(program, anchor, name, files):
    """One run of a module of MultiQC: which files it shows, under which name."""
    return {program: {"name": name, "anchor": anchor, "path_filters": [files]}}


def multiqc_settings():
    """MultiQC's configuration as JSON: a sample has one row, whatever its files are called.

    What is there for several arms or databases is a module for each, or one would hide the other.
    """
    # MultiQC knows the form of these files as fastp's, whoever wrote them.
    checks = [
        shown_as(
            "fastp",
            f"fastp_{arm}",
            f"Read quality: {ARM_NAMES[arm]} reads",
            f"*/qc/{arm}.fastp.json",
        )
        for arm in ARMS
    ]
    trimmed = (
        [shown_as("fastp", "fastp_trim", "Trimming", "*/trim/fastp.json")]
        if trimmed_samples()
        else []
    )
    assemblies = [
        shown_as(
            "quast",
            f"quast_{arm}",
            f"QUAST: {ARM_NAMES[arm]} reads",
            f"*/quast/multiqc/{arm}/report.tsv",
        )
        for arm in ARMS
    ]
    calls = [
        shown_as(
            "kraken",
            f"kraken_{database}",
            f"Classification: {database}",
            f"*/classify/{database}/*.kraken2.report.txt",
        )
        for database in DATABASES
    ]
    return json.dumps(
        {
            "fn_clean_exts": [".kraken2.report.txt"],
            "fn_clean_trim": [],
            "module_order": ["custom_content", *trimmed, *checks, *assemblies, *calls],
        }
    )


# What of a stage's statistics goes into MultiQC, by the stage's folder.
MULTIQC_STAGES = ("correct", "merge", "extend")


def staged_samples():
    """Samples that go through each stage whose statistics MultiQC shows."""
    names = (corrected_samples(STUDY), merged_samples(), extended_samples())
    return dict(zip(MULTIQC_STAGES, names, strict=True))


def multiqc_content():
    """What MultiQC gets: statistics of all stages, comparisons with the truth, and others' files."""
    judged = corrected_samples(DATASETS)
    truth = [
        "evaluate/{sample}.ngsgpu_correction_mqc.json",
        "evaluate/{sample}.ngsgpu_correction_generalstats_mqc.json",
    ]
    content = [
        f"{stage}/{{sample}}.ngsgpu_{stage}{kind}_mqc.json"
        for stage in MULTIQC_STAGES
        for kind in ("", "_generalstats")
    ]
    return [
        *(
            f"results/{name}/{file.format(sample=name)}"
            for stage, names in staged_samples().items()
            for name in sorted(names)
            for file in content
            if file.startswith(f"{stage}/")
        ),
        *(
            f"results/{name}/{file.format(sample=name)}"
            for name in sorted(judged)
            for file in truth
        ),
        *expand(
            "results/{sample}/quast/multiqc/{arm}/report.tsv",
            sample=sorted(compared_samples(STUDY)),
            arm=ARMS,
        ),
    ]


def multiqc_inputs():
    """The content, and what other programs' modules find."""
    reports = [
        f"results/{name}/classify/{database}/{name}.kraken2.report.txt"
        for database in DATABASES
        for name in sorted(samples_of(database))
    ]
    trimming = expand(
        "results/{sample}/trim/fastp.json", sample=sorted(trimmed_samples())
    )
    return [*multiqc_content(), *trimming, *reads_quality(), *reports]
