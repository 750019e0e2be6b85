"""Extension from files to files.

The inputs are read twice: first into a read set that provides the candidates; then again, piece by
piece, for the names, bases and qualities of the output. Memory therefore holds the read set and its
tables, but results only of the active pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.cpu_run import ExtensionOnCpu, Run
from ngsgpu.extend.insert import InsertSize
from ngsgpu.extend.outputs import ExtensionOutputs, TextMaker
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.extend.rules import Rules
from ngsgpu.extend.stats import ExtensionStatistics
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.options import RunOptions
from ngsgpu.run.read_set import OpenFiles, ReadSetDriver


def extend_files(
    in1: Paths,
    in2: Paths = (),
    *,
    outputs: ExtensionOutputs,
    interleaved: bool = False,
    parameters: ExtensionParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> ExtensionStatistics:
    """Extend the pairs of files to long reads.

    Args:
        in1: files of first mates, or of interleaved mates; ``-`` is standard input.
        in2: files of second mates, as many as ``in1``, or none.
        outputs: output files.
        interleaved: whether ``in1`` holds both mates.
        parameters: extension parameters.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        options: threads, memory and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent.
        HostMemoryError: the memory does not suffice.
        OutputError: an output cannot be written; none was.
        DeviceError: the GPU's memory does not suffice, or CUDA fails.
    """
    lanes = _DRIVER.lanes(in1, in2, interleaved)
    outputs.check()

    def extended(run: Run, files: OpenFiles) -> ExtensionStatistics:
        run.fill_unknown()
        run.build()
        insert = run.insert_size()
        rules = run.parameters.rules(insert.mean, insert.sd)
        lengths = _extend(run, rules, outputs, files)
        return ExtensionStatistics.of(run, rules, insert, lengths)

    return _DRIVER.run_files(
        lanes,
        outputs.paths,
        extended,
        parameters=parameters,
        phred_offset=phred_offset,
        stats=outputs.stats,
        options=options,
        keeps_format=not outputs.fasta,
    )


def _extend(
    run: Run, rules: Rules, outputs: ExtensionOutputs, files: OpenFiles
) -> NDArray[np.int64]:
    """Extend all pairs and write them; returns how many extended reads there are of each length."""
    maker = TextMaker(outputs, run.offset, rules.reverse_complemented_input)
    lengths = np.zeros(1, dtype=np.int64)
    with run.step("extend", "extending", run.reads.reads // 2, "pairs") as stage:
        for text in run.texts(files.lanes, rules, maker):
            maker.write(text, files.outputs)
            counts = np.bincount(text.lengths, minlength=len(lengths))
            counts[: len(lengths)] += lengths
            lengths = counts
            stage.advance(text.pairs)
    return lengths


def extend_reads(
    reads: ReadSet,
    parameters: ExtensionParameters | None = None,
    options: RunOptions | None = None,
) -> tuple[Extensions, InsertSize]:
    """Extend all pairs of a read set in memory.

    Returns:
        The results, one row per pair, and the insert size used.
    """

    def extended(run: Run) -> tuple[Extensions, InsertSize]:
        run.fill_unknown()
        run.build()
        insert = run.insert_size()
        rules = run.parameters.rules(insert.mean, insert.sd)
        pairs = np.arange(reads.reads // 2, dtype=np.int64)
        parts = list(run.results(rules, pairs)) or [Extensions.allocate(0, rules)]
        return Extensions.concatenate(parts), insert

    return _DRIVER.run_reads(reads, extended, parameters, options)


def _on_gpu() -> type[Run]:
    from ngsgpu.extend.gpu_run import ExtensionOnGpu

    return ExtensionOnGpu


_DRIVER = ReadSetDriver[ExtensionParameters, Run](
    ExtensionParameters,
    ExtensionOnCpu,
    _on_gpu,
    "extension needs pairs: give second mates with `in2`, or `interleaved`",
)
plan_files = _DRIVER.plan_files
