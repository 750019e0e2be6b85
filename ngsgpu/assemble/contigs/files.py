"""Contigs as FASTA, and the graph with their paths as GFA 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.params import Names
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Paths, Pieces, letters, spell

HEADERS: Final[dict[Names, str]] = {
    "ngsgpu": "contig_{number} length={length} coverage={coverage}",
    "shovill": "contig{number:05} len={length} cov={coverage}",
}
"""Names of contigs, and what stands behind them in FASTA."""

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
        number: its place among all, from 1.
    """

    bases: bytes
    coverage: int
    circular: bool
    steps: tuple[int, ...]
    number: int = 0

    def header(self, names: Names) -> str:
        """The line in FASTA, without ``>``."""
        found = HEADERS[names].format(
            number=self.number, length=len(self.bases), coverage=_tenths(self.coverage)
        )
        return f"{found} circular=yes" if self.circular else found

    def name(self, names: Names) -> str:
        """The first word of the header."""
        return self.header(names).partition(" ")[0]


def reverse_complement(bases: bytes) -> bytes:
    """The other strand."""
    return bases.translate(_COMPLEMENT)[::-1]


def contigs_of(
    pieces: Pieces, paths: Paths, least: int, scale: tuple[int, int], cuts: NDArray[np.int64]
) -> list[Contig]:
    """Contigs, the longest first, then in alphabetical order.

    Args:
        pieces: the graph.
        paths: of the contigs.
        least: bases of the shortest one.
        scale: coverage is depth times the first, by the second.
        cuts: int64[n, 2], bases that a contig leaves out at the begin and at the end of a piece, if
            it ends there.
    """
    overlap = pieces.k - 1
    kmers = pieces.lengths - overlap
    contigs = []
    for path, (begin, end) in enumerate(zip(paths.starts[:-1], paths.starts[1:], strict=True)):
        steps = paths.steps[begin:end]
        own = steps >> 1
        size = int(kmers[own].sum())
        out = np.empty(size + overlap, dtype=np.uint8)
        spell(
            pieces.bases, pieces.starts, overlap, np.array([0, len(steps)]), steps,
            np.array([0, len(out)]), out,
        )  # fmt: skip
        circular = path in paths.circles or _goes_on(pieces, steps[-1], steps[0])
        if circular:
            out = out[:size]
        else:
            first, last = int(steps[0]), int(steps[-1])
            out = out[cuts[first >> 1, first & 1] : len(out) - cuts[last >> 1, 1 - (last & 1)]]
        bases = letters(out).tobytes()
        if len(bases) < least:
            continue
        depth = int((kmers[own] * pieces.depths[own]).sum()) // size
        coverage = 10 * depth * scale[0] // (DEPTH_UNIT * scale[1])
        turned = reverse_complement(bases)
        places = tuple(steps.tolist())
        if turned < bases:
            bases, places = turned, tuple(step ^ 1 for step in reversed(places))
        contigs.append(Contig(bases, coverage, circular, places))
    contigs.sort(key=lambda contig: (-len(contig.bases), contig.bases, contig.steps))
    return [replace(own, number=number) for number, own in enumerate(contigs, 1)]


def _goes_on(pieces: Pieces, last: int, first: int) -> bool:
    """Whether nothing but ``first`` follows ``last``, and nothing else comes before ``first``."""
    one, other = (
        pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist()
        for d in (last, first ^ 1)
    )
    return one == [first] and other == [last ^ 1]


def fasta(contigs: list[Contig], names: Names) -> Iterator[bytes]:
    """FASTA records."""
    for contig in contigs:
        yield f">{contig.header(names)}\n".encode()
        yield wrapped(contig.bases)


def wrapped(bases: bytes) -> bytes:
    """Lines of a sequence."""
    return b"".join(bases[at : at + _LINE] + b"\n" for at in range(0, len(bases), _LINE))


def _tenths(value: int) -> str:
    return f"{value // 10}.{value % 10}"


def gfa(
    pieces: Pieces, contigs: list[Contig], scale: tuple[int, int], names: Names
) -> Iterator[bytes]:
    """The graph: a segment for each piece, its links, and the path of each contig.

    Args:
        pieces: the graph.
        contigs: of the graph.
        scale: as of ``contigs_of``.
        names: of contigs.
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
    for contig in contigs:
        steps = ",".join(_name(step, "") for step in contig.steps)
        overlaps = ",".join([overlap] * (len(contig.steps) - 1)) or "*"
        yield f"P\t{contig.name(names)}\t{steps}\t{overlaps}\n".encode()


def _name(d: int, gap: str) -> str:
    """A direction as GFA has it."""
    return f"{(d >> 1) + 1}{gap}{'+-'[d & 1]}"
