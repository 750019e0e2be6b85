"""Unitigs: the GPU makes the CPU's files, whatever the graph and the memory."""

from __future__ import annotations

import logging
import random
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ngsgpu.assemble import Graph, Unitigs, find_unitigs, gpu, graph_of, write_unitigs
from ngsgpu.assemble.params import UnitigParameters
from ngsgpu.assemble.text import write_text
from ngsgpu.kmers import CountParameters, count_files, open_database
from ngsgpu.run.options import RunOptions
from tests.support.assemble import oracle
from tests.support.assemble.worlds import packed, world
from tests.support.io.records import write

LENGTHS = [3, 5, 11, 21, 31, 33, 55, 63, 65, 77, 95, 97, 127]


def texts(graph: Graph, unitigs: Unitigs) -> tuple[bytes, bytes]:
    """FASTA and GFA."""
    fasta, gfa = bytearray(), bytearray()
    write_text(graph, unitigs, fasta.extend, gfa.extend, 2)
    return bytes(fasta), bytes(gfa)


def compare(kmers: NDArray[np.uint64], counts: NDArray[np.uint16], k: int) -> None:
    """All arrays and texts of both backends."""
    graph = graph_of(kmers, counts, k, 2)
    unitigs = find_unitigs(graph, 2)
    found_graph, found = gpu.compact_on_gpu(kmers, counts, k, neighbours=True)
    assert np.array_equal(found_graph.masks, graph.masks)
    assert np.array_equal(found_graph.nexts, graph.nexts)
    for name in ("first", "last", "sizes", "totals", "link_starts", "links"):
        own, other = getattr(unitigs, name), getattr(found, name)
        assert own.dtype == other.dtype
        assert np.array_equal(own, other), name
    assert texts(found_graph, found) == texts(graph, unitigs)


@pytest.mark.parametrize("k", LENGTHS)
def test_random_graphs(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Repeats, turns and circles; letters brought home at once or in parts."""
    for seed in range(12):
        rng = random.Random(f"{seed} {k}")
        found = dict(oracle.counted(world(rng.randrange(10**6), k), k))
        order = sorted(found)
        if not order:
            continue
        counts = np.array([rng.randrange(1, 65_536) for _ in order], dtype=np.uint16)
        with monkeypatch.context() as patch:
            patch.setattr(gpu, "_LETTER_BYTES", rng.choice([1, 300, 1 << 30]))
            compare(packed(order, k), counts, k)


@pytest.mark.parametrize(("k", "circle"), [(31, False), (31, True), (77, True)])
def test_long_chains(tmp_path: Path, k: int, circle: bool) -> None:
    """One chain or circle of 200,000 nodes, and a large graph of short ones."""
    rng = random.Random(k)
    genome = "".join(rng.choices("ACGT", k=200_000))
    genome += genome[: k - 1] if circle else ""
    pieces = "".join(
        f">{i}\n{genome[at : at + 400 - rng.randrange(2)]}{rng.choice('ACGT')}\n"
        for i, at in enumerate(range(0, 150_000, 300))
    )
    for text in (f">g\n{genome}\n", pieces):
        path = write(tmp_path / "g.fa", text.encode())
        count_files([path], tmp_path / "db", CountParameters(k))
        database = open_database(tmp_path / "db")
        compare(np.array(database.kmers), np.array(database.counts), k)


def files(
    folder: Path, backend: str, path: Path, least: int | None = 2, **run: int
) -> tuple[bytes, bytes]:
    """FASTA and GFA of a whole run."""
    out, gfa = folder / f"{backend}.fa", folder / f"{backend}.gfa"
    options = RunOptions(threads=3, backend=backend, **run)  # type: ignore[arg-type]
    write_unitigs([path], out, gfa, UnitigParameters(31, least), options=options)
    return out.read_bytes(), gfa.read_bytes()


def test_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """From reads to files, by the GPU alone, and by the CPU where the graph does not fit."""
    caplog.set_level(logging.INFO, "ngsgpu")
    rng = random.Random(4)
    genome = "".join(rng.choices("ACGT", k=400_000))
    starts = [rng.randrange(len(genome) - 100) for _ in range(20_000)]
    reads = "".join(f"@r\n{genome[i : i + 100]}\n+\n{'F' * 100}\n" for i in starts)
    path = write(tmp_path / "r.fq", reads.encode())
    expected = files(tmp_path, "cpu", path)
    assert files(tmp_path, "cuda", path) == expected
    assert "compacting on the CPU" not in caplog.text
    assert files(tmp_path, "cuda", path, gpu_memory=20 << 20) == expected
    assert "compacting on the CPU" in caplog.text


def test_valley(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The lowest count is chosen before k-mers are written, or from the database of runs."""
    caplog.set_level(logging.INFO, "ngsgpu")
    rng = random.Random(5)
    genome = "".join(rng.choices("ACGT", k=30_000))
    reads = []
    for _ in range(9000):
        begin = rng.randrange(len(genome) - 100)
        own = list(genome[begin : begin + 100])
        own[rng.randrange(100)] = rng.choice("ACGT")
        reads.append(f"@r\n{''.join(own)}\n+\n{'F' * 100}\n")
    path = write(tmp_path / "r.fq", "".join(reads).encode())
    expected = files(tmp_path, "cpu", path, None)
    for memory in (None, 20 << 20):
        assert files(tmp_path, "cuda", path, None, gpu_memory=memory) == expected  # type: ignore[arg-type]
    said = [own.message for own in caplog.records if "at the valley" in own.message]
    assert len(said) == 3
    assert len(set(said)) == 1


def test_empty(tmp_path: Path) -> None:
    path = write(tmp_path / "r.fq", b"@r\nACGT\n+\nFFFF\n")
    assert files(tmp_path, "cuda", path) == files(tmp_path, "cpu", path)
