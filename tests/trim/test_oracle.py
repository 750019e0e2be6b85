"""Trimming does what plain Python does, for any parameters and any division into tasks."""

from __future__ import annotations

import json
import random
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.run.options import RunOptions
from ngsgpu.trim import TrimOutputs, TrimParameters, trim_files
from tests.support.io.records import Record, fastq, write
from tests.support.trim import oracle
from tests.support.trim.world import ADAPTERS, pairs

CHOICES: dict[str, list[Any]] = {
    "adapter_sequence": ["auto", ADAPTERS[0], "AGATCGG", "GGACT"],
    "adapter_sequence_r2": ["auto", "auto", ADAPTERS[1]],
    "disable_adapter_trimming": [False, False, True],
    "trim_front1": [0, 0, 3, 40],
    "trim_tail1": [0, 0, 2, 30],
    "trim_front2": [None, 0, 5],
    "trim_tail2": [None, 0, 1],
    "max_len1": [0, 0, 45],
    "max_len2": [None, 0, 30],
    "trim_poly_g": [False, True],
    "poly_g_min_len": [10, 3],
    "trim_poly_x": [False, True],
    "poly_x_min_len": [10, 4],
    "cut_front": [False, False, True],
    "cut_tail": [False, False, True],
    "cut_right": [False, False, True],
    "cut_window_size": [4, 1, 9],
    "cut_mean_quality": [20, 28, 5],
    "cut_front_window_size": [None, 2],
    "cut_tail_mean_quality": [None, 30],
    "cut_right_window_size": [None, 6],
    "disable_quality_filtering": [False, False, True],
    "qualified_quality_phred": [15, 25],
    "unqualified_percent_limit": [40, 10],
    "n_base_limit": [5, 0],
    "average_qual": [0, 0, 22],
    "disable_length_filtering": [False, True],
    "length_required": [15, 1, 40],
    "length_limit": [0, 0, 50],
    "low_complexity_filter": [False, True],
    "complexity_threshold": [30, 60],
    "correction": [False, True],
    "overlap_len_require": [30, 10],
    "overlap_diff_limit": [5, 0, 12],
    "overlap_diff_percent_limit": [20, 29, 0],
}


def chosen(rng: random.Random) -> TrimParameters:
    given = {name: rng.choice(values) for name, values in CHOICES.items()}
    return TrimParameters(disable_trim_poly_g=not given["trim_poly_g"], **given)


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


@pytest.mark.parametrize("seed", range(60))
def test_same_reads(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    parameters, made = chosen(rng), pairs(rng, 80)
    paired = rng.random() < 0.75
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
    options = RunOptions(threads=3, units_per_task=rng.choice([1, 7, 1000]), chunk_bytes=5000)
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


def test_counts_are_those_of_the_reads(tmp_path: Path) -> None:
    """The report counts what is in the files."""
    rng = random.Random(5)
    made = pairs(rng, 300)
    files = [write(tmp_path / f"{mate}.fq", fastq(pair[mate] for pair in made)) for mate in (0, 1)]
    outs = [tmp_path / "o1.fq", tmp_path / "o2.fq"]
    outputs = TrimOutputs(out1=str(outs[0]), out2=str(outs[1]), json=str(tmp_path / "j.json"))
    trim_files(files[:1], files[1:], outputs, options=RunOptions(threads=2, units_per_task=50))
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
