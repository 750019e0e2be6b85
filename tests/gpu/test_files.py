"""The command writes the same files on the GPU as on the CPU."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from ngsgpu.cli import main
from tests.gpu.test_correct import simulate

pytestmark = pytest.mark.gpu


def write_fastq(path: Path, sequences: list[str], qualities: list[str], line_end: str) -> None:
    records = zip(sequences, qualities, strict=True)
    text = "".join(
        line_end.join([f"@read{number}", sequence, "+", quality, ""])
        for number, (sequence, quality) in enumerate(records)
    )
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:  # type: ignore[operator]
        file.write(text.encode())


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
