"""Reading a gzip file again from places inside it, in any thread.

Whoever inflates a file for the first time notes places where a block begins, and the text before
them that the block may repeat, or where a member begins (BGZF: nothing is repeated across blocks).
From there a second reading inflates any part of the text, each thread another one, and each byte
only once.
"""

from __future__ import annotations

import bisect
import struct
import threading
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.io.compress.bits import WINDOW, filler, last_block
from ngsgpu.io.compress.deflate import DONE, NO_ROOM, inflated
from ngsgpu.io.compress.members import FOOTER_BYTES, member_start
from ngsgpu.io.paths import changed, read_at

SPACING: Final = 8 << 20
"""Bytes of text from one place to the next, at least: with 9 KB for a window a thousandth of it."""

_MOST_TEXT: Final = 1 << 26
"""Bytes of text between two places; a file with more is inflated from its beginning."""

_MARGIN: Final = 1 << 17
"""Text inflated beyond what is wanted: a stored block is not inflated in part."""

_BEFORE: Final = 5 + WINDOW + 64
"""Bytes before the compressed ones: a stored block with the window, and a filler."""

_AFTER: Final = 16


class Checkpoint(NamedTuple):
    """A place where inflating can begin.

    Attributes:
        bit: of the file, where a block begins, or the header of a member.
        text: place in the text.
        window: the text before, compressed; None for a member.
    """

    bit: int
    text: int
    window: bytes | None


class Checkpoints:
    """Notes the places of a file while it is inflated.

    Attributes:
        places: in order; the first is the file's beginning.
    """

    def __init__(self) -> None:
        self.places = [Checkpoint(0, 0, None)]
        self._are_complete = True

    @property
    def next(self) -> int:
        """Place in the text from which on another one is wanted."""
        return self.places[-1].text + SPACING

    def wants(self, text: int) -> bool:
        """Whether a place would be noted, by its place in the text."""
        return self._are_complete and text >= self.next

    def note(self, bit: int, text: int, window: bytes | NDArray[np.uint8] | None) -> None:
        """Note a place that is wanted; the window as ``Checkpoint``'s, but not compressed."""
        packed = None if window is None else isal_zlib.compress(bytes(window), 1)
        self.places.append(Checkpoint(bit, text, packed))

    def drop(self) -> None:
        """Note nothing more: what follows is inflated by other means."""
        self._are_complete = False

    def found(self, size: int) -> tuple[Checkpoint, ...]:
        """All places, if they suffice to read any part of a text of this size; else none."""
        texts = [*(place.text for place in self.places), size]
        near = all(b - a <= _MOST_TEXT for a, b in pairwise(texts))
        return tuple(self.places) if near and self._are_complete else ()


class _Work(threading.local):
    """A thread's piece of the file, compressed and as text."""

    stream = np.empty(0, dtype=np.uint8)
    text = np.empty(0, dtype=np.uint8)
    index = -1
    filled = 0


class SeekingReader:
    """Reads parts of the text of a gzip file.

    Args:
        path: the file.
        places: those of ``Checkpoints``.
        size: of the text, bytes.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str, places: Sequence[Checkpoint], size: int) -> None:
        self._path = path
        self._places = places
        self._texts = [*(place.text for place in places), size]
        self._raw = Path(path).open("rb", buffering=0)  # noqa: SIM115  # see close()
        self._bytes = self._raw.seek(0, 2)
        self._work = _Work()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()

    def fill(self, data: NDArray[np.uint8], start: int) -> None:
        """Copy the text from a place on; may be called in any thread.

        Args:
            data: uint8, filled whole.
            start: where in the text.

        Raises:
            InputError: the file is another one now.
            OSError: the disk fails.
        """
        while len(data):
            index = bisect.bisect_right(self._texts, start, hi=len(self._places)) - 1
            skipped = start - self._texts[index]
            text = self._inflated(index, skipped + len(data))[skipped:][: len(data)]
            if not len(text):
                raise changed(self._path)
            np.copyto(data[: len(text)], text)
            data, start = data[len(text) :], start + len(text)

    def _inflated(self, index: int, wanted: int) -> NDArray[np.uint8]:
        """The text from a place on, to the next place at most; valid until the next call."""
        work, size = self._work, self._texts[index + 1] - self._texts[index]
        wanted = min(size, wanted)
        if work.index != index or work.filled < wanted:
            work.index = -1
            work.filled = self._inflate(index, size if wanted + _MARGIN > size else wanted, size)
            work.index = index
        window = 0 if self._places[index].window is None else WINDOW
        return work.text[window : window + work.filled]

    def _inflate(self, index: int, wanted: int, size: int) -> int:
        """Inflate into the thread's memory; how many bytes of text are there."""
        work, place = self._work, self._places[index]
        begin, end = self._load(index)
        window = b"" if place.window is None else isal_zlib.decompress(place.window)
        room = len(window) + wanted + (_MARGIN if wanted < size else 0)
        if len(work.text) < room:
            work.text = np.empty(room + (room >> 3), dtype=np.uint8)
        filled, target = 0, len(window) + wanted
        while filled < target:
            done = inflated(work.stream[begin:end], work.text[filled:room])
            if done.status == NO_ROOM and wanted < size:
                return wanted
            if done.status != DONE:
                raise changed(self._path)
            filled += done.written
            begin += done.read + FOOTER_BYTES
            if filled < target:
                start = member_start(work.stream.data[begin:end], 0)
                if start is None:
                    raise changed(self._path)
                begin += start
        return filled - len(window)

    def _load(self, index: int) -> tuple[int, int]:
        """Read the compressed bytes of a piece; begin and end of the stream that has its text."""
        work, place = self._work, self._places[index]
        first, bit = place.bit >> 3, place.bit & 7
        following = self._places[index + 1] if index + 1 < len(self._places) else None
        last = self._bytes if following is None else -(-following.bit // 8)
        room = _BEFORE + last - first + _AFTER
        if len(work.stream) < room:
            work.stream = np.empty(room + (room >> 3), dtype=np.uint8)
        data = work.stream[_BEFORE : _BEFORE + last - first]
        if read_at(self._raw, data, first) < len(data):
            raise changed(self._path)
        end = _BEFORE + len(data)
        if following is not None and following.window is not None:
            end = _BEFORE + (following.bit >> 3) - first
            closing = last_block(int(work.stream[end]), following.bit & 7)
            work.stream[end : end + len(closing)] = np.frombuffer(closing, dtype=np.uint8)
            end += len(closing)
        if place.window is None:
            start = member_start(work.stream.data[_BEFORE:end], 0)
            if start is None:
                raise changed(self._path)
            return _BEFORE + start, end
        head = struct.pack("<BHH", 0, WINDOW, WINDOW ^ 0xFFFF) + isal_zlib.decompress(place.window)
        begin = _BEFORE
        if bit:
            head += filler(bit, int(work.stream[_BEFORE]))
            begin += 1
        work.stream[begin - len(head) : begin] = np.frombuffer(head, dtype=np.uint8)
        return begin - len(head), end
