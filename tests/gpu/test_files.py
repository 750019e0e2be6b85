"""The command writes the same files on the GPU as on the CPU."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ngsgpu.cli import main
from tests.support.correct.random_reads import simulate, write_fastq

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("seed", range(6))
def test_same_files(seed: int, tmp_path: Path) -> None:
    rng = random.Random(1000 + seed)
    sequences, qualities = simulate(rng, paired=True, quality=True)
    assert qualities is not None
    ending = rng.choice([".fq", ".fq.gz"])
    line_end = rng.choice(["\n", "\r\n"])
    for mate in (0, 1):
        write_fastq(tmp_path / f"r{mate}{ending}", sequences[mate::2], qualities[mate::2], line_end)
    options = rng.choice([[], ["--quality-bits", "2"], ["--coverage", "20"], ["--kmer", "16"]])
    written = {}
    for backend in ("cpu", "cuda"):
        outputs = [tmp_path / f"{backend}{mate}.fq" for mate in (0, 1)]
        stats = tmp_path / f"{backend}.json"
        files = ["-i", f"r0{ending}", "-I", f"r1{ending}", "-o", outputs[0], "-O", outputs[1]]
        paths = [
            name if name in ("-i", "-I", "-o", "-O") else str(tmp_path / name) for name in files
        ]
        head = ["correct", "-q", "--backend", backend, "--stats", str(stats)]
        status = main([*head, *options, *paths])
        assert status == 0
        document = json.loads(stats.read_text())
        assert document["backend"] == backend
        same = {key: document[key] for key in ("anchors", "candidates", "corrected", "coverage")}
        written[backend] = [path.read_bytes() for path in outputs], same
    assert written["cpu"] == written["cuda"]
