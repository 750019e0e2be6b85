"""Snakemake wrapper for ngsgpu merge."""

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
        option("--in1", snakemake.input.r1),
        option("--in2", snakemake.input.r2),
        option("--out", snakemake.output.merged),
        option("--unmerged1", snakemake.output.get("unmerged1")),
        option("--unmerged2", snakemake.output.get("unmerged2")),
        option("--hist", snakemake.output.get("hist")),
        option("--histogram", snakemake.output.get("histogram")),
        option("--ihist", snakemake.output.get("ihist")),
        option("--stats", snakemake.output.get("stats")),
    ]
)

gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell("ngsgpu merge {files} --threads {snakemake.threads} {device} {extra} {log}")
