"""The result of a correction on any backend: edits, classes, votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.forests.forest import Second
from ngsgpu.correct.rules.one_strain import in_fragment
from ngsgpu.correct.rules.witnesses import Asker, keep_witnessed
from ngsgpu.correct.workspace import (
    CLASS,
    DOUBTFUL,
    EDIT_BITS,
    HIGH_QUALITY,
    LOW_QUALITY,
    OF_RARE_STRAIN,
)
from ngsgpu.io.output.edits import Edits
from ngsgpu.jit import njit

# A read's votes: number of candidate corrections in the low bits, and whether they disagree.
VOTE_COUNT = np.uint8(0x7F)
VOTE_CONFLICT = np.uint8(0x80)

READS_AT_ONCE = 1 << 18
"""Reads whose doubtful edits are left out together."""

VOTES_THAT_DECIDE = 2
"""Number of candidate corrections from which a low-quality anchor correction must agree with
them."""


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrections of all reads of a read set, combined (CARE, section 4.3.3).

    Attributes:
        edit_start: int64[reads], first edit of each read in ``edits``.
        edit_count: uint16[reads], its number of edits; 0 for an unchanged read.
        edits: uint32, position << 2 | base.
        counters: int64[COUNTERS], the kernels' counters.
        high_quality: reads whose anchor correction came from a high-quality MSA.
        confirmed: reads with a low-quality anchor correction that all candidate corrections equal.
        completed: reads where all candidate corrections equal the whole consensus of the anchor's
            low-quality MSA, which is then used.
        anchor_only: reads with a low-quality one and at most one candidate correction.
        rejected: reads whose low-quality one is contradicted; they are unchanged.

    With a forest, all reads with a low-quality correction that is not confirmed are changed where
    the forest is sure.
    """

    edit_start: NDArray[np.int64]
    edit_count: NDArray[np.uint16]
    edits: NDArray[np.uint32]
    counters: NDArray[np.int64]
    high_quality: int
    confirmed: int
    completed: int
    anchor_only: int
    rejected: int

    @property
    def all_edits(self) -> Edits:
        """The edits, for the outputs."""
        return Edits(self.edit_start, self.edit_count, self.edits)

    def apply(self, reads: Sequence[str]) -> list[str]:
        """The sequences of the reads that were corrected, as they are then.

        Args:
            reads: their sequences, in the order of the read set.

        Raises:
            UsageError: there are more or fewer than in the read set.
        """
        return self.all_edits.apply(reads)


