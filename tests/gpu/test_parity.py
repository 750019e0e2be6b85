"""Both backends write the same files: real reads, and random ones of every awkward form.

These go from files to files through the command line, with random options; what is in between is
tested apart.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.cli import main
from ngsgpu.io.inputs import ReadFiles
from tests.support.commands import read_json
from tests.support.io.random_fastq import Style, random_lanes

pytestmark = pytest.mark.gpu

DATA = Path(__file__).parents[2] / ".test" / "data"
COUNTED = ("anchors", "candidates", "corrected", "coverage")
REAL = sorted(DATA.glob("na12878_lane?_R?.fastq.gz"))


def correct(
    backend: str, lanes: list[ReadFiles], folder: Path, options: list[str]
) -> tuple[list[bytes], dict[str, Any]]:
    """Correct all lanes; the bytes of every output, and what the statistics count."""
    outputs = [folder / f"{backend}{mate}.fq" for mate in range(len(lanes[0].inputs))]
    stats = folder / f"{backend}.json"
    arguments = ["correct", "-q", "--backend", backend, "--stats", str(stats), *options]
    for lane in lanes:
        for option, path in zip(("-i", "-I"), lane.inputs, strict=False):
            arguments += [option, path]
    for option, output in zip(("-o", "-O"), outputs, strict=False):
        arguments += [option, str(output)]
    assert main(arguments + ["--interleaved"] * lanes[0].interleaved) == 0
    document = read_json(stats)
    assert document["backend"] == backend
    counted = {key: document[key] for key in COUNTED}
    return [output.read_bytes() for output in outputs], counted


def assert_same(
    lanes: list[ReadFiles], folder: Path, options: list[str], on_gpu: list[str]
) -> None:
    ours = correct("cuda", lanes, folder, [*options, *on_gpu])
    assert any(ours[0]) == any(Path(path).stat().st_size for lane in lanes for path in lane.inputs)
    assert ours == correct("cpu", lanes, folder, options)


@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("quality_bits", ["8", "2", "0"])
def test_real_pairs_of_two_lanes(tmp_path: Path, quality_bits: str, threads: str) -> None:
    names = [str(path) for path in REAL]
    lanes = [ReadFiles((names[0], names[1]), (0, 1)), ReadFiles((names[2], names[3]), (0, 1))]
    assert_same(lanes, tmp_path, ["--quality-bits", quality_bits, "-t", threads], [])


def test_real_single_reads(tmp_path: Path) -> None:
    lanes = [ReadFiles((str(path),), (0,)) for path in REAL]
    assert_same(lanes, tmp_path, ["--coverage", "40", "-t", "2"], [])


@pytest.mark.parametrize("seed", range(24))
def test_random_files(seed: int, tmp_path: Path) -> None:
    rng = random.Random(7000 + seed)
    style = Style.random(rng)
    lanes = random_lanes(rng, tmp_path, style, rng.choice(["single", "pairs", "interleaved"]))
    options = ["--phred-offset", str(style.phred_offset), "-t", rng.choice(["1", "3"])]
    options += ["--quality-bits", rng.choice(["8", "8", "2", "1", "0"])]
    options += ["--kmer", rng.choice(["12", "20", "32"]), "--hashes", rng.choice(["4", "48"])]
    options += ["--coverage", rng.choice(["auto", "5", "60"])]
    on_gpu = rng.choice([[], [], ["--gpu-memory", "1G"]])
    assert_same(lanes, tmp_path, options, on_gpu)
