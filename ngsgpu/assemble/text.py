"""Unitigs as text: FASTA with BCALM's headers, and GFA 1.

Headers have the length (``LN:i:``), the sum of the k-mers' counts (``KC:i:``), their mean to one
decimal (``km:f:``, halves to even), and the links ``L:strand:unitig:strand`` of either end. In GFA
every link is there once, and ``DP:f:`` has the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.chains import Unitigs
from ngsgpu.assemble.graph import Graph, Places, load_directions
from ngsgpu.io.text.put import put_number
from ngsgpu.jit import Integer, njit
from ngsgpu.pool import parts_within, working
from ngsgpu.sequence.codec import LETTERS

_PART: Final = 1 << 22
"""Bases that a task writes, or one unitig."""

_LINKS: Final = 1 << 16
_FIELDS: Final = 128
"""Most bytes of a record without its name, bases and links."""

_NUMBER: Final = 20
"""Most digits of a number, and a byte."""

_HEADER: Final = b"H\tVN:Z:1.0\n"
_LENGTH = np.frombuffer(b" LN:i:", dtype=np.uint8)
_TOTAL = np.frombuffer(b" KC:i:", dtype=np.uint8)
_MEAN = np.frombuffer(b" km:f:", dtype=np.uint8)
_DEPTH = np.frombuffer(b" DP:f:", dtype=np.uint8)
_LINK = np.frombuffer(b" L:", dtype=np.uint8)
_SIGNS = np.frombuffer(b"+-", dtype=np.uint8)


def records(
    graph: Graph, unitigs: Unitigs, threads: int = 1, *, fasta: bool = True, gfa: bool = False
) -> Iterator[tuple[memoryview, memoryview]]:
    """FASTA records and GFA segments of the unitigs, in order.

    Args:
        graph: the graph; its neighbours are not needed where the unitigs have letters.
        unitigs: its unitigs.
        threads: number of threads; does not affect the result.
        fasta: whether to make FASTA; otherwise the first text of each pair is empty.
        gfa: whether to make GFA.
    """
    lengths = unitigs.sizes + (graph.k - 1)
    ends = np.cumsum(lengths)

    def work(part: tuple[int, int]) -> tuple[memoryview, memoryview]:
        begin, end = part
        places = np.concatenate([[0], np.cumsum(lengths[begin:end])])
        if unitigs.letters is not None:
            bases = unitigs.letters[ends[begin] - lengths[begin] : ends[end - 1]]
        else:
            bases = np.empty(int(places[-1]), dtype=np.uint8)
            write_bases(
                graph.kmers, graph.nexts, graph.masks, graph.k,
                unitigs.first, unitigs.sizes, begin, end, LETTERS, bases,
            )  # fmt: skip
        links = int(unitigs.link_starts[2 * end] - unitigs.link_starts[2 * begin])
        segments_room = len(bases) + (end - begin) * _FIELDS
        texts = []
        for wanted, room, write in (
            (fasta, segments_room + links * (_NUMBER + 7), write_fasta),
            (gfa, segments_room, write_segments),
        ):
            text = np.empty(room if wanted else 0, dtype=np.uint8)
            size = 0
            if wanted:
                size = write(
                    bases, places, unitigs.totals, unitigs.sizes, unitigs.link_starts,
                    unitigs.links, begin, end, text,
                )  # fmt: skip
            texts.append(text[:size].data)
        return texts[0], texts[1]

    with working(threads, work, parts_within(ends, _PART), name="unitigs") as done:
        yield from done


def link_lines(k: int, unitigs: Unitigs, threads: int = 1) -> Iterator[memoryview]:
    """The links of a GFA file, each once, in the order of their first ends.

    Args:
        k: k-mer length.
        unitigs: the unitigs.
        threads: number of threads; does not affect the result.
    """

    def work(begin: int) -> memoryview:
        end = min(2 * len(unitigs), begin + _LINKS)
        links = int(unitigs.link_starts[end] - unitigs.link_starts[begin])
        text = np.empty(links * (2 * _NUMBER + 16), dtype=np.uint8)
        size = write_links(unitigs.link_starts, unitigs.links, begin, end, k - 1, text)
        return text[:size].data

    with working(threads, work, range(0, 2 * len(unitigs), _LINKS), name="links") as done:
        yield from done


def write_text(
    graph: Graph,
    unitigs: Unitigs,
    fasta: Callable[[memoryview], None] | None,
    gfa: Callable[[memoryview], None] | None,
    threads: int = 1,
) -> None:
    """Write unitigs as FASTA and GFA.

    Args:
        graph: the graph.
        unitigs: its unitigs.
        fasta: takes FASTA.
        gfa: takes GFA.
        threads: number of threads; does not affect the result.
    """
    if gfa is not None:
        gfa(memoryview(_HEADER))
    wanted = {"fasta": fasta is not None, "gfa": gfa is not None}
    for sequences, segments in records(graph, unitigs, threads, **wanted):
        if fasta is not None:
            fasta(sequences)
        if gfa is not None:
            gfa(segments)
    if gfa is not None:
        for lines in link_lines(graph.k, unitigs, threads):
            gfa(lines)


def prepare() -> None:
    """Load what writes unitigs, while the GPU still looks for them."""
    k = 11
    none = np.empty(0, dtype=np.int32)
    one = np.ones(1, dtype=np.int64)
    letters = np.full(k, LETTERS[0], dtype=np.uint8)
    masks = np.empty(0, dtype=np.uint8)
    graph = Graph(k, np.empty((0, 1), np.uint64), np.empty(0, np.uint16), none, masks, none)
    first = np.zeros(1, dtype=np.int32)
    unitigs = Unitigs(first, first, one, one, np.zeros(3, dtype=np.int64), none, letters)
    write_text(graph, unitigs, lambda text: None, lambda text: None)


@njit(nogil=True, cache=True)
def write_bases(
    kmers: NDArray[np.uint64],
    nexts: Places,
    masks: NDArray[np.uint8],
    k: int,
    first: Places,
    sizes: NDArray[np.int64],
    begin: int,
    end: int,
    letters: NDArray[np.uint8],
    bases: NDArray[np.uint8],
) -> None:
    """Write the bases of unitigs, one after the other."""
    both = np.empty((2, kmers.shape[1]), dtype=np.uint64)
    at = 0
    for unitig in range(begin, end):
        d = np.int64(first[unitig])
        load_directions(kmers, d >> 1, k, both)
        for base in range(k):
            word = both[d & 1, base >> 5] >> np.uint64(62 - 2 * (base & 31))
            bases[at] = letters[np.int64(word & np.uint64(3))]
            at += 1
        for _ in range(1, sizes[unitig]):
            follows = masks[d >> 1] >> (4 * (d & 1))
            # Joined nodes have one bit.
            code = 0
            while not (follows >> code) & 1:
                code += 1
            bases[at] = letters[code]
            at += 1
            d = np.int64(nexts[d])


@njit(nogil=True, cache=True)
def _put(out: NDArray[np.uint8], at: int, text: NDArray[np.uint8], gap: int) -> int:
    """Write a text with ``gap`` as its first character; return where it ends."""
    out[at] = gap
    for i in range(1, len(text)):
        out[at + i] = text[i]
    return at + len(text)


@njit(nogil=True, cache=True)
def _put_fields(
    out: NDArray[np.uint8],
    at: int,
    gap: int,
    length: Integer,
    total: Integer,
    size: Integer,
    mean: NDArray[np.uint8],
) -> int:
    """Write length, sum and mean of counts; return where they end."""
    at = put_number(out, _put(out, at, _LENGTH, gap), length)
    at = put_number(out, _put(out, at, _TOTAL, gap), total)
    tenths = 10 * total // size
    rest = 2 * (10 * total - tenths * size)
    if rest > size or (rest == size and tenths % 2 == 1):
        tenths += 1
    at = put_number(out, _put(out, at, mean, gap), tenths // 10)
    out[at] = 46
    out[at + 1] = 48 + tenths % 10
    return at + 2


@njit(nogil=True, cache=True)
def write_fasta(
    bases: NDArray[np.uint8],
    places: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    link_starts: NDArray[np.int64],
    links: Places,
    begin: int,
    end: int,
    out: NDArray[np.uint8],
) -> int:
    """Write FASTA records; return their size.

    Args:
        bases: of the unitigs.
        places: int64[end - begin + 1], where each one begins in ``bases``.
        totals: of all unitigs.
        sizes: of all unitigs.
        link_starts: of all unitigs.
        links: of all unitigs.
        begin: first unitig.
        end: of the unitigs.
        out: room.
    """
    at = 0
    for unitig in range(begin, end):
        low, high = places[unitig - begin], places[unitig - begin + 1]
        out[at] = 62
        at = put_number(out, at + 1, unitig)
        at = _put_fields(out, at, 32, high - low, totals[unitig], sizes[unitig], _MEAN)
        for side in range(2):
            for i in range(link_starts[2 * unitig + side], link_starts[2 * unitig + side + 1]):
                at = _put(out, at, _LINK, 32)
                out[at] = _SIGNS[side]
                out[at + 1] = 58
                at = put_number(out, at + 2, links[i] >> 1)
                out[at] = 58
                out[at + 1] = _SIGNS[links[i] & 1]
                at += 2
        out[at] = 10
        at += 1
        out[at : at + high - low] = bases[low:high]
        at += high - low
        out[at] = 10
        at += 1
    return at


@njit(nogil=True, cache=True)
def write_segments(
    bases: NDArray[np.uint8],
    places: NDArray[np.int64],
    totals: NDArray[np.int64],
    sizes: NDArray[np.int64],
    link_starts: NDArray[np.int64],
    links: Places,
    begin: int,
    end: int,
    out: NDArray[np.uint8],
) -> int:
    """Write GFA segments; return their size. Arguments as of ``write_fasta``."""
    at = 0
    for unitig in range(begin, end):
        low, high = places[unitig - begin], places[unitig - begin + 1]
        out[at] = 83
        out[at + 1] = 9
        at = put_number(out, at + 2, unitig)
        out[at] = 9
        at += 1
        out[at : at + high - low] = bases[low:high]
        at += high - low
        at = _put_fields(out, at, 9, high - low, totals[unitig], sizes[unitig], _DEPTH)
        out[at] = 10
        at += 1
    return at


@njit(nogil=True, cache=True)
def write_links(
    link_starts: NDArray[np.int64],
    links: Places,
    begin: int,
    end: int,
    overlap: int,
    out: NDArray[np.uint8],
) -> int:
    """Write the GFA links of some ends, unless the other end writes them; return their size."""
    at = 0
    for own in range(begin, end):
        for i in range(link_starts[own], link_starts[own + 1]):
            # Read backwards, a link from a to b is one from b ^ 1 to a ^ 1.
            other = np.int64(links[i])
            if other ^ 1 < own:
                continue
            out[at] = 76
            out[at + 1] = 9
            at += 2
            for direction in (own, other):
                at = put_number(out, at, direction >> 1)
                out[at] = 9
                out[at + 1] = _SIGNS[direction & 1]
                out[at + 2] = 9
                at += 3
            at = put_number(out, at, overlap)
            out[at] = 77
            out[at + 1] = 10
            at += 2
    return at
