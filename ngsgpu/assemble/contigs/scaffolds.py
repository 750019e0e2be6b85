"""Scaffolds: contigs in the order that pairs say, with N between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ngsgpu.assemble.contigs.files import Contig, reverse_complement, wrapped
from ngsgpu.assemble.contigs.joins.join import Join
from ngsgpu.assemble.contigs.params import Names

LEAST_GAP: Final = 10
"""N between contigs that pairs say are closer, or overlap."""


class Scaffold(NamedTuple):
    """A scaffold.

    Attributes:
        bases: letters, on the strand that comes first in alphabetical order.
        parts: names of its contigs with their strands.
    """

    bases: bytes
    parts: tuple[str, ...]


def scaffolds_of(contigs: Sequence[Contig], joins: Sequence[Join], names: Names) -> list[Scaffold]:
    """Scaffolds, the longest first, then in alphabetical order; contigs that no join names, too.

    Args:
        contigs: the contigs; number ``2 * i`` is contig i, ``2 * i + 1`` its reverse complement.
        joins: of unique pieces; those without a path join contigs.
        names: of contigs.
    """
    begins: dict[int, int] = {}
    for i, contig in enumerate(contigs):
        begins[contig.steps[0]] = 2 * i
        begins[contig.steps[-1] ^ 1] = 2 * i + 1
    after: dict[int, tuple[int, int]] = {}
    for join in joins:
        source, target = begins.get(join.source ^ 1), begins.get(join.target)
        if join.closed or source is None or target is None or source >> 1 == target >> 1:
            continue
        after[source ^ 1] = target, join.gap
        after[target ^ 1] = source, join.gap
    seen: set[int] = set()
    found = []
    ended = [i for i in range(len(contigs)) if 2 * i not in after or 2 * i + 1 not in after]
    for i in (*ended, *range(len(contigs))):
        if i in seen:
            continue
        own = 2 * i + (2 * i not in after and 2 * i + 1 in after)
        bases, parts = b"", []
        while True:
            seen.add(own >> 1)
            each = contigs[own >> 1].bases
            bases += reverse_complement(each) if own & 1 else each
            parts.append(own)
            if own not in after or after[own][0] >> 1 in seen:
                break
            own, gap = after[own]
            bases += b"N" * max(LEAST_GAP, gap)
        turned = reverse_complement(bases)
        if turned < bases:
            bases, parts = turned, [each ^ 1 for each in reversed(parts)]
        oriented = tuple(f"{contigs[each >> 1].name(names)}{'+-'[each & 1]}" for each in parts)
        found.append(Scaffold(bases, oriented))
    return sorted(found, key=lambda own: (-len(own.bases), own.bases, own.parts))


def scaffold_fasta(scaffolds: Sequence[Scaffold]) -> Iterator[bytes]:
    """FASTA records."""
    for number, own in enumerate(scaffolds, 1):
        parts = ",".join(own.parts)
        yield f">scaffold_{number} length={len(own.bases)} contigs={parts}\n".encode()
        yield wrapped(own.bases)
