"""Shared memory of the blocks that correct anchors, by how many candidates these have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ngsgpu.errors import UnsuitableError
from ngsgpu.minhash.params import MAX_ENTRIES

MAX_THREADS = 256
SHARED_BYTES = 220 << 10
"""Shared memory per multiprocessor available to blocks."""

ROWS, MASKS = 64, 4  # of msa.cuh

TIERS = ((512, 160), (512, 320), (1024, 640), (2048, 1400), (2 * MAX_ENTRIES, MAX_ENTRIES))
"""Hash cells and candidates per mate. An anchor with more goes to the next tier; data too large for
shared memory are in global memory. More threads leave room for fewer candidates."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Memory of a block of ``correct_anchors``: hash cells and candidates of a mate, columns."""

    cells: int
    limit: int
    max_length: int
    margin: int
    mates: int

    @property
    def bytes(self) -> int:
        """Bytes per block, in the kernel's layout."""
        columns = self.max_length + 2 * self.margin
        words = -(-columns // 32)
        compared = 16 * -(-self.max_length // 128)
        candidates = self.mates * (12 * self.cells + 16 * self.limit + compared)
        masks = 4 * (MASKS * words + words + -(-self.max_length // 32))
        planes = 16 * -(-columns // 64)
        a_column = 24 + 4 + 2 + 1 + 1  # sums, begins, list, consensus, alleles
        rest = ROWS * 32 + masks + 4 + planes + a_column * columns + self.max_length
        return -(-(candidates + rest) // 16) * 16


def block_threads(max_length: int, margin: int) -> int:
    """Threads per block for reads of a length: one per column, up to the maximum."""
    return min(MAX_THREADS, -(-(max_length + 2 * margin) // 32) * 32)


def tiers_for(max_length: int, margin: int, mates: int) -> list[Sizes]:
    """The tiers for reads of a length.

    All threads of a block may insert a candidate when the limit is reached, and one cell must stay
    free, since a search for a missing entry ends at a free cell.

    Args:
        max_length: bases of the longest read.
        margin: columns on either side of the anchor.
        mates: 2 for pairs, otherwise 1.

    Raises:
        UnsuitableError: the reads are too long for the GPU's shared memory.
    """
    threads = block_threads(max_length, margin)
    tiers = [
        Sizes(cells, min(limit, cells - threads - 1), max_length, margin, mates)
        for cells, limit in TIERS
    ]
    if tiers[0].bytes > SHARED_BYTES:
        raise UnsuitableError(
            f"reads of {max_length:,} bases are too long for the GPU; use `backend='cpu'`"
        )
    return tiers


def useful_tiers(tiers: list[Sizes], blocks: Sequence[int]) -> list[Sizes]:
    """The tiers without small ones that do not let more blocks run at a time than the next.

    Args:
        tiers: from ``tiers_for``.
        blocks: of each tier in shared memory, those that run at a time.
    """
    smallest = max(tier for tier, own in enumerate(blocks) if own == blocks[0])
    return tiers[smallest:]


def workspace_block_bytes(tiers: list[Sizes]) -> int:
    """Global memory of a block of the tiers that do not fit into shared memory; 0 if all fit."""
    return max((sizes.bytes for sizes in tiers if sizes.bytes > SHARED_BYTES), default=0)
