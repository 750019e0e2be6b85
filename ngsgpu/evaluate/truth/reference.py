"""The sequences that reads come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.text.reader import read_batches
from ngsgpu.sequence.codec import CODES


@dataclass(frozen=True, slots=True)
class Reference:
    """Sequences of a reference.

    Attributes:
        numbers: number of each sequence by its name.
        codes: uint8, codes of all sequences, concatenated (4 for ambiguous bases).
        start: int64[sequences + 1], where each begins.
    """

    numbers: dict[str, int]
    codes: NDArray[np.uint8]
    start: NDArray[np.int64]


def read_reference(path: str | Path) -> Reference:
    """Read a FASTA file, plain or compressed.

    Raises:
        InputError: it cannot be read, has no sequences, or a name is there twice.
    """
    numbers: dict[str, int] = {}
    parts: list[NDArray[np.uint8]] = []
    for batch in read_batches(path):
        for record, name in enumerate(batch.names()):
            text = batch.data[batch.seq_start[record] : batch.seq_end[record]]
            text = text[(text != ord("\n")) & (text != ord("\r"))]
            if name.decode() in numbers:
                raise InputError(
                    path, f"duplicate sequence {name.decode()!r}", "rename one of them"
                )
            numbers[name.decode()] = len(parts)
            parts.append(CODES[text])
    if not parts:
        raise InputError(path, "it contains no sequences", "give the reference of the reads")
    lengths = np.array([0, *map(len, parts)], dtype=np.int64)
    return Reference(numbers, np.concatenate(parts), np.cumsum(lengths))
