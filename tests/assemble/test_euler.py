"""The Euler tour against slow oracles: each edge is used once, by as few paths as there can be."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ngsgpu.assemble.euler import (
    EulerGraph,
    assign_successors,
    circuit_graph,
    contigs,
    euler_graph,
    find_components,
    find_contigs,
    spanning_tree,
    swipe,
    tour,
    write_contigs,
)
from tests.support.assemble import euler as oracle
from tests.support.assemble.worlds import packed, world
from tests.support.commands import Commands
from tests.support.minhash.oracle import canonical, reverse_complement
from tests.support.properties import examples


def graph_of(edges: list[str], length: int) -> EulerGraph:
    """The graph, from its canonical l-mers as a database has them."""
    own = sorted({canonical(edge) for edge in edges})
    return euler_graph(packed(own, length), np.full(len(own), 3, dtype=np.uint16), length)


def lmers(sequences: list[str], length: int) -> Counter[str]:
    return Counter(own[i : i + length] for own in sequences for i in range(len(own) - length + 1))


@given(
    seed=st.integers(0, 10**6),
    length=st.sampled_from([2, 3, 4, 5, 8, 11, 31, 32]),
    part=st.sampled_from([1, 7, 1 << 16]),
    threads=st.sampled_from([1, 3]),
)
@examples(60)
def test_every_step(seed: int, length: int, part: int, threads: int) -> None:
    edges = oracle.edges_of(world(seed, length), length)
    graph = graph_of(edges, length)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tour, "_PART", part)
        patch.setattr(contigs, "_TEXT", part)
        after = assign_successors(graph, threads)
        pairs = oracle.paired(edges)
        assert [pairs.get(edge) for edge in edges] == [
            edges[after[i]] if after[i] >= 0 else None for i in range(len(edges))
        ]
        labels = find_components(after, threads)
        chains = oracle.groups_of(pairs.items(), edges)
        assert [edges[label] for label in labels] == [chains[edge] for edge in edges]

        circuits = circuit_graph(graph, labels)
        together = oracle.entering_together(edges)
        joinable = [(a, b) for a, b in together if chains[a] != chains[b]]
        own = [(edges[graph.entering[p]], edges[graph.entering[p + 1]]) for p in circuits.places]
        assert sorted(own) == sorted(joinable)
        tree = spanning_tree(circuits, len(edges))
        groups = oracle.groups_of([*pairs.items(), *together], edges)
        assert len(tree) == len(set(chains.values())) - len(set(groups.values()))

        swipe(graph, tree, after, threads)
        found = find_contigs(graph, after)
        texts: list[bytes] = []
        write_contigs(graph, after, found, lambda text: texts.append(bytes(text)), threads)
    written = b"".join(texts).decode().split("\n")[1::2]
    # Each edge once, and its sink is where its successor begins.
    assert lmers(written, length) == Counter(edges)
    assert [len(own) for own in written] == sorted(map(len, written), reverse=True)
    # Paths: as few as the vertices allow. Circuits: one in each group that has no path.
    followed = {edges[i] for i in after if i >= 0}
    first = [own[:length] for own in written]
    paths = [edge for edge in first if edge not in followed]
    assert len(paths) == oracle.surplus(edges)
    closed = [edge for edge in first if edge in followed]
    assert len({groups[edge] for edge in closed}) == len(closed)
    assert not {groups[edge] for edge in closed} & {groups[edge] for edge in paths}


@given(seed=st.integers(0, 10**6), length=st.sampled_from([4, 5, 8]))
@examples(60)
def test_circuits_are_as_long_as_hierholzers(seed: int, length: int) -> None:
    """Circles alone, in which every vertex is balanced: there is a circuit a component."""
    rng = random.Random(seed)
    sequences = []
    for _ in range(rng.randrange(1, 4)):
        own = "".join(rng.choices("ACGT", k=rng.randrange(1, 40)))
        sequences.append((own * (length // len(own) + 2))[: len(own) + length - 1])
    edges = oracle.edges_of(sequences, length)
    # An l-mer that occurs twice is one edge, which may leave a vertex unbalanced.
    assume(oracle.surplus(edges) == 0)
    graph = graph_of(edges, length)
    after = assign_successors(graph)
    labels = find_components(after)
    swipe(graph, spanning_tree(circuit_graph(graph, labels), len(edges)), after)
    sizes = find_contigs(graph, after).sizes.tolist()
    rest, expected = set(edges), []
    while rest:
        circuit = oracle.hierholzer(edges, min(rest)[:-1])
        assert len(set(circuit)) == len(circuit) and set(circuit) <= rest
        rest -= set(circuit)
        expected.append(len(circuit))
    assert sizes == sorted(expected, reverse=True)


def test_reads_give_both_strands(tmp_path: Path, ngsgpu: Commands) -> None:
    rng = random.Random(5)
    genome = "".join(rng.choices("ACGT", k=3000))
    reads = [genome[i : i + 60] for i in range(0, 2941, 20)]
    reads = [rng.choice([own, reverse_complement(own)]) for own in reads]
    path = tmp_path / "reads.fa"
    path.write_text("".join(f">r\n{own}\n" for own in reads))
    out, stats = tmp_path / "contigs.fa", tmp_path / "stats.json"
    command = ["assemble", "--method", "euler", "--backend", "cpu", "-i", path, "-o", out]
    done = ngsgpu(*command, "-k", 21, "--stats", stats)
    assert done.status == 0, done.err
    assert "2 contigs of 6,000 bases, both strands" in done.err
    assert set(out.read_text().split("\n")[1::2]) == {genome, reverse_complement(genome)}
    document = json.loads(stats.read_text())
    assert document["contigs"] == {"number": 2, "bases": 6000, "longest": 3000, "n50": 3000}
    steps = {"counting", "graph", "components", "tree", "swipe", "contigs"}
    assert steps <= set(document["time_s"])
    assert ngsgpu(*command, "-q", "-k", 20, "--min-contig", 3001).status == 0
    assert out.read_bytes() == b""
    for options, message in (
        (["-k", "21,31"], "takes one k-mer length"),
        (["-k", 33], "at most 32 bases, not 33"),
        (["--gfa", tmp_path / "g.gfa"], "has no --gfa"),
        (["--min-quality", 3], "has no --min-quality"),
        (["--min-abundance", 0], "--min-abundance must be auto or 1 or more"),
        (["--memory", "1M"], "--memory"),
    ):
        done = ngsgpu(*command, *options)
        assert done.status in (2, 3)
        assert message in done.error