class CorrectionCollector:
    """Combines the results of batches of anchors, in any order.

    Candidate corrections need 9 bytes per read: the hash of one of them, their number, and whether
    they disagree. That suffices, because they only confirm or reject sequences that the read's
    own MSA proposes: the correction of its certain positions, or its whole consensus.

    Args:
        reads: number of reads.
        paired: whether mates follow each other.
        second: when the second correction of an anchor counts: the whole consensus or, with a
            forest, what that is sure of.
    """

    def __init__(self, reads: int, paired: bool, second: Second = "equal") -> None:
        self._second = second
        self._paired = paired
        self._classes = np.zeros(reads, dtype=np.uint8)
        self._vote_hashes = np.zeros(reads, dtype=np.uint64)
        self._vote_states = np.zeros(reads, dtype=np.uint8)
        self._edit_start = np.zeros(reads, dtype=np.int64)
        self._edit_count = np.zeros(reads, dtype=np.uint16)
        self._edits: list[NDArray[np.uint32]] = []
        self._edit_total = 0
        self._low: list[tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.uint64]]] = []

    def add_records(
        self,
        reads: NDArray[np.uint32],
        classes: NDArray[np.uint8],
        ends: NDArray[np.int64],
        hashes: NDArray[np.uint64],
        edits: NDArray[np.uint32],
    ) -> None:
        """Add anchor corrections; the arguments are those of ``Workspace``, cut to length."""
        if len(reads) == 0:
            return
        ends = ends + self._edit_total
        starts = np.concatenate([[self._edit_total], ends[:-1, 1]])
        self._classes[reads] = classes
        self._edit_start[reads] = starts
        self._edit_count[reads] = ends[:, 0] - starts
        low = are_of_class(classes, LOW_QUALITY)
        self._low.append((reads[low], ends[low], hashes[low]))
        self._edits.append(edits[: ends[-1, 1] - self._edit_total].copy())
        self._edit_total = int(ends[-1, 1])

    def add_votes(self, reads: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
        """Add votes, each for the read's corrected sequence with that hash."""
        count_votes(reads, hashes, len(reads), self._vote_hashes, self._vote_states)

    def finish(self, counters: NDArray[np.int64], asker: Asker | None = None) -> Corrections:
        """Combine; the collector is used up.

        Args:
            counters: the kernels' counters.
            asker: asks the reads about bases of rare strains; None: none are asked.
        """
        reads = _joined([reads for reads, _, _ in self._low], np.zeros(0, np.uint32))
        ends = _joined([ends for _, ends, _ in self._low], np.zeros((0, 2), np.int64))
        hashes = _joined([hashes for _, _, hashes in self._low], np.zeros((0, 2), np.uint64))
        states = self._vote_states[reads]
        votes = self._vote_hashes[reads]
        decided = (states & VOTE_COUNT) >= VOTES_THAT_DECIDE
        agreed = (states & VOTE_CONFLICT) == 0
        confirmed = decided & agreed & (votes == hashes[:, 0])
        completed = decided & agreed & ~confirmed & (votes == hashes[:, 1])
        rejected = decided & ~confirmed & ~completed
        second = {
            "equal": completed, "rejected": decided & ~confirmed, "unconfirmed": ~confirmed
        }[self._second]  # fmt: skip
        self._edit_count[reads[rejected]] = 0
        self._edit_start[reads[second]] = ends[second, 0]
        self._edit_count[reads[second]] = ends[second, 1] - ends[second, 0]
        edits = _joined(self._edits, np.zeros(0, np.uint32))
        if asker is not None:
            keep_witnessed(asker, self._edit_start, self._edit_count, edits, self._classes)
        settle_doubtful(self._edit_start, self._edit_count, edits, self._classes, self._paired)
        return Corrections(
            edit_start=self._edit_start,
            edit_count=self._edit_count,
            edits=edits,
            counters=counters,
            high_quality=int(np.count_nonzero(are_of_class(self._classes, HIGH_QUALITY))),
            confirmed=int(np.count_nonzero(confirmed)),
            completed=int(np.count_nonzero(completed)),
            anchor_only=int(np.count_nonzero(~decided)),
            rejected=int(np.count_nonzero(rejected)),
        )


def are_of_class(classes: Any, which: int) -> Any:
    """Whether reads are of a class, whatever alleles they have; arrays of NumPy's or CuPy's."""
    return (classes & CLASS) == which


def settle_doubtful(
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    classes: NDArray[np.uint8],
    paired: bool,
) -> None:
    """Leave out the doubtful edits of reads of a rare strain, and of their mates; in place.

    Args:
        start: int64[reads], first edit of each read.
        count: uint16[reads], its number of edits.
        edits: uint32, with ``DOUBTFUL`` and bits like it, which none has afterwards.
        classes: uint8[reads], with ``OF_RARE_STRAIN``.
        paired: whether mates follow each other.
    """
    rare = in_fragment(classes, OF_RARE_STRAIN, paired)
    concerned = np.flatnonzero(rare & (count > 0))
    for begin in range(0, len(concerned), READS_AT_ONCE):
        _leave_out(start, count, edits, concerned[begin : begin + READS_AT_ONCE])
    np.bitwise_and(edits, EDIT_BITS, out=edits)


def _leave_out(
    start: NDArray[np.int64],
    count: NDArray[np.uint16],
    edits: NDArray[np.uint32],
    concerned: NDArray[np.int64],
) -> None:
    """The same for the reads that are concerned; arguments as for ``settle_doubtful``."""
    sizes = count[concerned].astype(np.int64)
    firsts = np.cumsum(sizes) - sizes
    owner = np.repeat(np.arange(len(concerned)), sizes)
    places = start[concerned][owner] + np.arange(len(owner)) - firsts[owner]
    kept = edits[places] < DOUBTFUL
    counts = np.bincount(owner[kept], minlength=len(concerned))
    left = np.arange(int(kept.sum())) - (np.cumsum(counts) - counts)[owner[kept]]
    edits[start[concerned][owner[kept]] + left] = edits[places[kept]]
    count[concerned] = counts


def _joined(parts: list[NDArray[Any]], empty: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else empty


@njit(nogil=True, cache=True)
def count_votes(
    vote_reads: NDArray[np.uint32],
    vote_hashes: NDArray[np.uint64],
    count: int,
    hashes: NDArray[np.uint64],
    states: NDArray[np.uint8],
) -> None:
    """Add votes to the reads' 9 bytes: one hash, and how many agree or that some do not."""
    for i in range(count):
        read = vote_reads[i]
        state = states[read]
        if state == 0:
            hashes[read] = vote_hashes[i]
        elif hashes[read] != vote_hashes[i]:
            state |= VOTE_CONFLICT
        if state & VOTE_COUNT < VOTE_COUNT:
            state += np.uint8(1)
        states[read] = state
