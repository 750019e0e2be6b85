"""Contigs as FASTA, and the graph with their paths as GFA 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Paths, Pieces, letters, spell

_LINE: Final = 80
_COMPLEMENT = bytes.maketrans(b"ACGT", b"TGCA")


@dataclass(frozen=True, slots=True)
class Contig:
    """A contig.

    Attributes:
        bases: its letters, on the strand that comes first in alphabetical order.
        coverage: reads per base, in tenths.
        circular: whether its end goes on at its beginning; what they share is written once.
        steps: directions of its pieces.
    """

    bases: bytes
    coverage: int
    circular: bool
    steps: tuple[int, ...]


def reverse_complement(bases: bytes) -> bytes:
    """The other strand."""
    return bases.translate(_COMPLEMENT)[::-1]


def contigs_of(pieces: Pieces, paths: Paths, least: int, scale: tuple[int, int]) -> list[Contig]:
    """Contigs, the longest first, then in alphabetical order.

    Args:
        pieces: the graph.
        paths: of the contigs.
        least: bases of the shortest one.
        scale: coverage is depth times the first, by the second.
    """
    overlap = pieces.k - 1
    kmers = pieces.lengths - overlap
    contigs = []
    for begin, end in zip(paths.starts[:-1], paths.starts[1:], strict=True):
        steps = paths.steps[begin:end]
        own = steps >> 1
        size = int(kmers[own].sum())
        out = np.empty(size + overlap, dtype=np.uint8)
        spell(
            pieces.bases, pieces.starts, overlap, np.array([0, len(steps)]), steps,
            np.array([0, len(out)]), out,
        )  # fmt: skip
        circular = _goes_on(pieces, steps[-1], steps[0])
        bases = letters(out[:size] if circular else out).tobytes()
        if len(bases) < least:
            continue
        depth = int((kmers[own] * pieces.depths[own]).sum()) // size
        coverage = 10 * depth * scale[0] // (DEPTH_UNIT * scale[1])
        turned = reverse_complement(bases)
        places = tuple(steps.tolist())
        if turned < bases:
            bases, places = turned, tuple(step ^ 1 for step in reversed(places))
        contigs.append(Contig(bases, coverage, circular, places))
    return sorted(contigs, key=lambda contig: (-len(contig.bases), contig.bases, contig.steps))


def _goes_on(pieces: Pieces, last: int, first: int) -> bool:
    """Whether nothing but ``first`` follows ``last``, and nothing else comes before ``first``."""
    one, other = (
        pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist()
        for d in (last, first ^ 1)
    )
    return one == [first] and other == [last ^ 1]


def fasta(contigs: list[Contig]) -> Iterator[bytes]:
    """FASTA records."""
    for number, contig in enumerate(contigs, 1):
        circular = " circular=yes" if contig.circular else ""
        yield (
            f">contig_{number} length={len(contig.bases)} "
            f"coverage={_tenths(contig.coverage)}{circular}\n"
        ).encode()
        yield wrapped(contig.bases)


def wrapped(bases: bytes) -> bytes:
    """Lines of a sequence."""
    return b"".join(bases[at : at + _LINE] + b"\n" for at in range(0, len(bases), _LINE))


def _tenths(value: int) -> str:
    return f"{value // 10}.{value % 10}"


def gfa(pieces: Pieces, contigs: list[Contig], scale: tuple[int, int]) -> Iterator[bytes]:
    """The graph: a segment for each piece, its links, and the path of each contig.

    Args:
        pieces: the graph.
        contigs: of the graph.
        scale: as of ``contigs_of``.
    """
    yield b"H\tVN:Z:1.0\n"
    for piece in range(len(pieces)):
        bases = letters(pieces.bases[pieces.starts[piece] : pieces.starts[piece + 1]]).tobytes()
        coverage = 10 * int(pieces.depths[piece]) * scale[0] // (DEPTH_UNIT * scale[1])
        fields = f"\tLN:i:{len(bases)}\tDP:f:{_tenths(coverage)}\n"
        yield f"S\t{piece + 1}\t".encode() + bases + fields.encode()
    overlap = f"{pieces.k - 1}M"
    for source, target in zip(pieces.sources.tolist(), pieces.links.tolist(), strict=True):
        # Read backwards, a link from a to b is one from b ^ 1 to a ^ 1.
        if source <= target ^ 1:
            yield f"L\t{_name(source, chr(9))}\t{_name(target, chr(9))}\t{overlap}\n".encode()
    for number, contig in enumerate(contigs, 1):
        steps = ",".join(_name(step, "") for step in contig.steps)
        overlaps = ",".join([overlap] * (len(contig.steps) - 1)) or "*"
        yield f"P\tcontig_{number}\t{steps}\t{overlaps}\n".encode()


def _name(d: int, gap: str) -> str:
    """A direction as GFA has it."""
    return f"{(d >> 1) + 1}{gap}{'+-'[d & 1]}"
