"""What is refused: one line says why, and nothing is written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from ngsgpu.correct import cpu_run
from ngsgpu.errors import InputError
from tests.support.commands import Commands, names
from tests.support.correct.data import simulated_pairs
from tests.support.io.records import Record, fastq, write

GOOD = fastq(simulated_pairs()[:40])
LINES = GOOD.splitlines(keepends=True)


def cut(lines: int) -> bytes:
    return b"".join(LINES[:lines])


def changed(line: int, old: bytes, new: bytes) -> bytes:
    """The good file with a change in one of its lines (from 0)."""
    return b"".join([*LINES[:line], LINES[line].replace(old, new, 1), *LINES[line + 1 :]])


BAD = {
    "cut within a record": (cut(30), "record 8"),
    "fewer qualities": (changed(27, LINES[27][:5], b""), "95 qualities"),
    "no plus": (changed(26, b"+", b"-"), "record 7, line 27"),
    "no at": (changed(24, b"@", b"#"), "record 7, line 25"),
    "protein": (changed(25, LINES[25][:1], b"E"), "record 7, line 26"),
    "a space": (changed(27, LINES[27][:1], b" "), "record 7, line 28"),
    "wrapped": (changed(25, LINES[25][:50], LINES[25][:50] + b"\n"), "record 7, line 27"),
    "SAM": (b"@HD\tVN:1.6\n@SQ\tSN:c\tLN:9\nr\t0\tc\t1\t60\t4M\t*\t0\t0\tACGT\tIIII\n", "SAM"),
    "zip": (b"PK\x03\x04" + b"\0" * 60, "zip"),
    "cut gzip": (gzip.compress(GOOD)[:-30], "end early"),
    "damaged gzip": (gzip.compress(GOOD)[:-8] + b"12345678", "damaged"),
    "text": (b"Sehr geehrte Damen und Herren,\n", "neither FASTQ nor FASTA"),
    "Phred+64": (fastq([Record(b"r", b"ACGT", b"fhgB")] * 5), "--phred-offset"),
}


@pytest.mark.parametrize(("text", "says"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("layout", ["single", "second mate", "standard output"])
def test_bad_input(tmp_path: Path, ngsgpu: Commands, text: bytes, says: str, layout: str) -> None:
    bad = write(tmp_path / "bad.fq", text)
    good = write(tmp_path / "good.fq", GOOD)
    old = write(tmp_path / "old.fq", b"old")
    files = {
        "single": ["-i", bad, "-o", old],
        "second mate": ["-i", good, "-I", bad, "-o", old, "-O", tmp_path / "new.fq"],
        "standard output": ["-i", bad, "-o", "-"],
    }[layout]
    done = ngsgpu.correct(*files, "--stats", tmp_path / "s.json")
    assert done.status == 2
    assert done.error.startswith(f"{bad}")
    assert says in done.error
    assert done.out == ""
    assert names(tmp_path) == ["bad.fq", "good.fq", "old.fq"]
    assert old.read_bytes() == b"old"


def test_fastq_and_fasta_together(tmp_path: Path, ngsgpu: Commands) -> None:
    fq = write(tmp_path / "1.fq", GOOD)
    fa = write(tmp_path / "2.fa", b">r\nACGT\n")
    for first, second in ((fq, fa), (fa, fq)):
        done = ngsgpu.correct("-i", first, "-i", second, "-o", tmp_path / "out")
        assert done.status == 2
        assert "FASTA and FASTQ are mixed in one run" in done.error
        assert names(tmp_path) == ["1.fq", "2.fa"]


def test_long_reads(tmp_path: Path, ngsgpu: Commands) -> None:
    path = write(tmp_path / "in.fa", b">r\nACGT\n>long\n%s\n" % (b"ACGT" * 8192))
    done = ngsgpu.correct("-i", path, "-o", tmp_path / "out")
    assert done.status == 2
    assert done.error.startswith(f"{path}, record 2: the read has 32,768 bases, more than 32,767;")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "no reads given; name them with -i"),
        (["-o", "x"], "no reads given"),
        (["-I", "2", "-O", "x"], "no reads given"),
        (["-i", "1"], "missing -o: name 1 file for the 1 of -i"),
        (["-i", "1", "-o", "x", "-o", "y"], "-o must name 1 file for the 1 of -i, not 2"),
        (["-i", "1", "-I", "2", "-o", "x"], "missing -O: name 1 file for the 1 of -I"),
        (["-i", "1", "-o", "x", "-O", "y"], "-O is given, but not -I"),
        (
            ["-i", "1", "-i", "2", "-i", "3", "-o", "x", "-o", "y"],
            "-o must name 1 or 3 files for the 3 of -i, not 2",
        ),
        (
            ["-i", "1", "-i", "3", "-I", "2", "-o", "x", "-O", "y"],
            "2 files of first mates (-i)",
        ),
        (["-i", "1", "-I", "2", "--interleaved", "-o", "x", "-O", "y"], "omit -I"),
        (["-i", "-", "-I", "-", "-o", "x", "-O", "y"], "standard"),
        (["-i", "1", "-o", "x", "--threads", "-1"], "--threads must be 0 or more, not -1"),
        (["-i", "1", "-o", "x", "--kmer", "7"], "--kmer must be auto or from 8 to 32, not 7"),
        (["-i", "1", "-o", "x", "--hashes", "0"], "--hashes must be auto or from 1 to 255, not 0"),
        (["-i", "1", "-o", "x", "--quality-bits", "4"], "--quality-bits must be 8, 2, 1 or 0"),
        (
            ["-i", "1", "-o", "x", "--coverage", "0"],
            "must be auto or above 0 and at most 1,000,000, not 0",
        ),
        (["-i", "1", "-o", "x", "--coverage", "much"], "--coverage must be auto or a number"),
        (["-i", "1", "-o", "x", "--seed", "-3"], "--seed must be from 0 to 4,294,967,295, not -3"),
        (["-i", "1", "-o", "x", "--memory", "much"], "'much' is not a size"),
    ],
)
def test_wrong_use(
    tmp_path: Path,
    ngsgpu: Commands,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "123":
        write(tmp_path / name, GOOD)
    done = ngsgpu.correct(*options)
    assert done.status == 2
    assert message in done.error
    assert names(tmp_path) == ["1", "2", "3"]
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes() == GOOD


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-i", "none", "-o", "x"], "none: "),
        (["-i", ".", "-o", "x"], ".: "),
        (["-i", "1", "-o", "none/x"], "none/x: the directory does not exist"),
        (["-i", "1", "-o", "."], ".: this is a directory"),
        (["-i", "1", "-o", "x", "--stats", "none/s.json"], "none/s.json: the directory does not"),
    ],
)
def test_files_that_are_not_there(
    tmp_path: Path,
    ngsgpu: Commands,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "1", GOOD)
    done = ngsgpu.correct(*options)
    assert done.status == (2 if options[1] != "1" else 1)
    assert done.error.startswith(message)
    assert names(tmp_path) == ["1"]


REWRITTEN = {
    "shorter": cut(4 * 30),
    "longer": GOOD + cut(4),
    "empty": b"",
    "another length": changed(25, LINES[25][:1], b"").replace(LINES[27], LINES[27][1:]),
    "no longer FASTQ": b"nothing",
}


@pytest.mark.parametrize("after", REWRITTEN.values(), ids=REWRITTEN)
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("layout", ["single", "pairs", "interleaved"])
def test_a_file_that_changes_meanwhile(
    tmp_path: Path,
    ngsgpu: Commands,
    monkeypatch: pytest.MonkeyPatch,
    after: bytes,
    uniform: bool,
    layout: str,
) -> None:
    extra = b"" if uniform else b"@r/1\nAC\n+\nII\n@r/2\nACG\n+\nIII\n"
    path = write(tmp_path / "in.fq", GOOD + extra)
    other = write(tmp_path / "other.fq", GOOD + extra)
    if layout == "pairs":
        # The same names without mate numbers.
        for file in (path, other):
            file.write_bytes(file.read_bytes().replace(b"/1", b"").replace(b"/2", b""))
        after = after.replace(b"/1", b"").replace(b"/2", b"")
    correct = cpu_run.correct_on_cpu

    def and_meanwhile(*arguments: object, **options: object) -> object:
        path.write_bytes(after)
        return correct(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(cpu_run, "correct_on_cpu", and_meanwhile)
    files: list[object] = ["-i", path, "-o", tmp_path / "out"]
    if layout == "pairs":
        files += ["-I", other, "-O", tmp_path / "out2"]
    done = ngsgpu.correct(*files, *(["--interleaved"] if layout == "interleaved" else []))
    assert done.status == 2
    assert str(path) in done.error
    if layout == "single" and after.startswith(b"@"):
        assert "during the run; run again when no other program writes" in done.error
    assert names(tmp_path) == ["in.fq", "other.fq"]


def test_wrong_reads_in_memory() -> None:
    from ngsgpu.readset import ReadSet

    with pytest.raises(InputError, match="sequences: "):
        ReadSet.from_sequences(["ACGT"], ["II"])
