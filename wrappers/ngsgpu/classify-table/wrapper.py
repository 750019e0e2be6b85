"""Snakemake wrapper for ngsgpu classify-table."""

__author__ = "The ngsgpu developers"
__copyright__ = "Copyright 2026, The ngsgpu developers"
__license__ = "MIT"

import shlex

from snakemake.shell import shell


def option(name, files):
    """The option before each of its files; the files alone without a name."""
    files = [files] if isinstance(files, str) else files or []
    return " ".join(f"{name} {shlex.quote(str(file))}".strip() for file in files)


log = snakemake.log_fmt_shell(stdout=True, stderr=True)
extra = snakemake.params.get("extra", "")

files = " ".join(
    [
        option("", snakemake.input.reports),
        option("--reads", snakemake.output.get("reads")),
        option("--abundances", snakemake.output.get("abundances")),
        option("--taxpasta", snakemake.output.get("taxpasta")),
        option("--biom", snakemake.output.get("biom")),
    ]
)


shell("ngsgpu classify-table {files} {extra} {log}")
