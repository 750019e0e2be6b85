"""The adapters that are not given, in the first reads.

They are those that ``ngsgpu.run.adapters`` finds in a sample, or with ``--fastp`` those that fastp
0.23.2 finds, which looks for unknown ones as well, and takes the beginnings of amplicons for them.

Reads that are longer than their fragments share what follows these. So for fastp a 10-mer that is
far more frequent than the mean is a seed, if it is not repetitive: it is extended forwards and
backwards as long as nearly all reads that have it agree. If the result begins with a known adapter,
this is the one. Any other sequence is one only if in both directions few reads were left in the
end, not if they differed: so an unknown adapter is found after fragments that are next to nothing
(adapter dimers, amplicons look the same), but not after varied ones.

Every threshold and tie is fastp's, whose 10-mers are ordered as numbers of the digits A, T, C, G.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.jit import Integer, njit
from ngsgpu.run.adapters import find_adapters
from ngsgpu.run.record import Batch
from ngsgpu.trim.adapters import begin_of_known, may_be_known

SAMPLE_READS: Final = 256 * 1024
"""Reads of a sample, at most."""
SAMPLE_BASES: Final = 151 * SAMPLE_READS
"""Bases with which a sample is complete; the last read may exceed them."""
LEAST_READS: Final = 10_000
"""Reads without which no adapter is looked for."""
LONGEST: Final = 60
"""Bases of an adapter, at most."""

K: Final = 10
LETTERS: Final = "ATCG"
"""Bases in the order of their codes, 0 to 3."""
FIRST: Final = 20
"""First position of a read at which seeds are looked for."""
SEEDS: Final = 10
_LEAST_COUNT = 10
_LEAST_FOLD = 20
"""How often a seed occurs, at least, and how many times the mean of all 4**K k-mers."""
_LEAST_CHANGES = 3
"""Neighbours in a seed that differ."""
_MOST_OF_ONE, _MOST_GC = K - 5, K - 3
"""Bases of a seed that are equal, and those that are C or G, at most."""
_LEAST_TOTAL = 50
_LEAST_SHARE = 0.95
"""Reads that an extension needs, and the part of them that must agree."""
_OTHER = 4
_N = 78
_BLOCK = 16
"""Letters of a stretch that are taken from memory at once."""

_CODES = np.full(256, _OTHER, dtype=np.uint8)
_CODES[list(LETTERS.encode())] = range(4)


def sample_size(lengths: NDArray[np.integer]) -> int:
    """How many of the first reads of a file are the sample, by the lengths of the reads."""
    before = np.cumsum(lengths, dtype=np.int64) - lengths
    return min(int(np.searchsorted(before, SAMPLE_BASES)), SAMPLE_READS)


def is_enough(batches: Sequence[Batch], mate: int) -> bool:
    """Whether batches have all reads that the adapter of first or second mates is detected from."""
    lengths = [batch.mates[mate].seq_len for batch in batches]
    reads, bases = sum(map(len, lengths)), sum(int(own.sum(dtype=np.int64)) for own in lengths)
    return reads >= SAMPLE_READS or bases >= SAMPLE_BASES


def detected(batches: Sequence[Batch], wanted: Sequence[bool], tail: int) -> tuple[str, str]:
    """The adapters of first and second mates, each empty if there is none.

    Args:
        batches: the first reads.
        wanted: whether each is looked for.
        tail: not used.
    """
    sample, lengths = ReadSample(), [batch.mates[0].seq_len for batch in batches]
    left = sample_size(np.concatenate(lengths)) if lengths else 0
    for batch in batches:
        count = min(left, len(batch.mates[0].seq_len))
        sample.take_mates(batch.mates, count)
        left -= count
    return find_adapters(sample).sequences


def detected_by_fastp(
    batches: Sequence[Batch], wanted: Sequence[bool], tail: int
) -> tuple[str, str]:
    """The same as fastp finds them.

    Args:
        batches: the first reads.
        wanted: whether each is looked for.
        tail: last bases of every read that are ignored.

    Raises:
        UsageError: one has other letters than A, C, G and T.
    """
    found = ["", ""]
    for mate in np.flatnonzero(wanted).tolist():
        found[mate] = _of_mates([batch.mates[mate] for batch in batches], tail)
        if set(found[mate]) - set("ACGT"):
            raise UsageError(
                "the adapter that was detected has other letters than A, C, G and T: "
                f"{found[mate]}; give it with `adapter_sequence`{'_r2' * mate}, or "
                "`disable_adapter_trimming`"
            )
    return found[0], found[1]


def _of_mates(mates: list[Mates], tail: int) -> str:
    """The adapter of a sample of reads."""
    starts, shift = [], 0
    for own in mates:
        starts.append(own.seq_start + shift)
        shift += len(own.data)
    if not starts:
        return ""
    lengths = np.concatenate([own.seq_len for own in mates])
    count = sample_size(lengths)
    data = np.concatenate([own.data for own in mates])
    return detect_adapter(data, np.concatenate(starts)[:count], lengths[:count], tail)


def detect_adapter(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    lengths: NDArray[np.integer],
    trim_tail: int = 0,
) -> str:
    """The adapter that reads run into; empty if there is none, or fewer than ``LEAST_READS`` reads.

    Only capital A, C, G and T are seeds. In what follows them, or precedes them, an N ends a read,
    and other letters count as the base with the same last three bits.

    Args:
        bases: uint8[bytes], letters of reads, and anything between them.
        starts: int64[n], first base of each read of the sample.
        lengths: integers[n], bases of each of these reads.
        trim_tail: last bases of every read that are ignored; at least one is.
    """
    if len(lengths) < LEAST_READS:
        return ""
    ends = np.maximum(lengths.astype(np.int64) - max(1, trim_tail), 0)
    counts = count_kmers(bases, starts, ends)
    seeds = frequent_kmers(counts)
    if not seeds:
        return ""
    reads, positions = _find(bases, starts, ends, seeds, counts)
    bound = 0
    for seed in seeds:
        found = slice(bound, bound := bound + int(counts[seed]))
        at = positions[found].astype(np.int64)
        read = reads[found]
        begin, room = starts[read] + at, ends[read] - at - K
        before, began = dominant_path(bases, begin - 1, at, -1)
        adapter = before[::-1] + text_of(seed)
        if not (began or may_be_known(adapter[:LONGEST])):
            continue
        after, ended = dominant_path(bases, begin + K, room, 1)
        adapter = (adapter + after)[:LONGEST]
        if known := begin_of_known(adapter):
            return known
        if ended and began:
            return adapter
    return ""


@njit(nogil=True, cache=True)
def count_kmers(
    bases: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How often each k-mer occurs in reads from ``FIRST`` to their ends: int64[4**K]."""
    counts = np.zeros(1 << 2 * K, dtype=np.int64)
    for i in range(len(starts)):
        kmer: Integer = 0
        known = 0
        for k in range(FIRST, ends[i]):
            kmer, known = _roll(kmer, known, bases[starts[i] + k])
            if known >= K:
                counts[kmer] += 1
    return counts


