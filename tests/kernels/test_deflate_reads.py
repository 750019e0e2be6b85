"""The kernel for GPUs compresses reads to the bytes of the CPU.

Its own code runs here, compiled for the host, with several threads to a block.
``tests/gpu/test_deflate_reads.py`` does the same on a GPU.
"""

from __future__ import annotations

import contextlib
import ctypes
import gzip
import random
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ngsgpu.device.cuda.compiler import ROOT
from ngsgpu.errors import DeviceError
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES
from ngsgpu.io.compress.packing import BGZF_PIECE_BYTES
from ngsgpu.io.compress.reads import blocks
from ngsgpu.io.compress.reads.blocks import LEAST_BYTES, reads_blocks
from ngsgpu.io.gpu import deflate_reads
from ngsgpu.io.gpu.deflate_reads import ReadsPacker
from ngsgpu.io.output.writer import OutputSet
from tests.support.io.read_texts import KINDS, read_text

SOURCE = Path(__file__).with_name("deflate_reads.cpp")
THREADS = 3


class _Array(np.ndarray[Any, Any]):
    """A NumPy array with what is used of CuPy's."""

    def get(self, stream: object, out: np.ndarray[Any, Any], blocking: bool) -> None:
        out[:] = self

    @property
    def data(self) -> Any:  # type: ignore[override]
        def copy(source: int, size: int, stream: object) -> None:
            ctypes.memmove(self.ctypes.data, source, size)

        return SimpleNamespace(copy_from_host_async=copy)


def _pinned(size: int) -> np.ndarray[Any, Any]:
    return np.full(size, 85, dtype=np.uint8)


