"""Keeps bases that no other read witnesses, where a sample has one rare strain.

Of the reads of a rare strain many are known: by an allele at Q20 or above, or a witnessed base.
Where one of them has the consensus in the place of a base that would be changed, that is no variant
of the strain. Where none has, the base may be one, and stays: from Q20 on if the mate is of the
strain; from Q30 on if its own read is, below which others that share an allele with it decide; and
if it is of the highest quality and nothing is known of its fragment. A fragment that has the
consensus where others carry a rare allele is not of the strain.

That asks for one strain: where witnessed variants are contradicted, too, there are several, or two
haplotypes, and nothing is decided here. On fragments of which nothing is known it also asks that
something is known of most: otherwise they are many, and the strain need not be where they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.workspace import DOUBTFUL, GOOD, OF_OTHERS, OF_RARE_STRAIN, OF_RARE_SURELY

HIGHEST: Final = 37
"""Phred score from which a base may be a variant although nothing else speaks for the strain."""

CONTRADICTED: Final = 6
"""Of the witnessed variants at most one in this many is contradicted where there is one strain."""

VERY_GOOD: Final = 30
"""Phred score from which a base may be a variant although reads that share an allele with its read
have the consensus."""

KNOWN: Final = 2
"""Of one fragment in this many something is known, at least."""

Contradict = Callable[[NDArray[np.bool_], NDArray[np.bool_]], NDArray[np.bool_]]


def in_fragment(classes: NDArray[np.uint8], bit: int, paired: bool) -> NDArray[np.bool_]:
    """bool[reads]: whether a read or its mate has a bit in its class.

    Args:
        classes: uint8[reads].
        bit: which.
        paired: whether mates follow each other.
    """
    has = (classes & bit) != 0
    return np.repeat(has[0::2] | has[1::2], 2) if paired else has


def keep_of_one_strain(
    owner: NDArray[np.uint32],
    places: NDArray[np.int64],
    qualities: NDArray[np.uint8],
    witnessed: NDArray[np.bool_],
    edits: NDArray[np.uint32],
    classes: NDArray[np.uint8],
    paired: bool,
    contradicted: Contradict,
) -> None:
    """Mark edits ``DOUBTFUL`` or not, and their reads as of a rare strain; in place.

    Args:
        owner: the read of each edit that may change a variant.
        places: where it is in ``edits``.
        qualities: Phred score of the base, or 0.
        witnessed: whether other reads witness the base.
        edits: uint32, with the bits that ``workspace`` describes.
        classes: uint8[reads], with ``OF_RARE_STRAIN`` and bits like it.
        paired: whether mates follow each other.
        contradicted: of which of these edits one of some reads (bool[reads]) has the base that the
            edit writes; of some edits (bool[edits]), the others are false.
    """
    rare = in_fragment(classes, OF_RARE_STRAIN, paired)
    others = in_fragment(classes, OF_OTHERS, paired)
    good, doubtful = ((edits[places] & bit) != 0 for bit in (GOOD, DOUBTFUL))
    own = (classes[owner] & OF_RARE_STRAIN) != 0
    asked = rare[owner] & (doubtful | (good & (~own | (qualities >= VERY_GOOD))))
    if KNOWN * int(np.count_nonzero(rare | others)) >= len(classes):
        asked |= ~rare[owner] & ~others[owner] & (qualities >= HIGHEST)
    sure = in_fragment(classes, OF_RARE_SURELY, paired) & ~others
    changed = contradicted(asked, sure)
    variants = witnessed & good
    if CONTRADICTED * int((variants & changed).sum()) > int(variants.sum()):
        return
    asked &= ~witnessed
    edits[places[asked & changed]] &= ~DOUBTFUL
    kept = asked & ~changed
    edits[places[kept]] |= DOUBTFUL
    classes[owner[kept]] |= np.uint8(OF_RARE_STRAIN)
