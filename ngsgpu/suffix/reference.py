"""The sequences that are indexed, as BWA sees them: two bits a base, and lists of the rest.

BWA replaces each letter other than A, C, G and T by a base of the C library's ``lrand48``, started
with 11, and remembers where runs of such letters (*holes*) are. The same is done here, so that the
files are the same.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.text.batch import RecordBatch, first_word
from ngsgpu.io.text.reader import read_batches
from ngsgpu.sequence.codec import CODES
from ngsgpu.suffix.fasta import Headers, read_codes

SEED: Final = 11
"""Seed of the random bases, as in BWA."""

_LOW_START: Final = 0x330E
"""Low bits of a state of ``lrand48``; the seed has the others."""

_FACTOR, _TERM = 0x5DEECE66D, 0xB
_STATE = np.uint64((1 << 48) - 1)
_DRAWN: Final = 1 << 12
"""A step of ``lrand48``, the bits of its state, and steps that are taken at once."""

_LINE_ENDS: Final = (10, 13)


@dataclass(frozen=True, slots=True)
class Sequence:
    """One sequence of a reference.

    Attributes:
        name: first word of its header.
        comment: the rest of the header.
        start: its first base in the reference.
        length: its bases.
        holes: int64[n, 2], first base (of the reference) and length of each run of one letter
            other than A, C, G and T.
        letters: uint8[n], those letters.
    """

    name: bytes
    comment: bytes
    start: int
    length: int
    holes: NDArray[np.int64]
    letters: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Reference:
    """Sequences, one after another.

    Attributes:
        sequences: their names and places.
        codes: uint8[bases], 0 to 3.
    """

    sequences: tuple[Sequence, ...]
    codes: NDArray[np.uint8]

    def both_strands(self) -> NDArray[np.uint8]:
        """uint8[2 * bases], the sequences and then the reverse complement of all of them.

        The codes are not copied, if there is room behind them.
        """
        size = len(self.codes)
        room = self.codes.base
        if isinstance(room, np.ndarray) and len(room) == 2 * size:
            both = room
        else:
            both = np.empty(2 * size, dtype=np.uint8)
            both[:size] = self.codes
        np.subtract(3, self.codes[::-1], out=both[size:])
        return both


def read_reference(path: str | Path, threads: int = 1) -> Reference:
    """Read sequences to be indexed.

    Args:
        path: FASTA file (or FASTQ), plain or compressed; ``-`` is standard input.
        threads: that read.

    Raises:
        InputError: it cannot be read, or has no bases.
    """
    random = Lrand48(SEED)
    if (found := read_codes(path, threads)) is not None:
        codes, headers = found
        sequences = _sequences_of(headers, codes, random)
    else:
        sequences, codes = _from_records(path, threads, random)
    if len(codes) == 0:
        raise InputError(path, "it has no bases", "give the sequences to be indexed (FASTA)")
    return Reference(tuple(sequences), codes)


def _from_records(
    path: str | Path, threads: int, random: Lrand48
) -> tuple[list[Sequence], NDArray[np.uint8]]:
    """Sequences and codes of what is no plain FASTA file, or none at all."""
    sequences: list[Sequence] = []
    parts = [np.empty(0, dtype=np.uint8)]
    start = 0
    for batch in read_batches(path, threads=threads):
        for record in range(len(batch)):
            sequence, codes = _sequence_of(batch, record, start, random)
            sequences.append(sequence)
            parts.append(codes)
            start += len(codes)
    codes = np.empty(2 * start, dtype=np.uint8)[:start]
    np.concatenate(parts, out=codes)
    return sequences, codes


def _sequences_of(headers: Headers, codes: NDArray[np.uint8], random: Lrand48) -> list[Sequence]:
    """Sequences of a FASTA file; their ambiguous bases get random codes."""
    runs = headers.runs
    for begin, length, _ in runs.tolist():
        codes[begin : begin + length] = random.bases(length)
    ends = [*headers.starts[1:], len(codes)]
    cuts = np.searchsorted(runs[:, 0], [*headers.starts, len(codes)]).tolist()
    return [
        _sequence(line, start, end - start, runs[low:high, :2], runs[low:high, 2].astype(np.uint8))
        for line, start, end, low, high in zip(
            headers.lines, headers.starts, ends, cuts[:-1], cuts[1:], strict=True
        )
    ]


def _sequence(
    header: bytes,
    start: int,
    length: int,
    holes: NDArray[np.int64],
    letters: NDArray[np.uint8],
) -> Sequence:
    name = first_word(header)
    return Sequence(name, header[len(name) + 1 :], start, length, holes, letters)


class Lrand48:
    """Numbers of the C library's ``lrand48``.

    Args:
        seed: of ``srand48``.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.uint64((seed << 16) | _LOW_START)
        self._factors, self._terms = _steps()

    def bases(self, size: int) -> NDArray[np.uint8]:
        """The two lowest bits of the next numbers, uint8[size]."""
        drawn = np.empty(size, dtype=np.uint8)
        for at in range(0, size, _DRAWN):
            # The state after i + 1 steps is a sum of the one before them and of what is added.
            states = self._factors[: size - at] * self._state + self._terms[: size - at]
            states &= _STATE
            drawn[at : at + _DRAWN] = (states >> np.uint64(17)) & np.uint64(3)
            self._state = states[-1]
        return drawn


def _sequence_of(
    batch: RecordBatch, record: int, start: int, random: Lrand48
) -> tuple[Sequence, NDArray[np.uint8]]:
    header = batch.data[batch.header_start[record] : batch.header_end[record]].tobytes()
    text = batch.data[batch.seq_start[record] : batch.seq_end[record]]
    if len(text) != batch.seq_len[record]:
        text = text[(text != _LINE_ENDS[0]) & (text != _LINE_ENDS[1])]
    codes = CODES[text]
    at = np.flatnonzero(codes > 3)
    letters = text[at]
    codes[at] = random.bases(len(at))
    first = np.ones(len(at), dtype=np.bool_)
    first[1:] = (np.diff(at) != 1) | (letters[1:] != letters[:-1])
    begin = np.flatnonzero(first)
    lengths = np.diff(np.append(begin, len(at)))
    holes = np.stack([at[begin] + start, lengths], axis=1).astype(np.int64)
    return _sequence(header, start, len(codes), holes, letters[begin]), codes


@functools.cache
def _steps() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Factors and terms of 1, 2, 3, ... steps at once, modulo 2^64."""
    factors = np.full(1, _FACTOR, dtype=np.uint64)
    terms = np.full(1, _TERM, dtype=np.uint64)
    while len(factors) < _DRAWN:
        # As many steps again, after those.
        terms = np.concatenate([terms, factors * terms[-1] + terms])
        factors = np.concatenate([factors, factors * factors[-1]])
    return factors, terms
