"""The kernels of extraction: lines of calls, and whose calls they are."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit

BAD_LINE: Final = -1
_TAB, _LF, _CR, _SPACE, _OPEN, _CLOSED, _SLASH = 9, 10, 13, 32, 40, 41, 47
_ZERO, _NINE = 48, 57
_DIGITS: Final = 18
"""Digits of the largest taxid; all numbers with that many digits fit into 64 bits."""
_TAXID: Final = b"taxid "


@njit(nogil=True, cache=True)
def _taxid(data: NDArray[np.uint8], begin: int, end: int) -> Integer:
    """The taxid of ``562`` or of Kraken's ``Escherichia coli (taxid 562)``; -1 without one."""
    is_named = end > begin and data[end - 1] == _CLOSED
    if is_named:
        end -= 1
        stop, begin = begin, end
        while begin > stop and _ZERO <= data[begin - 1] <= _NINE:
            begin -= 1
        at = begin - len(_TAXID)
        if at <= stop or data[at - 1] != _OPEN:
            return -1
        for i in range(len(_TAXID)):
            if data[at + i] != _TAXID[i]:
                return -1
    if not 0 < end - begin <= _DIGITS:
        return -1
    number = np.int64(0)
    for i in range(begin, end):
        if not _ZERO <= data[i] <= _NINE:
            return -1
        number = number * 10 + np.int64(data[i]) - _ZERO
    return number


@njit(nogil=True, cache=True)
def parse_calls(
    data: NDArray[np.uint8],
    start: int,
    columns: int,
    name_column: int,
    taxid_column: int,
    name_start: NDArray[np.int64],
    name_end: NDArray[np.int64],
    taxid: NDArray[np.int64],
) -> int:
    """Find names, which may be empty, and taxids in lines; blank lines are passed over.

    Args:
        data: the lines, each with its line feed.
        start: where the first one begins.
        columns: of each line.
        name_column: column of names, from 0.
        taxid_column: column of taxids.
        name_start: int64, where names begin.
        name_end: int64, where they end.
        taxid: int64, the taxids.

    Returns:
        The number of calls; of a line with other columns or no taxid, ``BAD_LINE`` minus where it
        begins.
    """
    count = 0
    at = start
    while at < len(data):
        line, begin, column = at, at, 0
        found: Integer = -1
        while True:
            letter = data[at]
            if letter in (_TAB, _LF):
                is_cr = letter == _LF and at > begin and data[at - 1] == _CR
                end = at - 1 if is_cr else at
                if column == name_column:
                    name_start[count], name_end[count] = begin, end
                elif column == taxid_column:
                    found = _taxid(data, begin, end)
                column += 1
                begin = at + 1
            at += 1
            if letter == _LF:
                break
        if at - line == 1 or (at - line == 2 and data[line] == _CR):
            continue
        if column != columns or found < 0:
            return BAD_LINE - line
        taxid[count] = found
        count += 1
    return count


@njit(nogil=True, cache=True)
def first_other(
    mates: Mates,
    begin: Integer,
    text: NDArray[np.uint8],
    name_start: NDArray[np.int64],
    name_end: NDArray[np.int64],
) -> int:
    """The first call that is of another read than the record, counted from ``begin``; -1 if none.

    A call has the first word of a name, with or without what tells mates apart (``/1``).
    """
    for i in range(len(name_start)):
        at, end = mates.header_start[begin + i], mates.header_end[begin + i]
        size = name_end[i] - name_start[i]
        if size > end - at:
            return i
        for k in range(size):
            if mates.data[at + k] != text[name_start[i] + k]:
                return i
        rest = at + size
        if rest + 1 < end and mates.data[rest] == _SLASH:
            rest += 2
        if rest < end and mates.data[rest] not in (_SPACE, _TAB, _CR):
            return i
    return -1


@njit(nogil=True, cache=True)
def is_among(values: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which values are among others, which ascend."""
    found = np.zeros(len(values), dtype=np.bool_)
    for i in range(len(values)):
        at = np.searchsorted(wanted, values[i])
        found[i] = at < len(wanted) and wanted[at] == values[i]
    return found
