import doctest
import io
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from ngsgpu.run import progress as module
from ngsgpu.run.progress import Progress, format_seconds


class Clock:
    """Stands for the module's clock; goes by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module.time, "monotonic", clock.monotonic)
    return clock


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, logger="ngsgpu")
    return lambda: [record.message for record in caplog.records if record.name == "ngsgpu"]


def test_lines_of_a_stage(clock, lines):
    progress = Progress(terminal=False)
    with progress, progress.stage("correcting reads", total=1000, unit="reads") as stage:
        for _ in range(100):
            clock.now += 1
            stage.advance(10)
    assert lines()[:3] == [
        "correcting reads (1,000 reads)",
        "correcting reads: 100 of 1,000 reads (10 %), 10/s, 1 min 30 s left",
        "correcting reads: 200 of 1,000 reads (20 %), 10/s, 1 min 20 s left",
    ]
    assert lines()[-1] == "correcting reads: 1,000 reads in 1 min 40 s"
    assert len(lines()) == 1 + 9 + 1


def test_fast_work_says_little(clock, lines):
    with Progress(terminal=False) as progress, progress.stage("reading", total=1000) as stage:
        for _ in range(1000):
            clock.now += 0.005
            stage.advance()
    assert lines() == ["reading (1,000 reads)", "reading: 1,000 reads in 5.0 s"]


def test_slow_work_says_something(clock, lines):
    with Progress(terminal=False) as progress, progress.stage("reading", total=1000) as stage:
        for _ in range(12):
            clock.now += 60
            stage.advance()
    assert len(lines()) == 1 + 2 + 1
    assert lines()[1] == "reading: 5 of 1,000 reads (0 %), 0.017/s, 16 h 35 min left"


def test_unknown_total(clock, lines):
    with Progress(terminal=False) as progress, progress.stage("reading", unit="bytes") as stage:
        clock.now += 11
        stage.advance(5500)
        clock.now += 11
        stage.advance(4500)
    assert lines() == [
        "reading",
        "reading: 5,500 bytes, 500/s",
        "reading: 10,000 bytes, 455/s",
        "reading: 10,000 bytes in 22.0 s",
    ]


def test_failure_is_not_called_an_end(clock, lines):
    progress = Progress(terminal=False)
    with pytest.raises(OSError, match="disk"), progress, progress.stage("writing") as stage:
        stage.advance(7)
        raise OSError("disk")
    assert lines()[-1] == "writing: stopped after 7 reads in 0.0 s"


def test_stage_without_units(clock, lines):
    with Progress(terminal=False) as progress, progress.stage("compiling"):
        clock.now += 2
    assert lines() == ["compiling", "compiling: 2.0 s"]


def test_disabled_is_silent(lines, capsys):
    with Progress(enabled=False) as progress, progress.stage("reading", total=3) as stage:
        stage.advance(3)
    assert stage.count == 3
    assert lines() == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("terminal", [False, True])
def test_threads(terminal, capsys):
    progress = Progress(terminal=terminal)
    with (
        progress,
        progress.stage("one", total=8000) as one,
        progress.stage("two") as two,
        ThreadPoolExecutor(8) as pool,
    ):
        for _ in range(8):
            pool.submit(lambda: [one.advance() for _ in range(1000)])
            pool.submit(lambda: [two.advance(2) for _ in range(1000)])
    assert (one.count, two.count) == (8000, 16000)


def test_bars(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    with Progress(terminal=True) as progress:
        with progress.stage("correcting reads", total=10) as stage:
            stage.advance(10)
        with progress.stage("reading") as stage:
            stage.advance(5)
        with pytest.raises(KeyError), progress.stage("writing", total=4):
            raise KeyError
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "correcting reads" in captured.err
    assert "10 of 10 reads (100 %)" in captured.err
    assert "5 reads" in captured.err


def test_terminal_is_noticed(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress() as progress, progress.stage("reading", total=2) as stage:
        stage.advance(2)
    assert "reading" in sys.stderr.getvalue()


def test_rich_is_imported_only_for_bars():
    script = (
        "import sys; from ngsgpu.run.progress import Progress\n"
        "with Progress(terminal=False) as p, p.stage('x') as s: s.advance()\n"
        "sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (59.9, "59.9 s"),
        (59.96, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (86400, "24 h 0 min"),
    ],
)
def test_format_seconds(seconds, text):
    assert format_seconds(seconds) == text


def test_examples():
    assert doctest.testmod(module).failed == 0
