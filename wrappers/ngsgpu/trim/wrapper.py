"""Snakemake wrapper for ngsgpu trim."""

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
        option("--in2", snakemake.input.get("r2")),
        option("--out1", snakemake.output.r1),
        option("--out2", snakemake.output.get("r2")),
        option("--unpaired1", snakemake.output.get("unpaired1")),
        option("--unpaired2", snakemake.output.get("unpaired2")),
        option("--failed-out", snakemake.output.get("failed")),
        option("--json", snakemake.output.get("json")),
        option("--adapter-fasta", snakemake.input.get("adapter_fasta")),
        option("--stats", snakemake.output.get("stats")),
    ]
)

gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell("ngsgpu trim {files} --threads {snakemake.threads} {device} {extra} {log}")
