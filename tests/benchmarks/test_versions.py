"""Comparing two versions: which commands run, and what counts as a difference."""

import gzip
import re
from pathlib import Path

import pytest

from benchmarks.versions.cases import Options, all_cases, select
from benchmarks.versions.inputs import write_libraries, write_simulated
from benchmarks.versions.runs import describe_difference, different_files

OPTIONS = Options("cpu", 3, None, "--taxonomy ../inputs/taxonomy")
LIBRARIES = {"lib": {"pairs", "fastq"}, "contigs": set()}


def cases():
    return all_cases(OPTIONS, LIBRARIES, ["empty"], ["64M"])


def test_cases_need_only_earlier_ones_and_write_to_their_own_folder():
    seen = {}
    for rows in cases():
        for row in rows:
            here = dict(seen)
            for case in row:
                assert case.needs <= here.keys(), case.name
                assert case.name not in seen
                here[case.name] = seen[case.name] = case
                assert not re.search(r"\b(OUT|IN|TAX|ALL|BAD)\b|@", " ".join(case.argv)), case.argv
    assert "cpu/lib/extend/strict-2" in seen and "cpu/contigs/correct/fasta" in seen
    assert "cpu/contigs/merge/edgar" not in seen and "cpu/lib/evaluate/merging" not in seen
    merge = seen["cpu/lib/merge/edgar"].argv
    assert merge[-4:] == ["--threads", "3", "--backend", "cpu"]
    assert "--threads" not in seen["cpu/db/info"].argv
    assert seen["cpu/simulated/tight-64M/extend"].argv[-2:] == ["--gpu-memory", "64M"]


def test_selected_cases_bring_what_they_need():
    chosen = select(cases(), re.compile("classify/merge"), [])
    names = {case.name for rows in chosen for row in rows for case in row}
    parts = {f"cpu/simulated/classify/part-{part}" for part in (1, 2, 3)}
    assert names == {"cpu/db/parts", "cpu/simulated/classify/merge", *parts}
    assert not any(any(rows) for rows in select(cases(), re.compile("db/"), ["../inputs/genomes"]))


@pytest.mark.parametrize(
    ("old", "new", "is_json", "expected"),
    [
        (b"a\nb\nc\n", b"a\nb\nd\n", False, "byte 4 of 6, now 6 (line 3)"),
        (b"a" * 5000, b"a" * 5001, False, "byte 5,000 of 5,000, now 5,001 (line 1)"),
        (gzip.compress(b"ab", 1, mtime=0), gzip.compress(b"ac", 1, mtime=0), False,
         "decompressed, byte 1 of 2, now 2 (line 1)"),
        (gzip.compress(b"a" * 99, 0, mtime=0), gzip.compress(b"a" * 99, 9, mtime=0), False,
         "compressed differently, the same content"),
        (b'{"reads": 1, "time_s": {"all": 2}}', b'{"reads": 1, "time_s": {}}', True, None),
        (b'{"a": [1, {"b": 2}]}', b'{"a": [1, {"b": 3}]}', True, "entry /a/1/b"),
        (b'{"a": 1, "b": 2}', b'{"b": 2, "a": 1}', True, "entry / (keys or their order)"),
        (b"{}", b"cut", True, "entry /"),
    ],
)  # fmt: skip
def test_first_difference(old, new, is_json, expected):
    assert describe_difference(old, new, is_json=is_json) == expected


def test_files_of_one_version_only(tmp_path: Path):
    for side, names in (("old", "ab"), ("new", "bc")):
        (tmp_path / side / "in").mkdir(parents=True)
        for name in names:
            (tmp_path / side / "in" / name).write_text(name)
    lines = different_files(tmp_path / "old", tmp_path / "new")
    assert lines == ["in/a: no more written", "in/c: written now"]


def test_libraries_are_cut_and_paired_by_name(tmp_path: Path):
    reads, inputs = tmp_path / "reads", tmp_path / "inputs"
    reads.mkdir()
    inputs.mkdir()
    record = b"@r\nACGT\n+\nIIII\n"
    (reads / "lib one_R1.fastq.gz").write_bytes(gzip.compress(record * 5, mtime=0))
    (reads / "lib one_R2.fastq.gz").write_bytes(gzip.compress(record * 5, mtime=0))
    (reads / "contigs.fa").write_text(">a\nAC\nGT\n>b\nA\n>c\nC\n")
    (reads / "notes.txt").write_text("no reads")
    found = write_libraries(reads, 2, inputs)
    assert found == {"lib_one": {"pairs", "fastq"}, "contigs": set()}
    assert (inputs / "lib_one.2.fq").read_bytes() == record * 2
    assert gzip.decompress((inputs / "lib_one.1.fq.gz").read_bytes()) == record * 2
    assert (inputs / "lib_one.1.fa").read_bytes() == b">r\nACGT\n" * 2
    assert (inputs / "contigs.1.fa").read_text() == ">a\nAC\nGT\n>b\nA\n"


def test_simulated_pairs_are_known(tmp_path: Path):
    genome = "ACGTTGCAACTGAGGTCA" * 40
    write_simulated(genome, tmp_path, pairs=20)
    truth = [line.split("\t") for line in (tmp_path / "truth.sam").read_text().splitlines()[2:]]
    assert len(truth) == 40
    for fields in truth:
        begin = int(fields[3]) - 1
        assert fields[9] == genome[begin : begin + 100]
    assert (tmp_path / "mixed.fq").read_text().count("@s") >= 40
