"""Features of sequences: k-mers chosen by their content, or the sketches of windows.

A feature is the hash of a canonical k-mer; k-mers with an ambiguous base are skipped. The index
uses not the feature itself but its hash, the key: minima concentrate at small values, keys are
spread evenly. Both hashes are bijections, so keys identify features.

By default a k-mer is a feature if it is a closed syncmer (Edgar 2021): of the hashes of its
canonical s-mers, that of the first or of the last one is below all others. Equal sequence thus has
equal features, on both strands. Where s-mers repeat, as in tandem repeats of up to kmer - smer
bases, no hash is below all others: these k-mers are no features. A window of a reference sequence
has the features that begin in its first ``stride`` bases, a query has all those of its mates; each
is taken once among up to ``_BATCH`` (see ``find_syncmers``).

In MetaCache's databases, a window's features are its ``sketch`` smallest distinct hashes (Kobus
2022, sections 6.4.1 and 8.3).

A database may keep a fraction of all features: those whose key has a lower half below a threshold,
in every window. A smaller fraction is thus a part of a larger one, and thinning a database gives
what building it with the smaller fraction would have given.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import HitScale, SketchRules
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.codec import CODES
from ngsgpu.sequence.hashing import LOW_32, mix32
from ngsgpu.sequence.kmers import roll

_NONE = LOW_32
_BATCH: Final = 224
"""Syncmers from which on the next chunk begins another batch; as in ``kmers.cuh``."""
_CHUNK_BITS: Final = 5
"""Of the number of k-mers in a chunk."""
_RING: Final = 16
_RING_BITS: Final = _RING - 1
_ONE = np.uint64(1)


@njit(nogil=True, cache=True)
def unpack_bases(
    data: NDArray[np.uint8], start: Integer, end: Integer, codes: NDArray[np.uint8], at: Integer
) -> Integer:
    """Write the codes of the bases in ``data[start:end]``, skipping line ends.

    Returns:
        The end of the codes written.
    """
    for i in range(start, end):
        byte = data[i]
        if byte > 32:
            codes[at] = CODES[byte]
            at += 1
    return at


@njit(nogil=True, cache=True)
def windows_of(length: Integer, rules: SketchRules) -> Integer:
    """``SketchParameters.windows`` for kernels."""
    if length <= rules.window:
        return 1 if length >= rules.kmer else 0
    full = (length - rules.window) // rules.stride + 1
    return full + (1 if length - full * rules.stride >= rules.kmer else 0)


@njit(nogil=True, cache=True)
def sketch_window(
    codes: NDArray[np.uint8],
    start: Integer,
    end: Integer,
    rules: SketchRules,
    smallest: NDArray[np.uint32],
) -> Integer:
    """Find the smallest distinct k-mer hashes of ``codes[start:end]``.

    Args:
        codes: uint8, 2-bit codes, above 3 for ambiguous bases.
        start: first base.
        end: end of the window.
        rules: provides ``kmer`` and ``sketch``.
        smallest: uint32[sketch], output: the hashes in ascending order.

    Returns:
        The number of hashes; fewer than ``sketch`` in short windows.
    """
    kmer, wanted = rules.kmer, rules.sketch
    forward = np.uint64(0)
    backward = np.uint64(0)
    limit = _NONE  # hashes from here on are not wanted; no k-mer has the hash of all ones
    known = count = 0
    for i in range(start, end):
        code = np.uint64(codes[i])
        if code > np.uint64(3):
            known = 0
            continue
        forward, backward = roll(forward, backward, code, kmer)
        known += 1
        if known < kmer:
            continue
        feature = mix32(min(forward, backward))
        if feature >= limit:
            continue
        place = count
        while place > 0 and smallest[place - 1] > feature:
            place -= 1
        if place > 0 and smallest[place - 1] == feature:
            continue
        for j in range(min(count, wanted - 1), place, -1):
            smallest[j] = smallest[j - 1]
        smallest[place] = feature
        if count < wanted:
            count += 1
        if count == wanted:
            limit = np.uint64(smallest[wanted - 1])
    return count


@njit(nogil=True, cache=True, inline="always")
def is_kept(key: np.uint64, rules: SketchRules) -> bool:
    """Whether a database has the feature of this key.

    The lower half decides, so that the keys that are kept are spread evenly over the upper half,
    by which the index finds them.
    """
    return bool((key & np.uint64(0xFFFF)) < np.uint64(rules.kept))


@njit(nogil=True, cache=True)
def find_syncmers(
    codes: NDArray[np.uint8],
    start: Integer,
    end: Integer,
    stride: Integer,
    first: Integer,
    rules: SketchRules,
    ring: NDArray[np.uint32],
    keys: NDArray[np.uint32],
    windows: NDArray[np.uint32],
    at: Integer,
    batch: Integer,
    found: Integer,
) -> tuple[Integer, Integer, Integer]:
    """Find the syncmers of ``codes[start:end]``.

    A key is written once in a batch. A batch ends with a window and, for kernels that hold its
    keys, before a chunk of 32 k-mers if more than ``_BATCH`` syncmers were found in it.

    Args:
        codes: uint8, 2-bit codes, above 3 for ambiguous bases.
        start: first base, with which a window begins.
        end: end of the bases.
        stride: distance between the starts of windows.
        first: number of the first window.
        rules: provides ``kmer``, ``smer`` and ``kept``.
        ring: uint32[_RING], scratch.
        keys: uint32, output: the keys, at most one per k-mer.
        windows: uint32, output: the window number of each key; an empty array if not wanted.
        at: first index in ``keys``.
        batch: index of the first key of the present batch.
        found: syncmers in it, with those that repeat.

    Returns:
        The end of the keys written, and the new ``batch`` and ``found``.
    """
    kmer, smer = np.int64(rules.kmer), np.int64(rules.smer)
    more = kmer - smer  # s-mers of a k-mer except the last
    low_bits = (_ONE << np.uint64(2 * smer)) - _ONE
    high = np.uint64(2 * more)
    forward = np.uint64(0)
    backward = np.uint64(0)
    known: Integer = np.int64(0)
    least = _NONE  # rank of the last smallest s-mer of the k-mer, and where it ends
    least_end: Integer = np.int64(-1)
    window_end = start + stride
    window: Integer = np.int64(first)
    chunk: Integer = np.int64(-1)
    for i in range(start, end):
        code = np.uint64(codes[i])
        if code > np.uint64(3):
            known = 0
            continue
        forward, backward = roll(forward, backward, code, kmer)
        known += 1
        if known < smer:
            continue
        rank = mix32(min(forward & low_bits, backward >> high))
        ring[i & _RING_BITS] = rank
        if known == smer or least_end < i - more:
            least_end = max(i - more, i - known + smer)
            least = _NONE
            for j in range(least_end, i):
                if np.uint64(ring[j & _RING_BITS]) <= least:
                    least = np.uint64(ring[j & _RING_BITS])
                    least_end = j
        is_last = rank < least
        if rank <= least:
            least, least_end = rank, i
        if known < kmer or not (is_last or least_end == i - more):
            continue
        key = mix32(mix32(min(forward, backward)))
        if not is_kept(key, rules):
            continue
        begin = i - kmer + 1
        if begin >= window_end:
            passed = (begin - window_end) // stride + 1
            window += passed
            window_end += passed * stride
            batch, found, chunk = at, 0, -1
        own_chunk = (begin - (window_end - stride)) >> _CHUNK_BITS
        if own_chunk != chunk:
            chunk = own_chunk
            if found > _BATCH:
                batch, found = at, 0
        found += 1
        is_new = True
        for j in range(batch, at):
            is_new &= np.uint64(keys[j]) != key
        if is_new:
            keys[at] = key
            if windows.size > 0:
                windows[at] = window
            at += 1
    return at, batch, found


@njit(nogil=True, cache=True)
def sketch_windows(
    codes: NDArray[np.uint8],
    start: Integer,
    end: Integer,
    first: Integer,
    last: Integer,
    rules: SketchRules,
    smallest: NDArray[np.uint32],
    keys: NDArray[np.uint32],
    windows: NDArray[np.uint32],
    at: Integer,
) -> Integer:
    """Sketch windows of a sequence.

    Args:
        codes: uint8, contains the sequence in ``codes[start:end]``.
        start: its first base.
        end: its end.
        first: first window to sketch.
        last: end of the windows to sketch; at most ``windows_of()``.
        rules: windows and sketches.
        smallest: uint32[sketch], scratch.
        keys: uint32, output: the keys, at most ``sketch`` per window.
        windows: uint32, output: the window number of each key; an empty array if not wanted.
        at: first index in ``keys``.

    Returns:
        The end of the keys written.
    """
    for window in range(first, last):
        begin = start + window * rules.stride
        count = sketch_window(codes, begin, min(begin + rules.window, end), rules, smallest)
        before = at
        for i in range(count):
            key = mix32(np.uint64(smallest[i]))
            if is_kept(key, rules):
                keys[at] = key
                at += 1
        if windows.size > 0:
            windows[before:at] = window
    return at


@njit(nogil=True, cache=True)
def new_scratch(rules: SketchRules) -> NDArray[np.uint32]:
    """Scratch for ``find_syncmers`` and ``sketch_windows``."""
    return np.empty(max(_RING, rules.sketch), dtype=np.uint32)


@njit(nogil=True, cache=True)
def sketch_pieces(
    codes: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    rules: SketchRules,
    keys: NDArray[np.uint32],
    windows: NDArray[np.uint32],
    key_start: NDArray[np.int64],
) -> None:
    """Sketch pieces of sequences, each some consecutive windows of one.

    Args:
        codes: uint8, contains the sequence of piece i in ``codes[start[i]:end[i]]``.
        start: int64[pieces].
        end: int64[pieces].
        first: int64[pieces], first window.
        last: int64[pieces], end of the windows.
        rules: windows and sketches.
        keys: uint32, output: the keys.
        windows: uint32, output: the number within its sequence of each key's window.
        key_start: int64[pieces + 1], output: where the keys of each piece begin.
    """
    scratch = new_scratch(rules)
    at: Integer = np.int64(0)
    for i in range(start.size):
        key_start[i] = at
        if rules.smer > 0:
            begin = start[i] + first[i] * rules.stride
            stop = min(end[i], start[i] + last[i] * rules.stride + rules.kmer - 1)
            at, _, _ = find_syncmers(
                codes, begin, stop, rules.stride, first[i], rules, scratch, keys, windows, at, at, 0
            )
        else:
            at = sketch_windows(
                codes, start[i], end[i], first[i], last[i], rules, scratch, keys, windows, at
            )
    key_start[start.size] = at


@njit(nogil=True, cache=True)
def unpack_sequences(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    codes: NDArray[np.uint8],
) -> None:
    """Write the codes of sequences, concatenated; see ``unpack_bases``."""
    at: Integer = np.int64(0)
    for i in range(start.size):
        at = unpack_bases(data, start[i], end[i], codes, at)


@njit(nogil=True, cache=True)
def expected_hits(
    length1: NDArray[np.int32], length2: NDArray[np.int32], kmer: Integer, scale: HitScale
) -> NDArray[np.int64]:
    """Hits of queries in an identical sequence above those of chance, as ``HitScale`` counts.

    Args:
        length1: int32[n], bases of reads or first mates.
        length2: int32[n], of second mates; 0 for single reads.
        kmer: k-mer length.
        scale: how hits are counted.

    Returns:
        int64[n], at least those of chance.
    """
    expected = np.empty(length1.size, dtype=np.int64)
    for i in range(length1.size):
        kmers = np.int64(max(length1[i] - (kmer - 1), 0)) + max(length2[i] - (kmer - 1), 0)
        expected[i] = max(kmers * scale.per_kmer - scale.chance, scale.chance)
    return expected
