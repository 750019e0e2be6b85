"""Huffman codes of limited length, and their description in the header of a deflate block.

A code's entry is an integer: its bits in the order of the stream, above 6 bits with its length.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.io.compress.reads.symbols import DISTANCES, FIRST_DISTANCE, FIRST_LENGTH, LITERALS
from ngsgpu.io.compress.reads.words import store_word
from ngsgpu.jit import njit

MOST_BITS: Final = 14
"""Longest code: those of four literals fit in a word beside up to 7 bits that wait."""

_LENGTH_CODES = 19
_MOST_LENGTH_BITS = 7
_LENGTH_ORDER = np.array([16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15])
_SYMBOL_BITS = 9
_REPEAT, _ZEROS, _MORE_ZEROS = 16, 17, 18
_REPEAT_BITS = np.array([0] * 16 + [2, 3, 7])

_MOST_SYMBOLS = LITERALS + DISTANCES
_MOST_LENGTH = 16

CODE_WORDS: Final = 2 * _MOST_SYMBOLS + _MOST_LENGTH
"""int64 that making a code needs for itself."""

HEADER_WORDS: Final = CODE_WORDS + 2 * _MOST_SYMBOLS + 3 * _LENGTH_CODES
"""int64 that making a header needs for itself."""


@njit(nogil=True, cache=True, _nrt=False)
def code_lengths(counts, limit, lengths, words):  # type: ignore[no-untyped-def]
    """Put the lengths of an optimal code: 0 for symbols that do not occur.

    Of symbols that are as frequent, the first gets the longer code. Lengths over the limit are
    made that long, and the least frequent shorter codes longer, until it is a code again.

    Args:
        counts: int64[symbols], how often each occurs.
        limit: most bits.
        lengths: int64[symbols].
        words: int64[CODE_WORDS], for intermediate results.
    """
    lengths[:] = 0
    keys, nodes = words[:_MOST_SYMBOLS], words[_MOST_SYMBOLS : 2 * _MOST_SYMBOLS]
    numbers = words[2 * _MOST_SYMBOLS : 2 * _MOST_SYMBOLS + limit + 1]
    used = 0
    for symbol in range(counts.size):
        if counts[symbol] > 0:
            key = counts[symbol] << _SYMBOL_BITS | symbol
            at = used
            while at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key
            used += 1
    if used < 2:
        if used == 1:
            lengths[keys[0] & 511] = 1
        return
    for at in range(used):
        nodes[at] = keys[at] >> _SYMBOL_BITS
    _count_lengths(nodes[:used], limit, numbers)
    at = 0
    for length in range(limit, 0, -1):
        for _ in range(numbers[length]):
            lengths[keys[at] & 511] = length
            at += 1


@njit(nogil=True, cache=True, _nrt=False)
def _count_lengths(nodes, limit, numbers):  # type: ignore[no-untyped-def]
    """Put how many codes each length has, of sorted frequencies [Moffat and Katajainen, 1995]."""
    used = nodes.size
    nodes[0] += nodes[1]
    root, leaf = 0, 2
    for node in range(1, used - 1):
        total = 0
        for _ in range(2):
            if leaf >= used or (root < node and nodes[root] < nodes[leaf]):
                total += nodes[root]
                nodes[root] = node
                root += 1
            else:
                total += nodes[leaf]
                leaf += 1
        nodes[node] = total
    nodes[used - 2] = 0
    for node in range(used - 3, -1, -1):
        nodes[node] = nodes[nodes[node]] + 1
    numbers[:] = 0
    room, depth, node = 1, 0, used - 2
    while room > 0:
        inner = 0
        while node >= 0 and nodes[node] == depth:
            inner += 1
            node -= 1
        numbers[min(depth, limit)] += room - inner
        room = 2 * inner
        depth += 1
    _shorten(numbers, limit)


@njit(nogil=True, cache=True, _nrt=False)
def _shorten(numbers, limit):  # type: ignore[no-untyped-def]
    """Make numbers of lengths those of a code, of which some were over the limit."""
    total = 0
    for length in range(1, limit + 1):
        total += numbers[length] << (limit - length)
    while total > 1 << limit:
        numbers[limit] -= 1
        length = limit - 1
        while numbers[length] == 0:
            length -= 1
        numbers[length] -= 1
        numbers[length + 1] += 2
        total -= 1


@njit(nogil=True, cache=True, _nrt=False)
def make_codes(lengths, codes, words):  # type: ignore[no-untyped-def]
    """Put the entries of the canonical code with some lengths; 0 for symbols without any.

    Args:
        lengths: int64[symbols].
        codes: int64[symbols].
        words: int64[CODE_WORDS], for intermediate results.
    """
    following = words[: _MOST_LENGTH + 1]
    following[:] = 0
    for length in lengths:
        following[length] += 1
    following[0] = 0
    code = 0
    for length in range(1, _MOST_LENGTH + 1):
        own = following[length]
        following[length] = code
        code = (code + own) << 1
    for symbol in range(lengths.size):
        length = lengths[symbol]
        codes[symbol] = 0
        if length > 0:
            code = following[length]
            following[length] += 1
            backwards = 0
            for _ in range(length):
                backwards = backwards << 1 | code & 1
                code >>= 1
            codes[symbol] = backwards << 6 | length


@njit(nogil=True, cache=True, _nrt=False)
def flush(place, word, held):  # type: ignore[no-untyped-def]
    """Store the whole bytes of the bits that are held; what is left."""
    store_word(place, word)
    return place + (held >> 3), word >> (held & 56), held & 7


@njit(nogil=True, cache=True, _nrt=False)
def put_header(lengths, place, words):  # type: ignore[no-untyped-def]
    """Put the header of a stream's only block, with the lengths of its codes.

    Args:
        lengths: int64[SYMBOLS].
        place: address; there is room for 600 bytes.
        words: int64[HEADER_WORDS], for intermediate results.

    Returns:
        The address behind the whole bytes, a word with the bits after them, and their number.
    """
    literals, distances = LITERALS, DISTANCES
    while literals > FIRST_LENGTH and lengths[literals - 1] == 0:
        literals -= 1
    while distances > 1 and lengths[FIRST_DISTANCE + distances - 1] == 0:
        distances -= 1
    words, more = words[:CODE_WORDS], words[CODE_WORDS:]
    all_lengths, more = more[: literals + distances], more[literals + distances :]
    for at in range(literals):
        all_lengths[at] = lengths[at]
    for at in range(distances):
        all_lengths[literals + at] = lengths[FIRST_DISTANCE + at]
    runs, more = more[: literals + distances], more[literals + distances :]
    counts, own = more[:_LENGTH_CODES], more[_LENGTH_CODES : 2 * _LENGTH_CODES]
    codes = more[2 * _LENGTH_CODES : 3 * _LENGTH_CODES]
    counts[:] = 0
    count = _put_repeats(all_lengths, runs, counts)
    code_lengths(counts, _MOST_LENGTH_BITS, own, words)
    make_codes(own, codes, words)
    given = _LENGTH_CODES
    while own[_LENGTH_ORDER[given - 1]] == 0:
        given -= 1
    # The last block, with separate codes.
    word = 0b101 | (literals - FIRST_LENGTH) << 3 | (distances - 1) << 8 | (given - 4) << 13
    held = 17
    for at in range(given):
        word |= own[_LENGTH_ORDER[at]] << held
        place, word, held = flush(place, word, held + 3)
    for at in range(count):
        symbol = runs[at] & 31
        entry = codes[symbol]
        word |= (entry >> 6 | (runs[at] >> 5) << (entry & 63)) << held
        place, word, held = flush(place, word, held + (entry & 63) + _REPEAT_BITS[symbol])
    return place, word, held


@njit(nogil=True, cache=True, _nrt=False)
def _put_repeats(lengths, runs, counts):  # type: ignore[no-untyped-def]
    """Put symbols for lengths and their repeats, each below its further bits; their number."""
    count = at = 0
    while at < lengths.size:
        length = lengths[at]
        same = 1
        while at + same < lengths.size and lengths[at + same] == length:
            same += 1
        symbol, more = length, 0
        if length == 0 and same >= 3:
            same = min(same, 138)
            symbol, more = (_ZEROS, same - 3) if same <= 10 else (_MORE_ZEROS, same - 11)
        elif length > 0 and same >= 4:
            same = min(same - 1, 6)
            runs[count] = length
            counts[length] += 1
            count += 1
            at += 1
            symbol, more = _REPEAT, same - 3
        else:
            same = 1
        runs[count] = symbol | more << 5
        counts[symbol] += 1
        count += 1
        at += same
    return count
