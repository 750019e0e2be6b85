"""Counting k-mers: the GPU makes the CPU's databases, for any memory, input and k-mer length."""

from __future__ import annotations

import gzip
import logging
import random
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ngsgpu.errors import DeviceMemoryError, InputError
from ngsgpu.io.gpu.parse import HEADROOM
from ngsgpu.io.gpu.records import MIN_CHUNK
from ngsgpu.kmers import CountParameters, count_files, gpu_run, open_database
from ngsgpu.kmers.gpu import LETTERS
from ngsgpu.kmers.gpu_text import PackedText
from ngsgpu.run.options import RunOptions
from tests.support.io.records import fasta, fastq, write
from tests.support.kmers.histogram import histogram_of_files
from tests.support.kmers.world import World, as_dict

LENGTHS = [11, 16, 21, 31, 32, 33, 55, 64, 65, 77, 96, 97, 127]
LEAST_MEMORY = 20 << 20
BLOCK_WORDS = (HEADROOM + MIN_CHUNK) // (2 * LETTERS) + 4
"""What the letters of a small chunk, and of a record carried into it, take at most."""


def counted(folder: Path, paths: list[Path], parameters: CountParameters, **run: object) -> None:
    """Count on both backends and compare all bytes of the databases."""
    for backend in ("cpu", "cuda"):
        options = RunOptions(threads=3, backend=backend, **run)  # type: ignore[arg-type]
        count_files(paths, folder / backend, parameters, phred_offset=33, options=options)
    for name in ("kmers.npy", "counts.npy", "manifest.json"):
        assert (folder / "cpu" / name).read_bytes() == (folder / "cuda" / name).read_bytes()
    assert len(list((folder / "cuda").iterdir())) == 3


def refused(folder: Path, paths: list[Path], parameters: CountParameters) -> None:
    """Both backends say the same about files without any k-mer."""
    said = set()
    for backend in ("cpu", "cuda"):
        options = RunOptions(threads=3, backend=backend)
        with pytest.raises(InputError, match="no k-mer") as error:
            count_files(paths, folder / "none", parameters, phred_offset=33, options=options)
        said.add(str(error.value))
        assert not (folder / "none").exists()
    assert len(said) == 1


