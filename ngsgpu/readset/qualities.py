"""How qualities are stored: a byte each, in two bits those of at most four levels, or in bins.

Sequencers of today write four levels or fewer. Then a code of two bits says which, and nothing is
lost. Fewer bits than the levels need are kept where the user asks for it (``QUALITY_BINS``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.jit import njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES

QUALITY_BINS = {
    8: np.arange(256, dtype=np.uint8),
    # Codes of two bits for Q0-4, Q5-13, Q14-20, above; of one bit for Q0-13, above (CARE 2.3).
    2: np.digitize(np.arange(256), [5, 14, 21]).astype(np.uint8),
    1: np.digitize(np.arange(256), [14]).astype(np.uint8),
    0: np.zeros(256, dtype=np.uint8),
}
"""Stored code of each Phred score, by the number of bits kept."""

BIN_SCORES: Final[dict[int, NDArray[np.int64]]] = {
    8: np.arange(256),
    2: np.array([3, 7, 16, 24]),
    1: np.array([7, 20]),
}
"""Phred score represented by each stored code."""

LEVEL_BITS: Final = 2
MOST_LEVELS: Final = 1 << LEVEL_BITS
UNKNOWN: Final = 255
"""Instead of a code: of scores that are none of the levels."""

Levels = tuple[int, ...]
"""The Phred scores of the codes of ``LEVEL_BITS``; none: codes are those of ``QUALITY_BINS``."""


class MoreLevelsError(Exception):
    """Reads have more levels of quality than the first of them."""


def levels_among(present: NDArray[Any]) -> Levels:
    """The levels where few scores occur, ascending; none if there are more than ``MOST_LEVELS``.

    Args:
        present: [256], not 0 for the Phred scores that occur.
    """
    found: set[int] = set(np.flatnonzero(present).tolist())
    if len(found) < MOST_LEVELS:
        # Of letters other than ACGT, which the first reads may not have.
        found.add(0)
    levels = sorted(found)
    if len(levels) > MOST_LEVELS:
        return ()
    return (*levels, *[levels[-1]] * (MOST_LEVELS - len(levels)))


def codes_of(quality_bits: int, levels: Levels = ()) -> NDArray[np.uint8]:
    """Stored code of each Phred score, ``UNKNOWN`` for those that are no level."""
    if not levels:
        return QUALITY_BINS[quality_bits]
    codes = np.full(256, UNKNOWN, dtype=np.uint8)
    # Of a level that fills up the codes, the first one counts.
    for code in range(len(levels) - 1, -1, -1):
        codes[levels[code]] = code
    return codes


def scores_of(quality_bits: int, levels: Levels = ()) -> NDArray[Any]:
    """Phred score that each stored code represents; none without qualities."""
    if quality_bits == 0:
        return np.zeros(0, dtype=np.int64)
    return np.array(levels) if levels else BIN_SCORES[quality_bits]


def exact_scores(quality_bits: int, levels: Levels = ()) -> NDArray[np.uint8]:
    """The Phred score of each stored code, 0 where the code only says in which range it is."""
    if levels or quality_bits == 8:
        return scores_of(quality_bits, levels).astype(np.uint8)
    return np.zeros(1 << quality_bits, dtype=np.uint8)


@njit(nogil=True, cache=True)
def mark_scores(
    data: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    seq_end: NDArray[np.int64],
    qual_start: NDArray[np.int64],
    phred_offset: int,
    present: NDArray[np.uint8],
) -> None:
    """Mark the Phred scores of the records of a batch, that of letters other than ACGT being 0."""
    for record in range(len(seq_start)):
        position = 0
        for source in range(seq_start[record], seq_end[record]):
            letter = data[source]
            if letter == 10 or letter == 13:
                continue
            score = np.int64(0)
            if CODES[letter] != AMBIGUOUS:
                score = max(score, np.int64(data[qual_start[record] + position]) - phred_offset)
            present[score] = 1
            position += 1


class SeenScores:
    """Takes note of the Phred scores of batches of records.

    Args:
        phred_offset: offset of the quality characters.
    """

    def __init__(self, phred_offset: int) -> None:
        self._phred_offset = phred_offset
        self._present = np.zeros(256, dtype=np.uint8)
        self._any = False

    def add(self, batch: RecordBatch) -> None:
        """Add those of a batch."""
        if batch.qual_start is not None:
            self._any = True
            mark_scores(
                batch.data, batch.seq_start, batch.seq_end, batch.qual_start, self._phred_offset,
                self._present,
            )  # fmt: skip

    @property
    def levels(self) -> Levels:
        """The levels where few scores occur; none if there are more."""
        return levels_among(self._present) if self._any else ()

    @property
    def bits(self) -> int:
        """Bits that a quality takes if nothing is to be lost."""
        if not self._any:
            return 0
        return LEVEL_BITS if self.levels else 8


@njit(nogil=True, cache=True)
def widen(
    codes: NDArray[np.uint8],
    lengths: NDArray[np.int32],
    scores: NDArray[np.uint8],
    qualities: NDArray[np.uint8],
) -> None:
    """Write the scores of reads whose codes have ``LEVEL_BITS``, a byte each."""
    at = 0
    first = 0
    for length in lengths:
        for position in range(length):
            bit = position * LEVEL_BITS
            code = (codes[first + (bit >> 3)] >> (bit & 7)) & (MOST_LEVELS - 1)
            qualities[at + position] = scores[code]
        at += length
        first += (length * LEVEL_BITS + 7) >> 3


def widened(
    codes: NDArray[np.uint8], lengths: NDArray[np.int32], levels: Sequence[int]
) -> NDArray[np.uint8]:
    """The qualities of some reads, a byte each, of codes of ``LEVEL_BITS``."""
    qualities = np.empty(int(lengths.sum(dtype=np.int64)), dtype=np.uint8)
    widen(codes, lengths, np.array(levels, dtype=np.uint8), qualities)
    return qualities
