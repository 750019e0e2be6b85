"""Records in and out: loading a read, moving its UMI to the names, writing it."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.put import put_bytes
from ngsgpu.jit import Integer, njit
from ngsgpu.trim.cuts import Read, length_of
from ngsgpu.trim.rules import LOWEST, UMI_PLACES, Rules

_AT: Final = 64
_COLON: Final = 58
_LF: Final = 10
_CR: Final = 13
_PLUS: Final = 43
_SPACE: Final = 32
_TAB: Final = 9
_HASH: Final = 35
_MINUS: Final = 45
_SLASH: Final = 47
_ONE: Final = 49
_UNDERSCORE: Final = 95
_PHRED64: Final = 64

_IS_BASE: Final = np.isin(np.arange(256), np.frombuffer(b"ACGTNacgtn", dtype=np.uint8))

_INDEX1, _INDEX2, _READ1, _READ2, _PER_INDEX, _PER_READ = range(1, len(UMI_PLACES))

_SHORTEST_NAME: Final = 5
_SHORTEST_INDEX: Final = 2


@njit(nogil=True, cache=True)
def room_for(longest: int) -> Read:
    """Room for a read of up to ``longest`` bases."""
    return Read(
        np.empty(longest, dtype=np.uint8),
        np.empty(longest, dtype=np.uint8),
        np.zeros(2, dtype=np.int64),
    )


@njit(nogil=True, cache=True)
def load(mates: Mates, i: Integer, rules: Rules, read: Read) -> None:
    """Load a record, with qualities in Phred+33."""
    length = np.int64(mates.seq_len[i])
    start, quality = mates.seq_start[i], mates.qual_start[i]
    put_bytes(read.bases, 0, mates.data, start, start + length)
    put_bytes(read.qualities, 0, mates.data, quality, quality + length)
    if rules.is_64:
        for at in range(length):
            read.qualities[at] = max(LOWEST, read.qualities[at] - (_PHRED64 - LOWEST))
    read.span[0], read.span[1] = 0, length


@njit(nogil=True, cache=True)
def _word_end(mates: Mates, i: Integer, at_tabs: bool) -> Integer:
    """Where the first word of a name ends, which a tab may end as well as a space."""
    at, end = mates.header_start[i], mates.header_end[i]
    while at < end and mates.data[at] != _SPACE and not (at_tabs and mates.data[at] == _TAB):
        at += 1
    return at


@njit(nogil=True, cache=True)
def behind_umi(first: Mates, second: Mates, paired: bool, i: Integer, rules: Rules) -> Integer:
    """Bytes of the first word of names that stay behind a UMI: numbers of mates as /1 and .2.

    -1: as fastp, which knows neither these nor tabs.
    """
    if rules.as_fastp:
        return -1
    end = _word_end(first, i, True)
    if end - first.header_start[i] < 2:
        return 0
    last, mark = first.data[end - 1], first.data[end - 2]
    if paired:
        # Names of mates are as long, and equal but for such a number.
        return 2 if second.data[_word_end(second, i, True) - 1] != last else 0
    return 2 if mark == _SLASH and (last == _ONE or last == _ONE + 1) else 0


@njit(nogil=True, cache=True)
def put_record(
    mates: Mates, i: Integer, read: Read, umi: NDArray[np.uint8], behind: Integer,
    reason: NDArray[np.uint8], out: NDArray[np.uint8], at: Integer,
) -> Integer:  # fmt: skip
    """Append a record; return where the next goes.

    Args:
        mates: where its names are.
        i: its number there.
        read: its bases and qualities.
        umi: is put into the name.
        behind: see ``behind_umi``.
        reason: is put behind the name, with a space between; empty: nothing is.
        out: where to write.
        at: the first byte there.
    """
    start, end = mates.header_start[i], mates.header_end[i]
    split = _word_end(mates, i, behind >= 0) - max(0, behind)
    out[at] = _AT
    at = put_bytes(out, at + 1, mates.data, start, split)
    at = put_bytes(out, at, umi, 0, len(umi))
    at = put_bytes(out, at, mates.data, split, end)
    if len(reason):
        out[at] = _SPACE
        at = put_bytes(out, at + 1, reason, 0, len(reason))
    out[at] = _LF
    at = put_bytes(out, at + 1, read.bases, read.span[0], read.span[1])
    out[at] = _LF
    plus = mates.seq_start[i] + mates.seq_len[i]
    while mates.data[plus] != _PLUS:
        plus += 1
    behind = mates.qual_start[i]
    while behind > plus and (mates.data[behind - 1] == _LF or mates.data[behind - 1] == _CR):
        behind -= 1
    at = put_bytes(out, at + 1, mates.data, plus, behind)
    out[at] = _LF
    at = put_bytes(out, at + 1, read.qualities, read.span[0], read.span[1])
    out[at] = _LF
    return at + 1


@njit(nogil=True, cache=True)
def move_umi(
    first: Mates, second: Mates, paired: bool, i: Integer, read1: Read, read2: Read, rules: Rules,
    out: NDArray[np.uint8],
) -> Integer:  # fmt: skip
    """Cut the UMI off the reads.

    Args:
        first: where the names of first mates are.
        second: of second mates.
        paired: whether there are any.
        i: number of the pair.
        read1: first mate.
        read2: second mate.
        rules: where the UMI is.
        out: gets what is put into the names.

    Returns:
        Bytes of that.
    """
    place = rules.umi
    at: Integer = 0
    out[at] = _COLON
    at += 1
    if len(rules.umi_prefix):
        at = put_bytes(out, at, rules.umi_prefix, 0, len(rules.umi_prefix))
        out[at] = _UNDERSCORE
        at += 1
    begin = at
    if place in (_INDEX1, _PER_INDEX):
        at = _put_index(first, i, 0, rules, out, at)
    if place in (_READ1, _PER_READ):
        at = _take(read1, rules, out, at)
    if paired:
        if place in (_PER_INDEX, _PER_READ):
            out[at] = _UNDERSCORE
            at += 1
        if place in (_INDEX2, _PER_INDEX):
            at = _put_index(second, i, 1, rules, out, at)
        if place in (_READ2, _PER_READ):
            at = _take(read2, rules, out, at)
    if place == _PER_INDEX and not rules.as_fastp:
        return 0 if at == begin + paired else at
    return 0 if at == begin and place not in (_PER_INDEX, _PER_READ) else at


@njit(nogil=True, cache=True)
def lacks_index(first: Mates, second: Mates, paired: bool, i: Integer, rules: Rules) -> bool:
    """Whether a UMI is looked for in indices of names, of which one is not there."""
    place = rules.umi
    one, end = _index(first, i, 0)
    lacks = place in (_INDEX1, _PER_INDEX) and one == end
    if paired and place in (_INDEX2, _PER_INDEX):
        one, end = _index(second, i, 1)
        lacks = lacks or one == end
    return bool(lacks)


@njit(nogil=True, cache=True)
def _take(read: Read, rules: Rules, out: NDArray[np.uint8], at: Integer) -> Integer:
    """Append the first bases of a read and cut them off; at least one base stays."""
    length = length_of(read)
    size = min(length, rules.umi_length)
    at = put_bytes(out, at, read.bases, read.span[0], read.span[0] + size)
    read.span[0] += max(0, min(length - 1, size + rules.umi_skip))
    return at


@njit(nogil=True, cache=True)
def _put_index(
    mates: Mates, i: Integer, number: int, rules: Rules, out: NDArray[np.uint8], at: Integer
) -> Integer:
    """Append the first (0) or last index of a name."""
    if rules.as_fastp and number:
        return _put_last_index(mates, i, out, at)
    if rules.as_fastp:
        return _put_first_index(mates, i, out, at)
    begin, end = _index(mates, i, number)
    return put_bytes(out, at, mates.data, begin, end)


@njit(nogil=True, cache=True)
def _index(mates: Mates, i: Integer, number: int) -> tuple[Integer, Integer]:
    """Where the first (0) or last (1) index of a name begins and ends; nothing if there is none.

    They stand behind the last colon (1:N:0:ACGT+TTGC) or # (0#ACGT/1), with a + or - between.
    """
    begin, end = mates.header_start[i], mates.header_end[i]
    mark = end - 1
    while mark >= begin and mates.data[mark] != _COLON and mates.data[mark] != _HASH:
        mark -= 1
    if mark < begin:
        return end, end
    first_end = start = -1
    at = begin = mark + 1
    while at < end:
        letter = mates.data[at]
        if letter in (_PLUS, _MINUS):
            first_end = at if first_end < 0 else first_end
            start = at + 1
        elif not _IS_BASE[letter]:
            break
        at += 1
    if (
        at < end
        and mates.data[at] != _SLASH
        and mates.data[at] != _SPACE
        and mates.data[at] != _TAB
    ):
        return end, end
    if number == 0:
        return begin, at if first_end < 0 else first_end
    return begin if start < 0 else start, at


@njit(nogil=True, cache=True)
def _put_first_index(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer) -> Integer:
    """As fastp: append what stands behind the last colon of a name, up to a plus sign."""
    start, end = mates.header_start[i] - 1, mates.header_end[i]
    if end - start < _SHORTEST_NAME:
        return at
    stop = end
    for place in range(end - 1 - _SHORTEST_INDEX, start - 1, -1):
        if mates.data[place] == _PLUS:
            stop = place
        if mates.data[place] == _COLON:
            return put_bytes(out, at, mates.data, place + 1, stop)
    return at


@njit(nogil=True, cache=True)
def _put_last_index(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer) -> Integer:
    """As fastp: append what stands behind the last colon or plus sign of a name."""
    start, end = mates.header_start[i] - 1, mates.header_end[i]
    if end - start < _SHORTEST_NAME:
        return at
    for place in range(end - 1 - _SHORTEST_INDEX, start - 1, -1):
        if mates.data[place] == _COLON or mates.data[place] == _PLUS:
            return put_bytes(out, at, mates.data, place + 1, end)
    return at
