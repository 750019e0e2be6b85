"""Outputs whose records are called 1, 2, 3, ... instead of what they were."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.writer import Outputs
from ngsgpu.jit import njit

_LF, _CR = np.uint8(10), np.uint8(13)
_AT, _GREATER, _PLUS, _ZERO = (np.uint8(letter) for letter in b"@>+0")
_LONGEST: Final = 24
"""Bytes of a header with the longest number."""


class NumberedOutputs:
    """Replaces names on their way to the outputs, each of which begins with 1.

    Bytes may be cut anywhere. Everything behind a name goes as well, and names behind the ``+`` of
    FASTQ. Records are FASTQ of four lines, or FASTA.

    Args:
        files: the outputs.
        mates: records in turn that get the same number.
    """

    def __init__(self, files: Outputs, mates: int) -> None:
        self._files, self._mates = files, mates
        self._states: dict[int, NDArray[np.int64]] = {}

    def write(self, index: int, data: bytes | memoryview | NDArray[np.uint8]) -> None:
        """Append to an output; see ``OutputSet``."""
        text = np.frombuffer(data, dtype=np.uint8)
        if index not in self._states:
            self._states[index] = np.array([0, 0, 0, 0, 1], dtype=np.int64)
        room = len(text) + _LONGEST * (int(np.count_nonzero(text == _LF)) + 2)
        out = np.empty(room, dtype=np.uint8)
        size = _number_names(text, self._states[index], self._mates, out)
        self._files.write(index, out[:size])

    def file_for_offsets(self, index: int) -> None:
        """None: the bytes of an output must come in order."""

    def all_for_offsets(self) -> list[AtomicFile | None]:
        """The same for every output."""
        return [None for _ in self._files.all_for_offsets()]


@njit(nogil=True, cache=True)
def _put_number(number: int, out: NDArray[np.uint8], at: int) -> int:
    """Write a number; return where it ends."""
    digits = 1
    rest = number
    while rest >= 10:
        rest //= 10
        digits += 1
    for k in range(digits):
        out[at + digits - 1 - k] = _ZERO + np.uint8(number % 10)
        number //= 10
    return at + digits


@njit(nogil=True, cache=True)
def _number_names(
    text: NDArray[np.uint8], state: NDArray[np.int64], mates: int, out: NDArray[np.uint8]
) -> int:
    """Copy a piece of an output with numbers for names; return the number of bytes.

    Args:
        text: the piece.
        state: int64[5], of the output: the line of a FASTQ record, whether the rest of the line
            is left out, the last byte that was, records so far, whether a line begins.
        mates: records that have the same number.
        out: room for the bytes.
    """
    line, skips, last, records, begins = state[0], state[1], state[2], state[3], state[4]
    at = 0
    for letter in text:
        if begins:
            begins = skips = last = 0
            if line == 0 and letter in (_AT, _GREATER):
                records += 1
                out[at] = letter
                at = _put_number((records - 1) // mates + 1, out, at + 1)
                line, skips = np.int64(letter == _AT), 1
            elif line == 2:
                out[at] = _PLUS
                at += 1
                line, skips = 3, 1
            elif line > 0:
                line = (line + 1) % 4
        if letter == _LF:
            begins = 1
            if skips and last == _CR:
                out[at] = _CR
                at += 1
        if letter == _LF or not skips:
            out[at] = letter
            at += 1
        last = np.int64(letter)
    state[0], state[1], state[2], state[3], state[4] = line, skips, last, records, begins
    return at
