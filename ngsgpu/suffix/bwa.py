"""The five files of a BWA index (0.7): written as ``bwa index`` does, and read.

``.ann`` has the names and places of the sequences, ``.amb`` the holes, ``.pac`` the forward strand,
four bases in a byte; ``.bwt`` and ``.sa`` the FM index of both strands (``ngsgpu.suffix.fm``).

Beside them lies ``.sums``, a manifest with their sizes and checksums, of which BWA knows nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.mapped import map_file, open_regular
from ngsgpu.io.output.manifest import is_count, opened_whole, read_manifest, sealed
from ngsgpu.io.output.store import array_checksum
from ngsgpu.pool import map_all
from ngsgpu.suffix.check import has_right_counts
from ngsgpu.suffix.fm import REBUILD, SAMPLED, FmIndex, quads
from ngsgpu.suffix.places import SequencePlaces
from ngsgpu.suffix.reference import SEED, Reference

ENDINGS: Final = (".amb", ".ann", ".bwt", ".pac", ".sa")
SUMS: Final = ".sums"
SUMS_FORMAT: Final = "ngsgpu checksums of a BWA index"

_CHUNK: Final = 1 << 26
_PACKED: Final = 1 << 20
_NO_COMMENT: Final = b"(null)"
_HEAD_BYTES: Final = 40
_CHANGED: Final = "is not the file that the checksums beside it (.sums) are of"
_CHANGED_REMEDY: Final = (
    "make the index again; if bwa index made it anew, remove the .sums of the old one"
)


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
        own = codes[at : at + _PACKED]
        if len(own) % 4:
            own = np.concatenate([own, np.zeros(-len(own) % 4, dtype=np.uint8)])
        packed[at // 4 : at // 4 + len(own) // 4] = quads(own)

    map_all(threads, pack, range(0, size, _PACKED), name="pack")
    packed[-1] = size % 4
    return packed


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


class SummedFile:
    """A file whose size and CRC-32 are counted as it is written.

    Args:
        append: writes bytes behind those before.
    """

    def __init__(self, append: Callable[[bytes | memoryview], None]) -> None:
        self._append = append
        self._bytes = self._crc32 = 0

    def write(self, data: bytes | memoryview) -> None:
        """Write all of ``data``; raises OutputError."""
        self._append(data)
        self._bytes += memoryview(data).nbytes
        self._crc32 = isal_zlib.crc32(data, self._crc32)

    def sums(self) -> dict[str, int]:
        """Size and CRC-32, for the manifest."""
        return {"bytes": self._bytes, "crc32": self._crc32}


def sums_text(files: Mapping[str, SummedFile]) -> bytes:
    """The content of ``.sums``, of files by their endings."""
    sums = {ending: file.sums() for ending, file in files.items()}
    return sealed({"format": SUMS_FORMAT, "version": 1, "files": sums}).encode()


def read_bwa(prefix: str | Path, threads: int = 1) -> tuple[FmIndex, SequencePlaces]:
    """Map ``.bwt`` and ``.sa`` into memory, and read ``.ann``.

    They are compared with the checksums of ``.sums``. Without it, as ``bwa index`` leaves them,
    their sizes and sums have to agree.

    Args:
        prefix: of the files.
        threads: that check them.

    Raises:
        InputError: a file is missing or damaged, or they do not belong together.
    """
    paths = [f"{prefix}{ending}" for ending in (*ENDINGS, SUMS)]
    return opened_whole(paths, lambda: _read(prefix, threads))


def _read(prefix: str | Path, threads: int) -> tuple[FmIndex, SequencePlaces]:
    sums = _read_sums(prefix)
    index = _read_transform(prefix, sums, threads)
    places = _read_places(prefix, sums)
    if not places.fit(len(index)):
        raise InputError(f"{prefix}.ann", "does not belong to the .bwt beside it", REBUILD)
    return index, places


def _read_sums(prefix: str | Path) -> dict[str, dict[str, int]] | None:
    """Sizes and checksums by ending; None if there are none."""
    path = Path(f"{prefix}{SUMS}")
    if not os.path.lexists(path):
        return None
    shape = {"files": {ending: {"bytes": is_count, "crc32": is_count} for ending in ENDINGS}}
    files: dict[str, dict[str, int]] = read_manifest(
        path, SUMS_FORMAT, 1, shape, "ngsgpu index build"
    )["files"]
    return files


def _read_transform(
    prefix: str | Path, sums: dict[str, dict[str, int]] | None, threads: int
) -> FmIndex:
    path = Path(f"{prefix}.bwt")
    data = _mapped(path, sums, threads)
    if len(data) < _HEAD_BYTES or len(data) % 4:
        raise InputError(path, "is no .bwt of BWA, or was cut off", REBUILD)
    # A copy: what is read here decides, even if the file is changed later.
    head = data[:_HEAD_BYTES].view(np.int64).copy()
    totals = np.concatenate(([0], head[1:]))
    words = data[_HEAD_BYTES:].view(np.uint32)
    path = Path(f"{prefix}.sa")
    data = _mapped(path, sums, threads)
    places = len(data) - _HEAD_BYTES - 16
    if places < 0 or places % 8 or not np.array_equal(data[:_HEAD_BYTES].view(np.int64), head):
        raise InputError(path, "does not belong to the .bwt beside it, or was cut off", REBUILD)
    sampled, size = data[_HEAD_BYTES : _HEAD_BYTES + 16].view(np.int64).tolist()
    if (sampled, size) != (SAMPLED, int(totals[4])):
        raise InputError(path, f"does not have every {SAMPLED}th place", REBUILD)
    sample = np.concatenate(([-1], data[_HEAD_BYTES + 16 :].view(np.int64)))
    index = FmIndex(int(head[0]), totals, words, sample, str(prefix))
    if not index.is_consistent():
        raise InputError(prefix, "its .bwt and .sa are damaged, or were cut off", REBUILD)
    if sums is None and not has_right_counts(index, threads):
        raise InputError(f"{prefix}.bwt", "is damaged: its counts do not add up", REBUILD)
    return index


def _read_places(prefix: str | Path, sums: dict[str, dict[str, int]] | None) -> SequencePlaces:
    path = Path(f"{prefix}.ann")
    lines = _mapped(path, sums).tobytes().split(b"\n")
    try:
        size, count, _ = map(int, lines[0].split())
        names = [line.split(b" ", 2)[1] for line in lines[1 : 2 * count + 1 : 2]]
        places = [[int(word) for word in line.split()] for line in lines[2 : 2 * count + 2 : 2]]
        starts = np.array([place[0] for place in places] + [size], dtype=np.int64)
        whole = len(names) == count > 0 and lines[2 * count + 1 :] == [b""]
        whole = whole and bool((np.diff(starts) == [place[1] for place in places]).all())
    except (ValueError, IndexError, OverflowError):
        whole = False
    if not whole:
        raise InputError(path, "is no .ann of BWA, or was cut off", REBUILD)
    return SequencePlaces(names, starts)


def _mapped(
    path: Path, sums: dict[str, dict[str, int]] | None, threads: int = 1
) -> NDArray[np.uint8]:
    """A file, with the content that its checksum is of, if there is one."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise InputError(path, "is empty", REBUILD)
            data = map_file(path, file, np.uint8, (size,))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(path, f"cannot be read ({reason})", REBUILD) from error
    if sums is not None:
        known = sums[path.suffix]
        if size != known["bytes"] or array_checksum(data, threads) != known["crc32"]:
            raise InputError(path, _CHANGED, _CHANGED_REMEDY)
    return data
