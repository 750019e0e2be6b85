"""Stages as functions: reads in, reads out; and several of them in one call."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Unpack, overload

from ngsgpu.api.files import Pair
from ngsgpu.api.record import Record
from ngsgpu.api.results import Merged, Result
from ngsgpu.api.runs import Folder, How, Source, check_kind, inputs_of, run_options
from ngsgpu.assemble.contigs import AssemblyParameters, assemble_files
from ngsgpu.chains.run import Runs
from ngsgpu.chains.runner import ChainStatistics
from ngsgpu.chains.steps import read_steps, steps_of
from ngsgpu.classify.run.samples import one_sample
from ngsgpu.correct import CorrectionParameters, correct_files
from ngsgpu.deplete import DepletionParameters, deplete_files
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.merge import MergeOutputs, MergeParameters, merge_files
from ngsgpu.spectrum import SpectrumParameters
from ngsgpu.spectrum import correct_files as correct_by_spectrum
from ngsgpu.trim import TrimOutputs, TrimParameters, trim_files


@overload
def correct(
    reads: Source, mates: Source,
    parameters: CorrectionParameters | SpectrumParameters | None = None, *,
    phred_offset: PhredOffset = "auto", **how: Unpack[How],
) -> Result[Pair]: ...  # fmt: skip
@overload
def correct(
    reads: Source, mates: CorrectionParameters | SpectrumParameters | None = None,
    parameters: CorrectionParameters | SpectrumParameters | None = None, *,
    interleaved: bool = False, phred_offset: PhredOffset = "auto", **how: Unpack[How],
) -> Result[Any]: ...  # fmt: skip
def correct(
    reads: Source,
    mates: Source | CorrectionParameters | SpectrumParameters | None = None,
    parameters: CorrectionParameters | SpectrumParameters | None = None,
    *,
    interleaved: bool = False,
    phred_offset: PhredOffset = "auto",
    **how: Unpack[How],
) -> Result[Any]:
    """Correct substitution errors, as ``ngsgpu correct``.

    Args:
        reads: all reads of a library: single ones, first mates, or pairs.
        mates: second mates; or the parameters, if there are none.
        parameters: of CARE's method, the default, or of that by k-mers.
        interleaved: whether files of ``reads`` hold both mates.
        phred_offset: 33, 64, or ``auto``.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        The corrected reads, or pairs, in the order of the input.

    Raises:
        NgsgpuError: see ``ngsgpu.correct.correct_files``.
    """
    seconds, chosen = _apart(mates, parameters, CorrectionParameters, SpectrumParameters)
    more: dict[str, Any] = {"phred_offset": phred_offset}
    if chosen is not None:
        more["parameters"] = chosen
    by_kmers = isinstance(chosen, SpectrumParameters)
    files = correct_by_spectrum if by_kmers else correct_files
    return _reads_of(partial(files, **more), reads, seconds, interleaved, how)


def deplete(
    reads: Source,
    mates: Source | DepletionParameters | None = None,
    parameters: DepletionParameters | None = None,
    *,
    host: str | Path,
    interleaved: bool = False,
    **how: Unpack[How],
) -> Result[Any]:
    """Take the reads of a host out, as ``ngsgpu deplete``.

    Args:
        reads: single reads, first mates, or pairs.
        mates: second mates; or the parameters, if there are none.
        parameters: what is the host's, and what is kept.
        host: index of the host, made by ``ngsgpu deplete-index`` or ``ngsgpu.deplete.build_index``.
        interleaved: whether files of ``reads`` hold both mates.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        The reads, or pairs, that are kept.

    Raises:
        NgsgpuError: see ``ngsgpu.deplete.deplete_files``.
    """
    seconds, chosen = _apart(mates, parameters, DepletionParameters)
    return _reads_of(
        partial(deplete_files, host, parameters=chosen), reads, seconds, interleaved, how
    )


def merge(
    reads: Source,
    mates: Source | MergeParameters | None = None,
    parameters: MergeParameters | None = None,
    *,
    interleaved: bool = False,
    phred_offset: PhredOffset = "auto",
    **how: Unpack[How],
) -> Merged:
    """Merge overlapping pairs to one read each, as ``ngsgpu merge``.

    Args:
        reads: first mates, or pairs.
        mates: second mates; or the parameters, if there are none.
        parameters: of merging.
        interleaved: whether files of ``reads`` hold both mates.
        phred_offset: 33, 64, or ``auto``.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        The merged reads; the other pairs are its ``unmerged``.

    Raises:
        NgsgpuError: see ``ngsgpu.merge.merge_files``.
    """
    seconds, chosen = _apart(mates, parameters, MergeParameters)
    options = run_options(how)
    with Folder() as folder:
        inputs = inputs_of(reads, seconds, interleaved, folder)
        merged, first, second = (folder.path / name for name in ("merged", "first", "second"))
        statistics = merge_files(
            inputs.first,
            inputs.second,
            MergeOutputs(merged, first, second),
            interleaved=inputs.interleaved,
            parameters=chosen,
            phred_offset=phred_offset,
            options=options,
        )
        result = Merged(folder, [merged], statistics)
        result.unmerged = Result(folder, [first, second], statistics)
        return result


def trim(
    reads: Source,
    mates: Source | TrimParameters | None = None,
    parameters: TrimParameters | None = None,
    *,
    interleaved: bool = False,
    phred64: bool = False,
    **how: Unpack[How],
) -> Result[Any]:
    """Cut adapters and poor ends off, and leave out poor reads, as ``ngsgpu trim``.

    Args:
        reads: single reads, first mates, or pairs.
        mates: second mates; or the parameters, if there are none.
        parameters: what is trimmed and kept.
        interleaved: whether files of ``reads`` hold both mates.
        phred64: whether qualities are Phred+64.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        The reads, or pairs, that are kept.

    Raises:
        NgsgpuError: see ``ngsgpu.trim.trim_files``.
    """
    seconds, chosen = _apart(mates, parameters, TrimParameters)

    def files(first: Any, out1: Any, second: Any, out2: Any, **more: Any) -> Any:
        outputs = TrimOutputs(out1=out1[0], out2=out2[0] if out2 else None)
        return trim_files(first, second, outputs, parameters=chosen, phred64=phred64, **more)

    return _reads_of(files, reads, seconds, interleaved, how)


def assemble(
    reads: Source,
    mates: Source | AssemblyParameters | None = None,
    parameters: AssemblyParameters | None = None,
    *,
    single: Source | None = None,
    interleaved: bool = False,
    phred_offset: PhredOffset = "auto",
    **how: Unpack[How],
) -> Result[Record]:
    """Assemble the reads of an isolate, as ``ngsgpu assemble``.

    Args:
        reads: single reads, first mates, or pairs.
        mates: second mates; or the parameters, if there are none.
        parameters: of the assembly.
        single: more single reads, such as merged pairs.
        interleaved: whether files of ``reads`` hold both mates.
        phred_offset: 33, 64, or ``auto``.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        The contigs.

    Raises:
        NgsgpuError: see ``ngsgpu.assemble.contigs.assemble_files``.
    """
    seconds, chosen = _apart(mates, parameters, AssemblyParameters)
    options = run_options(how)
    with Folder() as folder:
        inputs = inputs_of(reads, seconds, interleaved, folder)
        more = [] if single is None else inputs_of(single, None, False, folder, "single").first
        contigs = folder.path / "contigs"
        statistics = assemble_files(
            inputs.first,
            contigs,
            inputs.second,
            single=more,
            interleaved=inputs.interleaved,
            parameters=chosen,
            phred_offset=phred_offset,
            options=options,
        )
        return Result(folder, [contigs], statistics)


def _reads_of(
    files: Callable[..., Any], reads: Source, mates: Source | None, interleaved: bool, how: How
) -> Result[Any]:
    """Run a stage whose output has the order and layout of its input; return its reads.

    Args:
        files: takes first mates, their output, second mates and theirs.
        reads: see ``inputs_of``.
        mates: likewise.
        interleaved: likewise.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.
    """
    options = run_options(how)
    with Folder() as folder:
        inputs = inputs_of(reads, mates, interleaved, folder)
        first, second = [folder.path / "first"], [folder.path / "second"] if inputs.second else []
        statistics = files(
            inputs.first,
            first,
            inputs.second,
            second,
            interleaved=inputs.interleaved,
            options=options,
        )
        return Result(folder, [*first, *second], statistics, interleaved=inputs.interleaved)


def _apart(mates: Any, parameters: Any, *kinds: type) -> tuple[Any, Any]:
    """Mates and parameters, where these may have been given in the place of mates.

    Raises:
        UsageError: the parameters are those of something else.
    """
    if parameters is None and isinstance(mates, kinds):
        return None, mates
    check_kind("parameters", parameters, *kinds)
    return mates, parameters


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
