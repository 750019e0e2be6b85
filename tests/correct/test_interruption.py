"""A run that is killed, stopped, or out of disk leaves nothing behind that looks like a result."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import copies
from tests.support.commands import keeps_input, names
from tests.support.correct.data import mates, simulated_pairs
from tests.support.io.records import fastq, write

# Stops in the middle of a stage, says so, and waits.
STOP_AT = """
import sys, time
from ngsgpu.cli import main
from ngsgpu.correct import cpu_run
from ngsgpu.io.output.writer import OutputSet

def stop():
    print("ready", flush=True)
    time.sleep(600)

stage = sys.argv.pop(1)
if stage == "correcting":
    correct = cpu_run.correct_on_cpu
    def stopped(*arguments, advance, **options):
        return correct(*arguments, advance=lambda reads: stop(), **options)
    cpu_run.correct_on_cpu = stopped
else:
    write = OutputSet.write
    def stopped(self, index, data):
        write(self, index, data)
        if index == 1:
            time.sleep(0.3)
            stop()
    OutputSet.write = stopped
sys.exit(main(sys.argv[1:]))
"""


RUN = "import sys; from ngsgpu.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Inputs in a folder of their own, and the options that name them and the outputs."""
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "out").mkdir()
    sides = [fastq(side) for side in mates(simulated_pairs())]
    one, two = (write(folder / f"{i}.fq", text) for i, text in enumerate(sides))
    out = tmp_path / "out"
    options = ["-i", one, "-I", two, "-o", out / "1.fq", "-O", out / "2.fq.gz"]
    return ["correct", "-t", "2", *map(str, options), "--stats", str(out / "s.json")]


@contextmanager
def killed_on_failure(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Do not wait for a process that sleeps when a test fails."""
    try:
        yield
    except BaseException:
        process.kill()
        raise


def finish(command: list[str]) -> dict[str, int]:
    """Run to the end; returns names and sizes of what is there."""
    done = subprocess.run([copies.ngsgpu(), *command], capture_output=True)
    assert done.returncode == 0, done.stderr
    folder = Path(command[command.index("-o") + 1]).parent
    return {name: (folder / name).stat().st_size for name in names(folder)}


@pytest.mark.parametrize(
    ("stage", "number", "status"),
    [
        ("correcting", signal.SIGKILL, -9),
        ("writing", signal.SIGKILL, -9),
        ("writing", signal.SIGTERM, 143),
        ("writing", signal.SIGINT, 130),
    ],
)
def test_a_run_that_is_stopped(
    files: list[str], tmp_path: Path, stage: str, number: int, status: int
) -> None:
    folder = tmp_path / "out"
    write(folder / "1.fq", b"old")
    command = [sys.executable, "-c", STOP_AT, stage, *files]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        killed_on_failure(process),
    ):
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        temporary = set(names(folder)) - {"1.fq"}
        assert {name.rpartition("-")[0] for name in temporary} == {
            f".{name}.ngsgpu" for name in ("1.fq", "2.fq.gz", "s.json")
        }
        process.send_signal(number)
        last = process.stderr.read().decode().splitlines()[-1:]
    assert process.returncode == status
    assert (folder / "1.fq").read_bytes() == b"old"
    assert set(names(folder)) == {"1.fq"} | (temporary if number == signal.SIGKILL else set())
    if number != signal.SIGKILL:
        assert last in (["ngsgpu: interrupted"], ["ngsgpu: terminated"])
    # The next run succeeds and cleans up.
    sizes = finish(files)
    assert sizes.keys() == {"1.fq", "2.fq.gz", "s.json"}
    assert sizes["1.fq"] == Path(files[files.index("-i") + 1]).stat().st_size


def limited(
    command: list[str], largest_file: int, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run with a limit on the size of files."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    return subprocess.run(
        [sys.executable, "-m", "ngsgpu", *command],
        preexec_fn=limit,
        capture_output=True,
        text=True,
        **options,
    )


def test_an_output_that_grows_too_large(files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write(folder / "2.fq.gz", b"old")
    done = limited([*files, "-q"], 20_000)
    assert done.returncode == 1
    assert done.stderr == (
        f"ngsgpu: error: {folder}/1.fq: the file grew beyond the largest size allowed; "
        "raise the limit (ulimit -f)\n"
    )
    assert names(folder) == ["2.fq.gz"]
    assert (folder / "2.fq.gz").read_bytes() == b"old"


def test_no_room_for_standard_input(files: list[str], tmp_path: Path) -> None:
    text = Path(files[files.index("-i") + 1]).read_text()
    (tmp_path / "temporary").mkdir()
    done = limited(
        ["correct", "-q", "-i", "-", "-o", str(tmp_path / "out" / "1.fq")],
        20_000,
        input=text,
        env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"ngsgpu: error: {tmp_path}/temporary: the file grew beyond the largest size allowed; "
        "raise the limit (ulimit -f)\n"
    )
    assert names(tmp_path / "out") == names(tmp_path / "temporary") == []


def test_no_folder_for_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import tempfile; tempfile.tempdir = '/proc/none'\n" + RUN]
    command += ["correct", "-q", "-i", "-", "-o", str(tmp_path / "1.fq")]
    done = subprocess.run(command, input="", capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith(": the directory does not exist; create it with mkdir -p\n")
    assert done.stderr.count("\n") == 1


def test_standard_input_that_is_closed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.stdin = None\n" + RUN]
    command += ["correct", "-q", "-i", "-", "-o", str(tmp_path / "1.fq")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "ngsgpu: error: standard input (-) is closed\n"
    assert names(tmp_path) == []


def test_waiting_for_standard_input_can_be_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, "correct", "-i", "-", "-o", str(tmp_path / "1.fq")]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, env=os.environ | {"TMPDIR": str(tmp_path)}) as process:
        while not keeps_input(process.pid, tmp_path):
            assert process.poll() is None
            time.sleep(0.05)
        # A file without a name, of which nothing can stay.
        assert not any("input" in name for name in names(tmp_path))
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert names(tmp_path) == []


def test_a_full_disk(files: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "out"
    mount = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small file system can only be mounted by root")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "ngsgpu", *files, "-q"], capture_output=True, text=True
        )
        assert done.returncode == 1
        assert done.stderr.endswith(": the disk is full; free some space or write elsewhere\n")
        assert done.stderr.count("\n") == 1
        assert names(folder) == []
    finally:
        subprocess.run(["umount", str(folder)], check=True)
