"""Snakemake wrapper for ngsgpu extract."""

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
        option("--calls", snakemake.input.calls),
        option("--in1", snakemake.input.r1),
        option("--in2", snakemake.input.get("r2")),
        option("--out1", snakemake.output.r1),
        option("--out2", snakemake.output.get("r2")),
        option("--database", snakemake.input.get("database")),
        option("--taxonomy", snakemake.input.get("taxonomy")),
        option("--stats", snakemake.output.get("stats")),
        option("--taxon", snakemake.params.get("taxa")),
    ]
)


shell("ngsgpu extract {files} --threads {snakemake.threads} {extra} {log}")
