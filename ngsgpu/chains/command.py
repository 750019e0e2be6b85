"""``ngsgpu run``: a chain of steps in one process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from ngsgpu.cli.options import (
    CompressLevel,
    Compute,
    GpuMemory,
    InterleavedInput,
    Memory,
    ReadsOrFirstMates,
    SecondMates,
)
from ngsgpu.cli.run import open_run, say
from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.roles import ReadByName, Sheet, Text, WrittenFolder
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.chains.steps import Step


@dataclass(frozen=True, kw_only=True)
class ChainRun(Compute):
    """A run of several steps."""

    memory: Memory = None
    gpu_memory: GpuMemory = None
    compress_level: CompressLevel = 1


def run(
    chain: Annotated[
        ReadByName | None,
        argument(..., "STEPS", "File with the steps, TOML or YAML; or isolate."),
    ] = None,
    steps: Text | None = option(
        None, "LIST", "Steps by their names, such as trim,correct,merge, in place of STEPS."
    ),
    settings: list[Text] | None = option(
        None,
        "STEP.OPTION=VALUE",
        "An option of a step, such as correct.coverage=40; repeatable.",
        "--set",
    ),
    in1: ReadsOrFirstMates = None,
    in2: SecondMates = None,
    interleaved: InterleavedInput = False,
    sample: Text | None = option(None, "NAME", "Sample name.", shown_default="from -i"),
    samples: Sheet | None = option(
        None,
        "FILE",
        "Sample sheet, in place of -i: columns sample, fastq_1, fastq_2; each sample has a folder "
        "in the output folder.",
    ),
    out: WrittenFolder = option(..., "FOLDER", "Folder of the outputs.", "-o", "--out"),
    dry_run: bool = flag("Print the plan; write nothing.", "--dry-run"),
    *,
    run: ChainRun,
) -> int:
    """Run several steps over the same reads, in one process.

    The reads go from step to step in memory, if they fit; they are written where a step says keep:
    true, and after the last step that writes reads. Every step is a command with its options, and
    every file is the one that the command writes. Inputs are those of the first command.

    Chain:     ngsgpu run chain.yaml -i R1.fq.gz -I R2.fq.gz -o results

    By names:  ngsgpu run --steps trim,correct,merge -i R1.fq.gz -I R2.fq.gz -o results

    Isolate:   ngsgpu run isolate -i R1.fq.gz -I R2.fq.gz -o results
    """
    if (samples is None) == (not in1):
        raise UsageError("give reads with `in1` or a sample sheet with `samples`")
    if samples is not None and (in2 or interleaved or sample):
        raise UsageError("`samples` names the files; omit `in2`, `interleaved` and `sample`")
    wanted = _steps(chain, steps, settings or [])
    with open_run(run, lease=not dry_run) as options:
        from ngsgpu.chains.run import Runs
        from ngsgpu.classify.run.samples import one_sample, read_samples

        found = (
            [one_sample(in1 or [], in2 or [], interleaved=interleaved, name=sample)]
            if samples is None
            else read_samples(samples)
        )
        runs = Runs(wanted, Path(out), options, quiet=run.quiet)
        runs.check(found)
        if dry_run:
            click.echo(f"backend  {options.backend} ({options.backend_note})")
            for own in found:
                runs.show(own)
            return 0
        status = 0
        for statistics in runs.all(found):
            say(statistics, run.quiet)
            status = max(status, statistics.exit_status)
        return status


def _steps(chain: str | None, names: str | None, settings: list[str]) -> list[Step]:
    from ngsgpu.chains.steps import read_steps, steps_of, with_settings

    if (chain is None) == (names is None):
        raise UsageError("give a file of steps, or their names with `steps`")
    listed = [own.strip() for own in (names or "").split(",") if own.strip()]
    return with_settings(steps_of(listed) if chain is None else read_steps(chain), settings)
