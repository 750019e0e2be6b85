"""Snakemake wrapper for ngsgpu index build."""

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
        option("", snakemake.input.reference),
        option("--out", f"{snakemake.output.index}/index"),
        option("--stats", snakemake.output.get("stats")),
    ]
)

mem_mb = snakemake.resources.get("mem_mb")
memory = f"--memory {mem_mb}M" if mem_mb else ""
gpus = snakemake.resources.get("gpu", 0)
device = f"--backend cuda --gpus {gpus}" if gpus else "--backend cpu"

shell("mkdir -p {snakemake.output.index:q}")
shell(
    "ngsgpu index build {files}"
    " --threads {snakemake.threads} {memory} {device} {extra} {log}"
)
