"""Lines of tab-separated tables, split by a kernel: a name, the relevant columns, a score.

The relevant columns (of a call, or of a truth) take few different values, so they are distinguished
by a hash, and each value is parsed once, from one of its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.lines import LineBlock
from ngsgpu.jit import njit

MAX_SCORE: Final = 1 << 20
"""Scores above count as this."""

_TAB: Final = 9
_LF: Final = 10
_CR: Final = 13
_BLANK: Final = 32
_SLASH: Final = 47


@dataclass(frozen=True, eq=False)
class TableLines:
    """Lines of a block that are not comments.

    Attributes:
        data: uint8, the block.
        line: int64[n], first byte of each line.
        name_start: int64[n], first byte of the name: a first word, without ``/1`` or ``/2``.
        name_end: int64[n].
        value: uint64[n], hash of the relevant columns.
        score: int64[n], the number in the score column; 0 if there is none.
        columns: int32[n], number of columns.
    """

    data: NDArray[np.uint8]
    line: NDArray[np.int64]
    name_start: NDArray[np.int64]
    name_end: NDArray[np.int64]
    value: NDArray[np.uint64]
    score: NDArray[np.int64]
    columns: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.line)

    def fields(self, row: int) -> list[str]:
        """The columns of one line."""
        start = int(self.line[row])
        end = start
        while self.data[end] != _LF:
            end += 1
        text = self.data[start:end].tobytes().decode("utf-8", "replace")
        return text.rstrip("\r").split("\t")


def cut_lines(
    block: LineBlock,
    start: int,
    *,
    name: int,
    values: Sequence[int],
    score: int = -1,
    comments: bytes = b"#@",
) -> TableLines:
    """Split the lines of a block from byte ``start`` on.

    Args:
        block: whole lines.
        start: where to begin.
        name: column of the name, from 0.
        values: relevant columns, below 63; those missing from a line are skipped.
        score: column of the score; -1 without one.
        comments: lines that begin with one of these bytes are skipped, as are empty ones.
    """
    n = block.lines
    marks = np.zeros(256, dtype=np.bool_)
    marks[list(comments)] = True
    wanted = np.zeros(64, dtype=np.bool_)
    wanted[list(values)] = True
    line, name_start, name_end = (np.empty(n, dtype=np.int64) for _ in range(3))
    value = np.empty(n, dtype=np.uint64)
    scores = np.zeros(n, dtype=np.int64)
    columns = np.empty(n, dtype=np.int32)
    count = _cut(
        block.data, start, name, wanted, score, marks, line, name_start, name_end, value, scores,
        columns,
    )  # fmt: skip
    return TableLines(
        block.data, line[:count], name_start[:count], name_end[:count], value[:count],
        scores[:count], columns[:count],
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _cut(  # type: ignore[no-untyped-def]
    data, at, name, wanted, score, marks, line, name_start, name_end, value, scores, columns
):
    """Fill the arrays of ``TableLines``; number of lines."""
    count = 0
    while at < data.size:
        first = data[at]
        if marks[first] or first == _LF or (first == _CR and data[at + 1] == _LF):
            while data[at] != _LF:
                at += 1
            at += 1
            continue
        line[count] = at
        name_start[count] = at
        name_end[count] = at
        scores[count] = 0
        state = np.uint64(0xCBF29CE484222325)
        column = 0
        while True:
            begin = at
            while data[at] != _TAB and data[at] != _LF:
                at += 1
            end = at - 1 if data[at] == _LF and at > begin and data[at - 1] == _CR else at
            if column == name:
                stop = begin
                while stop < end and data[stop] != _BLANK:
                    stop += 1
                if stop - begin > 2 and data[stop - 2] == _SLASH and 49 <= data[stop - 1] <= 50:
                    stop -= 2
                name_start[count] = begin
                name_end[count] = stop
            if column < 64 and wanted[column]:
                for i in range(begin, end):
                    state = (state ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
                state = (state ^ np.uint64(_TAB)) * np.uint64(0x100000001B3)
            if column == score:
                number = 0
                for i in range(begin, end):
                    if data[i] < 48 or data[i] > 57:
                        break
                    number = min(number * 10 + data[i] - 48, MAX_SCORE)
                scores[count] = number
            at += 1
            if data[at - 1] == _LF:
                break
            column += 1
        value[count] = state
        columns[count] = column + 1
        count += 1
    return count
