"""Outputs of whole commands: to streams as to files, and all or none."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.support.copies import ngsgpu


def letters(count: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=count))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs that overlap, of a small genome that is also a reference."""
    folder = tmp_path_factory.mktemp("data")
    genome = letters(2000, 1)
    (folder / "genome.fa").write_text(f">genome\n{genome}\n")
    turned = str.maketrans("ACGT", "TGCA")
    sides: list[list[str]] = [[], []]
    for pair in range(400):
        start = pair * 1700 // 400
        fragment = genome[start : start + 180]
        for side, bases in zip(sides, (fragment, fragment[::-1].translate(turned)), strict=True):
            side.append(f"@p{pair}\n{bases[:100]}\n+\n{'I' * 100}\n")
    for name, side in zip(("1.fq", "2.fq"), sides, strict=True):
        (folder / name).write_text("".join(side))
    return folder


def shell(command: str, folder: Path, work: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line of bash; {d} stands for the data."""
    text = command.replace("ngsgpu", ngsgpu(), 1).replace("{d}", str(folder))
    return subprocess.run(["bash", "-c", text], cwd=work, capture_output=True, text=True)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


PAIRS = "-i {d}/1.fq -I {d}/2.fq -q -t 1"
KMERS = "ngsgpu kmers spectrum -i {d}/1.fq -t 1"


@pytest.mark.parametrize(
    "command",
    [
        f"{KMERS} -o /dev/stdout | cat",
        f"{KMERS} -o /dev/fd/1 | cat",
        f"{KMERS} -o /proc/self/fd/1 | cat",
        f"{KMERS} -o link | cat",
        f"{KMERS} -o >(cat); wait $!",
        f"{KMERS} -o /dev/stderr 2>&1",
        f"{KMERS} -o /dev/fd/5 5>&1",
        f"{KMERS} -o fifo & cat fifo; wait $!",
    ],
)
def test_streams(folder: Path, tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/dev/stdout")
    expected = shell(KMERS, folder, tmp_path).stdout
    assert expected.startswith("# k=21")
    done = shell(command, folder, tmp_path)
    assert (done.stdout, done.stderr) == (expected, "")
    assert names(tmp_path) == ["fifo", "link"]


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_stood_there_stays(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "log").write_text("before\n")
    done = shell(f"{KMERS} -o {name} >> log", folder, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = (tmp_path / "log").read_text()
    assert text.startswith("before\n# k=21")
    # Without >>, what was written before it through the same descriptor.
    done = shell(f"(echo first; {KMERS} -o {name}; echo last) > log", folder, tmp_path)
    assert (tmp_path / "log").read_text() == text.replace("before", "first") + "last\n"
    assert names(tmp_path) == ["log"]


def test_inputs_that_are_pipes(folder: Path, tmp_path: Path) -> None:
    pairs = "-i <(cat {d}/1.fq) -I <(cat {d}/2.fq) -q -t 1"
    for command in ("correct {} -o 1 -O 2", "merge {} -o 1 --unmerged1 2 --unmerged2 3"):
        contents = []
        for given in (PAIRS, pairs):
            done = shell(f"ngsgpu {command.format(given)}", folder, tmp_path)
            assert (done.returncode, done.stderr) == (0, "")
            contents.append([path.read_bytes() for path in sorted(tmp_path.iterdir())])
        assert contents[0] == contents[1]


def test_what_standard_output_leads_to_counts(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "reads.fq").write_bytes((folder / "1.fq").read_bytes())
    for command in (
        "ngsgpu correct -q -i reads.fq -o - >> reads.fq",
        "ngsgpu correct -q -i - -o reads.fq < reads.fq",
        "ngsgpu correct -q -i /dev/stdin -o reads.fq < reads.fq",
    ):
        done = shell(command, folder, tmp_path)
        assert done.returncode == 2
        assert "is named as input and output" in done.stderr
        assert (tmp_path / "reads.fq").read_bytes() == (folder / "1.fq").read_bytes()


CLASSIFY = "ngsgpu classify --references {d}/genome.fa -i {d}/1.fq -q -t 1"


@pytest.mark.parametrize(
    "command",
    [
        f"{CLASSIFY} -o 1 --report 2 --biom /dev/full",
        f"{CLASSIFY} -o 1 --report /dev/full --biom 2",
        "ngsgpu classify --references {d}/genome.fa --samples {d}/sheet.tsv -q -t 1 "
        "-o {sample}.tsv --biom /dev/full",
        "ngsgpu evaluate classification --classified {d}/calls.tsv --truth {d}/truth.tsv "
        "--taxonomy {d} --json 1 > /dev/full",
        "ngsgpu report {d}/study.json -o 1 --write-study /dev/full",
        "ngsgpu report {d}/study.json -o /dev/full --write-study 1",
    ],
)
def test_all_outputs_or_none(folder: Path, tmp_path: Path, command: str) -> None:
    (folder / "sheet.tsv").write_text(f"sample\tfastq_1\na\t{folder}/1.fq\nb\t{folder}/2.fq\n")
    (folder / "calls.tsv").write_text("C\tp1\t2\t100\t2:1\n")
    (folder / "truth.tsv").write_text("read\ttaxid\np1\t2\n")
    (folder / "nodes.dmp").write_text("1\t|\t1\t|\tno rank\t|\n2\t|\t1\t|\tspecies\t|\n")
    (folder / "names.dmp").write_text(
        "1\t|\troot\t|\t\t|\tscientific name\t|\n2\t|\ttwo\t|\t\t|\tscientific name\t|\n"
    )
    (folder / "study.json").write_text(
        json.dumps({"schema": "ngsgpu.study", "schema_version": 1, "samples": [{"name": "a"}]})
    )
    (tmp_path / "1").write_text("old")
    done = shell(command, folder, tmp_path)
    assert "the disk is full" in done.stderr
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert names(tmp_path) == ["1"]
    assert (tmp_path / "1").read_text() == "old"


def test_a_sample_that_cannot_be_read_leaves_nothing_of_the_others(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "sheet.tsv").write_text(f"sample\tfastq_1\na\t{folder}/1.fq\nb\tnone.fq\n")
    done = shell(
        "ngsgpu classify --references {d}/genome.fa --samples sheet.tsv -q -t 1 -o {sample}.tsv",
        folder,
        tmp_path,
    )
    assert done.returncode == 2
    assert "none.fq: no such file" in done.stderr
    assert names(tmp_path) == ["sheet.tsv"]
