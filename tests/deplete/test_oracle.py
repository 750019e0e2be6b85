"""The reads that are kept, on both backends, as a slow and obvious program says."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from ngsgpu.deplete import DepletionParameters, IndexParameters, RunOptions, build_index
from tests.support.backends import seeds
from tests.support.deplete.oracle import kmers_of
from tests.support.deplete.world import World, depleted, index_of, texts, write_sequences


@seeds(cpu=6, cuda=40)
def test_random_reads(tmp_path: Path, backend: str, seed: int) -> None:
    rng = random.Random(seed)
    layout = rng.choice(["single", "pairs", "interleaved"])
    world = World.of(seed, rng.choice([1, 65, 300]), paired=layout != "single")
    parameters = IndexParameters(
        kmer=rng.choice([16, 20, 24, 24, 32]),
        one_in=rng.choice([1, 2, 4]),
        max_repeats=rng.choice([5, 40, 1000]),
    )
    depletion = DepletionParameters(
        min_bases=rng.choice([1, 32, 60, None]),
        min_share=rng.choice([0, 0.01, 0.3]),
        keep_host=rng.random() < 0.3,
    )
    exclude = rng.random() < 0.3
    index = index_of(tmp_path, world, parameters, exclude=exclude)
    kept = world.kept(parameters, depletion, exclude)
    form = {"interleaved": layout == "interleaved", "end": rng.choice([b"\n", b"\r\n"])}
    inputs = texts(world.units, **form)  # type: ignore[arg-type]
    if rng.random() < 0.3:
        inputs = [text[:-1] for text in inputs]  # the output ends with a line feed all the same
    options = RunOptions(threads=3, chunk_bytes=1 << 16, units_per_task=rng.choice([1, 7, 1000]))
    if rng.random() < 0.4:
        depletion = replace(depletion, rename=True)
        kept = [
            tuple(record._replace(header=b"%d" % number) for record in unit)
            for number, unit in enumerate(kept, 1)
        ]
    found = depleted(
        backend, tmp_path, index, inputs, depletion,
        interleaved=layout == "interleaved", options=options,
    )  # fmt: skip
    expected = texts(kept, **form) if kept else [b""] * len(inputs)  # type: ignore[arg-type]
    assert found == expected


def test_every_kmer_is_in_the_index(tmp_path: Path) -> None:
    """Whatever the line width, the stretches and the threads."""
    world = World.of(7, 0, paired=False)
    parameters = IndexParameters(one_in=2)
    expected = len(kmers_of(world.host, parameters))
    tables = []
    for width, threads in ((1, 1), (60, 2), (10**6, 3)):
        path = write_sequences(tmp_path / f"{width}.fa", world.host, width)
        index = build_index([path], parameters, options=RunOptions(threads=threads))
        assert (index.kmers, index.sequences) == (expected, 3)
        assert index.bases == sum(map(len, world.host))
        tables.append(index.table.tobytes())
    assert tables[0] == tables[1] == tables[2]
