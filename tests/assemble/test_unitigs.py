"""Unitigs against a slow oracle, for graphs full of repeats, turns and circles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.assemble import chains, find_unitigs, graph, graph_of, text
from tests.support.assemble import oracle
from tests.support.assemble.worlds import packed, world
from tests.support.properties import examples


def written(kmers: dict[str, int], k: int, threads: int) -> tuple[str, str]:
    """FASTA and GFA of the graph of some k-mers."""
    order = sorted(kmers)
    counts = np.array([kmers[kmer] for kmer in order], dtype=np.uint16)
    made = graph_of(packed(order, k), counts, k, threads)
    fasta, gfa = bytearray(), bytearray()
    text.write_text(made, find_unitigs(made, threads), fasta.extend, gfa.extend, threads)
    return fasta.decode(), gfa.decode()


@given(
    seed=st.integers(0, 10**6),
    k=st.sampled_from([3, 5, 7, 11, 31, 33, 63, 65, 127]),
    part=st.sampled_from([1, 7, 1 << 16]),
    threads=st.sampled_from([1, 3]),
)
@examples(120)
def test_random_graphs(seed: int, k: int, part: int, threads: int) -> None:
    """Also cut into tasks of a node, and between threads that meet in a chain."""
    kmers = dict(oracle.counted(world(seed, k), k))
    with pytest.MonkeyPatch.context() as patch:
        for module in (graph, chains, text):
            patch.setattr(module, "_PART", part)
        patch.setattr(text, "_LINKS", part)
        assert written(kmers, k, threads) == oracle.texts(kmers, k)


@pytest.mark.parametrize(
    ("sequences", "bases", "lines"),
    [
        # A k-mer that follows itself.
        (["AAAAA"], ["AAAAA"], ["0 + 0 +"]),
        # One that its reverse complement follows.
        (["CAATT"], ["AATTG"], ["0 - 0 +"]),
        # A circle: from its smallest k-mer, as that stands.
        (["CGTAACCCGTA"], ["AACCCGTAACC"], ["0 + 0 +"]),
        # A fork, whose three arms end there.
        (["TTCGACTCC", "TTCGACGAA"], None, None),
        ([], [], []),
    ],
)
def test_small_graphs(
    sequences: list[str], bases: list[str] | None, lines: list[str] | None
) -> None:
    kmers = dict(oracle.counted(sequences, 5))
    fasta, gfa = written(kmers, 5, 1)
    assert (fasta, gfa) == oracle.texts(kmers, 5)
    if bases is not None:
        assert fasta.split("\n")[1::2] == bases
        found = [line.split("\t") for line in gfa.splitlines() if line.startswith("L")]
        assert [" ".join(line[1:5]) for line in found] == lines
