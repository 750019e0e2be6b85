"""Gzip files are inflated by the kernels as zlib does it, and damaged ones are refused.

The kernels' own code runs here, compiled for the host, with warps of one lane; checksums are
zlib's. ``tests/gpu/test_inflate.py`` does the same on a GPU.
"""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ngsgpu.device.cuda.compiler import ROOT, included
from ngsgpu.device.cuda.structs import SUFFIX
from ngsgpu.io.compress import seek
from ngsgpu.io.compress.seek import Checkpoints, SeekingReader
from ngsgpu.io.gpu import inflate
from ngsgpu.io.gpu.inflated_feed import InflatedFeed
from tests.support.io.gzip_files import FLAWS, KINDS, gzip_file

SOURCE = Path(__file__).with_name("inflate.cpp")


class _Pointer:
    """CuPy's pointer to memory."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.ptr = array.ctypes.data

    def copy_from_device_async(self, source: _Pointer, size: int, stream: object) -> None:
        ctypes.memmove(self.ptr, source.ptr, size)

    def copy_from_host_async(self, source: int, size: int, stream: object) -> None:
        ctypes.memmove(self.ptr, source, size)


class _Array(np.ndarray[Any, Any]):
    """A NumPy array with CuPy's way to its memory."""

    @property
    def data(self) -> _Pointer:  # type: ignore[override]
        return _Pointer(self)


def _asarray(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.array(array).view(_Array)


FAKE_CUPY = SimpleNamespace(
    uint8=np.uint8,
    uint16=np.uint16,
    uint32=np.uint32,
    uint64=np.uint64,
    zeros=lambda size, dtype: np.zeros(size, dtype).view(_Array),
    empty=lambda size, dtype: np.full(size, 170, dtype).view(_Array),
    asarray=_asarray,
    asnumpy=lambda array: np.array(array).view(np.ndarray),
    cuda=SimpleNamespace(get_current_stream=lambda: None),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernels, compiled for the host."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed, which runs the kernels' code on the host")
    folder = tmp_path_factory.mktemp("kernels")
    for name, content in included(SOURCE).items():
        if name.endswith(SUFFIX):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
    target = folder / "inflate.so"
    folders = [f"-I{path}" for path in (ROOT, folder)]
    options = ["-std=c++17", "-O2", "-w", "-shared", "-fPIC"]
    subprocess.run([compiler, *options, *folders, str(SOURCE), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture(autouse=True)
def on_host(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launch the host's kernels on NumPy's arrays."""

    def launch(
        kernel: str, grid: tuple[int, ...], block: object, arguments: tuple[Any, ...]
    ) -> None:
        if kernel == "sum_sections":
            _sum_sections(*arguments)
            return
        if 0 in grid:
            return
        kinds = {np.uint32: ctypes.c_uint32, np.uint64: ctypes.c_uint64}
        passed = [
            kinds[type(one)](int(one))
            if isinstance(one, np.generic)
            else ctypes.c_void_p(one.ctypes.data)
            for one in arguments
        ]
        getattr(library, f"on_host_{kernel}")(ctypes.c_uint32(grid[0]), *passed)

    monkeypatch.setitem(sys.modules, "cupy", FAKE_CUPY)
    monkeypatch.setattr(inflate, "KERNELS", SimpleNamespace(launch=launch))


def _sum_sections(
    text: Any, places: Any, pieces: Any, sections: Any, initial: Any, moves: Any, sums: Any
) -> None:
    for i in range(int(sections)):
        piece = np.asarray(text[places[i] : places[i + 1]]).tobytes()
        sums[i] = ~zlib.crc32(piece, ~int(initial[i]) & 0xFFFFFFFF) & 0xFFFFFFFF


def inflated(
    data: bytes, batch_bytes: int, piece_bytes: int, noted: Checkpoints | None = None
) -> bytes:
    """The text of a file that comes in pieces; notes places from which it can be read again."""
    inflater = inflate.Inflater(batch_bytes)
    text = FAKE_CUPY.empty(inflate.text_room(batch_bytes) + 1, np.uint8)
    found = []
    for start in range(0, len(data), piece_bytes):
        piece = np.frombuffer(data[start : start + piece_bytes], dtype=np.uint8)
        inflater.add(piece.ctypes.data, len(piece), None)
        more = True
        while more:
            size, more = inflater.inflate(text)
            feed: Any = SimpleNamespace(_checkpoints=noted, _offset=sum(map(len, found)))
            if noted is not None:
                InflatedFeed._note(feed, inflater.places, text)
            found.append(text[:size].tobytes())
    inflater.finish()
    return b"".join(found)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_inflates_as_zlib(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    data, text = gzip_file(kind, rng)
    for batch_bytes in (1 << 18, 1 << 20):
        piece_bytes = rng.choice([batch_bytes, batch_bytes // 3])
        assert inflated(data, batch_bytes, piece_bytes) == text


@pytest.mark.parametrize("kind", KINDS)
def test_any_part_is_inflated_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """From the places that were noted on the GPU, by the host."""
    monkeypatch.setattr(seek, "SPACING", 50_000)
    rng = random.Random(kind)
    data, text = gzip_file(kind, rng)
    path = tmp_path / "text.gz"
    path.write_bytes(data)
    noted = Checkpoints()
    assert inflated(data, 1 << 20, 1 << 19, noted) == text
    places = noted.found(len(text))
    if not text or not places:
        return
    reader = SeekingReader(str(path), places, len(text))
    parts = [(0, len(text)), *(sorted(rng.choices(range(len(text)), k=2)) for _ in range(20))]
    for start, end in parts:
        part = np.empty(end - start, dtype=np.uint8)
        reader.fill(part, start)
        assert part.tobytes() == text[start:end]
    reader.close()


@pytest.mark.parametrize("flaw", FLAWS)
def test_refuses_damage(flaw: str) -> None:
    rng = random.Random(flaw)
    data, _ = gzip_file(rng.choice(["gzip -6", "bgzf", "members"]), rng)
    with pytest.raises(inflate.NotForGpuError):
        inflated(FLAWS[flaw](data, rng), 1 << 18, 1 << 18)


def test_every_changed_byte_is_seen() -> None:
    """Of a small file each byte is changed, and the file is cut behind each."""
    rng = random.Random(1)
    data, text = gzip_file("small", rng)
    first = next(at for at in range(100, len(data)) if data[at:].startswith(data[:4]))
    # No flaws: no member at all, one of the two, and what a header says of time and system.
    faultless = {b"": b"", data[:first]: text[:1500]}
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << rng.randrange(8)
        for attempt in (bytes(changed), data[:at]):
            try:
                found = inflated(attempt, 1 << 18, 1 << 18)
            except inflate.NotForGpuError:
                continue
            assert found == faultless.get(attempt, text)


def test_moves_are_those_of_zeros() -> None:
    moves = inflate.zero_moves()
    for power, register in ((0, 1), (3, 0x12345678), (12, 0xFFFFFFFF)):
        moved = 0
        for bit in range(32):
            if register >> bit & 1:
                moved ^= int(moves[power][bit])
        expected = ~zlib.crc32(bytes(1 << power), ~register & 0xFFFFFFFF) & 0xFFFFFFFF
        assert moved == expected
