"""Text files as blocks of whole lines, for kernels that parse them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.compress.source import Source

BLOCK_BYTES: Final = 8 << 20
MAX_LINE_BYTES: Final = 256 << 20

_LF: Final = 10


@dataclass(frozen=True, slots=True)
class LineBlock:
    """Consecutive lines of a file.

    Attributes:
        data: uint8 [bytes]; always ends with a LF, even if the file does not.
        lines: number of lines.
        first_line: number of the first one in its file, from 0.
        path: the file.
    """

    data: NDArray[np.uint8]
    lines: int
    first_line: int
    path: str

    def line_number(self, at: int) -> int:
        """Number, from 1, of the line in the file that holds byte ``at`` of the block."""
        return self.first_line + int(np.count_nonzero(self.data[:at] == _LF)) + 1


def read_line_blocks(
    path: str | Path, *, block_bytes: int = BLOCK_BYTES, threads: int = 1
) -> Iterator[LineBlock]:
    """Read a text file, compressed or not, in blocks of whole lines.

    Args:
        path: the file; ``-`` is standard input.
        block_bytes: about how much a block holds; a longer line makes a longer block.
        threads: threads that inflate BGZF.

    Yields:
        Blocks of at least one line, which are the caller's to keep.

    Raises:
        InputError: the file cannot be opened or decompressed, or has a line that no text has.
    """
    source = Source(path, threads=threads, chunk_bytes=block_bytes)
    rest = np.zeros(0, dtype=np.uint8)
    done = 0
    try:
        for chunk in source.chunks():
            data = np.concatenate([rest, chunk.data])
            end = _after_last_line(data)
            rest = data[end:].copy()
            if len(rest) > MAX_LINE_BYTES:
                cause = f"the line is longer than {MAX_LINE_BYTES:,} bytes"
                raise InputError(source.path, cause, "check that this is a text file",
                                 line=done + 1)  # fmt: skip
            if end > 0:
                block = _block(data[:end], done, source.path)
                done += block.lines
                yield block
        if len(rest) > 0:
            yield _block(np.append(rest, np.uint8(_LF)), done, source.path)
    finally:
        source.close()


def text_lines(text: str) -> list[str]:
    """The lines of a text with universal newlines.

    Unlike ``str.splitlines`` not cut at U+2028, U+0085 and the like, which names may have.
    """
    return text.removesuffix("\n").split("\n") if text else []


def _after_last_line(data: NDArray[np.uint8]) -> int:
    """End of the last complete line of ``data``; 0 if there is none."""
    high = len(data)
    while high > 0:
        low = max(high - (1 << 16), 0)
        ends = np.flatnonzero(data[low:high] == _LF)
        if len(ends) > 0:
            return low + int(ends[-1]) + 1
        high = low
    return 0


def _block(data: NDArray[np.uint8], first_line: int, path: str) -> LineBlock:
    return LineBlock(data, int(np.count_nonzero(data == _LF)), first_line, path)