_STREAM = SimpleNamespace(synchronize=lambda: None)
FAKE_CUPY = SimpleNamespace(
    uint8=np.uint8,
    empty=lambda shape, dtype: np.full(shape, 170, dtype).view(_Array),
    asarray=np.array,
    cuda=SimpleNamespace(
        Device=lambda number: contextlib.nullcontext(),
        Stream=lambda non_blocking: _STREAM,
        get_current_stream=lambda: _STREAM,
        runtime=SimpleNamespace(getDevice=lambda: 0),
    ),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The kernel, compiled for the host."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed, which runs the kernel's code on the host")
    target = tmp_path_factory.mktemp("kernels") / "deflate_reads.so"
    options = ["-std=c++20", "-O2", "-w", "-shared", "-fPIC", "-pthread", f"-I{ROOT}"]
    subprocess.run([compiler, *options, str(SOURCE), "-o", str(target)], check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture(autouse=True)
def launches(library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Launch the host's kernel on NumPy's arrays; the blocks of each launch."""
    done = []

    def launch(
        kernel: str, grid: tuple[int], block: object, arguments: tuple[Any, ...], stream: object
    ) -> None:
        text, pieces, most, *arrays = arguments
        places = [ctypes.c_void_p(one.ctypes.data) for one in (text, pieces, *arrays)]
        run = getattr(library, f"on_host_{kernel}")
        run(grid[0], THREADS, *places[:2], ctypes.c_uint32(int(most)), *places[2:])
        done.append(grid[0])

    monkeypatch.setitem(sys.modules, "cupy", FAKE_CUPY)
    monkeypatch.setattr(deflate_reads, "KERNELS", SimpleNamespace(launch=launch, load=lambda: None))
    monkeypatch.setattr(deflate_reads, "registered_empty", _pinned)
    monkeypatch.setattr(deflate_reads, "cuda_errors", lambda doing: contextlib.nullcontext())
    return done


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_bytes_of_the_cpu(kind: str, seed: int, launches: list[int]) -> None:
    rng = random.Random(f"{kind} {seed}")
    text = read_text(kind, rng, LEAST_BYTES + rng.randrange(2 * BLOCK_BYTES))
    assert bytes(ReadsPacker(1).pack(text, 1)) == bytes(reads_blocks(text, 1))
    assert launches == [16]


def test_a_whole_piece_and_a_last_byte() -> None:
    packer = ReadsPacker(1)
    text = read_text("illumina", random.Random(1), BGZF_PIECE_BYTES)
    for size in (BGZF_PIECE_BYTES, 9 * BLOCK_BYTES, 9 * BLOCK_BYTES + 1):
        assert bytes(packer.pack(text[:size], 1)) == bytes(reads_blocks(text[:size], 1))


def test_what_would_be_too_long_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (blocks, deflate_reads):
        monkeypatch.setattr(module, "MOST_STREAM_BYTES", 24_000)
    parts = [read_text(kind, random.Random(1), 3 * BLOCK_BYTES) for kind in ("illumina", "noise")]
    text = b"".join(parts) * 2
    assert bytes(ReadsPacker(1).pack(text, 1)) == bytes(reads_blocks(text, 1))
    assert len(reads_blocks(text, 1)) > 6 * BLOCK_BYTES


def test_what_the_cpu_does(launches: list[int]) -> None:
    """Other levels, short data, and what comes after the end."""
    packer = ReadsPacker(2)
    text = read_text("illumina", random.Random(1), LEAST_BYTES)
    assert bytes(packer.pack(text, 2)) == bytes(reads_blocks(text, 2))
    assert bytes(packer.pack(text[1:], 1)) == bytes(reads_blocks(text[1:], 1))
    packer.close()
    assert bytes(packer.pack(text, 1)) == bytes(reads_blocks(text, 1))
    assert launches == []


def test_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """That share the memory of two; the kernel on the host is one at a time."""
    launch = deflate_reads.KERNELS.launch
    turns = ThreadPoolExecutor(1)

    def in_turn(*arguments: Any, **named: Any) -> None:
        turns.submit(launch, *arguments, **named).result()

    monkeypatch.setattr(deflate_reads.KERNELS, "launch", in_turn)
    texts = [read_text(kind, random.Random(kind), LEAST_BYTES) for kind in KINDS]
    packer = ReadsPacker(2)
    with turns, ThreadPoolExecutor(4) as pool:
        made = pool.map(lambda text: bytes(packer.pack(text, 1)), texts)
        assert list(made) == [bytes(reads_blocks(text, 1)) for text in texts]


def test_pieces_that_come_meanwhile_are_packed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread gets the blocks of its piece, whoever launches; the CPU makes the rest."""
    running = threading.Semaphore(2)
    taken: list[int] = []

    def launch(packer: ReadsPacker, batch: Any) -> None:
        assert running.acquire(blocking=False)
        deadline = time.monotonic() + 20
        while len(taken) < 2 and not is_full(packer) and time.monotonic() < deadline:
            time.sleep(0.01)
        taken.append(batch.taken)
        batch.here[deflate_reads._SIZES :] = 0  # no block is reads
        running.release()

    def is_full(packer: ReadsPacker) -> bool:
        return packer._open is None and not packer._free

    def pack(number: int) -> bytes:
        return bytes(packer.pack(number.to_bytes(4, "little") * (LEAST_BYTES // 4), 1))

    packer = ReadsPacker(2)
    pack(0)
    monkeypatch.setattr(ReadsPacker, "_launch", launch)
    with ThreadPoolExecutor(2 + packer.waiting) as pool:
        made = list(pool.map(pack, range(400)))
    for number, packed in enumerate(made):
        assert gzip.decompress(packed) == number.to_bytes(4, "little") * (LEAST_BYTES // 4)
    assert max(taken) == deflate_reads.PIECES


def test_outputs(tmp_path: Path, launches: list[int]) -> None:
    """With the packer from somewhere on; others than BGZF as without it."""
    text = read_text("illumina", random.Random(1), 2 * BGZF_PIECE_BYTES + 1000)
    names = ("out.fq.gz", "out.fq.zst", "out.fq")
    found = []
    for packs in (False, True):
        paths = [tmp_path / name for name in names]
        with OutputSet(paths) as outputs:
            assert outputs.compresses
            if packs:
                outputs.pack_by(ReadsPacker(1))
            for index in range(len(paths)):
                for at in range(0, len(text), 100_000):
                    outputs.write(index, text[at : at + 100_000])
        found.append([path.read_bytes() for path in paths])
    assert found[0] == found[1]
    assert launches and set(launches) <= {16, 32}


def test_the_cpu_goes_on_where_cuda_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DeviceError("kernel deflate_reads: illegal address")

    monkeypatch.setattr(deflate_reads.KERNELS, "launch", fail)
    text = read_text("illumina", random.Random(1), LEAST_BYTES)
    packer = ReadsPacker(1)
    for _ in range(2):
        assert bytes(packer.pack(text, 1)) == bytes(reads_blocks(text, 1))
    assert [record.getMessage() for record in caplog.records] == [
        "kernel deflate_reads: illegal address; compressing on the CPU"
    ]
