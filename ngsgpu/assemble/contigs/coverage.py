"""Coverage of contigs, base by base, as bedGraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.files import Contig
from ngsgpu.assemble.contigs.pieces import Pieces
from ngsgpu.assemble.contigs.places import place_reads
from ngsgpu.assemble.contigs.reads import Reads
from ngsgpu.sequence.codec import CODES


def coverage_of(
    contigs: Sequence[Contig], reads: Reads, k: int, threads: int
) -> list[NDArray[np.int64]]:
    """Reads over each base of each contig.

    A read counts where its first word lies that occurs once in all contigs.

    Args:
        contigs: the contigs.
        reads: the reads.
        k: of the graph.
        threads: number of threads; does not affect the result.
    """
    lengths = np.array([len(contig.bases) for contig in contigs], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    bases = CODES[np.frombuffer(b"".join(contig.bases for contig in contigs), dtype=np.uint8)]
    none = np.empty(0, dtype=np.int64)
    alone = Pieces(k, bases, starts, np.zeros(len(contigs), dtype=np.int64), none, none)
    places = place_reads(alone, reads, len(reads), threads)
    rows = np.flatnonzero(places.direction >= 0)
    own = places.direction[rows] >> 1
    sizes = reads.lengths[rows].astype(np.int64)
    turned = (places.direction[rows] & 1).astype(np.bool_)
    begin = np.where(turned, lengths[own] - places.at[rows] - sizes, places.at[rows])
    # Contigs take one place more, where reads that reach their ends stop.
    offsets = starts[own] + own
    steps = np.zeros(int(starts[-1]) + len(contigs), dtype=np.int64)
    np.add.at(steps, offsets + np.clip(begin, 0, lengths[own]), 1)
    np.add.at(steps, offsets + np.clip(begin + sizes, 0, lengths[own]), -1)
    depths = np.cumsum(steps)
    return [
        depths[start + i : start + i + length]
        for i, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=False))
    ]


def bedgraph(coverage: Sequence[NDArray[np.int64]]) -> Iterator[bytes]:
    """Lines of contig, begin, end and reads, one for each stretch of the same coverage."""
    for number, own in enumerate(coverage, 1):
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        ends = [*begins[1:].tolist(), len(own)]
        rows = zip(begins.tolist(), ends, own[begins].tolist(), strict=True)
        yield "".join(f"contig_{number}\t{a}\t{b}\t{n}\n" for a, b, n in rows).encode()
