"""Snakemake wrapper for ngsgpu assemble."""

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
        option("--in1", snakemake.input.get("r1")),
        option("--in2", snakemake.input.get("r2")),
        option("--single", snakemake.input.get("single")),
        option("--out", snakemake.output.get("contigs")),
        option("--gfa", snakemake.output.get("gfa")),
        option("--scaffolds", snakemake.output.get("scaffolds")),
        option("--coverage", snakemake.output.get("coverage")),
        option("--stats", snakemake.output.get("stats")),
    ]
)

mem_mb = snakemake.resources.get("mem_mb")
memory = f"--memory {mem_mb}M" if mem_mb else ""
gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell(
    "ngsgpu assemble {files}"
    " --threads {snakemake.threads} {memory} {device} {extra} {log}"
)
