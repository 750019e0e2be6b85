"""Trimming on a GPU: what the CPU writes, of all options, odd reads and long ones."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.errors import NOTHING_LEFT
from ngsgpu.run.options import RunOptions
from ngsgpu.trim import TrimOutputs, TrimParameters, trim_files
from tests.support import content
from tests.support.commands import Commands, read_json
from tests.support.io.records import Record, fastq, write
from tests.support.trim.parameters import chosen
from tests.support.trim.table import OF_PAIRS, OPTIONS, OUTPUTS, WITH_DUPLICATES, Files, written
from tests.support.trim.world import ADAPTERS, odd_pairs, pairs

COUNTED = (
    "reads", "bases", "adapters", "cuts", "tails", "corrected", "duplicates", "without_index",
    "two_colours",
)  # fmt: skip
ALL = ("out1", "out2", "unpaired1", "unpaired2", "failed_out")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(tmp_path_factory.mktemp("trim"), pairs(random.Random(1), 1500))


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("options", OPTIONS + OF_PAIRS + WITH_DUPLICATES)
def test_all_options(
    ngsgpu: Commands, tmp_path: Path, files: Files, kind: str, options: str
) -> None:
    if kind == "reads" and any(word in options for word in ("read2", "index2")):
        pytest.skip("of pairs alone")
    words = [files["ADAPTERS"][0] if word == "ADAPTERS" else word for word in options.split()]
    found = []
    for backend in ("cpu", "cuda"):
        (out := tmp_path / backend).mkdir()
        outputs = [word for key, name in OUTPUTS[kind].items() for word in (key, out / name)]
        done = ngsgpu(
            "trim", *files[kind], *outputs, "-j", out / "j.json", "--stats", out / "s.json",
            *words, "--backend", backend,
        )  # fmt: skip
        found.append(seen(out, backend))
        kept = found[-1][1]["reads"]["kept"]
        assert done.status == (0 if kept > 0 else NOTHING_LEFT), done.err
    assert found[0] == found[1]


def seen(out: Path, backend: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a run has written, and counted."""
    statistics = read_json(out / "s.json")
    assert statistics["backend"] == backend
    texts: dict[str, Any] = content(out)
    del texts["s.json"]
    texts["j.json"] = [
        line for line in texts["j.json"].split(b"\n") if not line.startswith(b'\t"command"')
    ]
    return texts, {name: statistics[name] for name in COUNTED}


def same(
    folder: Path,
    texts: list[bytes],
    parameters: TrimParameters,
    names: tuple[str, ...] = ALL,
    *,
    interleaved: bool = False,
    phred64: bool = False,
    **options: Any,
) -> None:
    """Both backends write the same files."""
    inputs = [write(folder / f"in{mate}.fq", text) for mate, text in enumerate(texts)]
    found = []
    for backend in ("cpu", "cuda"):
        (out := folder / backend).mkdir()
        trim_files(
            inputs[:1],
            inputs[1:],
            TrimOutputs(**{name: str(out / name) for name in names}, json=str(out / "j.json")),
            interleaved=interleaved,
            parameters=parameters,
            phred64=phred64,
            stats=out / "s.json",
            options=RunOptions(backend=backend, **options),
        )
        found.append(seen(out, backend))
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", range(60))
def test_odd_reads(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    parameters = replace(
        chosen(rng),
        fastp=rng.random() < 0.3,
        dedup=rng.random() < 0.3,
        dup_calc_accuracy=1,
        overlap_len_require=rng.choice([30, 10, 1, 50]),
        overlap_diff_percent_limit=rng.choice([20, 29, 0, 100, 57]),
        max_len1=rng.choice([0, 0, 45, 2**35]),
    )
    place = rng.choice(["index1", "per_index", "read1", "read2", "per_read", None, None])
    if place is not None:
        in_reads = "read" in place
        parameters = replace(
            parameters,
            umi=True,
            umi_loc=place,  # type: ignore[arg-type]
            umi_len=rng.choice([1, 8, 60]) if in_reads else 0,
            umi_skip=rng.choice([0, 3]) if in_reads else 0,
            umi_prefix=rng.choice(["", "UMI"]),
        )
    lowest = rng.choice([33, 33, 33, 64])
    made = odd_pairs(rng, rng.choice([1, 64, 1000]), lowest)
    options: dict[str, Any] = {
        "phred64": lowest == 64,
        "chunk_bytes": rng.choice([1 << 16, 1 << 18]),
        "threads": 4,
    }
    if seed % 4 == 3 and place != "read2":
        names = ("out1", "failed_out")
        same(tmp_path, [b"".join(own[0] for own in made)], parameters, names, **options)
    elif seed % 4 == 2:
        same(tmp_path, [b"".join(map(b"".join, made))], parameters, interleaved=True, **options)
    else:
        texts = [b"".join(own[mate] for own in made) for mate in (0, 1)]
        same(tmp_path, texts, parameters, rng.choice([ALL, ALL[:1], ALL[:3], ALL[4:]]), **options)


def test_longest_reads(tmp_path: Path) -> None:
    """More cycles than are counted in shared memory."""
    rng = random.Random(3)
    units = []
    for number in range(20):
        fragment = "".join(rng.choices("ACGT", k=rng.choice([20_000, 32_760, 60_000])))
        turned = fragment[::-1].translate(str.maketrans("ACGT", "TGCA"))
        units.append([
            Record(b"%d" % number, bases.encode(), bytes(rng.choices(b"#5?I", k=len(bases))))
            for strand, adapter in zip((fragment, turned), ADAPTERS, strict=True)
            for bases in [(strand + adapter)[:32_767]]
        ])  # fmt: skip
    texts = [fastq(unit[mate] for unit in units) for mate in (0, 1)]
    same(tmp_path, texts, TrimParameters(correction=True, trim_poly_x=True, cut_right=True))


@pytest.mark.parametrize("place", ["per_index", None])
def test_little_memory(tmp_path: Path, place: Any) -> None:
    """Many batches, with duplicates of earlier ones."""
    made = odd_pairs(random.Random(4), 3000) * 3
    texts = [b"".join(own[mate] for own in made) for mate in (0, 1)]
    parameters = TrimParameters(dedup=True, dup_calc_accuracy=1, umi=place is not None,
                                umi_loc=place)  # fmt: skip
    same(tmp_path, texts, parameters, threads=4, gpu_memory=64 << 20)
