"""Names as bytes in a hash table that kernels look into; nothing is kept a name in Python."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit


class KeyTable:
    """Numbers byte strings, from 0 in the order given; equal ones keep the first number.

    Attributes:
        text: uint8, the keys' bytes.
        start: int64[keys], where each begins in ``text``.
        end: int64[keys], where it ends.
        slots: int32, a power of two of them, a key or -1; collisions go to the next slot.
    """

    def __init__(
        self, text: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> None:
        self.text = np.ascontiguousarray(text)
        self.start = np.ascontiguousarray(start, dtype=np.int64)
        self.end = np.ascontiguousarray(end, dtype=np.int64)
        self.slots = np.full(1 << (2 * len(self.start)).bit_length(), -1, dtype=np.int32)
        _enter_keys(self.text, self.start, self.end, self.slots)

    @classmethod
    def of(cls, keys: Iterable[bytes]) -> KeyTable:
        """A table of a few keys."""
        known = list(keys)
        ends = np.cumsum(np.array([len(key) for key in known], dtype=np.int64))
        starts = ends - np.array([len(key) for key in known], dtype=np.int64)
        return cls(np.frombuffer(b"".join(known), dtype=np.uint8), starts, ends)

    def __len__(self) -> int:
        return len(self.start)

    def find(
        self, data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Numbers of the byte strings ``data[start:end]``, int32; -1 for unknown ones."""
        found = np.empty(len(start), dtype=np.int32)
        _find_all(data, start, end, self.text, self.start, self.end, self.slots, found)
        return found

    def find_beginnings(
        self, data: NDArray[np.uint8], start: NDArray[np.int64], end: NDArray[np.int64]
    ) -> NDArray[np.int32]:
        """Numbers of the longest keys that byte strings are, or begin with; -1 without one.

        The key has to be followed by something other than a letter or a digit.

        Args:
            data: bytes that contain the strings.
            start: first byte of each string, int64[n].
            end: byte after the last one of each string, int64[n].
        """
        found = np.empty(len(start), dtype=np.int32)
        _find_longest(data, start, end, self.text, self.start, self.end, self.slots, found)
        return found


@njit(nogil=True, cache=True)
def fnv64(data, start, end):  # type: ignore[no-untyped-def]
    """FNV-1a of bytes, 64 bits."""
    state = np.uint64(0xCBF29CE484222325)
    for i in range(start, end):
        state = (state ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
    return state


@njit(nogil=True, cache=True)
def find_key(data, begin, end, text, start, stop, slots):  # type: ignore[no-untyped-def]
    """(key equal to the bytes or -1, slot where it is or would be)."""
    mask = slots.size - 1
    slot = np.int64(fnv64(data, begin, end) & np.uint64(mask))
    length = end - begin
    while slots[slot] >= 0:
        key = slots[slot]
        at = start[key]
        same = stop[key] - at == length
        i = 0
        while same and i < length:
            same = text[at + i] == data[begin + i]
            i += 1
        if same:
            return key, slot
        slot = (slot + 1) & mask
    return np.int32(-1), slot


@njit(nogil=True, cache=True)
def _enter_keys(text, start, end, slots):  # type: ignore[no-untyped-def]
    for key in range(start.size):
        known, slot = find_key(text, start[key], end[key], text, start, end, slots)
        if known < 0:
            slots[slot] = key


@njit(nogil=True, cache=True)
def _find_all(data, begin, end, text, start, stop, slots, found):  # type: ignore[no-untyped-def]
    for i in range(begin.size):
        found[i], _ = find_key(data, begin[i], end[i], text, start, stop, slots)


@njit(nogil=True, cache=True)
def _is_word(byte):  # type: ignore[no-untyped-def]
    return 48 <= byte <= 57 or 65 <= byte <= 90 or 97 <= byte <= 122


@njit(nogil=True, cache=True)
def _find_longest(data, begin, end, text, start, stop, slots, found):  # type: ignore[no-untyped-def]
    for i in range(begin.size):
        cut = end[i]
        key, _ = find_key(data, begin[i], cut, text, start, stop, slots)
        while key < 0 and cut > begin[i]:
            cut -= 1
            if not _is_word(data[cut]):
                key, _ = find_key(data, begin[i], cut, text, start, stop, slots)
        found[i] = key
