"""The driver of stages that need all of their input: attempts, outputs, statistics."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ngsgpu.assemble import UnitigParameters, write_unitigs
from ngsgpu.assemble.contigs import assemble_files
from ngsgpu.assemble.euler import assemble_euler
from ngsgpu.errors import DeviceError, InputError, OutputError, UsageError
from ngsgpu.io.output.folder import FolderKind
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.kmers import count_files
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.stats import CountStatistics
from ngsgpu.run.driver import FilesDriver, folder_beside
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Run
from ngsgpu.suffix import build_index, query_files
from tests.support.io.records import write

AUTO = RunOptions(backend="cuda", may_fall_back=True)
KIND = FolderKind("a made folder", "made", frozenset(("part",)))
DRIVER = FilesDriver(CountParameters)


@pytest.fixture(autouse=True)
def given_back(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    said: list[int] = []
    monkeypatch.setattr("ngsgpu.run.options.keep_gpus", said.append)
    return said


def statistics(run: Run[CountParameters]) -> CountStatistics:
    return CountStatistics.after(run, sequences=0, bases=0, kmers=0, distinct=0)


def failing_there(run: Run[CountParameters], files: OutputSet) -> CountStatistics:
    """Steps that write before the GPU fails."""
    with run.timed(run.backend):
        files.write(0, f"written by {run.backend}\n".encode())
    if run.backend == "cuda":
        raise DeviceError("no memory is left; buy more")
    return statistics(run)


def test_what_a_gpu_wrote_is_taken_back(tmp_path, caplog, given_back) -> None:
    out, stats = tmp_path / "out", tmp_path / "stats.json"
    done = DRIVER.run_files(
        (), [None, out], failing_there, parameters=None, options=AUTO, stats=stats
    )
    assert out.read_text() == "written by cpu\n"
    assert done.backend == "cpu"
    assert set(done.time_s) == {"cpu", "total"}
    assert json.loads(stats.read_text())["backend"] == "cpu"
    assert given_back == [0]
    (line,) = [one.message for one in caplog.records if one.levelno >= logging.WARNING]
    assert line == "no memory is left; continuing on the CPU"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "stats.json"]


def test_it_is_not_where_it_cannot_be(tmp_path, capfdbinary) -> None:
    for options, out in ((AUTO, "-"), (RunOptions(backend="cuda"), tmp_path / "out")):
        with pytest.raises(DeviceError, match="buy more"):
            DRIVER.run_files((), [out], failing_there, parameters=None, options=options, stats=None)
    assert not list(tmp_path.iterdir())
    assert b"cpu" not in capfdbinary.readouterr().out


def test_inputs_that_can_be_read_once(tmp_path) -> None:
    def run(*, reads_once: bool) -> CountStatistics:
        return DRIVER.run_files(
            "-", [tmp_path / "out"], failing_there, parameters=None, options=AUTO, stats=None,
            reads_once=reads_once,
        )  # fmt: skip

    with pytest.raises(DeviceError):
        run(reads_once=False)
    assert run(reads_once=True).backend == "cpu"


@pytest.mark.parametrize("error", [None, OSError(28, "full"), InputError("x", "is bad", "mend")])
def test_a_folder_and_files_are_all_there_or_none(tmp_path, error: Exception | None) -> None:
    folder, out = tmp_path / "folder", tmp_path / "out.gz"

    def steps(run: Run[CountParameters], files: OutputSet) -> CountStatistics:
        (files.folder / "part").write_text("part")
        files.write(0, b"plain")
        if error is not None:
            raise error
        return statistics(run)

    def run() -> CountStatistics:
        return DRIVER.run_files(
            (), [out], steps, parameters=None, options=None, stats=tmp_path / "s",
            folder=(folder, KIND),
        )  # fmt: skip

    if error is None:
        run()
        assert (folder / "part").read_text() == "part"
        assert out.read_bytes() == b"plain"
        assert (tmp_path / "s").exists()
        return
    kind = InputError if isinstance(error, InputError) else OutputError
    with pytest.raises(kind):
        run()
    assert not list(tmp_path.iterdir())


def test_names(tmp_path) -> None:
    path = write(tmp_path / "a", b"x")
    for outputs, folder, stats in (
        ([path], None, None),
        ([tmp_path / "b", tmp_path / "b"], None, None),
        ([tmp_path / "b"], None, tmp_path / "b"),
        ([tmp_path / "d" / "b"], (tmp_path / "d", KIND), None),
    ):
        with pytest.raises(UsageError):
            DRIVER.run_files(
                path, outputs, failing_there, parameters=None, options=None, stats=stats,
                folder=folder,
            )  # fmt: skip
    with pytest.raises(UsageError, match="no reads given"):
        DRIVER.given([])


def test_a_folder_beside_a_stream_is_in_the_current_one(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for output, parent in (("-", tmp_path), (tmp_path / "d" / "out", tmp_path / "d")):
        with folder_beside(output) as folder:
            assert folder.parent == parent
        assert not folder.exists()


GENOME = "".join(random.Random(4).choices("ACGT", k=3000))
COMMANDS: dict[str, Callable[[str, Path, RunOptions], object]] = {
    "count": lambda reads, out, run: count_files(
        reads, out / "db", histo_file=out / "histo", options=run
    ),
    "unitigs": lambda reads, out, run: write_unitigs(
        reads, out / "u.fa", out / "u.gfa", UnitigParameters(31, 1), options=run
    ),
    "assemble": lambda reads, out, run: assemble_files(reads, out / "c.fa.gz", options=run),
    "euler": lambda reads, out, run: assemble_euler(reads, out / "c.fa", options=run),
    "bwa": lambda reads, out, run: build_index(reads, out / "i", options=run),
    "fm": lambda reads, out, run: build_index(reads, out / "i", "fm", options=run),
    "sa": lambda reads, out, run: build_index(reads, out / "i", "sa", options=run),
    "query": lambda reads, out, run: query_files(
        Path(reads).with_name("index"), reads, out / "m.paf", options=run
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_where_cuda_does_not_answer(tmp_path, command: str) -> None:
    """CuPy is there and no GPU: the first call of CUDA fails."""
    reads = "".join(f">{i}\n{GENOME[i : i + 150]}\n" for i in range(0, 2850, 10))
    path = str(write(tmp_path / "r.fa", reads.encode()))
    build_index(path, tmp_path / "index")
    made = []
    for name, options in (("cpu", RunOptions()), ("auto", AUTO)):
        folder = tmp_path / name
        folder.mkdir()
        assert getattr(COMMANDS[command](path, folder, options), "backend", None) == "cpu"
        files = sorted(own for own in folder.rglob("*") if own.is_file())
        made.append({str(own.relative_to(folder)): own.read_bytes() for own in files})
    assert made[0] == made[1]
    assert made[0]
    (tmp_path / "cuda").mkdir()
    with pytest.raises(DeviceError):
        COMMANDS[command](path, tmp_path / "cuda", RunOptions(backend="cuda"))
    assert not list((tmp_path / "cuda").iterdir())
