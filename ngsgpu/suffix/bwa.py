"""The five files of a BWA index (0.7): written as ``bwa index`` does, and read.

``.ann`` has the names and places of the sequences, ``.amb`` the holes, ``.pac`` the forward strand,
four bases in a byte; ``.bwt`` and ``.sa`` the FM index of both strands (``ngsgpu.suffix.fm``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.jit import njit
from ngsgpu.pool import map_all
from ngsgpu.suffix.fm import SAMPLED, FmIndex, word_count
from ngsgpu.suffix.places import SequencePlaces
from ngsgpu.suffix.reference import SEED, Reference

ENDINGS: Final = (".amb", ".ann", ".bwt", ".pac", ".sa")

_CHUNK: Final = 1 << 26
_NO_COMMENT: Final = b"(null)"
_REMEDY: Final = "make the index again (ngsgpu index build, or bwa index)"


def annotation_text(reference: Reference) -> bytes:
    """The content of ``.ann``."""
    sequences = reference.sequences
    lines = [f"{len(reference.codes)} {len(sequences)} {SEED}\n".encode()]
    for one in sequences:
        lines.append(b"0 %s %s\n" % (one.name, one.comment or _NO_COMMENT))
        lines.append(f"{one.start} {one.length} {len(one.holes)}\n".encode())
    return b"".join(lines)


def hole_text(reference: Reference) -> bytes:
    """The content of ``.amb``."""
    sequences = reference.sequences
    count = sum(len(one.holes) for one in sequences)
    lines = [f"{len(reference.codes)} {len(sequences)} {count}\n"]
    for one in sequences:
        for (start, length), letter in zip(one.holes.tolist(), one.letters, strict=True):
            lines.append(f"{start} {length} {letter:c}\n")
    return "".join(lines).encode()


def packed_bases(codes: NDArray[np.uint8], threads: int = 1) -> NDArray[np.uint8]:
    """The content of ``.pac``: bases, the first in the highest bits; last the size modulo 4.

    Args:
        codes: uint8[n], 0 to 3.
        threads: number of threads; does not affect the result.
    """
    size = len(codes)
    packed = np.zeros(size // 4 + 2, dtype=np.uint8)

    def pack(at: int) -> None:
        pack_quads(codes, at, min(at + _CHUNK, size), packed)

    map_all(threads, pack, range(0, size, _CHUNK), name="pack")
    packed[-1] = size % 4
    return packed


@njit(nogil=True, cache=True)
def pack_quads(
    codes: NDArray[np.uint8], low: int, high: int, packed: NDArray[np.uint8]
) -> None:  # fmt: skip
    """Pack the bases from ``low``, a multiple of 4, to ``high`` into bytes that are 0."""
    whole = low + (high - low) // 4 * 4
    for i in range(low, whole, 4):
        packed[i >> 2] = codes[i] << 6 | codes[i + 1] << 4 | codes[i + 2] << 2 | codes[i + 3]
    for i in range(whole, high):
        packed[i >> 2] |= codes[i] << (6 - 2 * (i & 3))


def write_transform(index: FmIndex, write: Callable[[memoryview], None]) -> None:
    """Write ``.bwt``."""
    _write(write, _head(index))
    _write(write, index.words)


def write_sample(index: FmIndex, write: Callable[[memoryview], None]) -> None:
    """Write ``.sa``."""
    _write(write, _head(index))
    _write(write, np.array([SAMPLED, len(index)], dtype=np.int64))
    _write(write, index.sample[1:])


def _head(index: FmIndex) -> NDArray[np.int64]:
    return np.concatenate([[index.primary], index.totals[1:]]).astype(np.int64)


def _write(write: Callable[[memoryview], None], values: NDArray[Any]) -> None:
    flat = values.reshape(-1).view(np.uint8)
    for at in range(0, len(flat), _CHUNK):
        write(flat[at : at + _CHUNK].data)


def read_index(prefix: str | Path) -> FmIndex:
    """Map ``.bwt`` and ``.sa`` into memory.

    Raises:
        InputError: a file is missing or damaged, or they do not belong together.
    """
    path = Path(f"{prefix}.bwt")
    data = _mapped(path)
    if len(data) < 40 or len(data) % 4:
        raise InputError(path, "is no .bwt of BWA, or was cut off", _REMEDY)
    head = data[:40].view(np.int64)
    primary, totals = int(head[0]), np.concatenate(([0], head[1:]))
    words = data[40:].view(np.uint32)
    size = int(totals[4])
    rising = bool((np.diff(totals) >= 0).all()) and 0 < primary <= size
    if not rising or len(words) != word_count(size):
        raise InputError(path, "is no .bwt of BWA, or was cut off", _REMEDY)
    if not np.array_equal(np.diff(totals), words[-8:].view(np.int64)):
        raise InputError(path, "is damaged: its counts do not add up", _REMEDY)
    path = Path(f"{prefix}.sa")
    data = _mapped(path)
    rows = size // SAMPLED
    if len(data) != 56 + 8 * rows or not np.array_equal(data[:40].view(np.int64), head):
        raise InputError(path, "does not belong to the .bwt beside it, or was cut off", _REMEDY)
    if data[40:56].view(np.int64).tolist() != [SAMPLED, size]:
        raise InputError(path, f"does not have every {SAMPLED}th place", _REMEDY)
    sample = np.concatenate(([-1], data[56:].view(np.int64)))
    if rows and not (int(sample[1:].min()) >= 0 and int(sample.max()) < size):
        raise InputError(path, "is damaged: a place is outside of the text", _REMEDY)
    return FmIndex(primary, totals, words, sample)


def read_places(prefix: str | Path) -> SequencePlaces:
    """Read ``.ann``.

    Raises:
        InputError: it is missing or damaged.
    """
    path = Path(f"{prefix}.ann")
    lines = _mapped(path).tobytes().split(b"\n")
    try:
        size, count, _ = map(int, lines[0].split())
        names = [line.split(b" ", 2)[1] for line in lines[1 : 2 * count + 1 : 2]]
        places = [[int(word) for word in line.split()] for line in lines[2 : 2 * count + 2 : 2]]
        starts = np.array([place[0] for place in places] + [size], dtype=np.int64)
        whole = len(names) == count > 0 and lines[2 * count + 1 :] == [b""]
        whole = whole and bool((np.diff(starts) == [place[1] for place in places]).all())
    except (ValueError, IndexError):
        whole = False
    if not whole:
        raise InputError(path, "is no .ann of BWA, or was cut off", _REMEDY)
    return SequencePlaces(names, starts)


def _mapped(path: Path) -> NDArray[np.uint8]:
    try:
        if path.stat().st_size == 0:
            raise InputError(path, "is empty", _REMEDY)
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="c"))
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror})", _REMEDY) from error
