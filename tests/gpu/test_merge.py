"""The GPU merges to the same bytes as the CPU: random pairs and parameters, real reads."""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.errors import InputError
from ngsgpu.merge import MergeOutputs, MergeParameters, RunOptions, merge_files
from tests.support import DATA
from tests.support.io.records import Record, fastq, write
from tests.support.merge.data import REAL, random_parameters, simulated_pairs, write_pairs

pytestmark = pytest.mark.gpu


def merged(
    folder: Path,
    backend: str,
    first: Sequence[Path],
    second: Sequence[Path],
    parameters: MergeParameters,
    *,
    options: RunOptions | None = None,
    interleaved_out: bool = False,
    ending: str = "fq",
    phred_offset: int = 33,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All files that a backend writes, and its statistics without times."""
    folder = folder / backend
    folder.mkdir()
    outputs = MergeOutputs(
        None if parameters.correct_only else folder / f"merged.{ending}",
        folder / f"first.{ending}",
        None if interleaved_out else folder / f"second.{ending}",
        hist=folder / "hist",
        histogram=folder / "histogram",
        ihist=folder / "ihist",
        by_direction=True,
    )
    statistics = asdict(
        merge_files(
            first,
            second,
            outputs,
            interleaved=not second,
            parameters=parameters,
            phred_offset=phred_offset,  # type: ignore[arg-type]
            options=replace(options or RunOptions(threads=4), backend=backend),  # type: ignore[arg-type]
        )
    )
    assert statistics.pop("backend") == backend
    for key in ("device", "time_s", "memory"):
        statistics.pop(key)
    return {path.name: path.read_bytes() for path in folder.iterdir()}, statistics


def assert_same(*arguments: Any, **others: Any) -> None:
    folder, *rest = arguments
    expected = merged(folder, "cpu", *rest, **others)
    assert merged(folder, "cuda", *rest, **others) == expected


def lane(rng: random.Random, offset: int) -> list[tuple[Record, Record]]:
    return simulated_pairs(
        rng.randrange(1 << 30),
        rng.choice([0, 1, 63, 64, 65, 1000, 3000]),
        lengths=(rng.choice([20, 64, 100, 150, 300]), rng.choice([20, 32, 64, 100, 250])),
        inserts=(1, rng.choice([220, 500])),
        mixed=rng.random() < 0.5,
        ambiguous=rng.choice([0, 0.02, 0.2]),
        errors=rng.choice([0, 0.02, 0.1]),
        outward=rng.choice([0, 0.4]),
        scores=rng.choice([(2, 41), (30, 32), (0, 3), (0, 62)]),
        offset=offset,
    )


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_cpu(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    offset = rng.choice([33, 33, 64])
    parameters = random_parameters(rng)
    if rng.random() < 0.3:
        parameters = replace(parameters, max_overlap=None)
    interleaved = rng.random() < 0.3
    first, second = [], []
    for number in range(rng.choice([1, 1, 2])):
        folder = tmp_path / str(number)
        folder.mkdir()
        pairs = lane(rng, offset)
        if interleaved:
            both = fastq(record for pair in pairs for record in pair)
            first.append(write(folder / "both.fq", both))
        else:
            one, two = write_pairs(folder, pairs)
            first.append(one)
            second.append(two)
    if rng.random() < 0.3:
        for path in (*first, *second):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n").rstrip(b"\r\n"))
    assert_same(
        tmp_path,
        first,
        second,
        parameters,
        options=RunOptions(threads=4, chunk_bytes=rng.choice([1 << 16, 1 << 18, 1 << 24])),
        interleaved_out=rng.random() < 0.3,
        ending=rng.choice(["fq", "fq", "fq.gz"]),
        phred_offset=offset,
    )


@pytest.mark.parametrize("quality", ["edgar", "flash"])
@pytest.mark.parametrize("reads", REAL)
def test_real_reads(tmp_path: Path, reads: str, quality: str) -> None:
    files = [DATA / "reads" / f"{reads}_R{mate}.fastq.gz" for mate in (1, 2)]
    plain = [write(tmp_path / path.stem, gzip.decompress(path.read_bytes())) for path in files]
    parameters = MergeParameters(quality=quality, allow_outies=True)  # type: ignore[arg-type]
    assert_same(tmp_path, plain[:1], plain[1:], parameters)


def test_compressed_input(tmp_path: Path) -> None:
    pairs = simulated_pairs(1, 2000)
    files = write_pairs(tmp_path, pairs)
    packed = [write(tmp_path / f"{p.name}.gz", gzip.compress(p.read_bytes())) for p in files]
    assert_same(tmp_path, packed[:1], packed[1:], MergeParameters(trim_adapters=True))


def test_longest_reads(tmp_path: Path) -> None:
    """Planes that fill the shared memory."""
    pairs = simulated_pairs(2, 20, lengths=(32_767, 32_000), inserts=(31_000, 33_000))
    parameters = MergeParameters(min_overlap=1000, max_overlap=None, allow_outies=True)
    files = write_pairs(tmp_path, pairs)
    assert_same(tmp_path, files[:1], files[1:], parameters)


def test_wrong_input_is_told_as_by_the_cpu(tmp_path: Path) -> None:
    first, second = write_pairs(tmp_path, simulated_pairs(3, 500))
    text = second.read_bytes().replace(b"@read10", b"@reed10")
    second.write_bytes(text[: len(text) // 2 - 7])
    told = []
    for backend in ("cpu", "cuda"):
        with pytest.raises(InputError) as error:
            merged(tmp_path, backend, [first], [second], MergeParameters())
        told.append(str(error.value))
        assert list((tmp_path / backend).iterdir()) == []
    assert told[0] == told[1]


def test_little_memory(tmp_path: Path) -> None:
    files = write_pairs(tmp_path, simulated_pairs(4, 3000))
    options = RunOptions(threads=2, gpu_memory=64 << 20)
    assert_same(tmp_path, files[:1], files[1:], MergeParameters(), options=options)
