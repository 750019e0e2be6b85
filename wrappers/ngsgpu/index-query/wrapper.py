"""Snakemake wrapper for ngsgpu index query."""

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
        option("", f"{snakemake.input.index}/index"),
        option("--in1", snakemake.input.r1),
        option("--out", snakemake.output.matches),
        option("--stats", snakemake.output.get("stats")),
    ]
)

gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell("ngsgpu index query {files} --threads {snakemake.threads} {device} {extra} {log}")
