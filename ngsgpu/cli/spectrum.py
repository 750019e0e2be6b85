"""``ngsgpu correct --method spectrum``."""

from __future__ import annotations

from typing import Any, NamedTuple

import typer

from ngsgpu.cli.options import BackendChoice, StageRun
from ngsgpu.cli.run import cpu_options, phred, say
from ngsgpu.errors import UsageError


class SpectrumFiles(NamedTuple):
    """Files of a run, and what of them is written; see ``ngsgpu.spectrum.correct_files``."""

    in1: list[str]
    out1: list[str]
    in2: list[str]
    out2: list[str]
    interleaved: bool
    trim: bool
    split: str | None


def correct_by_spectrum(files: SpectrumFiles, run: StageRun, **parameters: Any) -> None:
    """Correct files by their k-mers, or print the plan.

    Args:
        files: inputs and outputs.
        run: options of the run.
        parameters: those of ``SpectrumParameters``.

    Raises:
        UsageError: a GPU was asked for.
    """
    from ngsgpu.spectrum import SpectrumParameters, correct_files, plan_files

    if run.backend is BackendChoice.cuda:
        raise UsageError("--method spectrum runs on the CPU; leave out --backend cuda")
    chosen = SpectrumParameters(**parameters)
    options = cpu_options(run.threads, run.memory, run.quiet)
    settings: dict[str, Any] = {
        "interleaved": files.interleaved,
        "parameters": chosen,
        "phred_offset": phred(run.phred_offset),
        "options": options,
    }
    if run.dry_run:
        plan = plan_files(files.in1, files.in2, **settings)
        typer.echo("\n".join(["backend  cpu", *plan.lines()]))
        plan.check(chosen)
        return
    statistics = correct_files(
        files.in1, files.out1, files.in2, files.out2,
        trim=files.trim, split=files.split, stats=run.stats, **settings,
    )  # fmt: skip
    say(statistics, run.quiet)
