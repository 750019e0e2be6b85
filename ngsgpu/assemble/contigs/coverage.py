"""Coverage of contigs, base by base, as bedGraph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.files import Contig
from ngsgpu.assemble.contigs.pieces import Pieces
from ngsgpu.assemble.contigs.places import Places, place_reads, word_of
from ngsgpu.assemble.contigs.reads import Reads
from ngsgpu.sequence.codec import CODES

_ALL: Final = 0
"""Every word counts, not only a sample: short reads have few."""


def coverage_of(
    contigs: Sequence[Contig], reads: Reads, k: int, threads: int
) -> list[NDArray[np.int64]]:
    """Reads over each base of each contig.

    A read counts where its first word lies that occurs once in all contigs; around a circular one,
    as often as it passes a base.

    Args:
        contigs: the contigs.
        reads: the reads.
        k: of the graph.
        threads: number of threads; does not affect the result.

    Returns:
        int64[length of the contig] for each contig.
    """
    texts = [_unrolled(contig, word_of(k)) for contig in contigs]
    starts = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    bases = CODES[np.frombuffer(b"".join(texts), dtype=np.uint8)]
    none = np.empty(0, dtype=np.int64)
    alone = Pieces(k, bases, starts, np.zeros(len(contigs), dtype=np.int64), none, none)
    places = place_reads(alone, reads, len(reads), threads, sampled=_ALL)
    return _depths(contigs, alone.lengths, places, reads)


def _unrolled(contig: Contig, word: int) -> bytes:
    """The bases of a contig; a circular one goes on until words have begun at all of them."""
    if not contig.circular:
        return contig.bases
    size = len(contig.bases) + word - 1
    return (contig.bases * -(-size // len(contig.bases)))[:size]


def _depths(
    contigs: Sequence[Contig], unrolled: NDArray[np.int64], places: Places, reads: Reads
) -> list[NDArray[np.int64]]:
    """Sum up reads.

    Args:
        contigs: the contigs.
        unrolled: int64[n], bases of each one as it was looked up.
        places: of the reads on what was looked up.
        reads: the reads.
    """
    lengths = np.array([len(contig.bases) for contig in contigs], dtype=np.int64)
    circular = np.array([contig.circular for contig in contigs], dtype=np.bool_)
    # Contigs take one place more, where reads that reach their ends stop.
    offsets = np.concatenate([[0], np.cumsum(lengths + 1)])
    steps = np.zeros(int(offsets[-1]), dtype=np.int64)
    rows = np.flatnonzero(places.direction >= 0)
    own = places.direction[rows] >> 1
    sizes = reads.lengths[rows].astype(np.int64)
    turned = (places.direction[rows] & 1).astype(np.bool_)
    begins = np.where(turned, unrolled[own] - places.at[rows] - sizes, places.at[rows])

    def add(which: NDArray[np.bool_], begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        contig = own[which]
        np.add.at(steps, offsets[contig] + np.clip(begin, 0, lengths[contig]), 1)
        np.add.at(steps, offsets[contig] + np.clip(end, 0, lengths[contig]), -1)

    around = circular[own]
    add(~around, begins[~around], (begins + sizes)[~around])
    # Whole turns, and what is left before and behind the place where the circle's text begins.
    length = lengths[own[around]]
    turns, rest = np.divmod(sizes[around], length)
    begin = begins[around] % length
    add(around, begin, begin + rest)
    add(around, np.zeros_like(begin), begin + rest - length)
    np.add.at(steps, offsets[own[around]], turns)
    np.add.at(steps, offsets[own[around]] + length, -turns)
    depths = np.cumsum(steps)
    return [
        depths[start : start + length]
        for start, length in zip(offsets.tolist(), lengths.tolist(), strict=False)
    ]


def bedgraph(names: Sequence[str], coverage: Sequence[NDArray[np.int64]]) -> Iterator[bytes]:
    """Lines of contig, begin, end and reads, one for each stretch of the same coverage."""
    for name, own in zip(names, coverage, strict=True):
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        ends = [*begins[1:].tolist(), len(own)]
        rows = zip(begins.tolist(), ends, own[begins].tolist(), strict=True)
        yield "".join(f"{name}\t{a}\t{b}\t{n}\n" for a, b, n in rows).encode()
