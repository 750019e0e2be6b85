"""``ngsgpu workflow``: begin a study, add reads to it, and find the workflow that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Final, Literal

import click

from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.roles import ReadByName, WrittenFolder

if TYPE_CHECKING:
    from ngsgpu.workflow.reads import Found


SingleEnd = Annotated[
    bool,
    flag("No file has mates; each is a sample, whatever its name.", "--single-end", default=...),
]


def init(
    folder: Annotated[WrittenFolder, argument(..., "DIR", "Directory of the study.")],
    reads: list[ReadByName] | None = option(
        None, "FOLDER", "Folder of reads, searched recursively; repeat for more."
    ),
    single_end: SingleEnd = False,
    profile: Literal["local", "slurm"] = option("local", "local|slurm", "Where jobs run."),
    force: bool = flag("Replace the study's files if they are there.", "--force"),
) -> None:
    """Write a study: module Snakefile, config, sample sheet and profile.

    Samples, lanes and mates are recognised by the names of the files: A_S1_L001_R1_001 of
    Illumina, A_R1, A.R1, A_1, A.1 or A_1P, with _L001 or _lane1 beside the mate; a file without a
    mate in its name holds single-end reads, and so do first mates of a sample without second ones.
    Ambiguous names are an error; what is not taken is listed. Existing files are kept.

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
        click.echo(
            f"{sheet}: {len(samples)} samples ({paired} paired, {len(samples) - paired} "
            f"single-end), {len(study.found.lanes)} lanes"
        )
    else:
        click.echo(f"{sheet}: no samples yet; add one row per lane")
    for line in _notes(study.found):
        click.echo(line)
    if study.off:
        steps = ", ".join(f"{step} ({program})" for step, program in study.off.items())
        click.echo(
            f"{folder / 'config' / 'config.yaml'}: off, since neither conda nor the program is on "
            f"the PATH: {steps}"
        )
    click.echo("next:")
    if wanted := packages_to_install(profile):
        click.echo(f"  pip install {shlex.join(wanted)}")
    click.echo(f"  cd {shlex.quote(str(folder))}")
    if profile != "local":
        settings = f"workflow/profiles/{profile}/profile.yaml"
        click.echo(f"  # edit the marked section of {settings}: account and partitions")
    click.echo(f"  {study.command}")


def add(
    folder: Annotated[WrittenFolder, argument(..., "DIR", "Directory of the study.")],
    reads: list[ReadByName] = option(
        ..., "FOLDER", "Folder of the new reads, searched recursively; repeat for more."
    ),
    single_end: SingleEnd = False,
) -> None:
    """Add the reads of a run to the sheet of a study.

    Names are read as `ngsgpu workflow init` does. Samples that the sheet has get further lanes,
    others are new; files that it names already are passed over. Then snakemake makes what the new
    lanes change, and nothing else.

    Example:  ngsgpu workflow add study --reads run43/ && cd study && snakemake
    """
    from ngsgpu.workflow.sheet import add_reads

    added = add_reads(folder, reads, single_end=single_end)
    known = f"; {added.known} were there" if added.known else ""
    click.echo(f"{added.sheet}: {added.lanes} lanes added{known}")
    for what, names in (("new samples", added.new), ("samples with more lanes", added.longer)):
        if names:
            click.echo(f"{what}: {_some(names)}")
    for line in _notes(added.found):
        click.echo(line)


def _notes(found: Found) -> Iterator[str]:
    """What a user should know of how names were read."""
    for name, folders in found.of_folders.items():
        yield f"files in several folders are called {name}; named after these: {_some(folders)}"
    if found.renamed:
        yield "written in the sheet as " + _some(
            f"{own} ({raw})" for own, raw in found.renamed.items()
        )
    if found.several:
        yield f"equal names in several folders are lanes of one sample: {_some(found.several)}"
    if found.unpaired:
        names = _some(path.name for path in found.unpaired)
        yield (
            f"taken as single-end, since their samples have no second mates: {names}; if these are "
            "missing, add them and run this again with --force"
        )
    if found.like_mates:
        names = _some(path.name for path in found.like_mates)
        yield f"taken as single-end: {names}; if these are mates, end their names in _R1 and _R2"
    for reason, paths in found.passed_over.items():
        yield f"not taken, {reason}: {_some(path.name for path in paths)}"


def _some(names: Iterable[str]) -> str:
    first = [*names]
    return ", ".join(first[:10]) + (f" and {len(first) - 10} more" if len(first) > 10 else "")


def path() -> None:
    """Print the path of the workflow's Snakefile, for modules and snakemake --snakefile."""
    from ngsgpu.workflow import snakefile

    click.echo(snakefile())


COMMANDS: Final = {"init": init, "add": add, "path": path}
