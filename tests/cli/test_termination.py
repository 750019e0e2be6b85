"""SIGTERM ends a run as Ctrl-C does: at once, with one line and without unfinished files."""

import os
import signal
import subprocess
import sys
import time

import pytest
from numba.core import compiler

from ngsgpu import cli
from ngsgpu.ending import SIGNALS, defer_signals, message_of
from ngsgpu.jit import njit
from tests.support.commands import keeps_input

RECORD = b"@read\nACGTACGTACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIIIIIIIIIII\n"


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.fixture
def correction(tmp_path):
    """A correction whose input never ends, running, with its output begun; and its folders."""
    outputs, temporary = tmp_path / "out", tmp_path / "tmp"
    outputs.mkdir()
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "ngsgpu", "correct", "-i", "-", "-o", str(outputs / "out.fq")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert process.stdin is not None
    process.stdin.write(RECORD)
    process.stdin.flush()
    try:
        wait_for(lambda: any(outputs.iterdir()) and keeps_input(process.pid, temporary))
        yield process, outputs, temporary
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [
        (signal.SIGTERM, 143, "ngsgpu: terminated\n"),
        (signal.SIGINT, 130, "ngsgpu: interrupted\n"),
        (signal.SIGHUP, 129, "ngsgpu: ended by SIGHUP\n"),
        (signal.SIGUSR1, 138, "ngsgpu: ended by SIGUSR1\n"),
        (signal.SIGXCPU, 152, "(ulimit -t) is reached\n"),
    ],
)
def test_nothing_is_left_behind(correction, number, status, message):
    process, outputs, temporary = correction
    process.send_signal(number)
    assert process.wait(timeout=30) == status
    assert process.stderr.read().decode().endswith(message)
    assert list(outputs.iterdir()) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("numbers", "status", "message"),
    [
        ([signal.SIGTERM, signal.SIGTERM], 143, "ngsgpu: terminated\n"),
        ([signal.SIGINT, signal.SIGINT], 130, "ngsgpu: interrupted\n"),
        ([signal.SIGINT, signal.SIGTERM], 130, "ngsgpu: interrupted\n"),
        ([signal.SIGTERM, signal.SIGINT], 143, "ngsgpu: terminated\n"),
    ],
)
def test_only_the_first_signal_counts(numbers, status, message, monkeypatch, capsys):
    cleaned_up = []

    def work(_):
        try:
            os.kill(os.getpid(), numbers[0])
            time.sleep(10)
        finally:
            os.kill(os.getpid(), numbers[1])
            cleaned_up.append(True)

    monkeypatch.setattr(cli, "_run", work)
    assert cli.main([]) == status
    assert cleaned_up == [True]
    assert capsys.readouterr().err == message
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_every_signal_that_asks_a_run_to_end_is_handled(monkeypatch, capsys):
    """Those that end a process unless it handles them, but for reports of its own faults."""
    faults = {
        signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS,
        signal.SIGTRAP,
    }  # fmt: skip
    harmless = {
        signal.SIGCHLD, signal.SIGCONT, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN,
        signal.SIGTTOU, signal.SIGURG, signal.SIGWINCH,
    }  # fmt: skip
    of_python = {signal.SIGPIPE, signal.SIGXFSZ}  # ignored: an error tells of them
    rest = signal.valid_signals() - faults - harmless - of_python - {signal.SIGKILL}
    assert set(SIGNALS) == set(map(int, rest))
    usual = dict.fromkeys(SIGNALS, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, own) for number, own in usual.items()}
    try:
        _check_every_signal(monkeypatch, capsys)
        assert {number: signal.getsignal(number) for number in SIGNALS} == usual
    finally:
        for number, own in before.items():  # pytest's own among them
            signal.signal(number, own)


def _check_every_signal(monkeypatch, capsys):
    for number in sorted(SIGNALS):
        cleaned_up = []

        def work(_, number=number, cleaned_up=cleaned_up):
            try:
                os.kill(os.getpid(), number)
                time.sleep(10)
            finally:
                cleaned_up.append(True)

        monkeypatch.setattr(cli, "_run", work)
        assert cli.main([]) == 128 + number
        assert cleaned_up == [True]
        assert capsys.readouterr().err == message_of(number) + "\n"


def test_ignored_signals_stay_ignored(monkeypatch):
    """As nohup ignores SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        monkeypatch.setattr(cli, "_run", lambda _: os.kill(os.getpid(), signal.SIGHUP) or 0)
        assert cli.main([]) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_waits_for_the_end_of_what_cannot_stand_it(number, monkeypatch):
    done = []

    def work(_):
        with defer_signals():
            with defer_signals():
                os.kill(os.getpid(), number)
                done.append("inner")
            done.append("outer")
        done.append("after")

    monkeypatch.setattr(cli, "_run", work)
    assert cli.main([]) == (143 if number == signal.SIGTERM else 130)
    assert done == ["inner", "outer"]


def test_kernels_are_compiled_whole(monkeypatch):
    @njit()
    def doubled(value):
        return 2 * value

    assert doubled(1.5) == 3.0  # so that Numba is there, and quick
    compile_extra = compiler.compile_extra

    def signalled(*arguments, **named):
        os.kill(os.getpid(), signal.SIGTERM)
        return compile_extra(*arguments, **named)

    monkeypatch.setattr(compiler, "compile_extra", signalled)
    monkeypatch.setattr(cli, "_run", lambda _: doubled(3) and 0)
    assert cli.main([]) == 143
    monkeypatch.undo()
    assert len(doubled.dispatcher().signatures) == 2
    assert doubled(3) == 6


def test_a_handler_that_is_there_stays(monkeypatch):
    seen = []

    def note(number, frame):
        seen.append(number)

    before = signal.signal(signal.SIGTERM, note)
    try:
        monkeypatch.setattr(cli, "_run", lambda _: os.kill(os.getpid(), signal.SIGTERM) or 0)
        assert cli.main([]) == 0
        assert signal.getsignal(signal.SIGTERM) is note
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]
