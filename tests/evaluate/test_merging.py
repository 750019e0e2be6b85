"""Merged reads against their fragments: a slow oracle, ART's pairs, refusals."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.evaluate.merging import evaluate_merging
from ngsgpu.evaluate.merging.result import OUTCOMES, MergingEvaluation
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

LENGTH = 40


def study(folder: Path, seed: int) -> tuple[dict[str, Path], Counter[str]]:
    """Pairs, their truth, merged reads with all kinds of mistakes; and what is to be counted."""
    rng = random.Random(seed)
    expected: Counter[str] = Counter()
    sam = ["@SQ\tSN:g\tLN:100000"]
    reads: list[list[Record]] = [[], [], []]
    for number in range(200):
        span = rng.randint(LENGTH, 2 * LENGTH + 10)
        fragment = "".join(rng.choices("ACGTN" if number % 20 == 0 else "ACGT", k=span))
        true = [fragment[:LENGTH], fragment[-LENGTH:]]
        known = 0 if number % 31 == 7 else span
        for mate, flag in ((0, 99), (1, 147)):
            sign = -known if mate else known
            sam.append(f"p{number}\t{flag}\tg\t1\t99\t{LENGTH}=\t=\t1\t{sign}\t{true[mate]}\t*")
        strands = [true[0], reverse_complement(true[1])]
        for mate, strand in enumerate(strands):
            called = mutated(rng, strand)
            reads[mate].append(
                Record(b"p%d/%d" % (number, mate + 1), called.encode(), b"I" * LENGTH)
            )
        kind = rng.choice(["right", "right", "right", "near", "wrong", "missed"])
        overlapping = 2 * LENGTH - span >= 10
        expected["pairs"] += 1
        if known == 0:
            expected["unknown_fragment"] += 1
        elif overlapping:
            expected["overlapping"] += 1
            expected[kind] += 1
        else:
            expected["apart"] += 1
            expected["apart_merged"] += kind != "missed"
        if kind == "missed":
            continue
        bases = mutated(rng, fragment)
        if kind != "right":
            bases += "A" * (3 if kind == "near" else 4)
        qualities = bytes(33 + rng.choice([3, 20, 41]) for _ in bases)
        reads[2].append(Record(b"p%d" % number, bases.encode(), qualities))
        if kind == "right" and overlapping and known:
            count_errors(expected, fragment, bases, qualities)
            for mate, strand in enumerate(strands):
                called = reads[mate][-1].bases.decode()
                for truth, base in zip(strand, called, strict=True):
                    expected["before"] += truth != "N"
                    expected["errors_before"] += truth not in ("N", base)
    paths = {name: write(folder / f"{name}.fq", fastq(reads[i])) for i, name in enumerate("12m")}
    return paths | {"t": write(folder / "t.sam", "\n".join([*sam, ""]).encode())}, expected


def mutated(rng: random.Random, bases: str) -> str:
    """A base or two changed: never more, so that nothing looks like an insertion."""
    letters = list(bases)
    for _ in range(rng.randrange(3)):
        letters[rng.randrange(len(letters))] = rng.choice("ACGT")
    return "".join(letters)


def count_errors(expected: Counter[str], fragment: str, bases: str, qualities: bytes) -> None:
    for k, (truth, base) in enumerate(zip(fragment, bases, strict=True)):
        if truth == "N":
            continue
        where = "overlap" if len(fragment) - LENGTH <= k < LENGTH else "alone"
        expected[f"{where} {qualities[k] - 33}"] += 1
        expected[f"{where} {qualities[k] - 33} errors"] += truth != base
        expected["errors_after"] += truth != base


def counted(evaluation: MergingEvaluation) -> Counter[str]:
    document = evaluation.document()
    found = Counter({name: count for name, count in document["pairs"].items() if count})
    for where, entries in document["calibration"].items():
        for entry in entries:
            found[f"{where} {entry['quality']}"] = entry["bases"]
            found[f"{where} {entry['quality']} errors"] = entry["errors"]
    for name in ("before", "errors_before", "errors_after"):
        found[name] = document["bases"][name]
    return +found


@pytest.mark.parametrize("seed", range(5))
def test_equals_the_oracle(tmp_path: Path, seed: int) -> None:
    paths, expected = study(tmp_path, seed)
    evaluation = evaluate_merging(paths["t"], paths["1"], paths["2"], paths["m"])
    assert counted(evaluation) == +expected
    right = expected["right"]
    assert evaluation.sensitivity == right / expected["overlapping"]
    others = expected["near"] + expected["wrong"] + expected["apart_merged"]
    assert evaluation.precision == right / (right + others)


def test_mates_may_be_wrapped_fasta(tmp_path: Path) -> None:
    paths, expected = study(tmp_path, 3)
    for mate in "12":
        lines = paths[mate].read_text().splitlines()
        records = zip(lines[0::4], lines[1::4], strict=True)
        wrapped = (f">{name[1:]}\n{bases[:17]}\n{bases[17:]}\n" for name, bases in records)
        paths[mate] = write(tmp_path / f"{mate}.fa", "".join(wrapped).encode())
    evaluation = evaluate_merging(paths["t"], paths["1"], paths["2"], paths["m"])
    assert counted(evaluation) == +expected


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, expected = study(tmp_path, 9)
    report = tmp_path / "e.json"
    files = ["-i", paths["1"], "-I", paths["2"], "-m", paths["m"], "--json", report]
    assert main(["evaluate", "merging", "--truth", str(paths["t"]), *map(str, files)]) == 0
    table = capsys.readouterr().out
    assert f"{expected['overlapping']:,}" in table
    document = json.loads(report.read_text())
    assert document["schema"] == "ngsgpu.evaluate.merging"
    assert set(document["pairs"]) == set(OUTCOMES)


def test_nothing_merged(tmp_path: Path) -> None:
    paths, _ = study(tmp_path, 1)
    evaluation = evaluate_merging(paths["t"], paths["1"], paths["2"], write(paths["m"], b""))
    assert evaluation.merged == 0
    assert (evaluation.precision, evaluation.miscalibration) == (None, None)
    assert evaluation.tables()[0].plain()


def test_other_order(tmp_path: Path) -> None:
    paths, _ = study(tmp_path, 2)
    lines = paths["m"].read_bytes().splitlines(keepends=True)
    paths["m"].write_bytes(b"".join([*lines[8:12], *lines[:8], *lines[12:]]))
    with pytest.raises(InputError, match=r"m\.fq, record 2: the merged read 'p\d+' is not that"):
        evaluate_merging(paths["t"], paths["1"], paths["2"], paths["m"])


def test_too_few_mates(tmp_path: Path) -> None:
    paths, _ = study(tmp_path, 3)
    lines = paths["2"].read_bytes().splitlines(keepends=True)
    paths["2"].write_bytes(b"".join(lines[:-4]))
    with pytest.raises(InputError, match=r"2\.fq: it has fewer records than .*1\.fq"):
        evaluate_merging(paths["t"], paths["1"], paths["2"], paths["m"])
