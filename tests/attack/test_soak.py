"""``scripts/soak.py``: some runs, and what it notices."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import soak, soak_files
from tests.support import copies


@pytest.fixture
def few_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """In processes that begin with all imports done."""
    chosen = {name: soak.COMMANDS[name] for name in ("trim", "merge", "chain")}
    monkeypatch.setattr(soak, "COMMANDS", chosen)
    monkeypatch.setattr(soak, "PROGRAM", (copies.ngsgpu(),))


@pytest.mark.slow
@pytest.mark.timeout(3600)  # with kernels to compile, and other work on the machine
@pytest.mark.usefixtures("few_commands")
def test_some_runs(tmp_path: Path) -> None:
    """Of a seed that draws each command, five forms of inputs, and a signal."""
    output = tmp_path / "soak.json"
    words = ["--runs", "6", "--seed", "16", "--jobs", "2", "-o", str(output)]
    assert soak.main(words) == 0
    document = json.loads(output.read_text())
    assert document["runs"] == 6 + 3
    assert document["wrong"] == []
    assert document["outcomes"]["done"] + document["outcomes"]["interrupted"] == 9


@pytest.mark.slow
@pytest.mark.timeout(3600)  # with kernels to compile, and other work on the machine
@pytest.mark.usefixtures("few_commands")
def test_wrong_outcomes_are_noticed(tmp_path: Path) -> None:
    watched = soak.Soak(tmp_path / "soak", "cpu", 60.0)
    assert watched.first("trim").kind == "done"
    contents = watched.firsts["trim"].contents
    watched.firsts["trim"] = soak.First(contents | {"c.fq": b"other"}, 1.0)
    different = watched.run(soak.Run(1, "trim", "bgzf", threads=3))
    assert (different.kind, different.is_wrong) == ("difference", True)
    assert f"{copies.ngsgpu()} trim" in different.told
    watched.limit = 0.05
    assert watched.run(soak.Run(2, "trim")).kind == "hang"
    (watched.inputs / "1.gz").write_bytes(b"no reads")
    watched.limit = 60.0
    assert watched.run(soak.Run(3, "trim", "gz")).kind == "failure"


def test_runs_are_drawn_by_their_numbers() -> None:
    drawn = [soak.draw(1, "cpu", number) for number in range(500)]
    assert drawn == [soak.draw(1, "cpu", number) for number in range(500)]
    assert {run.command for run in drawn} == set(soak.COMMANDS)
    assert {run.form for run in drawn} == set(soak_files.FORMS)
    assert {run.signal for run in drawn} == {0, signal.SIGINT, signal.SIGTERM}
    assert all(run.interleaved for run in drawn if run.form == "stream")
    on_gpu = [soak.draw(1, "cuda", number) for number in range(500)]
    from_streams = {run.command for run in on_gpu if run.form == "stream"}
    assert from_streams == set(soak.COMMANDS) - {*soak.READ_TWICE, *soak.FILES_ON_GPU}


def test_mates_are_compared_as_they_alternate(tmp_path: Path) -> None:
    for name in ("apart", "both"):
        (tmp_path / name).mkdir()
    one, two = b"@a/1\nA\n+\nI\n", b"@a/2\nC\n+\nI\n"
    (tmp_path / "apart" / "c_1.fq").write_bytes(one)
    (tmp_path / "apart" / "c_2.fq").write_bytes(two)
    (tmp_path / "both" / "c.fq").write_bytes(one + two)
    assert soak_files.contents_of(tmp_path / "apart") == soak.contents_of(tmp_path / "both")
    (tmp_path / "apart" / "c_2.fq").write_bytes(b"")
    assert soak_files.contents_of(tmp_path / "apart") != soak.contents_of(tmp_path / "both")


def test_a_process_that_hangs_shows_its_stacks() -> None:
    words = [sys.executable, "-X", "faulthandler", "-c", "import time; time.sleep(60)"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True)
    assert soak._watch(process, None, 0, 1.0)
    assert process.stderr is not None
    with process.stderr:
        assert b"most recent call first" in process.stderr.read()


def test_runs_have_more_time_on_a_slow_machine() -> None:
    """A run that takes as long as the first one does not hang, nor miss a signal."""
    watched = soak.Soak.__new__(soak.Soak)
    for seconds, limit, grace in ((0.5, 60.0, soak.GRACE), (20.0, 400.0, 40.0)):
        watched.firsts = {"trim": soak.First({}, 0.1), "chain": soak.First({}, seconds)}
        watched.suit(soak._arguments(["--limit", "60"]))
        assert (watched.limit, watched.grace) == (limit, grace)


def test_no_process_outlives_a_test_that_is_out_of_time() -> None:
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    with pytest.raises(TypeError):
        soak._watch(process, "no number", 0, 1.0)  # type: ignore[arg-type]
    assert process.returncode == -signal.SIGKILL
