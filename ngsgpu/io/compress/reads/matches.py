"""Decides what is copied in a block of reads: see the package.

A line begins with the line end before it (the block's first line does not). Kernels that work on
single lines get addresses instead of arrays, whose references Numba would count at every call.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from ngsgpu.io.compress.reads.symbols import (
    FIRST_DISTANCE,
    FIRST_LENGTH,
    LENGTH_SYMBOL,
    WINDOW,
    distance_symbol,
)
from ngsgpu.io.compress.reads.words import (
    LANES,
    equal_to,
    leading_zeros,
    load_byte,
    load_word,
    same,
    shift_right,
    store_word,
    trailing_zeros,
)
from ngsgpu.jit import njit

MOST_LINES: Final = 4096
"""A block with more lines is not taken for one of reads."""

MER: Final = 16
"""Bases that are looked up; a shorter line is not a sequence."""

SLOTS: Final = 1 << 11
"""Slots of a table of 16-mers; there are two tables, for the halves of a block."""

EMPTY: Final = 0xFFFF

PLACE_BITS: Final = 17
LENGTH_BITS: Final = 9
DISTANCE_BITS: Final = 16
"""A step is an integer of place, length and distance of a copy, the place lowest, and whether the
literals before it are bases. A length of 0 copies nothing."""

BASES: Final = 1 << (PLACE_BITS + LENGTH_BITS + DISTANCE_BITS)

_STRIDE, _FINE_STRIDE = 16, 8
_SAMPLED = 60  # one record of 16 of FASTQ: no bit of the line's number may be set
_LEAST = 5
_LEAST_FIELD = 4
_SHORT_RUN, _LONG_RUN = 4, 8
_MULTIPLIER = 0x1E3779B97F4A7C15
_NEW_LINE, _SPACE, _PLUS, _COLON, _GREATER, _AT = (ord(letter) for letter in "\n +:>@")
_A, _C, _G, _T, _N = (ord(letter) for letter in "ACGTN")


@njit(nogil=True, cache=True, _nrt=False)
def _common(first, second, most):  # type: ignore[no-untyped-def]
    """Bytes, at most ``most``, that are the same at two addresses."""
    at = 0
    while at < most:
        different = ~same(first + at, second + at)
        if different != 0:
            return min(most, at + trailing_zeros(different))
        at += LANES
    return most


@njit(nogil=True, cache=True, _nrt=False)
def _common_end(first, second, most, readable):  # type: ignore[no-untyped-def]
    """Bytes, at most ``most``, that are the same before two addresses.

    ``readable`` bytes may be read there.
    """
    at = 0
    while at < most and readable - at >= 8:
        different = load_word(first - at - 8) ^ load_word(second - at - 8)
        if different != 0:
            return min(most, at + (leading_zeros(different) >> 3))
        at += 8
    while at < most and load_byte(first - at - 1) == load_byte(second - at - 1):
        at += 1
    return min(most, at)


@njit(nogil=True, cache=True, _nrt=False)
def _find_lines(text, size, lines):  # type: ignore[no-untyped-def]
    """Put the places where lines begin, and ``size``; the number of lines, -1 if there are many."""
    count = 1
    lines[0] = 0
    for at in range(1, size, LANES):
        ends = equal_to(text + at, _NEW_LINE)
        if size - at < LANES:
            ends &= (1 << (size - at)) - 1
        while ends != 0:
            if count == MOST_LINES:
                return -1
            lines[count] = at + trailing_zeros(ends)
            count += 1
            ends &= ends - 1
    lines[count] = size
    return count


@njit(nogil=True, cache=True, _nrt=False)
def _slot(place):  # type: ignore[no-untyped-def]
    """The slot of a table for the 16-mer at an address."""
    mixed = (load_word(place) * _MULTIPLIER) ^ load_word(place + 8)
    return ((mixed * _MULTIPLIER) >> 40) & (SLOTS - 1)


@njit(nogil=True, cache=True, _nrt=False)
def _insert(text, begin, end, tables):  # type: ignore[no-untyped-def]
    """Put every 16th 16-mer of [begin, end) into the tables, which keep a half's first place."""
    for at in range(begin, end - MER + 1, _STRIDE):
        slot = _slot(text + at)
        low = at & (WINDOW - 1)
        slot += (at >> 15) * SLOTS
        if tables[slot] > low:
            tables[slot] = low


@njit(nogil=True, cache=True, _nrt=False)
def _find(text, at, tables):  # type: ignore[no-untyped-def]
    """An earlier place that may have the 16-mer at a place; -1 if there is none."""
    slot = 2 * _slot(text + at)
    half = at >> 15
    place = (load_word(tables + half * 2 * SLOTS + slot) & 0xFFFF) + (half << 15)
    if place < at:
        return place
    if half == 0:
        return -1
    place = load_word(tables + slot) & 0xFFFF
    return place if place != EMPTY and at - place <= WINDOW else -1


