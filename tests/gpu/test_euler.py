"""The Euler tour: the GPU makes the CPU's graph, tour and contigs."""

from __future__ import annotations

import random
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.assemble.euler import EulerParameters, assemble_euler, euler_graph, gpu, tour
from ngsgpu.run.options import RunOptions
from tests.support.assemble import euler as oracle
from tests.support.assemble.worlds import world
from tests.support.minhash.oracle import canonical, number


@pytest.mark.parametrize("length", [2, 3, 4, 5, 8, 11, 31, 32])
def test_every_step(length: int) -> None:
    for seed in range(12):
        edges = oracle.edges_of(world(seed, length), length)
        kmers = sorted({canonical(edge) for edge in edges})
        if not kmers:
            continue
        rows = [[number(kmer) << (64 - 2 * length)] for kmer in kmers]
        words = np.array(rows, dtype=np.uint64)
        counts = np.arange(1, len(kmers) + 1, dtype=np.uint16)
        with gpu.on_gpu(2 * len(kmers), None):
            there = gpu.euler_graph(words, counts, length)
            own = euler_graph(words, counts, length)
            for field in fields(own)[1:]:
                found, wanted = getattr(there, field.name).get(), getattr(own, field.name)
                assert found.dtype == wanted.dtype
                assert np.array_equal(found, wanted), field.name
            after, expected = gpu.assign_successors(there), tour.assign_successors(own)
            assert np.array_equal(after.get(), expected)
            labels = gpu.find_components(after)
            assert np.array_equal(labels.get(), tour.find_components(expected))
            circuits = tour.circuit_graph(own, labels.get())
            for found, wanted in zip(gpu.circuit_graph(there, labels), circuits, strict=True):
                assert np.array_equal(found, wanted)
            tree = tour.spanning_tree(circuits, len(edges))
            gpu.swipe(there, tree, after)
            tour.swipe(own, tree, expected)
            assert np.array_equal(after.get(), expected)


def test_contigs_of_reads(tmp_path: Path) -> None:
    rng = random.Random(3)
    genome = "".join(rng.choices("ACGT", k=20_000))
    genome += genome[5000:5400] + "".join(rng.choices("ACGT", k=3000))
    reads = tmp_path / "reads.fa"
    starts = [rng.randrange(len(genome) - 100) for _ in range(5000)]
    reads.write_text("".join(f">r\n{genome[at : at + 100]}\n" for at in starts))
    for name in ("cpu", "cuda"):
        run = assemble_euler(
            [reads], tmp_path / name, EulerParameters(length=25), options=RunOptions(backend=name)
        )
        assert run.backend == name
    assert (tmp_path / "cpu").read_bytes() == (tmp_path / "cuda").read_bytes()
