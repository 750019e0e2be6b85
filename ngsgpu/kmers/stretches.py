"""Stretches of sequences: what a thread takes k-mers from at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.batch import RecordBatch, cut_sequences
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.kmers.cpu import find_kmers, pack_letters
from ngsgpu.kmers.params import CountParameters

_NO_QUALITY = np.empty(0, dtype=np.int64)


class Stretches(NamedTuple):
    """Stretches of sequences, for ``find_kmers``.

    Attributes:
        data: text.
        begin: int64[n], where they begin.
        stop: int64[n], where they stop.
        low: int64[n], where their sequences begin.
        quality: int64[n], where their qualities begin; empty without.
        room: most k-mers that they have.
    """

    data: NDArray[np.uint8]
    begin: NDArray[np.int64]
    stop: NDArray[np.int64]
    low: NDArray[np.int64]
    quality: NDArray[np.int64]
    room: int


def stretches_of(batch: RecordBatch, k: int, most: int) -> Iterator[Stretches]:
    """Cut a batch into stretches, see ``cut_sequences``.

    Args:
        batch: records.
        k: length of a k-mer.
        most: maximum number of letters of the stretches that are handled at a time.
    """
    for begin, stop, record in cut_sequences(batch, most):
        low = batch.seq_start[record]
        quality = _NO_QUALITY if batch.qual_start is None else batch.qual_start[record]
        rooms = np.maximum(0, stop - begin - np.where(begin == low, k - 1, 0))
        yield Stretches(batch.data, begin, stop, low, quality, int(rooms.sum()))


def offset_to_read(parameters: CountParameters, phred_offset: PhredOffset) -> PhredOffset:
    """The offset by which files are read: where no quality counts, none is doubted for its own."""
    return 33 if phred_offset == "auto" and parameters.min_quality == 0 else phred_offset


def lowest_quality(parameters: CountParameters, phred_offset: PhredOffset) -> int:
    """Lowest quality character of a base that counts; 0 counts all."""
    offset = 33 if phred_offset == "auto" else phred_offset
    return parameters.min_quality + offset if parameters.min_quality > 0 else 0


def kmers_in(own: Stretches, k: int, least: int, room: NDArray[np.uint64]) -> int:
    """Write the canonical k-mers of stretches; return their number.

    Args:
        own: the stretches.
        k: length of a k-mer.
        least: see ``lowest_quality``.
        room: uint64[own.room or more, words].
    """
    least = least if len(own.quality) > 0 else 0
    return find_kmers(own.data, own.begin, own.stop, own.low, own.quality, least, k, room)


def packed_letters(
    own: Stretches, k: int, least: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """The letters of stretches, and of those before that their first k-mers begin with.

    Args:
        own: the stretches.
        k: length of a k-mer.
        least: see ``lowest_quality``.

    Returns:
        Codes of 32 letters each, the first in the highest bits, and a mark for each that is in no
        k-mer, the first in the lowest; what follows a stretch is marked.
    """
    least = least if len(own.quality) > 0 else 0
    words = int((own.stop - own.begin + k).sum()) // 32 + 1
    codes = np.zeros(words, dtype=np.uint64)
    marks = np.full(words, 0xFFFFFFFF, dtype=np.uint32)
    used = pack_letters(own.data, own.begin, own.stop, own.low, own.quality, least, k, codes, marks)
    return codes[: used // 32 + 1], marks[: used // 32 + 1]
