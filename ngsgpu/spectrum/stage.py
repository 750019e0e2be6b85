"""Spectrum correction from files to files.

As with the other method, the inputs are read twice, and only bases change (with ``--quality``
also their qualities).
"""

from __future__ import annotations

from pathlib import Path

from ngsgpu.io.compress.formats import packing_of
from ngsgpu.io.inputs import plan_lanes
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from ngsgpu.run.options import RunOptions
from ngsgpu.run.read_set import OpenFiles, ReadSetDriver
from ngsgpu.spectrum.cpu_run import Run, SpectrumCorrections, SpectrumOnCpu
from ngsgpu.spectrum.outputs import ByClass, class_paths
from ngsgpu.spectrum.params import SpectrumParameters
from ngsgpu.spectrum.stats import SpectrumStatistics


def correct_files(
    in1: Paths,
    out1: Paths,
    in2: Paths = (),
    out2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: SpectrumParameters | None = None,
    phred_offset: PhredOffset = "auto",
    trim: bool = False,
    split: str | Path | None = None,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> SpectrumStatistics:
    """Correct the reads of files by their k-mers and write them in the same order and layout.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input.
        out1: one output for each of ``in1``, or one for all; ``-`` is standard output. Names ending
            in ``.gz`` or ``.zst`` are compressed.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: of the correction.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        trim: cut reads that are not fixed to their longest part of solid k-mers, and leave out
            those without any (unless their mate has some).
        split: prefix of further outputs, one (or two, of mates) for each class of reads.
        stats: JSON file for the statistics.
        options: threads, memory and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: the files are inconsistent.
        HostMemoryError: the memory does not suffice.
        DeviceError: the GPU failed, and the CPU may not take over.
        OutputError: an output cannot be written; none was.
    """
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    width = len(lanes[0].inputs)
    packing = packing_of(outputs[0])
    ending = packing.endings[0] if packing is not None else ""
    by_class = [] if split is None else class_paths(str(split), width, ending)
    paths = [*outputs, *by_class]
    numbers = range(len(outputs), len(paths), width)
    classes = [range(first, first + width) for first in numbers]

    def corrected(run: Run, files: OpenFiles) -> SpectrumStatistics:
        if not trim and not classes:
            run.copy_inputs(files.lanes, files.outputs)
        run.count()
        corrections = run.correct(trim=trim)
        render = ByClass(corrections, trim, classes) if trim or classes else None
        counts = run.write(files.lanes, corrections.edits, files.outputs, render)
        return SpectrumStatistics.of(run, corrections, counts)

    return _DRIVER.run_files(
        lanes,
        paths,
        corrected,
        parameters=parameters,
        phred_offset=phred_offset,
        stats=stats,
        options=options,
        keeps_format=True,
    )


def correct_reads(
    reads: ReadSet,
    parameters: SpectrumParameters | None = None,
    options: RunOptions | None = None,
    *,
    trim: bool = False,
) -> SpectrumCorrections:
    """Correct a read set in memory; see ``correct_files``."""

    def corrected(run: Run) -> SpectrumCorrections:
        run.count()
        return run.correct(trim=trim)

    return _DRIVER.run_reads(reads, corrected, parameters, options)


def _on_gpu() -> type[Run]:
    from ngsgpu.spectrum.gpu_run import SpectrumOnGpu

    return SpectrumOnGpu


_DRIVER = ReadSetDriver[SpectrumParameters, Run](SpectrumParameters, SpectrumOnCpu, _on_gpu)
plan_files = _DRIVER.plan_files
