"""Samples that come one by one: each has its outputs when it ends, and a failing one stops none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import Sample, SampleOutputs, one_sample
from ngsgpu.classify.run.stream import COLUMNS, classify_stream
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.inputs import ReadFiles
from tests.support.classify.world import World

HEAD = "sample\tfastq_1\tfastq_2\n"


def alone(database: Database, sample: Sample, path: Path) -> bytes:
    Classifier(database).classify([sample], SampleOutputs(reads=str(path)))
    return path.read_bytes()


def test_samples_come_one_by_one(world: World, database: Database, tmp_path: Path) -> None:
    one = world.fastq("s1.fq", world.reads[:40])
    two = world.fastq("s2.fq", world.reads[40:80])
    cut = tmp_path / "cut.fq"
    cut.write_text("@r\nACGT\n+\n")
    results: list[str] = []

    def status() -> list[str]:
        return results[-1].split("\t")

    def lines() -> Iterator[str]:
        yield "# mine\n"
        yield HEAD
        assert results == ["\t".join(COLUMNS)]
        yield f"a\t{one}\t{two}\n"
        assert status()[:4] == ["a", "done", "40", status()[3]] and (tmp_path / "a.tsv").exists()
        for row, message in (
            (f"b\t{cut}\n", "cut.fq, "),
            (f"b\t{one};{two}\t{two}\n", "do not name equal numbers of files"),
            ("b\t-\n", "standard input, line 6: reads cannot come from"),
            (f"a\t{one}\n", "the sample a has been classified already"),
            ("\tx\n", "'' is not a valid sample name"),
            (f"../x\t{one}\n", "is not a valid sample name"),
        ):
            yield row
            assert status()[1] == "failed" and message in status()[5]
        assert not (tmp_path / "b.tsv").exists()
        yield f"b\t{one};{two}\n"
        assert status()[:3] == ["b", "done", "80"]

    outputs = SampleOutputs(reads=f"{tmp_path}/{{sample}}.tsv")
    assert classify_stream(Classifier(database), lines(), outputs, results.append) == [2] * 6
    pair = one_sample([str(one)], [str(two)], interleaved=False, name="a")
    lanes = tuple(ReadFiles((str(path),), (0,), False) for path in (one, two))
    for sample in (pair, Sample("b", lanes)):
        expected = alone(database, sample, tmp_path / "expected.tsv")
        assert (tmp_path / f"{sample.name}.tsv").read_bytes() == expected


@pytest.mark.parametrize(
    ("outputs", "lines", "error", "message"),
    [
        (SampleOutputs(reads="x.tsv"), [HEAD], UsageError, r"put \{sample\} into the name"),
        (SampleOutputs(biom="x.biom"), [HEAD], UsageError, r"put \{sample\} into `biom`"),
        (SampleOutputs(reads="{sample}"), [], InputError, "standard input: the first line must"),
        (SampleOutputs(reads="{sample}"), ["a\tb\n"], InputError, "standard input: the first line"),
    ],
)
def test_streams_that_are_refused(
    database: Database, outputs: SampleOutputs, lines: list[str], error: type, message: str
) -> None:
    with pytest.raises(error, match=message):
        classify_stream(Classifier(database), lines, outputs, print)


def test_no_output_replaces_the_database(world: World, database: Database) -> None:
    reads = world.fastq("s1.fq", world.reads[:4])
    results: list[str] = []
    outputs = SampleOutputs(stats=f"{database.path}/{{sample}}.json")
    lines = [HEAD, f"manifest\t{reads}\n"]
    classify_stream(
        Classifier(database), lines, outputs, results.append, also_read=[str(database.path)]
    )
    assert "failed" in results[-1] and "manifest.json" in results[-1]


def test_as_a_user_types_it(world: World, database: Database, tmp_path: Path) -> None:
    """The result of a sample is there before the next one is named."""
    reads = world.fastq("s1.fq", world.reads[:20])
    command = [
        sys.executable, "-m", "ngsgpu", "classify", "-d", str(database.path), "--samples", "-",
        "-o", f"{tmp_path}/{{sample}}.tsv", "-t1", "--backend", "cpu",
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(HEAD)
        for name, path, status in (("a", reads, "done"), ("b", "no.fq", "failed")):
            process.stdin.write(f"{name}\t{path}\n")
            process.stdin.flush()
            if name == "a":
                assert process.stdout.readline().startswith("sample\tstatus")
            assert process.stdout.readline().startswith(f"{name}\t{status}\t")
            assert (tmp_path / f"{name}.tsv").exists() == (name == "a")
        _, log = process.communicate()
        assert process.returncode == 2
        assert "a: 20 reads, " in log
