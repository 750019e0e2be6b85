"""``ngsgpu workflow``: begin a study, and find the Snakemake workflow that runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ngsgpu.cli.options import Paths, flag, option

app = typer.Typer(
    help="Begin a study with the Snakemake workflow.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(name="init")
def init(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Directory of the study.", show_default=False)
    ],
    reads: Paths | None = option(
        None, "FOLDER", "Folder of FASTQ files, searched recursively; repeat for more."
    ),
    single_end: bool = flag(
        "No file has mates; each is a sample, whatever its name.", "--single-end"
    ),
    profile: str = option("local", "local|slurm", "Where jobs run."),
    force: bool = flag("Replace the study's files if they are there.", "--force"),
) -> None:
    """Write a study: module Snakefile, config, sample sheet and profile.

    Samples, lanes and mates are recognised by the names of the FASTQ files: A_S1_L001_R1_001 of
    Illumina, A_R1, A.R1, A_1 or A.1, with _L001 or _lane1 before the mate; a file without a mate in
    its name holds single-end reads, and so do first mates of a sample without second ones.
    Ambiguous names are an error. Existing files are kept.

    Example:  ngsgpu workflow init study --reads fastq/ && cd study && snakemake
    """
    import shlex

    from ngsgpu.workflow.study import init_study, packages_to_install

    study = init_study(
        folder, reads=reads or [], single_end=single_end, profile=profile, force=force
    )
    samples = study.found.samples.values()
    paired = sum(lanes[0].second is not None for lanes in samples)
    sheet = folder / "config" / "samples.tsv"
    if samples:
        typer.echo(
            f"{sheet}: {len(samples)} samples ({paired} paired, {len(samples) - paired} "
            f"single-end), {len(study.found.lanes)} lanes"
        )
    else:
        typer.echo(f"{sheet}: no samples yet; add one row per lane")
    if study.found.unpaired:
        names = ", ".join(path.name for path in study.found.unpaired)
        typer.echo(
            f"taken as single-end, since their samples have no second mates: {names}; if these are "
            "missing, add them and run this again with --force"
        )
    if study.found.passed_over:
        count = len(study.found.passed_over)
        typer.echo(f"passed over: {count} files of index or undetermined reads")
    if study.off:
        steps = ", ".join(f"{step} ({program})" for step, program in study.off.items())
        typer.echo(
            f"{folder / 'config' / 'config.yaml'}: off, since neither conda nor the program is on "
            f"the PATH: {steps}"
        )
    typer.echo("next:")
    if wanted := packages_to_install(profile):
        typer.echo(f"  pip install {shlex.join(wanted)}")
    typer.echo(f"  cd {shlex.quote(str(folder))}")
    if profile != "local":
        settings = f"workflow/profiles/{profile}/profile.yaml"
        typer.echo(f"  # edit the marked section of {settings}: account and partitions")
    typer.echo(f"  {study.command}")


@app.command(name="path")
def path() -> None:
    """Print the path of the workflow's Snakefile, for modules and snakemake --snakefile."""
    from ngsgpu.workflow import snakefile

    typer.echo(snakefile())
