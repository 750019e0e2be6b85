"""What a thread corrects anchors in: its workspace, results among it, and the counters of a run."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Alignments
from ngsgpu.align.alleles import CARRIES_RARE, LACKS_RARE, SHOWS_RARE
from ngsgpu.align.msa import Columns
from ngsgpu.correct.forests.features import MOST_FEATURES, Samples
from ngsgpu.correct.forests.forest import Forests, without_forests
from ngsgpu.minhash.cpu import FoundArrays
from ngsgpu.minhash.params import MAX_ENTRIES

# Class of a read's own (anchor) correction; 0: none.
HIGH_QUALITY = 1
LOW_QUALITY = 2

CLASS = 3
"""Bits of the class."""

# What ``align.alleles.rare_alleles_of`` says of a read, beside its class.
RARE_BITS = 2
OF_RARE_STRAIN = CARRIES_RARE << RARE_BITS
OF_RARE_SURELY = SHOWS_RARE << RARE_BITS
OF_OTHERS = LACKS_RARE << RARE_BITS

DOUBTFUL = np.uint32(1 << 31)
"""Bit of an edit that is left out if the read or its mate is of a rare strain: it may change a
variant of the strain that no other read shows."""

ASKED = np.uint32(1 << 30)
"""Bit of an edit of a known base that so few reads cover that one may be all of a strain's: all
reads may be asked about it (``rules.witnesses``)."""

GOOD = np.uint32(1 << 29)
"""Bit of such an edit of a base of Q20 or above."""

EDIT_BITS = GOOD - np.uint32(1)
"""Bits of an edit that are its position and base."""

# Counters of a run, in this order (``ngsgpu.correct.stats``).
(ANCHORS, ALONE, CROWDED, HIGH, LOW, FOUND, ALIGNED, KEPT, REFINED_AWAY, Q20_BASES,
 Q20_ERRORS, Q30_BASES, Q30_ERRORS) = range(13)  # fmt: skip
COUNTERS = 13

SAMPLE = 4096
"""Anchors whose errors are counted first, so that alleles can be told from them."""


def sampled_anchors(reads: int, mates: int) -> NDArray[np.uint32]:
    """Anchors (first mates where paired) of the sample, evenly over the reads."""
    anchors = reads // mates
    step = max(8, -(-anchors // SAMPLE))
    return np.arange(0, anchors, step, dtype=np.uint32) * np.uint32(mates)


def sampled_errors(counters: NDArray[Any]) -> dict[str, int]:
    """The Q20 bases of anchors, and the errors among them, and the same of Q30 bases."""
    return {
        "bases": int(counters[Q20_BASES]),
        "errors": int(counters[Q20_ERRORS]),
        "good_bases": int(counters[Q30_BASES]),
        "good_errors": int(counters[Q30_ERRORS]),
    }


class Workspace(NamedTuple):
    """Workspace of one thread for correcting anchors.

    Attributes:
        found: candidates from the tables.
        bounds: int64[hashes, 3], buckets of an anchor, and where it is in them.
        reverse_complemented: uint64, planes of a reverse complement.
        compared: uint64, a bit for each base of the anchor that is compared with others.
        first: alignments of an anchor.
        second: alignments of its mate.
        columns: the MSA.
        ambiguous: uint8[max length], 1 where the anchor's own base is ambiguous.
        consensus: uint64, planes of a candidate's corrected sequence.
        edits: uint32, position << 2 | base, and the bits above; for each anchor its correction,
            followed, for low quality, by its complete one or, with a forest, what that alone is
            sure of.
        edit_reads: uint32, anchors with a correction record, in the order of ``edits``.
        edit_ends: int64[., 2], ends in ``edits`` of the two corrections of each of them.
        edit_hashes: uint64[., 2], hashes of the two corrected sequences (low quality only).
        classes: uint8, ``HIGH_QUALITY`` or ``LOW_QUALITY`` of each of them, and
            ``OF_RARE_STRAIN``, ``OF_RARE_SURELY`` and ``OF_OTHERS``.
        vote_reads: uint32, reads voted on.
        vote_hashes: uint64, hash of the sequence each vote is for.
        counters: int64[COUNTERS].
        forests: what decides where columns do not; none: as without them.
        features: int64[MOST_FEATURES], what a forest sees of a position.
        samples: positions recorded for training.
    """

    found: FoundArrays
    bounds: NDArray[np.int64]
    reverse_complemented: NDArray[np.uint64]
    compared: NDArray[np.uint64]
    first: Alignments
    second: Alignments
    columns: Columns
    ambiguous: NDArray[np.uint8]
    consensus: NDArray[np.uint64]
    edits: NDArray[np.uint32]
    edit_reads: NDArray[np.uint32]
    edit_ends: NDArray[np.int64]
    edit_hashes: NDArray[np.uint64]
    classes: NDArray[np.uint8]
    vote_reads: NDArray[np.uint32]
    vote_hashes: NDArray[np.uint64]
    counters: NDArray[np.int64]
    forests: Forests
    features: NDArray[np.int64]
    samples: Samples

    @classmethod
    def allocate(
        cls,
        max_length: int,
        hashes: int,
        margin: int,
        forests: Forests | None = None,
        samples: Samples | None = None,
    ) -> Workspace:
        """Workspace for anchors of up to ``max_length`` bases; by default without forests.

        Args:
            max_length: bases of the longest read.
            hashes: number of hash tables.
            margin: columns on either side of the anchor.
            forests: forests that decide; None without them.
            samples: room for training samples; None if none are recorded.
        """
        planes = 2 * ((max_length + 63) // 64) + 2
        records = 1 << 14
        votes = 2 * MAX_ENTRIES + (1 << 17)
        return cls(
            found=FoundArrays.allocate(max_length),
            bounds=np.zeros((hashes, 3), dtype=np.int64),
            reverse_complemented=np.zeros(planes, dtype=np.uint64),
            compared=np.zeros(planes, dtype=np.uint64),
            first=Alignments.allocate(MAX_ENTRIES),
            second=Alignments.allocate(MAX_ENTRIES),
            columns=Columns.allocate(max_length, margin),
            ambiguous=np.zeros(max_length + 1, dtype=np.uint8),
            consensus=np.zeros(planes, dtype=np.uint64),
            edits=np.zeros(max(1 << 16, 8 * max_length), dtype=np.uint32),
            edit_reads=np.zeros(records, dtype=np.uint32),
            edit_ends=np.zeros((records, 2), dtype=np.int64),
            edit_hashes=np.zeros((records, 2), dtype=np.uint64),
            classes=np.zeros(records, dtype=np.uint8),
            vote_reads=np.zeros(votes, dtype=np.uint32),
            vote_hashes=np.zeros(votes, dtype=np.uint64),
            counters=np.zeros(COUNTERS, dtype=np.int64),
            forests=forests or without_forests(),
            features=np.zeros(MOST_FEATURES, dtype=np.int64),
            samples=samples or Samples.allocate(0),
        )
