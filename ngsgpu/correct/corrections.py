"""What a correction decides, whatever backend decided it: edits, classes, votes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct import cpu

VOTES_THAT_DECIDE = 3
"""A low-quality anchor correction and two candidate corrections: then all must agree."""


@dataclass(frozen=True, slots=True)
class Corrections:
    """The corrections of all reads of a read set, combined (CARE, section 4.3.3).

    Attributes:
        edit_start: int64[reads], first edit of each read in ``edits``.
        edit_count: uint16[reads], its edits; 0 for a read that stays as it is.
        edits: uint32, position << 2 | base.
        counters: int64[cpu.COUNTERS], what the kernels counted.
        high_quality: reads whose anchor correction came from a high-quality MSA.
        confirmed: reads with a low-quality anchor correction that all candidate corrections equal.
        anchor_only: reads with a low-quality one and at most one candidate correction.
        rejected: reads whose low-quality one is contradicted; they stay as they are.
    """

    edit_start: NDArray[np.int64]
    edit_count: NDArray[np.uint16]
    edits: NDArray[np.uint32]
    counters: NDArray[np.int64]
    high_quality: int
    confirmed: int
    anchor_only: int
    rejected: int


class CorrectionCollector:
    """Takes the results of batches of anchors, in any order, and combines them.

    Candidate corrections need 9 bytes a read: the hash of one of them, their number, and whether
    they disagree. That suffices, because an anchor correction of low quality is accepted only if
    all candidate corrections of the read equal it.
    """

    def __init__(self, reads: int) -> None:
        self._classes = np.zeros(reads, dtype=np.uint8)
        self._vote_hashes = np.zeros(reads, dtype=np.uint64)
        self._vote_states = np.zeros(reads, dtype=np.uint8)
        self._edit_start = np.zeros(reads, dtype=np.int64)
        self._edit_count = np.zeros(reads, dtype=np.uint16)
        self._edits: list[NDArray[np.uint32]] = []
        self._edit_total = 0

    def add_records(
        self,
        reads: NDArray[np.uint32],
        classes: NDArray[np.uint8],
        ends: NDArray[np.int64],
        edits: NDArray[np.uint32],
    ) -> None:
        """Add anchor corrections; ``edits`` holds those of all ``reads``, up to ``ends``."""
        if len(reads) == 0:
            return
        starts = np.concatenate([[0], ends[:-1]])
        self._classes[reads] = classes
        self._edit_start[reads] = starts + self._edit_total
        self._edit_count[reads] = ends - starts
        self._edits.append(edits[: ends[-1]].copy())
        self._edit_total += int(ends[-1])

    def add_votes(self, reads: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
        """Add votes, each for the read's corrected sequence with that hash."""
        cpu.count_votes(reads, hashes, len(reads), self._vote_hashes, self._vote_states)

    def finish(self, counters: NDArray[np.int64]) -> Corrections:
        """Combine; the collector is used up."""
        low = self._classes == cpu.LOW_QUALITY
        decided = (self._vote_states & cpu.VOTE_COUNT) >= VOTES_THAT_DECIDE
        conflict = (self._vote_states & cpu.VOTE_CONFLICT) != 0
        rejected = low & decided & conflict
        self._edit_count[rejected] = 0
        return Corrections(
            edit_start=self._edit_start,
            edit_count=self._edit_count,
            edits=np.concatenate(self._edits) if self._edits else np.zeros(0, dtype=np.uint32),
            counters=counters,
            high_quality=int(np.count_nonzero(self._classes == cpu.HIGH_QUALITY)),
            confirmed=int(np.count_nonzero(low & decided & ~conflict)),
            anchor_only=int(np.count_nonzero(low & ~decided)),
            rejected=int(np.count_nonzero(rejected)),
        )
