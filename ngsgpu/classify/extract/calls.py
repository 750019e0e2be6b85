"""Tables of calls, in the order of the reads: ours, or Kraken's lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.extract.kernels import BAD_LINE, parse_calls
from ngsgpu.errors import InputError
from ngsgpu.io.text.lines import LineBlock, read_line_blocks

_HEADER: Final = b"read\t"
_TAXID: Final = b"taxid"
_REMEDY: Final = "give the table of reads that `ngsgpu classify` wrote, or Kraken's output"


class Calls(NamedTuple):
    """Consecutive calls.

    Attributes:
        text: uint8, lines of the table.
        name_start: int64[n], where names of reads begin in them.
        name_end: int64[n].
        taxid: int64[n], 0 for what was not classified.
        first: number of the first one in the table, from 0.
    """

    text: NDArray[np.uint8]
    name_start: NDArray[np.int64]
    name_end: NDArray[np.int64]
    taxid: NDArray[np.int64]
    first: int

    def __len__(self) -> int:
        return len(self.taxid)


class CallReader:
    """Reads a table from beginning to end.

    Args:
        path: of the table, which may be compressed.
        threads: that decompress it.

    Attributes:
        path: of the table.
        done: number of calls that were taken.

    Raises:
        InputError: it cannot be read, or is no table of calls with taxids.
    """

    def __init__(self, path: str | Path, threads: int) -> None:
        self.path = str(path)
        self.done = 0
        self._blocks = self._parsed(read_line_blocks(path, threads=threads))
        self._next = next(self._blocks, None)

    def _parsed(self, blocks: Iterator[LineBlock]) -> Iterator[Calls]:
        columns: tuple[int, int, int] | None = None
        first = 0
        for block in blocks:
            start = 0
            if columns is None:
                columns, start = self._columns(block)
            lines = block.lines - (start > 0)
            name_start, name_end, taxid = (np.empty(lines, dtype=np.int64) for _ in range(3))
            count = parse_calls(block.data, start, *columns, name_start, name_end, taxid)
            if count <= BAD_LINE:
                raise self._no_call(block, BAD_LINE - count, columns[0])
            found = Calls(block.data, name_start, name_end, taxid, first)
            yield _cut(found, 0, count)
            first += count

    def _no_call(self, block: LineBlock, at: int, columns: int) -> InputError:
        found, number = _line(block, at).count(b"\t") + 1, block.line_number(at)
        if found == columns:
            cause = "the line is no call: it has no taxid where one is expected"
            return InputError(self.path, cause, _REMEDY, line=number)
        how = "is cut" if found < columns else "is no call"
        cause = f"the line {how} ({found} columns, the first line has {columns})"
        return InputError(self.path, cause, "make the table again", line=number)

    def _columns(self, block: LineBlock) -> tuple[tuple[int, int, int], int]:
        """Number of columns, those of names and taxids, and where the calls begin."""
        line = _line(block, 0)
        names = line.rstrip(b"\r").split(b"\t")
        if line.startswith(_HEADER):
            if _TAXID not in names:
                raise InputError(
                    self.path,
                    "the table has no column taxid",
                    _REMEDY,
                )
            return (len(names), 0, names.index(_TAXID)), len(line) + 1
        if line[:2] in (b"C\t", b"U\t"):
            return (len(names), 1, 2), 0
        raise InputError(
            self.path, "this is no table of calls",
            _REMEDY, line=1,
        )  # fmt: skip

    def take(self, count: int) -> list[Calls]:
        """The next calls, of as many reads; fewer at the end of the table."""
        taken = []
        while count and self._next is not None:
            own = self._next
            part = min(count, len(own))
            taken.append(_cut(own, 0, part))
            rest = _cut(own, part, len(own))
            self._next = rest if len(rest) else next(self._blocks, None)
            count -= part
            self.done += part
        return taken

    def check_end(self) -> None:
        """Check that all calls were taken.

        Raises:
            InputError: there are more.
        """
        while self._next is not None and not len(self._next):
            self._next = next(self._blocks, None)
        if self._next is not None:
            raise self.unequal(f"there are {self.done:,} reads or pairs, and more calls")

    def unequal(self, what: str) -> InputError:
        """The error for a table that is of other reads."""
        return InputError(
            self.path, what, "give the reads that were classified, all of them, in the same order"
        )


def _line(block: LineBlock, at: int) -> bytes:
    """The line that begins at a byte of a block, without its line feed."""
    end = at + int(np.argmax(block.data[at:] == ord("\n")))
    return block.data[at:end].tobytes()


def _cut(calls: Calls, begin: int, end: int) -> Calls:
    return Calls(
        calls.text,
        calls.name_start[begin:end],
        calls.name_end[begin:end],
        calls.taxid[begin:end],
        calls.first + begin,
    )
