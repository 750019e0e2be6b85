"""A server outlives whatever is sent to its socket, and clients whatever listens at theirs."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.classify.database.database import Database
from ngsgpu.run.serve.request import Request
from tests.support.classify.serving import IN_ITSELF, START, Served, served
from tests.support.classify.world import World

NULL = os.open(os.devnull, os.O_RDWR)
LATE = "import ngsgpu.run.serve.arriving as own\nown._SECONDS = 2\n"


@pytest.fixture(scope="module", params=["copies", "itself"])
def server(
    request: pytest.FixtureRequest, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    first = LATE + (IN_ITSELF if request.param == "itself" else "")
    how = ["--backend", "cpu", "-t", 2]
    with served(database.path, tmp_path_factory.mktemp("s") / "s", *how, first=first) as running:
        yield running


@pytest.fixture(scope="module")
def reads(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return world.fastq("reads.fq", world.reads[:30])


def connect(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(str(path))
    return connection


def answer(path: Path, message: bytes, size: int | None = None, files: int = 3) -> bytes:
    """What a server says to a message."""
    length = (len(message) if size is None else size).to_bytes(4, "big")
    with connect(path) as connection:
        with suppress(OSError):
            socket.send_fds(connection, [length], [NULL] * files)
            connection.sendall(message)
        with suppress(ConnectionError):
            return connection.recv(1 << 16)
    return b""


def works(server: Served, reads: Path) -> None:
    done = server.run("-i", reads, "-o", "-", "-q", timeout=60)
    assert done.returncode == 0 and done.stdout.startswith(b"read\t"), done.stderr


def request(served_: str = "", **changed: Any) -> dict[str, Any]:
    own = vars(Request(["--version"], served_, 1)) | {"numbers": [0, 1, 2]}
    return own | changed


def test_silent_clients_hold_nobody(server: Served, reads: Path) -> None:
    """Nor do those that stop in the middle, however many they are."""
    with ExitStack() as stack:
        for sent in [b"", b"\0", b"\0\0\0\x09{", b"\0\0\0\x09"] * 40:
            stack.enter_context(connect(server.socket)).sendall(sent)
        begin = time.monotonic()
        works(server, reads)
        assert time.monotonic() - begin < 30


def test_a_client_that_drips_is_given_up(server: Served, reads: Path) -> None:
    with connect(server.socket) as connection:
        connection.sendall((1000).to_bytes(4, "big"))
        for _ in range(40):
            try:
                connection.sendall(b" ")
            except OSError:
                break
            time.sleep(0.2)
        else:
            pytest.fail("it still listens")
        works(server, reads)


WRONG: dict[str, Any] = {
    "words": ["x", None, [1], ["a\0b"], {}],
    "served": [1, None],
    "threads": ["x", None, [], -1, 1.5, True],
    "version": [1, None],
    "folder": [None, "a\0b", 3],
    "umask": [-1, 10**6, "x", None],
    "environment": [[], {"A": 1}, {"A": "\0"}, None],
    "numbers": [[0], [0, 1, 2, 2], [0, 1, 10**9], ["x"], {}, None, [2, 1, 0]],
    "files": [None, 1],
    "more": [1],
}


def test_requests_that_make_no_sense(server: Served, reads: Path) -> None:
    """Are refused, also those that nobody of ours sends."""
    for name, value in ((name, value) for name, values in WRONG.items() for value in values):
        said = answer(server.socket, json.dumps(request(**{name: value})).encode())
        assert json.loads(said).keys() == {"refused"}, (name, value)
    works(server, reads)


MESSAGES = (
    b"[" * 100_000, b'{"a":' * 50_000, b"1" * 10_000, b"null", b"\xff\xfe", b"{}", b"NaN", b'"a"',
)  # fmt: skip


def test_messages_that_are_no_requests(server: Served, reads: Path) -> None:
    for message in MESSAGES:
        assert json.loads(answer(server.socket, message)).keys() == {"refused"}
        answer(server.socket, message, files=0)
    assert (
        "without the files"
        in answer(server.socket, json.dumps(request()).encode(), files=4).decode()
    )
    assert "too large" in answer(server.socket, b"x", size=2**32 - 1).decode()
    works(server, reads)


def test_requests_that_were_changed(server: Served, reads: Path) -> None:
    source = random.Random(49)
    valid = json.dumps(request()).encode()
    for _ in range(60):
        at, end = source.randrange(len(valid)), source.choice((0, 1, 9))
        changed = valid[:at] + source.choice((b"", b"\0", b"\xff", b"[", b'"')) + valid[at + end :]
        size = source.choice((None, None, None, len(changed) + 1, 0))
        with connect(server.socket) as connection, suppress(OSError):
            length = len(changed) if size is None else size
            socket.send_fds(connection, [length.to_bytes(4, "big")], [NULL] * 3)
            connection.sendall(changed)  # and goes, whatever the answer
    works(server, reads)


def identity(server: Served) -> str:
    from ngsgpu.cli.classification.served import identity as of

    return of(str(server.database), None)


@pytest.mark.parametrize(
    "changed", [{"folder": "/nowhere"}, {"environment": {"A=B": "x"}}, {"environment": {"": "x"}}]
)
def test_places_that_a_server_cannot_take(
    server: Served, reads: Path, changed: dict[str, Any]
) -> None:
    """Are told to the client, and nobody else."""
    message = json.dumps(request(identity(server), **changed)).encode()
    assert "cannot run this here" in json.loads(answer(server.socket, message))["refused"]
    works(server, reads)


def test_clients_that_go_while_they_are_answered(server: Served, reads: Path) -> None:
    words = ["classify", "-d", str(server.database), "-i", str(reads), "-o", "/dev/null", "-q"]
    message = json.dumps(request(identity(server), words=words)).encode()
    for pause in (0.0, 0.01, 0.05, 0.2):
        with connect(server.socket) as connection:
            socket.send_fds(connection, [len(message).to_bytes(4, "big")], [NULL] * 3)
            connection.sendall(message)
            time.sleep(pause)
    works(server, reads)


def test_the_server_said_nothing(server: Served) -> None:
    """In all of the tests before: a traceback would be here."""
    assert server.process.poll() is None
    status, said = server.stop()
    assert (status, said.replace("ngsgpu: terminated\n", "")) == (0, "")


def say(text: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(text)


ANSWERS: dict[str, tuple[Callable[[socket.socket], None], str]] = {
    "silent": (lambda _: None, "the server ended before this was done"),
    "text": (say(b"hello\n"), "is no server of ngsgpu"),
    "deep": (say(b"[" * 9000 + b"\n"), "is no server of ngsgpu"),
    "list": (say(b"[1]\n"), "is no server of ngsgpu"),
    "endless": (say(b"x" * 200_000), "is no server of ngsgpu"),
    "nothing known": (say(b'{"a": 1}\n'), "is no server of ngsgpu"),
    "status": (say(b'{"status": "x"}\n'), "is no server of ngsgpu"),
    "large status": (say(b'{"status": 1e99}\n'), "is no server of ngsgpu"),
    "strange refusal": (say(b'{"refused": "a\\u001b[2J\\nb"}\n'), r"a\x1b[2J\nb"),
    "bytes": (say(bytes(range(256)) + b"\n"), "is no server of ngsgpu"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_socket_of_another_program(
    database: Database, tmp_path: Path, reads: Path, name: str
) -> None:
    react, expected = ANSWERS[name]
    path = tmp_path / "s"

    def listen(listener: socket.socket) -> None:
        with listener.accept()[0] as connection, suppress(OSError):
            react(connection)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        threading.Thread(target=listen, args=(listener,), daemon=True).start()
        words = ["classify", "-d", database.path, "--server", path, "-i", reads, "-o", "-"]
        done = subprocess.run(
            [sys.executable, "-m", "ngsgpu", *map(str, words)],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode in (1, 2) and done.stdout == ""
        (line,) = done.stderr.splitlines()
        assert line.startswith("ngsgpu: error: ") and expected in line


def test_only_servers_of_ours_are_stopped(database: Database, tmp_path: Path) -> None:
    code = "import socket, sys, time; s = socket.socket(1); s.bind(sys.argv[1]); s.listen(); "
    path = tmp_path / "s"
    words = [sys.executable, "-c", code + "print('x', flush=True); time.sleep(60)", str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline()
        stop = ["db", "serve", "-d", str(database.path), "--socket", str(path), "--stop"]
        done = subprocess.run([sys.executable, "-c", START, *stop], capture_output=True, text=True)
        assert done.returncode == 2 and "is no server of ngsgpu" in done.stderr
        assert process.poll() is None
        process.kill()


def test_a_server_that_ends_by_itself_says_nothing(database: Database, tmp_path: Path) -> None:
    words = ["db", "serve", "-d", str(database.path), "--socket", str(tmp_path / "s"), "-t", "1"]
    done = subprocess.run(
        [sys.executable, "-c", START, *words, "--idle-timeout", "0.5"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "s").exists()
