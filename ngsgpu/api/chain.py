"""Several stages in one call."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Unpack

from ngsgpu.api.runs import Folder, How, Source, inputs_of, run_options
from ngsgpu.chains.run import Runs
from ngsgpu.chains.runner import ChainStatistics
from ngsgpu.chains.steps import read_steps, steps_of
from ngsgpu.classify.run.samples import one_sample


def chain(
    steps: str | Path | Iterable[str | Mapping[str, Any]],
    reads: Source,
    mates: Source | None = None,
    *,
    out: str | Path,
    sample: str | None = None,
    interleaved: bool = False,
    **how: Unpack[How],
) -> ChainStatistics:
    """Run several stages over the same reads, as ``ngsgpu run``.

    Args:
        steps: a file of steps, ``isolate``, or steps in order: names, or names with the options of
            their commands, such as ``{"correct": {"coverage": 40, "keep": True}}``.
        reads: single reads, first mates, or pairs.
        mates: second mates.
        out: folder of the outputs.
        sample: name of the sample; None: that of the first file.
        interleaved: whether files of ``reads`` hold both mates.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        What was done: ``steps`` has name, command, time and outputs of each.

    Raises:
        NgsgpuError: a step fails, or is none.
    """
    wanted = read_steps(str(steps)) if isinstance(steps, str | Path) else steps_of(steps)
    options = run_options(how)
    logger = logging.getLogger("ngsgpu")
    level = logger.level
    with Folder() as folder:
        inputs = inputs_of(reads, mates, interleaved, folder)
        found = one_sample(
            list(map(str, inputs.first)),
            list(map(str, inputs.second)),
            interleaved=inputs.interleaved,
            name=sample,
        )
        runs = Runs(wanted, Path(out), options, quiet=not options.progress)
        try:
            runs.check([found])
            (statistics,) = runs.all([found])
        finally:
            logger.setLevel(level)  # commands that print only errors raise it
            folder.remove()
    return statistics