def rows_of(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Give the buffer room for so many k-mers."""
    plan = gpu_run.plan_counting
    monkeypatch.setattr(
        gpu_run,
        "plan_counting",
        lambda *given: replace(plan(*given), rows=rows),
    )


@pytest.mark.parametrize("k", LENGTHS)
def test_random_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Ns, both cases, short and empty reads, CR, qualities; one buffer or many."""
    for seed in range(6):
        rng = random.Random(f"{seed} {k}")
        world = World.of(rng.randrange(10**6), 300)
        half = len(world.records) // 2
        least = rng.choice([0, 0, 3, 21])
        ends = rng.choice([b"\n", b"\r\n"])
        paths = [
            write(tmp_path / "1.fq", fastq(world.records[:half], ends)),
            write(tmp_path / "2.fq.gz", gzip.compress(fastq(world.records[half:]))),
        ]
        parameters = CountParameters(k, least, rng.choice([1, 1, 2, 3]), (16, 32)[seed // 2 % 2])
        expected = world.counts(k, least)
        with monkeypatch.context() as patch:
            if seed % 2:
                rows_of(patch, rng.choice([400, 3000]))
            (counted if expected else refused)(tmp_path, paths, parameters)
            own = [
                histogram_of_files(
                    paths, parameters, beside=tmp_path / "h", phred_offset=33, options=options
                )
                for options in (RunOptions(), RunOptions(backend="cuda"))
            ]
        assert np.array_equal(own[0][0], own[1][0])
        assert own[0][1] == own[1][1]
        if expected:
            found = as_dict(open_database(tmp_path / "cuda"))
            assert found == {own: n for own, n in expected.items() if n >= parameters.min_count}


def test_other_input(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """FASTA, an empty file, and FASTQ with an unusual end: the CPU reads, the GPU counts."""
    caplog.set_level(logging.INFO, "ngsgpu")
    world = World.of(8, 400)
    paths = [
        write(tmp_path / "1.fa", fasta(world.records, width=37)),
        write(tmp_path / "2.fq", b""),
        write(tmp_path / "3.fq", fastq(world.records * 200) + b"\n" * 10_000),
        write(tmp_path / "4.fq", fastq(world.records)),
    ]
    assert paths[2].stat().st_size > 2 * (LEAST_MEMORY // 64)
    for k in (31, 55):
        counted(tmp_path, paths, CountParameters(k), gpu_memory=LEAST_MEMORY)
    assert "1.fa: the file does not begin like FASTQ; reading on the CPU" in caplog.text
    assert "3.fq: there are thousands of blank lines; reading on the CPU" in caplog.text


def test_errors_are_those_of_the_cpu(tmp_path: Path) -> None:
    bad = write(tmp_path / "1.fq", fastq(World.of(8, 400).records * 200) + b"@r\nACGT\n+\nFF\n")
    messages = set()
    for backend in ("cpu", "cuda"):
        options = RunOptions(backend=backend, gpu_memory=LEAST_MEMORY)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"1\.fq, record") as error:
            count_files([bad], tmp_path / "bad", options=options)
        messages.add(str(error.value))
        assert not (tmp_path / "bad").exists()
    assert len(messages) == 1


@pytest.mark.parametrize("k", [31, 55, 77, 127])
def test_memory_is_planned(tmp_path: Path, k: int) -> None:
    """A buffer that is full time and again, within the limit that CuPy enforces."""
    rng = random.Random(k)
    genome = "".join(rng.choices("ACGT", k=300_000))
    reads = "".join(f"@r\n{genome[i : i + 150]}\n+\n{'F' * 150}\n" for i in range(0, 299_000, 30))
    path = write(tmp_path / "1.fq", reads.encode())
    for memory in (LEAST_MEMORY, 64 << 20):
        counted(tmp_path, [path], CountParameters(k), gpu_memory=memory)
    with pytest.raises(DeviceMemoryError, match="counting k-mers takes at least"):
        count_files([path], tmp_path / "db", options=RunOptions(backend="cuda", gpu_memory=4 << 20))


@pytest.mark.parametrize("k", [21, 55, 127])
@pytest.mark.parametrize("place", ["gpu", "host", "disk"])
def test_letters_stay_where_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int, place: str
) -> None:
    """The same bytes in many ranges of k-mers, wherever the blocks of letters are."""
    world = World.of(k, 400)
    paths = [
        write(tmp_path / "1.fq", fastq(world.records * 40)),
        write(tmp_path / "2.fa", fasta(world.records * 20, width=37)),
        write(tmp_path / "3.fq.gz", gzip.compress(fastq(world.records))),
    ]
    texts = []

    class Text(PackedText):
        def __post_init__(self) -> None:
            self.gpu_room = {"gpu": 1 << 30}.get(place, 0)
            self.host_room = {"disk": 0}.get(place, 1 << 30)
            texts.append(self)
            super().__post_init__()

    monkeypatch.setattr(gpu_run, "PackedText", Text)
    plan = gpu_run.plan_counting
    monkeypatch.setattr(
        gpu_run,
        "plan_counting",
        lambda *given: replace(
            plan(*given), rows=40_000, chunk_bytes=MIN_CHUNK, block_words=BLOCK_WORDS
        ),
    )
    counted(tmp_path, paths, CountParameters(k), gpu_memory=64 << 20)
    assert (texts[-1].on_disk > 0) == (place == "disk")


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("k", [11, 55])
def test_counts_saturate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int, bits: Literal[16, 32]
) -> None:
    """Also of too many for a buffer; wide counts go on, and histograms have them at their end."""
    reads = b"".join(b"@r\n%s\n+\n%s\n" % (b"A" * 30_000, b"F" * 30_000) for _ in range(5))
    path = write(tmp_path / "1.fq", reads)
    parameters = CountParameters(k, count_bits=bits)
    expected = 5 * (30_000 - k + 1) if bits == 32 else 65_535
    for rows in (None, 40_000):
        if rows is not None:
            rows_of(monkeypatch, rows)
        counted(tmp_path, [path], parameters)
        assert as_dict(open_database(tmp_path / "cuda")) == {"A" * k: expected}
        histogram, _ = histogram_of_files(
            [path], parameters, beside=tmp_path / "h", options=RunOptions(backend="cuda")
        )
        assert (histogram.sum(), histogram[65_535]) == (1, 1)


def test_many_blocks(tmp_path: Path) -> None:
    """Distinct k-mers across many blocks of the counting kernels."""
    rng = random.Random(3)
    genome = "".join(rng.choices("ACGT", k=2_000_000))
    starts = [rng.randrange(len(genome) - 100) for _ in range(60_000)]
    reads = "".join(f"@r\n{genome[i : i + 100]}\n+\n{'F' * 100}\n" for i in starts)
    path = write(tmp_path / "1.fq", reads.encode())
    for k in (21, 63):
        counted(tmp_path, [path], CountParameters(k))
