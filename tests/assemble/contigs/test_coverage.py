"""Reads over the bases of contigs, against a slow oracle and on genomes where they are known."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.assemble.contigs.coverage import coverage_of
from ngsgpu.assemble.contigs.files import Contig
from tests.support.assemble import contigs as held
from tests.support.assemble import coverage as oracle
from tests.support.assemble.worlds import world
from tests.support.commands import Commands
from tests.support.io.records import write
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples


def reads_of(rng: random.Random, contigs: list[Contig], longest: int) -> list[str]:
    """Reads of both strands, over ends and joins, some with an error, some of nothing."""
    reads = []
    for contig in contigs:
        own = contig.bases.decode()
        own = own * (longest // len(own) + 2) if contig.circular else "ACGTC" + own + "TTGCA"
        for _ in range(12):
            begin = rng.randrange(len(own))
            read = list(own[begin : begin + rng.randrange(longest)])
            if read and rng.random() < 0.3:
                read[rng.randrange(len(read))] = rng.choice("ACGT")
            bases = "".join(read)
            reads.append(bases if rng.random() < 0.5 else reverse_complement(bases))
    return [*reads, "", "ACGTACCA"]


@given(
    seed=st.integers(0, 10**6),
    k=st.sampled_from([5, 7, 11, 31, 41]),
    threads=st.sampled_from([1, 3]),
)
@examples(80)
def test_random_contigs(seed: int, k: int, threads: int) -> None:
    """Lines and circles, also circles shorter than a word or a read."""
    rng = random.Random(seed)
    contigs = [Contig(own.encode(), 0, rng.random() < 0.5, ()) for own in world(seed, k)]
    reads = reads_of(rng, contigs, 4 * k)
    found = coverage_of(contigs, held.held(reads), k, threads)
    assert [own.dtype for own in found] == [np.int64] * len(contigs)
    assert [own.tolist() for own in found] == oracle.coverage(contigs, reads, min(31, k))


def test_no_contigs() -> None:
    assert coverage_of([], held.held(["ACGTACGTAC" * 4]), 31, 1) == []


@pytest.mark.parametrize(("size", "step", "depth"), [(100, 5, 20), (35, 1, 35)])
def test_a_circle_is_covered_evenly(
    tmp_path: Path, ngsgpu: Commands, size: int, step: int, depth: int
) -> None:
    """A read at every few bases around a circle; also where its text begins, and of few words."""
    genome = "".join(random.Random(3).choices("ACGT", k=2000))
    around = genome + genome[:size]
    reads = [around[at : at + size] for at in range(0, len(genome), step)]
    turned = [own if i % 3 else reverse_complement(own) for i, own in enumerate(reads)]
    path = write(tmp_path / "s.fa", "".join(f">r\n{own}\n" for own in turned).encode())
    fasta, bed = tmp_path / "c.fa", tmp_path / "c.bg"
    done = ngsgpu("assemble", "-q", "-s", path, "-k", 31, "-o", fasta, "--coverage", bed)
    assert (done.status, done.err) == (0, "")
    header = fasta.read_text().split("\n")[0]
    assert header.startswith(">contig_1 length=2000 ")
    assert header.endswith(" circular=yes")
    assert bed.read_text() == f"contig_1\t0\t2000\t{depth}\n"
