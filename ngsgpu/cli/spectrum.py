"""``ngsgpu correct --method spectrum``."""

from __future__ import annotations

from typing import Any, NamedTuple

from ngsgpu.cli.options import StageRun
from ngsgpu.cli.run import open_run, phred, say, show_plan


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
    """
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.readset.gpu",
        "ngsgpu.kmers.gpu",
        "ngsgpu.spectrum.gpu",
        lease=not run.dry_run,
    ) as (backend, options):
        from ngsgpu.spectrum import SpectrumParameters, correct_files, plan_files
        from ngsgpu.spectrum.gpu_plan import plan_for_this_gpu

        chosen = SpectrumParameters(**parameters)
        settings: dict[str, Any] = {
            "interleaved": files.interleaved,
            "parameters": chosen,
            "phred_offset": phred(run.phred_offset),
            "options": options,
        }
        if run.dry_run:
            plan = plan_files(files.in1, files.in2, **settings)
            show_plan(backend, plan, chosen, options, plan_for_this_gpu)
            return
        statistics = correct_files(
            files.in1, files.out1, files.in2, files.out2,
            trim=files.trim, split=files.split, stats=run.stats, **settings,
        )  # fmt: skip
        say(statistics, run.quiet)
