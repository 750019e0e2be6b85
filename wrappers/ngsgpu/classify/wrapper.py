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

files = " ".join(
    [
        option("--database", snakemake.input.database),
        option("--in1", snakemake.input.r1),
        option("--in2", snakemake.input.get("r2")),
        option("--out", snakemake.output.get("calls")),
        option("--kraken-reads", snakemake.output.get("kraken_reads")),
        option("--report", snakemake.output.get("report")),
        option("--mpa", snakemake.output.get("mpa")),
        option("--krona", snakemake.output.get("krona")),
        option("--cami", snakemake.output.get("cami")),
        option("--biom", snakemake.output.get("biom")),
        option("--abundance", snakemake.output.get("abundance")),
        option("--coverage", snakemake.output.get("coverage")),
        option("--evidence", snakemake.output.get("evidence")),
        option("--classified-out", snakemake.output.get("classified_out")),
        option("--classified-out2", snakemake.output.get("classified_out2")),
        option("--unclassified-out", snakemake.output.get("unclassified_out")),
        option("--unclassified-out2", snakemake.output.get("unclassified_out2")),
        option("--stats", snakemake.output.get("stats")),
        option("--sample", snakemake.params.get("sample")),
    ]
)

gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell("ngsgpu classify {files} --threads {snakemake.threads} {device} {extra} {log}")
