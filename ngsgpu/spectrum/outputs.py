"""Outputs of trimmed reads, and by class; mates stay together.

A pair has the class of the mate that fared worse. Trimming takes out reads whose k-mers are all
weak (pairs where both mates are such); a mate of a better read is kept as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit
from ngsgpu.run.again.edited import Rendered
from ngsgpu.spectrum.cpu import CLASSES, DISCARDED, TRIMMED
from ngsgpu.spectrum.cpu_run import SpectrumCorrections

_LINE_END = 10
_PLUS = ord("+")


@njit(nogil=True, cache=True, inline="always")
def _copy(
    data: NDArray[np.uint8], begin: Integer, end: Integer, out: NDArray[np.uint8], at: Integer
) -> Integer:
    """Copy bytes and end the line."""
    out[at : at + end - begin] = data[begin:end]
    at += end - begin
    out[at] = _LINE_END
    return at + 1


@njit(nogil=True, cache=True)
def copy_parts(
    mates: Mates,
    each: Integer,
    wanted: NDArray[np.bool_],
    begin: NDArray[np.int32],
    end: NDArray[np.int32],
    out: NDArray[np.uint8],
) -> Integer:
    """Copy a part of FASTQ records; return the number of bytes.

    Args:
        mates: all records of a batch.
        each: records of a unit: 2 if mates alternate.
        wanted: bool[units], which units are copied.
        begin: int32[records], first base.
        end: int32[records], end of the bases.
        out: room for them.
    """
    at = 0
    for i in range(len(begin)):
        if not wanted[i // each]:
            continue
        at = _copy(mates.data, mates.header_start[i] - 1, mates.header_end[i], out, at)
        sequence = mates.seq_start[i]
        at = _copy(mates.data, sequence + begin[i], sequence + end[i], out, at)
        out[at] = _PLUS
        at = _copy(mates.data, sequence, sequence, out, at + 1)
        quality = mates.qual_start[i]
        at = _copy(mates.data, quality + begin[i], quality + end[i], out, at)
    return at


class ByClass:
    """Renders edited records for the outputs of a run.

    Args:
        corrections: with classes and parts.
        trim: whether the outputs of the lanes get trimmed reads.
        split: for every class, the indices of its outputs (as many as a lane has); none to have
            no such outputs.
    """

    def __init__(
        self, corrections: SpectrumCorrections, trim: bool, split: Sequence[Sequence[int]]
    ) -> None:
        self._corrections = corrections
        self._trim = trim
        self._split = split

    def __call__(
        self, lane: ReadFiles, mates: tuple[RecordBatch, ...], first_read: int
    ) -> Rendered:
        """See ``Render``."""
        if mates[0].qual_start is None:
            raise InputError(
                mates[0].path,
                "is FASTA, whose reads are not trimmed or split by class",
                "leave out `trim` and `split`, or give FASTQ",
            )
        reads = sum(map(len, mates))
        rows = slice(first_read, first_read + reads)
        own = self._corrections
        classes = own.classes[rows]
        units = classes.reshape(-1, 2) if lane.paired else classes.reshape(-1, 1)
        worst, best = units.max(axis=1), units.min(axis=1)
        lengths = np.empty(reads, dtype=np.int32)
        for mate, batch in enumerate(mates):
            lengths[mate :: len(mates)] = batch.seq_len
        cut = self._trim & (classes == TRIMMED)
        begin = np.where(cut, own.begin[rows], 0).astype(np.int32)
        end = np.where(cut, own.end[rows], lengths).astype(np.int32)
        selections = [
            (outputs, worst == number) for number, outputs in enumerate(self._split[: len(CLASSES)])
        ]
        pieces: Rendered = []
        if self._trim:
            selections.append((lane.outputs, best != DISCARDED))
        else:
            pieces += [(lane.outputs[mate], batch.text) for mate, batch in enumerate(mates)]
        for outputs, wanted in selections:
            for mate, batch in enumerate(mates):
                piece = _parts(
                    batch, 2 if lane.interleaved else 1, wanted,
                    begin[mate :: len(mates)], end[mate :: len(mates)],
                )  # fmt: skip
                if len(piece):
                    pieces.append((outputs[mate], piece))
        return pieces


def _parts(
    batch: RecordBatch,
    each: int,
    wanted: NDArray[np.bool_],
    begin: NDArray[np.int32],
    end: NDArray[np.int32],
) -> NDArray[np.uint8]:
    # A record may lack its last line end, and its third line may be shorter than that copied.
    out = np.empty(len(batch.text) + 4 * len(batch), dtype=np.uint8)
    size = copy_parts(
        Mates.of(batch, 0, 1), each, wanted,
        np.ascontiguousarray(begin), np.ascontiguousarray(end), out,
    )  # fmt: skip
    return out[:size]


def class_paths(prefix: str, outputs: int, ending: str) -> list[str]:
    """Names of the outputs by class, those of a class together.

    Args:
        prefix: of the names.
        outputs: 2 if mates are in separate files.
        ending: of the names, by which they are compressed: ``.gz``, ``.zst`` or nothing.
    """
    mates = ("_1", "_2") if outputs == 2 else ("",)
    return [f"{prefix}.{name}{mate}.fastq{ending}" for name in CLASSES for mate in mates]