@njit(nogil=True, cache=True, _nrt=False)
def _repeats(text, begin, end, tables):  # type: ignore[no-untyped-def]
    """Whether one of the 16-mers of [begin, end), of every third, is found."""
    for at in range(begin, end - MER + 1, 3):
        place = _find(text, at, tables)
        if place >= 0 and _common(text + at, text + place, MER) == MER:
            return True
    return False


@njit(nogil=True, cache=True, _nrt=False)
def _put(steps, counts, place, length, distance, bases):  # type: ignore[no-untyped-def]
    """Put a copy, in several if it is long; the address behind the steps."""
    while length > 0:
        own = 258 if length >= 261 else length - 3 if length > 258 else length
        copy = own << PLACE_BITS | distance << (PLACE_BITS + LENGTH_BITS)
        store_word(steps, place | copy | bases)
        count = counts + 8 * (FIRST_LENGTH + np.int64(LENGTH_SYMBOL[own]))
        store_word(count, load_word(count) + 1)
        count = counts + 8 * (FIRST_DISTANCE + distance_symbol(distance))
        store_word(count, load_word(count) + 1)
        steps += 8
        place += own
        length -= own
    return steps


@njit(nogil=True, cache=True, _nrt=False)
def _put_runs(text, at, end, least, steps, counts):  # type: ignore[no-untyped-def]
    """Put the runs in [at, end) of a least length that equal the byte before them."""
    at = max(at, 1)
    while at + least <= end:
        equal = same(text + at, text + at - 1)
        if end - at < LANES:
            equal &= (1 << (end - at)) - 1
        starts = equal & shift_right(equal, 1)
        starts &= shift_right(starts, 2)
        if least == _LONG_RUN:
            starts &= shift_right(starts, 4)
        if starts == 0:
            at += LANES + 1 - least
            continue
        skipped = trailing_zeros(starts)
        at += skipped
        length = trailing_zeros(~shift_right(equal, skipped))
        if skipped + length == LANES:
            length += _common(text + at + length, text + at + length - 1, end - at - length)
        steps = _put(steps, counts, at, length, 1, 0)
        at += length
    return steps


@njit(nogil=True, cache=True, _nrt=False)
def _put_sequence(text, begin, end, tables, steps, counts):  # type: ignore[no-untyped-def]
    """Put what [begin, end) has of earlier sequences."""
    at = done = begin
    while at + MER <= end:
        place = _find(text, at, tables)
        length = _common(text + at, text + place, end - at) if place >= 0 else 0
        if length < MER:
            at += 1
            continue
        back = 0
        while (
            at - back > done
            and place > back
            and load_byte(text + at - back - 1) == load_byte(text + place - back - 1)
        ):
            back += 1
        steps = _put(steps, counts, at - back, length + back, at - place, BASES)
        at += length
        done = at
    return steps


@njit(nogil=True, cache=True, _nrt=False)
def _separator(text, at, end):  # type: ignore[no-untyped-def]
    """The first space or colon of [at, end) within 64 bytes; ``end`` if there is none."""
    found = equal_to(text + at, _SPACE) | equal_to(text + at, _COLON)
    return min(end, at + trailing_zeros(found)) if found != 0 else end


@njit(nogil=True, cache=True, _nrt=False)
def _put_fields(text, at, end, other, other_end, steps, counts):  # type: ignore[no-untyped-def]
    """Put what fields of a header have in common with those of another."""
    while True:
        own = _separator(text, at, end)
        others = _separator(text, other, other_end)
        if own >= end or others >= other_end:
            return steps
        length = _common(text + own, text + others, min(end - own, other_end - others))
        if length == 0:
            return steps
        if length >= _LEAST_FIELD and own - others <= WINDOW:
            steps = _put(steps, counts, own, length, own - others, 0)
        at = own + length
        other = others + length


