# Which samples and databases are merged into tables. Functions only.

import shutil


def draws_krona():
    """Whether Krona's pages are drawn: as the config says, or where KronaTools can be had."""
    if config["krona"] != "auto":
        return config["krona"]
    is_conda = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    return is_conda or shutil.which("ktImportText") is not None


def reports_of(wildcards):
    """Kraken-style reports of all samples that are classified with a database."""
    return expand(
        "results/{sample}/classify/{database}/{sample}.kraken2.report.txt",
        sample=sorted(samples_of(wildcards.database)),
        database=wildcards.database,
    )


def krona_of(wildcards):
    """Krona's texts of all samples that are classified with a database."""
    return [
        path.replace(".kraken2.report.txt", ".krona.txt")
        for path in reports_of(wildcards)
    ]


def merged_tables():
    """Tables of taxa by samples, for each database with any."""
    kinds = ["reads.tsv", "abundances.tsv", "taxpasta.tsv", "biom"]
    return expand(
        "results/tables/{database}.{kind}",
        database=[name for name in DATABASES if samples_of(name)],
        kind=kinds + ["krona.html"] * draws_krona(),
    )
