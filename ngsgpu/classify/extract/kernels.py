"""The kernels of extraction: lines of calls, and whose calls they are."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit

BAD_LINE: Final = -1
_TAB, _LF, _CR, _SPACE, _SLASH = 9, 10, 13, 32, 47
_ZERO, _NINE = 48, 57
_LARGEST: Final = 1 << 59


@njit(nogil=True, cache=True)
def parse_calls(
    data: NDArray[np.uint8],
    start: int,
    name_column: int,
    taxid_column: int,
    name_start: NDArray[np.int64],
    name_end: NDArray[np.int64],
    taxid: NDArray[np.int64],
) -> int:
    """Find names and taxids in lines; blank lines are passed over.

    Args:
        data: the lines, each with its line feed.
        start: where the first one begins.
        name_column: column of names, from 0.
        taxid_column: column of taxids, behind it.
        name_start: int64, where names begin.
        name_end: int64, where they end.
        taxid: int64, the taxids.

    Returns:
        The number of calls; of a line without both, ``BAD_LINE`` minus where it begins.
    """
    count = 0
    at = start
    while at < len(data):
        begin, column, number, digits = at, 0, np.int64(0), 0
        first, last = np.int64(-1), np.int64(-1)
        is_number = True
        while True:
            letter = data[at]
            if letter in (_TAB, _LF):
                if column == name_column:
                    last = np.int64(at)
                column += 1
                if letter == _LF:
                    break
            elif column == name_column and first < 0:
                first = np.int64(at)
            elif column == taxid_column and letter != _CR:
                if not (_ZERO <= letter <= _NINE and number < _LARGEST):
                    is_number = False
                number = number * 10 + (np.int64(letter) - _ZERO)
                digits += 1
            at += 1
        at += 1
        if at - begin == 1 or (at - begin == 2 and data[begin] == _CR):
            continue
        if first < 0 or digits == 0 or not is_number:
            return BAD_LINE - begin
        name_start[count], name_end[count], taxid[count] = first, last, number
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
