"""Bases to replace in records, and their qualities: edits, and kernels that write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.jit import Integer, interpreted_if_small, is_small, njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES, LETTERS

_N: Final = ord("N")
_SIZE_OF_READ: Final = 32
"""Bytes that other kernels process, as plain Python, while the edits of a read are written."""


class EditStyle(NamedTuple):
    """How edits are written.

    Attributes:
        mask: whether a base becomes N instead of what the edit says; letters that are ambiguous
            already are left.
        highest_quality: byte that the quality of a changed base is set to, unless a neighbour's is
            lower; 0 to leave qualities as they are.
    """

    mask: bool = False
    highest_quality: int = 0


class Edits(NamedTuple):
    """Bases to replace.

    Attributes:
        starts: int64[reads], first edit of each read in ``values``.
        counts: uint16[reads], its number of edits; 0 for an unchanged read.
        values: uint32, position << 2 | base.
    """

    starts: NDArray[np.int64]
    counts: NDArray[np.uint16]
    values: NDArray[np.uint32]

    def apply(self, sequences: Sequence[str]) -> list[str]:
        """The sequences of all reads, with their bases replaced.

        Args:
            sequences: as long and as many as the reads.

        Raises:
            UsageError: there are more or fewer.
        """
        if len(sequences) != len(self.starts):
            raise UsageError(f"{len(sequences)} sequences, but edits of {len(self.starts)} reads")
        data = np.frombuffer("".join(sequences).encode("latin-1"), dtype=np.uint8).copy()
        ends = np.cumsum([0, *map(len, sequences)])
        longest = max(map(len, sequences), default=0)
        counts = EditCounts(0, 0, np.zeros((1, max(1, longest)), dtype=np.int64))
        write_edits(data, 0, ends[:-1], 0, 1, self, counts, AS_THEY_ARE, is_fastq=True)
        text = data.tobytes().decode("latin-1")
        return [text[start:end] for start, end in pairwise(ends.tolist())]


_Where: TypeAlias = "tuple[NDArray[np.uint8], int, NDArray[Any], int, int, Edits]"
"""The first arguments of the kernels."""

AS_THEY_ARE: Final = EditStyle()


@dataclass(slots=True)
class EditCounts:
    """Counts of replacements.

    Attributes:
        reads: reads with edits.
        ambiguous: replaced letters other than A, C, G and T.
        by_position: int64[mates, length], bases replaced at each position.
    """

    reads: int
    ambiguous: int
    by_position: NDArray[np.int64]


@njit(nogil=True, cache=True)
def replace_bases(
    data: NDArray[np.uint8],
    shift: int,
    starts: NDArray[Any],
    first_read: int,
    read_step: int,
    edits: Edits,
    by_position: NDArray[np.int64],
    wrapped: bool,
    mask: bool,
) -> tuple[Integer, Integer]:
    """Replace bases in bytes of a file; return (reads changed, ambiguous bases decided).

    Args:
        data: uint8, changed in place.
        shift: added to ``starts`` to get indices into ``data``.
        starts: uint32[records] or int64[records], first byte of each sequence.
        first_read: number of the read in record 0.
        read_step: difference between the read numbers of consecutive records.
        edits: the bases.
        by_position: int64[mates, max length], counts to increment; with two rows, those of
            even and of odd reads.
        wrapped: whether sequences may have line ends between their bases.
        mask: see ``EditStyle``.
    """
    reads = 0
    decided = 0
    for record in range(len(starts)):
        read = first_read + record * read_step
        count = np.int64(edits.counts[read])
        if count == 0:
            continue
        changed = 0
        row = by_position[read & 1 if len(by_position) == 2 else 0]
        place = np.int64(starts[record]) + shift
        position = np.int64(0)
        for i in range(edits.starts[read], edits.starts[read] + count):
            target = np.int64(edits.values[i] >> 2)
            if wrapped:
                while position < target or data[place] == 10 or data[place] == 13:
                    position += data[place] != 10 and data[place] != 13
                    place += 1
            else:
                place += target - position
                position = target
            old = data[place]
            ambiguous = CODES[old] == AMBIGUOUS
            if mask and ambiguous:
                continue
            decided += ambiguous
            changed += 1
            letter = _N if mask else LETTERS[edits.values[i] & 3]
            # Preserve lower case; its bit is also set in a dot.
            data[place] = letter | (old & 0x20 if old >= 64 else 0)
            row[target] += 1
        reads += changed > 0
    return reads, decided


@njit(nogil=True, cache=True)
def set_qualities(
    data: NDArray[np.uint8],
    shift: int,
    starts: NDArray[Any],
    first_read: int,
    read_step: int,
    edits: Edits,
    mask: bool,
    highest: int,
) -> None:
    """Set the qualities of bases that ``replace_bases`` is about to change, in FASTQ.

    Each gets ``highest``, or the lower of the qualities of the nearest bases without an edit on
    either side if that is less. In a read where every base has an edit, qualities stay.
    """
    for record in range(len(starts)):
        read = first_read + record * read_step
        count = np.int64(edits.counts[read])
        if count == 0:
            continue
        begin = np.int64(starts[record]) + shift
        end = begin
        while data[end] != 10:
            end += 1
        qualities = end + 1
        while data[qualities] != 10:
            qualities += 1
        qualities += 1
        length = end - begin - (data[end - 1] == 13)
        i = edits.starts[read]
        stop = i + count
        while i < stop:
            first = np.int64(edits.values[i] >> 2)
            after = first
            while i < stop and np.int64(edits.values[i] >> 2) == after:
                after += 1
                i += 1
            if first == 0 and after == length:
                continue
            value = np.uint8(highest)
            if first > 0:
                value = min(value, data[qualities + first - 1])
            if after < length:
                value = min(value, data[qualities + after])
            for position in range(first, after):
                if not (mask and CODES[data[begin + position]] == AMBIGUOUS):
                    data[qualities + position] = value


def load_kernels(reads: int, mates: int, style: EditStyle) -> None:
    """Load what ``write_edits`` calls for records of FASTQ files, if it is not loaded already.

    Args:
        reads: of the run; for few of them, nothing needs to be loaded.
        mates: 2 if those of pairs are counted separately, otherwise 1.
        style: how edits are written.
    """
    if is_small(_SIZE_OF_READ * reads):
        return
    none = Edits(np.empty(0, np.int64), np.empty(0, np.uint16), np.empty(0, np.uint32))
    where = np.empty(0, dtype=np.uint8), 0, np.empty(0, dtype=np.uint32), 0, 1, none
    _write(where, EditCounts(0, 0, np.zeros((mates, 1), dtype=np.int64)), style, is_fastq=True)


def write_edits(
    data: NDArray[np.uint8],
    shift: int,
    starts: NDArray[Any],
    first_read: int,
    read_step: int,
    edits: Edits,
    counts: EditCounts,
    style: EditStyle,
    *,
    is_fastq: bool,
) -> None:
    """Write the edits of some records into their bytes, and count them.

    Args:
        data: see ``replace_bases``, as for the following.
        shift: as there.
        starts: as there.
        first_read: as there.
        read_step: as there.
        edits: the bases.
        counts: counts to add to.
        style: how they are written.
        is_fastq: whether the records have qualities and sequences of one line.
    """
    with interpreted_if_small(_SIZE_OF_READ * len(edits.counts)):
        where = data, shift, starts, first_read, read_step, edits
        _write(where, counts, style, is_fastq=is_fastq)


def _write(where: _Where, counts: EditCounts, style: EditStyle, *, is_fastq: bool) -> None:
    if is_fastq and style.highest_quality:
        set_qualities(*where, style.mask, style.highest_quality)
    changed, decided = replace_bases(*where, counts.by_position, not is_fastq, style.mask)
    counts.reads += int(changed)
    counts.ambiguous += int(decided)
