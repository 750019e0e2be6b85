"""Assembly graphs for tests: made of sequences, read back as strings, and cleaned in Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from ngsgpu.assemble import find_unitigs, graph_of
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Pieces, letters, pieces_of
from ngsgpu.assemble.contigs.reads import Reads
from tests.support.assemble import oracle
from tests.support.assemble.worlds import packed
from tests.support.minhash.oracle import canonical, reverse_complement


def graph(kmers: dict[str, int], k: int) -> Pieces:
    """The graph of some k-mers."""
    order = sorted(kmers)
    counts = np.array([kmers[kmer] for kmer in order], dtype=np.uint16)
    made = graph_of(packed(order, k), counts, k)
    return pieces_of(made, find_unitigs(made))


def held(reads: list[str], pairs: int = 0) -> Reads:
    """Reads in memory."""
    lengths = np.array([len(read) for read in reads], dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum((lengths.astype(np.int64) + 3) // 4)])
    bases = np.zeros(int(starts[-1]), dtype=np.uint8)
    for start, read in zip(starts, reads, strict=False):
        for i, base in enumerate(read):
            bases[start + i // 4] |= "ACGT".index(base) << 2 * (i % 4)
    return Reads(bases, starts[:-1], lengths, pairs)


def sequences(pieces: Pieces) -> list[str]:
    text = letters(pieces.bases).tobytes().decode()
    return [text[a:b] for a, b in zip(pieces.starts, pieces.starts[1:], strict=False)]


def directions(pieces: Pieces) -> list[str]:
    """The bases of every direction."""
    return [own for each in sequences(pieces) for own in (each, reverse_complement(each))]


def check_is_compacted(pieces: Pieces, kmers: Mapping[str, int], *, depths: bool = True) -> None:
    """Pieces and links are those of the naive compaction of some k-mers; depths are their means."""
    k = pieces.k
    found = {}
    for bases, depth in zip(sequences(pieces), pieces.depths.tolist(), strict=True):
        nodes = [canonical(bases[i : i + k]) for i in range(len(bases) - k + 1)]
        assert len(set(nodes)) == len(nodes)
        found[frozenset(nodes)] = depth
    expected = {frozenset(own.nodes): own.nodes for own in oracle.unitigs(kmers)}
    assert set(found) == set(expected)
    for own, depth in found.items() if depths else ():
        mean = sum(kmers[node] for node in own) * DEPTH_UNIT / len(own)
        # Rounded down in every piece that was joined.
        assert mean - len(own) <= depth <= mean
    turned = directions(pieces)
    begins = {bases[:k]: d for d, bases in enumerate(turned)}
    for d, bases in enumerate(turned):
        wanted = {begins[kmer] for kmer in oracle.successors(kmers, bases[-k:])}
        links = pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist()
        assert len(links) == len(set(links))
        assert set(links) == wanted


def neighbours(pieces: Pieces) -> tuple[list[set[int]], list[set[int]]]:
    """What follows each direction, and what it follows."""
    after = [
        set(pieces.links[pieces.link_starts[d] : pieces.link_starts[d + 1]].tolist())
        for d in range(2 * len(pieces))
    ]
    return after, [{p ^ 1 for p in after[d ^ 1]} for d in range(2 * len(pieces))]


def strengths(pieces: Pieces) -> list[tuple[int, int, int]]:
    """What decides which of two pieces is stronger."""
    lengths = pieces.lengths.tolist()
    return [(own, lengths[u], -u) for u, own in enumerate(pieces.depths.tolist())]


def closes_loop(pieces: Pieces, u: int, whole: int) -> bool:
    """Whether a piece is the strongest that leads from a piece back to itself; both directions."""
    after, before = neighbours(pieces)
    strength = strengths(pieces)
    if len(after[2 * u]) != 1 or after[2 * u] != before[2 * u]:
        return False
    (repeat,) = after[2 * u]
    rivals = [e >> 1 for e in after[repeat] if repeat in after[e]]
    deep = 2 * strength[repeat >> 1][0] >= 3 * whole or strength[u][0] >= 2 * DEPTH_UNIT
    return deep and repeat not in after[repeat] and max(strength[v] for v in rivals) == strength[u]


def raise_k(pieces: Pieces, reads: list[str], k: int, *, keeps_only: bool = False) -> Counter[str]:
    """The k-mers of a larger k, and the number of reads of those across links, naively.

    Reads have no errors.
    """
    old = pieces.k
    both = [own for read in reads for own in (read, reverse_complement(read))]
    own = directions(pieces)
    common = [2 * depth >= pieces.typical_depth() for depth in pieces.depths.tolist()]
    only = [
        degree == 1 and common[d >> 1]
        for d, degree in enumerate(np.diff(pieces.link_starts).tolist())
    ]
    inside = {canonical(bases[i : i + k]) for bases in own for i in range(len(bases) - k + 1)}
    across = Counter(
        kmer
        for read in reads
        for i in range(len(read) - k + 1)
        if (kmer := canonical(read[i : i + k])) not in inside
    )
    after, _ = neighbours(pieces)
    whole = pieces.typical_depth()
    loops = {u for u in range(len(pieces)) if keeps_only and closes_loop(pieces, u, whole)}
    for u in loops:
        (repeat,) = after[2 * u]
        if len(own[2 * u]) < k <= len(own[repeat]):
            text = own[repeat][-(k - 1) :] + own[2 * u][old - 1 :] + own[repeat][old - 1 : k - 1]
            across.update(canonical(text[i : i + k]) for i in range(len(text) - k + 1))
    for d, bases in enumerate(own):
        for e in after[d]:
            joint = bases[-old:] + own[e][old - 1]
            support = sum(
                read[i : i + old + 1] == joint for read in both for i in range(len(read) - old)
            )
            if joint == reverse_complement(joint):
                support //= 2
            is_sure = support >= 2 or (
                keeps_only and (only[d] or only[e ^ 1] or bool({d >> 1, e >> 1} & loops))
            )
            if is_sure and len(bases) >= k and len(own[e]) >= k and d <= e ^ 1:
                whole = bases[-(k - 1) :] + own[e][old - 1 : k - 1]
                across.update(canonical(whole[i : i + k]) for i in range(len(whole) - k + 1))
    return Counter({**dict.fromkeys(inside, 0), **across})


def marks(
    pieces: Pieces,
    tip_kmers: int,
    tip_ratio: int,
    weak_ratio: int,
    bubble_ratio: int,
    sure_ratio: int,
    scrap: int,
    typical: int,
    whole: int,
) -> list[int]:
    """What cleaning marks: 1 tip, 2 weak, 3 bubble, 4 scrap, 0 nothing; from docs/assemble.md."""
    after, before = neighbours(pieces)
    depth, length = pieces.depths.tolist(), pieces.lengths.tolist()
    strength = strengths(pieces)
    own = directions(pieces)
    k = pieces.k

    def goes_on(d: int) -> bool:
        return any(
            own[d][k - 21 : k] == own[d][k - 21 - unit : k - unit] for unit in range(9, k - 20)
        )

    def outdone(d: int, ratio: int) -> bool:
        return all(
            any(
                p >> 1 != d >> 1
                and depth[p >> 1] >= ratio * depth[d >> 1]
                and strength[p >> 1] > strength[d >> 1]
                for p in before[e]
            )
            for e in after[d]
        )

    def outdone_twin(u: int, ratio: int) -> bool:
        if len(after[2 * u]) != 1 or len(before[2 * u]) != 1:
            return False
        slack = max(8, length[u] // 20)
        beside = [e >> 1 for e in (*after[2 * u], *before[2 * u])]
        in_one = all(length[v] >= 4 * k and 2 * depth[v] <= 3 * whole for v in beside)
        return any(
            t >> 1 != u
            and after[t] == after[2 * u]
            and before[t] == before[2 * u]
            and abs(length[t >> 1] - length[u]) <= slack
            and depth[t >> 1] >= ratio * depth[u]
            and strength[t >> 1] > strength[u]
            and (
                in_one
                or 2 * (depth[t >> 1] + depth[u]) <= 3 * whole
                or depth[t >> 1] >= 3 * depth[u]
            )
            for t in range(2 * len(pieces))
        )

    found = []
    for u in range(len(pieces)):
        d = 2 * u
        mark = 0
        scarce = 4 * depth[u] < typical
        once = depth[u] < 2 * DEPTH_UNIT
        sure = sure_ratio if depth[u] >= 3 * DEPTH_UNIT else 0
        weak = max(sure, min(2, weak_ratio) if once else weak_ratio)
        if not after[d] and not before[d]:
            short = scarce and length[u] < tip_kmers * pieces.k
            mark = 4 if length[u] < scrap or short or depth[u] <= DEPTH_UNIT else 0
        elif not after[d] or not before[d]:
            linked = d if after[d] else d + 1
            mark = int(
                length[u] < tip_kmers * pieces.k
                and outdone(linked, max(sure, 1 if scarce else tip_ratio))
                and not goes_on(linked ^ 1)
            )
        elif (
            length[u] <= 3 * pieces.k
            and 2 * depth[u] < typical
            and outdone(d, weak)
            and outdone(d + 1, weak)
            and not (sure_ratio and closes_loop(pieces, u, whole))
        ):
            mark = 2
        elif (
            bubble_ratio
            and (bubble_ratio == 1 or 2 * depth[u] < typical)
            and outdone_twin(u, 1 if once or bubble_ratio == 1 else max(sure, bubble_ratio))
        ):
            mark = 3
        found.append(mark)
    return found
