"""Trimming does what plain Python does, for any parameters and any division into tasks."""

from __future__ import annotations

import json
import random
from dataclasses import fields, replace
from pathlib import Path
from typing import Literal

import pytest

from ngsgpu.run.options import RunOptions
from ngsgpu.trim import TrimOutputs, TrimParameters, trim_files
from tests.support.backends import seeds
from tests.support.io.records import Record, fastq, write
from tests.support.trim import oracle
from tests.support.trim.parameters import CHOICES, chosen
from tests.support.trim.world import pairs


def texts_of(units: list[tuple[Record, ...]], parameters: TrimParameters) -> list[bytes]:
    """Both outputs, unpaired first and second mates."""
    texts = [b"", b"", b"", b""]
    for unit in units:
        reads, results = oracle.trimmed(unit, parameters)
        for mate, (record, own, result) in enumerate(zip(unit, reads, results, strict=True)):
            if result or own is None:
                continue
            qualities = bytes(33 + score for score in own.scores)
            text = fastq([Record(record.header, own.bases.encode(), qualities)])
            texts[mate if not any(results) else 2 + mate] += text
    return texts


@seeds(cpu=60, cuda=60)
def test_same_reads(tmp_path: Path, backend: Literal["cpu", "cuda"], seed: int) -> None:
    rng = random.Random(seed)
    parameters, made = chosen(rng), pairs(rng, 80)
    paired = rng.random() < 0.75
    # As fastp, which detects no adapters in so few reads.
    parameters = replace(parameters, fastp=not paired)
    units: list[tuple[Record, ...]] = [pair if paired else pair[:1] for pair in made]
    names = ["1.fq", "2.fq", "u1.fq", "u2.fq"] if paired else ["1.fq"]
    expected = texts_of(units, parameters)
    files = [
        write(tmp_path / f"in{mate}.fq", fastq(unit[mate] for unit in units))
        for mate in range(len(units[0]))
    ]
    named = [tmp_path / name for name in names]
    keys = ("out1", "out2", "unpaired1", "unpaired2")[: len(names)]
    outputs = TrimOutputs(**{key: str(path) for key, path in zip(keys, named, strict=True)})
    options = RunOptions(
        backend=backend, threads=3, units_per_task=rng.choice([1, 7, 1000]), chunk_bytes=5000
    )
    statistics = trim_files(files[:1], files[1:], outputs, parameters=parameters, options=options)
    assert [path.read_bytes() for path in named] == expected[: len(names)]
    assert statistics.reads["total"] == len(units) * len(units[0])
    assert statistics.reads["kept"] == sum(text.count(b"\n") for text in expected[:2]) // 4


def test_all_parameters_of_reads_are_tried() -> None:
    """But those of names, duplicates and files, which other tests try."""
    others = {
        "adapter_fasta", "detect_adapter_for_pe", "disable_trim_poly_g", "umi", "umi_loc",
        "umi_len", "umi_prefix", "umi_skip", "dedup", "dup_calc_accuracy",
        "dont_eval_duplication", "fastp", "cut_front_mean_quality", "cut_tail_window_size",
        "cut_right_mean_quality",
    }  # fmt: skip
    assert {own.name for own in fields(TrimParameters)} == set(CHOICES) | others


def test_counts_are_those_of_the_reads(tmp_path: Path, backend: Literal["cpu", "cuda"]) -> None:
    """The report counts what is in the files."""
    rng = random.Random(5)
    made = pairs(rng, 300)
    files = [write(tmp_path / f"{mate}.fq", fastq(pair[mate] for pair in made)) for mate in (0, 1)]
    outs = [tmp_path / "o1.fq", tmp_path / "o2.fq"]
    outputs = TrimOutputs(out1=str(outs[0]), out2=str(outs[1]), json=str(tmp_path / "j.json"))
    options = RunOptions(backend=backend, threads=2, units_per_task=50)
    trim_files(files[:1], files[1:], outputs, options=options)
    report = json.loads((tmp_path / "j.json").read_text())
    for when, paths in (("before", files), ("after", outs)):
        for mate, path in enumerate(paths, start=1):
            lines = path.read_text().split("\n")
            bases, qualities = lines[1::4], lines[3::4]
            own = report[f"read{mate}_{when}_filtering"]
            assert own["total_reads"] == len(qualities)
            assert own["total_bases"] == sum(map(len, bases))
            for least, key in ((20, "q20_bases"), (30, "q30_bases")):
                good = sum(ord(one) >= 33 + least for text in qualities for one in text)
                assert own[key] == good
            kmers = [text[at : at + 5] for text in bases for at in range(len(text) - 4)]
            assert own["kmer_count"]["ACGTA"] == kmers.count("ACGTA")
            first = [text[0] for text in bases if text]
            assert own["content_curves"]["A"][0] == pytest.approx(
                first.count("A") / len(first), rel=1e-5
            )
    units = {(pair[0].bases, pair[1].bases) for pair in made}
    assert report["duplication"]["rate"] == pytest.approx(1 - len(units) / len(made), rel=1e-5)