@njit(nogil=True, cache=True, _nrt=False)
def _put_line(text, line, lines, kinds, least, steps, counts):  # type: ignore[no-untyped-def]
    """Put the copies of a line that is not a sequence."""
    lines += 4 * line
    begin, end = _line_begin(lines, 0), _line_begin(lines, 1)
    first = load_byte(text + begin + 1) if end > begin + 1 else 0
    if line < 4 or (first == _PLUS and end - begin == 2):
        return steps
    back, skipped = 4, 0
    other, other_end = _line_begin(lines, -4), _line_begin(lines, -3)
    length = _common(text + begin, text + other, min(end - begin, other_end - other))
    if first == _PLUS and end - begin == _line_begin(lines, -1) - _line_begin(lines, -2):
        back, skipped = 2, 2
        other = _line_begin(lines, -2)
        length = 2 + _common(text + begin + 2, text + other + 2, end - begin - 2)
    elif first == _GREATER:
        for nearer in (3, 2):
            place, place_end = _line_begin(lines, -nearer), _line_begin(lines, 1 - nearer)
            own = _common(text + begin, text + place, min(end - begin, place_end - place))
            if own > length:
                length, back, other = own, nearer, place
    other_end = _line_begin(lines, 1 - back)
    if length - skipped < _LEAST or begin - other > WINDOW:
        length = 0
    else:
        steps = _put(steps, counts, begin + skipped, length - skipped, begin - other, 0)
    most = min(end - begin, other_end - other) - length
    tail = _common_end(text + end, text + other_end, most, other_end)
    # The next line's first byte is a line end as well; only sequences do not copy theirs.
    joined = tail > 0 and load_byte(kinds + line + 1) == 1
    if tail + joined < _LEAST or end - other_end > WINDOW:
        tail, joined = 0, False
    at, stop = begin + length, end - tail
    if length > 0 and first in (_AT, _GREATER):
        steps = _put_fields(text, at, stop, other + length, other_end, steps, counts)
    else:
        steps = _put_runs(text, at, stop, least, steps, counts)
    return _put(steps, counts, stop, tail + joined, end - other_end, 0)


@njit(nogil=True, cache=True, _nrt=False)
def _line_begin(lines, number):  # type: ignore[no-untyped-def]
    """Where a line begins, counted from that at an address."""
    return load_word(lines + 4 * number) & 0xFFFFFFFF


@njit(nogil=True, cache=True, _nrt=False)
def _is_sequence(text, begin, end):  # type: ignore[no-untyped-def]
    """Whether a line begins with 16 bases or N."""
    if end - begin < MER:
        return False
    place = text + begin
    bases = equal_to(place, _A) | equal_to(place, _C) | equal_to(place, _G) | equal_to(place, _T)
    return (bases | equal_to(place, _N)) & 0xFFFF == 0xFFFF


@njit(nogil=True, cache=True, _nrt=False)
def _survey(text, size, lines, count, kinds, tables, counts):  # type: ignore[no-untyped-def]
    """Say of each line whether it is a sequence, and fill the tables.

    Returns:
        Whether a quarter of the block is sequences, whether those are looked up, and the bytes of
        the shortest run.
    """
    sequence_bytes = 0
    for line in range(count):
        begin, end = lines[line] + 1, lines[line + 1]
        kinds[line] = _is_sequence(text, begin, end)
        if kinds[line]:
            sequence_bytes += end - begin
            _insert(text, begin, end, tables)
    kinds[count] = 0
    repeated = sequences = sampled = 0
    for line in range(count):
        if line & _SAMPLED:
            continue
        begin, end = lines[line], lines[line + 1]
        sampled += end - begin
        for at in range(begin, end):
            counts[load_byte(text + at)] += 1
        if kinds[line]:
            sequences += 1
            repeated += _repeats(text, begin + 1, end, np.int64(tables.ctypes.data))
    most = 0
    for byte in range(256):
        most = max(most, counts[byte])
    counts[:] = 0
    least = _LONG_RUN if 3 * most > sampled else _SHORT_RUN
    return 4 * sequence_bytes >= size, 4 * repeated > sequences, least


@njit(nogil=True, cache=True, _nrt=False)
def find_steps(text, size, work):  # type: ignore[no-untyped-def]
    """Divide a block into copies and the literals between them, and count the copies' symbols.

    Args:
        text: its address; 64 bytes behind it can be read.
        size: its bytes, at most 65,280.
        work: see ``Work``.

    Returns:
        The number of steps, the last one of which is at the end; 0 if they are not reads.
    """
    lines, kinds, tables = work.lines, work.kinds, work.tables
    count = _find_lines(text, size, lines)
    if count < 0:
        return 0
    tables[:] = EMPTY
    work.counts[:] = 0
    are_reads, are_looked_up, least = _survey(text, size, lines, count, kinds, tables, work.counts)
    if not are_reads:
        return 0
    if are_looked_up:
        for line in range(count):
            if kinds[line]:
                _insert(text, lines[line] + 1 + _FINE_STRIDE, lines[line + 1], tables)
    first = np.int64(work.steps.ctypes.data)
    counts, places = np.int64(work.counts.ctypes.data), np.int64(tables.ctypes.data)
    line_begins, line_kinds = np.int64(lines.ctypes.data), np.int64(kinds.ctypes.data)
    steps = first
    for line in range(count):
        if not kinds[line]:
            steps = _put_line(text, line, line_begins, line_kinds, least, steps, counts)
            continue
        begin, end = np.int64(lines[line]) + 1, np.int64(lines[line + 1])
        store_word(steps, begin)
        steps += 8
        if are_looked_up:
            steps = _put_sequence(text, begin, end, places, steps, counts)
        store_word(steps, end | BASES)
        steps += 8
    store_word(steps, size)
    return ((steps - first) >> 3) + 1
