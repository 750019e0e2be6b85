"""Names and folders that a command cannot use end in one line that names them."""

from __future__ import annotations

import errno
import multiprocessing
import os
from pathlib import Path

import pytest

from ngsgpu import cli
from ngsgpu.io.paths import check_distinct
from ngsgpu.workflow.study import init_study
from tests.support.commands import Commands
from tests.support.io.records import write

BASES = b"ACGTTGCAAGGTCTCATTAGCCATGACTAGCATTCGGACT"
READ = b"@r\n%b\n+\n%b\n" % (BASES, len(BASES) * b"I")
LONG = "x" * 300


@pytest.fixture
def reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "r.fq", READ)


@pytest.mark.parametrize("command", [
    "trim -i {long} -o o.fq", "trim -i r.fq -o {long}", "correct -i {long} -o o.fq",
    "deplete -d {long} -i r.fq -o o.fq", "deplete-index {long} -o o", "adapters -i {long}",
    "kmers count -i r.fq -o {long}", "db build {long} -d db", "db build r.fq -d {long}",
    "classify -d {long} -i r.fq -o o", "workflow init {long}", "report {long} -o r.html",
    "index build {long}", "unitigs -i r.fq -o {long}",
])  # fmt: skip
def test_names_that_are_too_long(reads: Path, ngsgpu: Commands, command: str) -> None:
    del reads
    done = ngsgpu(*command.format(long=LONG).split())
    assert done.status in (1, 2)
    assert "unexpected" not in done.err
    assert "too long" in done.err
    assert done.err.splitlines()[-1].startswith("ngsgpu: error: ")


@pytest.mark.parametrize("number", [errno.EACCES, errno.ELOOP, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_files_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    """Whoever meets them."""

    def fail(arguments: list[str]) -> int:
        raise OSError(number, os.strerror(number), "refs/more.fna")

    monkeypatch.setattr(cli, "_run", fail)
    assert cli.main([]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ngsgpu: error: refs/more.fna: {os.strerror(number).lower()}; ")


@pytest.mark.timeout(60)
def test_folders_are_not_looked_through(reads: Path, ngsgpu: Commands) -> None:
    done = ngsgpu("deplete", "-d", "/", "-i", reads, "-o", "o.fq")
    assert "/: cannot be read (it is no regular file)" in done.err
    done = ngsgpu("trim", "-i", reads, "-o", "o.fq", "--cram-reference", "/")
    assert "/: this is a directory" in done.err


def test_outputs_within_folders_are_found(tmp_path: Path) -> None:
    """By their names, by links in the folder, and by second names."""
    folder = tmp_path / "references" / "deep"
    folder.mkdir(parents=True)
    inside, outside, twin = folder / "a.fa", tmp_path / "b.fa", tmp_path / "c.fa"
    for path in (inside, outside, twin):
        path.write_text(">s\nACGT\n")
    (folder / "link.fa").symlink_to(outside)
    (folder / "twin.fa").hardlink_to(twin)
    for path in (inside, outside, twin):
        with pytest.raises(Exception, match="named as input and output"):
            check_distinct([], [path], also_read=[folder.parent])
    check_distinct([], [tmp_path / "new.fa"], also_read=[folder.parent])


@pytest.mark.parametrize("command", [
    "trim -i r.fq -o o.fa", "trim -i r.fq -o o.fasta.gz", "correct -i r.fq -o o.fna",
    "deplete -d host.idx -i r.fq -o o.fa.zst",
])  # fmt: skip
def test_fastq_is_not_written_to_a_file_named_fasta(
    reads: Path, ngsgpu: Commands, command: str
) -> None:
    assert ngsgpu("deplete-index", "--one-in", 1, reads, "-o", "host.idx").status == 0
    done = ngsgpu(*command.split())
    assert done.status == 2
    assert "is named as FASTA, but gets FASTQ" in done.err
    assert sorted(path.name for path in Path().iterdir()) == ["host.idx", "r.fq"]
    write(Path("r.fa"), b">r\n%b\n" % BASES)
    assert ngsgpu("deplete", "-d", "host.idx", "-i", "r.fa", "-o", "o.fa").status == 0


def test_formats_that_are_not_written(reads: Path, ngsgpu: Commands) -> None:
    for name in ("o.bam", "o.cram", "o.sam"):
        assert "is not written here" in ngsgpu("trim", "-i", reads, "-o", name).err
    assert ngsgpu("trim", "-A", "-Q", "-L", "-i", reads, "-o", "o.fq.xz").status == 0
    assert ngsgpu("trim", "-A", "-Q", "-L", "-i", "o.fq.xz", "-o", "again.fq").status == 0
    assert Path("again.fq").read_bytes() == READ


def test_numbers_that_are_too_large(reads: Path, ngsgpu: Commands) -> None:
    write(Path("calls.tsv"), b"C\tr\t562\t39\t562:15\n")
    extract = ("extract", "-c", "calls.tsv", "-i", reads, "-o", "o.fq", "--taxon")
    assert "--taxon must be from 0 to 9,223,372,036" in ngsgpu(*extract, "9" * 20).err
    assert ngsgpu(*extract, 2**48 - 1).status == 0  # as of GTDB's taxa
    done = ngsgpu("correct", "-i", reads, "-o", "o.fq", "--memory", "9" * 309)
    assert "more than any machine has" in done.err


def test_tables_of_a_report_are_no_file(reads: Path, ngsgpu: Commands) -> None:
    write(Path("study.json"), b"{}")
    done = ngsgpu("report", "study.json", "-o", "r.html", "--tables", reads)
    assert f"{reads}: is no folder" in done.err


def _begin(folder: Path, barrier: object, said: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    try:
        init_study(folder)
    except BaseException as error:
        said.put(repr(error))  # type: ignore[attr-defined]
        raise


@pytest.mark.timeout(120)
def test_studies_that_begin_at_once(tmp_path: Path) -> None:
    own = multiprocessing.get_context("fork")
    barrier, said = own.Barrier(20), own.Queue()
    runs = [own.Process(target=_begin, args=(tmp_path / "s", barrier, said)) for _ in range(20)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0] * 20, said.get(timeout=1)
