"""What the surroundings can do to a command: one line and the right exit status, no traceback."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ngsgpu import cli
from tests.support import copies

NGSGPU = f"{shlex.quote(sys.executable)} -m ngsgpu"
RECORD = "@a\nACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIII\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "r.fq").write_text(RECORD * 20)
    return tmp_path


def shell(command: str, work: Path) -> subprocess.CompletedProcess[str]:
    text = command.replace("ngsgpu", NGSGPU, 1)
    return subprocess.run(["bash", "-c", text], cwd=work, capture_output=True, text=True)


CLOSED = "it is closed, or not open for writing"
FULL = "the disk is full"


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("ngsgpu kmers spectrum -i r.fq >&-", CLOSED),
        ("ngsgpu correct -q -i r.fq -o - >&-", CLOSED),
        ("ngsgpu correct -q -i r.fq -o /dev/stdout >&-", CLOSED),
        ("ngsgpu correct -q -i r.fq -o - >/dev/full", FULL),
        ("ngsgpu doctor >&-", CLOSED),
        ("ngsgpu gpu list --json >&-", CLOSED),
        ("ngsgpu gpu list > /dev/full", FULL),
        ("ngsgpu --help > /dev/full", FULL),
        ("ngsgpu db build --help >&-", CLOSED),
        ("ngsgpu --version > /dev/full", FULL),
    ],
)
def test_standard_output_that_takes_nothing(work: Path, command: str, cause: str) -> None:
    done = shell(command, work)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert f"standard output: {cause}" in done.stderr.replace("/dev/stdout", "standard output")
    assert sorted(path.name for path in work.iterdir()) == ["r.fq"]


def test_a_reader_that_ends_early(work: Path) -> None:
    (work / "r.fq").write_text(RECORD * 4_000)  # several times what a pipe holds
    command = "ngsgpu correct -q -i r.fq -o - --stats s.json | head -c 9; exit ${PIPESTATUS[0]}"
    done = shell(command, work)
    assert (done.returncode, done.stdout) == (1, RECORD[:9])
    assert done.stderr == ""
    assert sorted(path.name for path in work.iterdir()) == ["r.fq"]


@pytest.mark.parametrize("closed", ["2>&-", "2>/dev/full", ">&- <&-", ">&- 2>&- <&-"])
def test_streams_that_are_not_needed(work: Path, closed: str) -> None:
    """No file gets the number of a closed one, and what cannot be said is no failure."""
    done = shell(f"ngsgpu correct -i r.fq -o out.fq {closed}", work)
    assert done.returncode == 0
    assert (work / "out.fq").read_text() == RECORD * 20
    assert shell(f"ngsgpu correct -i none.fq -o out.fq {closed}", work).returncode == 2


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ("correct -t 99999999999", "--threads"),
        ("kmers spectrum -t 99999999999", "--threads"),
        ("extend -o o --interleaved --insert-size 99999999999999999999", "--insert-size"),
        ("extend -o o --interleaved --insert-size nan", "--insert-size"),
        ("classify -d none -o o --insert-size 99999999999999999999", "--insert-size"),
        ("correct --seed 99999999999999999999", "--seed"),
    ],
)
def test_numbers_beyond_all_measure(
    work: Path, capsys: pytest.CaptureFixture[str], options: str, name: str
) -> None:
    assert cli.main([*options.split(), "-i", str(work / "r.fq")]) == 2
    assert capsys.readouterr().err.startswith(
        (f"ngsgpu: error: {name} must be at most ", f"ngsgpu: error: {name} must be from ")
    )


@pytest.mark.parametrize("megabytes", [250, 350, 450])
def test_little_memory(work: Path, megabytes: int) -> None:
    """Imports and threads would fail then, each in a way of its own, or never end."""
    done = shell(f"ulimit -v {megabytes * 1000}; ngsgpu correct -q -i r.fq -o o", work)
    assert done.returncode == 3
    assert done.stderr.startswith("ngsgpu: error: ")
    assert done.stderr.count("\n") == 1
    assert not (work / "o").exists()


INTERRUPT = """
import os, signal, sys
module = sys.argv.pop(1)
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == module:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from ngsgpu.__main__ import main_cli
main_cli()
"""


@pytest.mark.parametrize("module", ["ngsgpu.cli", "click", "numpy", "numba", "llvmlite.binding"])
def test_interruption_while_modules_are_imported(work: Path, module: str) -> None:
    """In the program's own modules, in the command line's, and in those of a command."""
    command = [sys.executable, "-c", INTERRUPT, module, "correct", "-q", "-i", "r.fq", "-o", "o"]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "ngsgpu: interrupted\n")
    assert [path.name for path in work.iterdir()] == ["r.fq"]


def test_what_was_not_foreseen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors: list[Exception] = [ValueError("odd\nthing"), OSError(5, "disk"), OverflowError("big")]
    for error in errors:

        def fail(_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(cli, "_run", fail)
        assert cli.main([]) == 1
        text = capsys.readouterr().err
        assert text.startswith(f"ngsgpu: error: unexpected {type(error).__name__}: ")
        assert text.count("\n") == 1
        with monkeypatch.context() as own:
            own.setenv("NGSGPU_DEBUG", "1")
            with pytest.raises(type(error)):
                cli.main([])


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGINT, 130, "ngsgpu: interrupted\n"),
        (signal.SIGTERM, 143, "ngsgpu: terminated\n"),
    ],
)
@pytest.mark.parametrize("error", [ImportError("no such module"), AttributeError("half made")])
def test_what_others_make_of_a_signal(
    number: int, status: int, message: str, error: Exception,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def fail(_: object) -> None:
        try:
            os.kill(os.getpid(), number)
        except BaseException as arrived:
            raise error from arrived

    monkeypatch.setattr(cli, "_run", fail)
    assert cli.main([]) == status
    assert capsys.readouterr().err == message


def test_names_from_files_cannot_command_a_terminal(work: Path) -> None:
    (work / "sheet.tsv").write_text("sample\tfastq_1\ns\tr\x1b[31m\x07.fq\n")
    (work / "g.fa").write_text(">g\nACGTACGTACGTACGTACGTACGT\n")
    done = shell("ngsgpu classify -q --references g.fa --samples sheet.tsv -o {sample}.tsv", work)
    assert done.returncode == 2
    assert done.stderr == "ngsgpu: error: r\\x1b[31m\\x07.fq: no such file; check the path\n"


@pytest.mark.parametrize("command", [["kmers", "dump"], ["trim"]])
def test_a_reader_that_ends_first_is_no_error(tmp_path: Path, command: list[str]) -> None:
    """Such as ``head``: nothing is said, whoever writes to standard output."""
    rng = random.Random(1)
    reads = tmp_path / "reads.fq"
    with reads.open("w") as file:
        for number in range(30_000):
            file.write(f"@{number}\n{''.join(rng.choices('ACGT', k=40))}\n+\n{'I' * 40}\n")
    words = ["-i", str(reads), "-o", "-", "--quiet", "--backend", "cpu"]
    if command[0] == "kmers":
        counts = ["kmers", "count", "-i", str(reads), "-o", str(tmp_path / "db"), "-q"]
        subprocess.run([copies.ngsgpu(), *counts, "--backend", "cpu"], check=True)
        words = ["-d", str(tmp_path / "db")]
    with subprocess.Popen(
        [copies.ngsgpu(), *command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 1
