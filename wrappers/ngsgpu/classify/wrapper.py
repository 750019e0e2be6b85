"""Snakemake wrapper for ngsgpu classify."""

__author__ = "The ngsgpu developers"
__copyright__ = "Copyright 2026, The ngsgpu developers"
__license__ = "MIT"

import shlex

from snakemake.shell import shell


def option(name, files):
    """The option before each of its files."""
    files = [files] if isinstance(files, str) else files or []
    return " ".join(f"{name} {shlex.quote(str(file))}" for file in files)


log = snakemake.log_fmt_shell(stdout=True, stderr=True)
extra = snakemake.params.get("extra", "")

database = option("--database", snakemake.input.database)
reads = " ".join(
    [option("--in1", snakemake.input.r1), option("--in2", snakemake.input.get("r2"))]
)
sample = snakemake.params.get("sample")
sample = f"--sample {shlex.quote(sample)}" if sample else ""
# Every output is named after its option, but for the table of calls.
outputs = (
    "kraken_reads",
    "report",
    "krona",
    "cami",
    "biom",
    "abundance",
    "coverage",
    "evidence",
    "stats",
)
written = " ".join(
    [option("--out", snakemake.output.get("calls"))]
    + [
        option(f"--{name.replace('_', '-')}", snakemake.output.get(name))
        for name in outputs
    ]
)

gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell(
    "ngsgpu classify {database} {reads} {sample} {written}"
    " --threads {snakemake.threads} {device} {extra} {log}"
)
