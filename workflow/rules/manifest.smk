# What the report is told of the study. Functions and constants only.

import json
import shlex

from snakemake import __version__ as SNAKEMAKE_VERSION

# The bare number on standard output, or failure. ART prints it with its help only, and exits with 1.
VERSION_COMMANDS = {
    "abyss": "PATH=$PATH:/usr/lib/abyss konnector --version | grep -o -m 1 '[0-9][0-9.]*'",
    "art": "(art_illumina --help || true) | grep -o -m 1 'Version [0-9.]*' | sed 's/Version //'",
    "ngsgpu": "ngsgpu --version | sed 's/^ngsgpu //'",
    "quast": "quast.py --version 2>&1 | grep -o '[0-9][0-9.]*$'",
    "spades": "spades.py --version 2>&1 | grep -o '[0-9][0-9.]*$'",
}


def tools_used():
    """Tools that take part in this study: ART only if something is simulated, ABySS for Konnector."""
    unused = {
        tool for tool, used in (("art", DATASETS), ("abyss", connected())) if not used
    }
    return [tool for tool in sorted(VERSION_COMMANDS) if tool not in unused]


def connected():
    """Whether Konnector takes part."""
    return config["extend"]["konnector"] and config["extend"]["reads"] != "none"


def study_sheets():
    """The sheets that the config names."""
    return [sheet for sheet in (config["samples"], config["datasets"]) if sheet]


def sheet_options():
    """Options of study_manifest.py for the sheets."""
    return " ".join(
        f"--{key} {shlex.quote(config[key])}"
        for key in ("samples", "datasets")
        if config[key]
    )


def config_text():
    """What decides the results in the config, as JSON in a fixed order."""
    keys = (
        "genomes",
        "simulate",
        "correct",
        "merge",
        "extend",
        "database",
        "classify",
        "kmers",
        "assemble",
        "quast",
    )
    return json.dumps({key: config[key] for key in keys}, sort_keys=True)


def every_sample(pattern, names=None):
    """The pattern's files for every sample, or for those with the given names."""
    return expand(pattern, sample=sorted(STUDY if names is None else names), arm=ARMS)


def multiqc_content():
    """What MultiQC gets: every sample's correction, its comparison with the truth, QUAST."""
    return [
        *every_sample("results/{sample}/correct/{sample}.ngsgpu_correct_mqc.json"),
        *every_sample(
            "results/{sample}/correct/{sample}.ngsgpu_correct_generalstats_mqc.json"
        ),
        *every_sample(
            "results/{sample}/evaluate/{sample}.ngsgpu_correction_mqc.json", DATASETS
        ),
        *every_sample(
            "results/{sample}/evaluate/{sample}.ngsgpu_correction_generalstats_mqc.json",
            DATASETS,
        ),
        *every_sample("results/{sample}/quast/multiqc/report.tsv"),
    ]


def targets():
    """What the study ends with."""
    content = multiqc_content()
    return ["results/report.html", *content, *classification_targets()] + (
        ["results/multiqc/multiqc_report.html"] if config["multiqc"] else []
    )