@njit(nogil=True, cache=True)
def _roll(kmer: Integer, known: int, letter: Integer) -> tuple[Integer, int]:
    """The k-mer that ends with a letter, and how many bases before and with it are known."""
    code = _CODES[letter]
    if code == _OTHER:
        return 0, 0
    return (kmer << 2 | np.int64(code)) & ((1 << 2 * K) - 1), known + 1


def frequent_kmers(counts: NDArray[np.int64]) -> list[int]:
    """At most ``SEEDS`` seeds, the most frequent first; of equal ones, the greater number."""
    counts = np.where(_may_be_seeds(), counts, 0)
    least = max(_LEAST_COUNT, -(-int(counts.sum()) * _LEAST_FOLD // len(counts)))
    frequent = np.flatnonzero(counts >= least)
    order = np.lexsort((frequent, counts[frequent]))[::-1][:SEEDS]
    return [
        seed
        for seed in frequent[order].tolist()
        if sum(one != two for one, two in pairwise(text_of(seed))) >= _LEAST_CHANGES
    ]


def _may_be_seeds() -> NDArray[np.bool_]:
    """Whether the bases of a k-mer are varied enough: bool[4**K]."""
    half = np.arange(1 << K)
    digits = half >> 2 * np.arange(K // 2)[:, None] & 3
    of_half = (digits == np.arange(4)[:, None, None]).sum(axis=1, dtype=np.int8)
    each = (of_half[:, :, None] + of_half[:, None, :]).reshape(4, -1)
    begins_with_g = np.arange(1 << 2 * K) >> 2 * (K - 4) == 0b11111111
    return (each.max(axis=0) <= _MOST_OF_ONE) & (each[2] + each[3] <= _MOST_GC) & ~begins_with_g


def text_of(kmer: int) -> str:
    """The letters of a k-mer."""
    return "".join(LETTERS[kmer >> 2 * k & 3] for k in reversed(range(K)))


def _find(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    seeds: list[int],
    counts: NDArray[np.int64],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Reads and positions of all occurrences of the first seed, then of the second, and so on."""
    slots = np.full(len(counts), -1, dtype=np.int8)
    slots[seeds] = range(len(seeds))
    bounds = np.concatenate([[0], np.cumsum(counts[seeds])])
    reads, positions = np.empty((2, bounds[-1]), dtype=np.int32)
    _fill(bases, starts, ends, slots, bounds[:-1], reads, positions)
    return reads, positions


@njit(nogil=True, cache=True)
def _fill(
    bases: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    slots: NDArray[np.int8],
    cursors: NDArray[np.int64],
    reads: NDArray[np.int32],
    positions: NDArray[np.int32],
) -> None:
    """Write each occurrence at the cursor of its seed."""
    for i in range(len(starts)):
        kmer: Integer = 0
        known = 0
        for k in range(FIRST, ends[i]):
            kmer, known = _roll(kmer, known, bases[starts[i] + k])
            if known >= K and slots[kmer] >= 0:
                slot = slots[kmer]
                reads[cursors[slot]], positions[cursors[slot]] = i, k - K + 1
                cursors[slot] += 1


def dominant_path(
    bases: NDArray[np.uint8], begins: NDArray[np.int64], room: NDArray[np.int64], step: int
) -> tuple[str, bool]:
    """What nearly all of some stretches of reads begin with, and whether it goes on to their ends.

    Args:
        bases: letters of reads.
        begins: first base of each stretch in ``bases``, in the order of the reads.
        room: bases of each stretch.
        step: 1 to go forwards, -1 to go backwards.
    """
    path = np.empty(int(room.max(initial=0)), dtype=np.uint8)
    length, ends = _follow(bases, begins, room, step, path)
    return path[:length].tobytes().decode("latin-1"), bool(ends)


@njit(nogil=True, cache=True)
def _follow(
    bases: NDArray[np.uint8],
    begins: NDArray[np.int64],
    room: NDArray[np.int64],
    step: int,
    path: NDArray[np.uint8],
) -> tuple[int, bool]:
    """Write the path of ``dominant_path``; its length, and whether few stretches are left then."""
    left = np.arange(len(begins))
    block = _letters(bases, begins, room, step)
    for depth in range(len(path) + 1):
        column = depth % _BLOCK
        if column == 0 and depth > 0:
            begins, room = begins[left] + step * _BLOCK, room[left] - _BLOCK
            left = np.arange(len(begins))
            block = _letters(bases, begins, room, step)
        counts = np.zeros(8, dtype=np.int64)
        for i in left:
            if block[i, column] != _N:
                counts[block[i, column] & 7] += 1
        total, most = counts.sum(), counts.argmax()
        if total < _LEAST_TOTAL or counts[most] / total < _LEAST_SHARE:
            return depth, total < _LEAST_TOTAL
        agreeing = 0
        for i in left:
            letter = block[i, column]
            if letter != _N and letter & 7 == most:
                left[agreeing] = i
                agreeing += 1
        left = left[:agreeing]
        path[depth] = block[left[0], column]
    return len(path), True


@njit(nogil=True, cache=True)
def _letters(
    bases: NDArray[np.uint8], begins: NDArray[np.int64], room: NDArray[np.int64], step: int
) -> NDArray[np.uint8]:
    """The next letters of each stretch, N behind its end, side by side: uint8[n, _BLOCK]."""
    block = np.full((len(begins), _BLOCK), _N, dtype=np.uint8)
    for i in range(len(begins)):
        for k in range(min(_BLOCK, room[i])):
            block[i, k] = bases[begins[i] + step * k]
    return block
