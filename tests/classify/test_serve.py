"""Runs that a server does are those that a command does alone: outputs, messages, statuses."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ngsgpu.classify.database.database import Database
from tests.support import copies
from tests.support.classify.serving import (
    IN_ITSELF,
    NGSGPU,
    START,
    Served,
    open_descriptor,
    results,
    served,
    timeless,
)
from tests.support.classify.world import World

FORMATS = (
    "-o reads.tsv.gz --report r.txt --kraken-reads k.txt --krona krona.txt --cami p.profile "
    "--biom b.biom --abundance a.tsv --coverage c.tsv --evidence e.tsv --mpa m.txt "
    "--classified-out c1.fq --classified-out2 c2.fq --unclassified-out u1.fq.gz "
    "--unclassified-out2 u2.fq.gz --stats s.json"
)


@pytest.fixture(scope="module", params=["copies", "itself"])
def server(
    request: pytest.FixtureRequest, database: Database, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """On the CPU, in copies of its process, or in itself as with GPUs."""
    socket = tmp_path_factory.mktemp("a path longer than the system takes for sockets" * 3) / "s"
    first = IN_ITSELF if request.param == "itself" else ""
    how = ["--backend", "cpu", "-t", 2]
    with served(database.path, socket, *how, first=first) as running:
        yield running


@pytest.fixture(scope="module")
def folder(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads, good and bad, and a sheet of them."""
    folder = tmp_path_factory.mktemp("reads")
    for name, own in (("one", world.reads[:60]), ("two", world.reads[60:120])):
        shutil.copy(world.fastq(f"{name}.fq", own), folder)
    (folder / "cut.fq").write_text("@r\nACGT\n+\n")
    (folder / "sheet.tsv").write_text("sample\tfastq_1\nx\tone.fq\ny\ttwo.fq\n")
    return folder


PAIRS = "-i one.fq -I two.fq"
RUNS = {
    "all formats": f"{PAIRS} {FORMATS}",
    "parameters": f"{PAIRS} -o o.tsv --lowest species --insert-size 600 --candidates-kept 3 -q",
    "metacache": f"{PAIRS} -o o.tsv --metacache --report r.txt",
    "sequences": "-i one.fq -o o.tsv --lowest sequence --sample mine --stats s.json",
    "sheet": "--samples sheet.tsv -o {sample}.tsv --biom all.biom --report {sample}.txt",
    "standard output": "-i one.fq -o -",
    "standard input": "-i - -o o.tsv --stats s.json < one.fq",
    "stream of samples": "--samples - -o {sample}.tsv < sheet.tsv",
    "open file": "-i /dev/fd/FD -o -",
    "no file": "-i none.fq -o o.tsv",
    "bad record": "-i cut.fq -o o.tsv --report r.txt",
    "no output": "-i one.fq",
    "no option": "-i one.fq --nonsense",
    "bad value": "-i one.fq -o o.tsv --posterior 2",
    "no folder": "-i one.fq -o none/o.tsv",
    "its own input": "-i one.fq -o one.fq",
}


@pytest.mark.parametrize("name", RUNS)
def test_a_server_does_what_a_command_does(
    server: Served, folder: Path, tmp_path: Path, name: str
) -> None:
    words, _, source = RUNS[name].partition(" < ")
    asked = [copies.ngsgpu(), *server.words()[len(NGSGPU) :]]
    seen = []
    for own in (asked, [word for word in asked if "--server" not in word]):
        place = tmp_path / "run"
        shutil.copytree(folder, place)
        reader = open_descriptor((folder / "one.fq").read_bytes())
        with (folder / source if source else Path(os.devnull)).open("rb") as given:
            done = subprocess.run(
                [*own, *words.replace("FD", str(reader)).split(), "--threads=1"],
                cwd=place, stdin=given, capture_output=True, pass_fds=[reader],
            )  # fmt: skip
        os.close(reader)
        said = timeless(done.stdout), timeless(done.stderr)
        seen.append((done.returncode, said, results(place)))
        shutil.rmtree(place)
    assert seen[0] == seen[1]
    assert (seen[0][0] == 0) != name.startswith(("no ", "bad ", "its "))


def test_it_keeps_who_asks_apart(server: Served, world: World, tmp_path: Path) -> None:
    """Folder, environment and rights are the client's, and the server's are as before."""
    for number in range(2):
        (tmp_path / str(number)).mkdir()
    (tmp_path / "0/r.fq").symlink_to(world.fastq("r.fq", world.reads[:9]))
    done = server.run("-i", "r.fq", "-o", "o.tsv", cwd=tmp_path / "0", umask=0o077)
    assert done.returncode == 0 and (tmp_path / "0/o.tsv").stat().st_mode & 0o777 == 0o600
    environment = {**os.environ, "NGSGPU_BACKEND": "cuda"}
    refused = server.run("-i", "../0/r.fq", "-o", "-", cwd=tmp_path / "1", env=environment)
    assert refused.returncode == 2 and b"open for --backend cpu" in refused.stderr
    done = server.run("-i", "../0/r.fq", "-o", "-", cwd=tmp_path / "1", umask=0o022)
    assert done.returncode == 0 and done.stdout == (tmp_path / "0/o.tsv").read_bytes()
    assert not list((tmp_path / "1").iterdir())


def test_many_clients_at_once(server: Served, folder: Path, tmp_path: Path) -> None:
    expected = server.run("-i", folder / "one.fq", "-o", "-").stdout
    running = [
        server.start("-i", folder / "one.fq", "-o", tmp_path / f"{number}.tsv", "-t", number % 3)
        for number in range(6)
    ]
    for client in running:
        assert client.communicate()[1] and client.returncode == 0
    for number in range(6):
        assert (tmp_path / f"{number}.tsv").read_bytes() == expected


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def endless(server: Served, place: Path) -> tuple[subprocess.Popen[bytes], int]:
    """A run that has begun, and waits for more reads."""
    reader, writer = os.pipe()
    client = server.start("-i", "-", "-o", place / "o.tsv", stdin=reader)
    os.close(reader)
    wait_until(lambda: list(place.iterdir()))
    return client, writer


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_client_cancels_its_run(
    server: Served, folder: Path, tmp_path: Path, number: int, status: int
) -> None:
    client, writer = endless(server, tmp_path)
    client.send_signal(number)
    said = client.communicate(timeout=30)[1].decode().splitlines()
    os.close(writer)
    word = {130: "interrupted", 143: "terminated"}[status]
    assert client.returncode == status and said[-1] == f"ngsgpu: {word}"
    wait_until(lambda: not list(tmp_path.iterdir()))
    assert server.run("-i", folder / "one.fq", "-o", tmp_path / "next.tsv").returncode == 0


def test_a_killed_client_cancels_its_run(server: Served, folder: Path, tmp_path: Path) -> None:
    client, writer = endless(server, tmp_path)
    client.kill()
    client.communicate()
    os.close(writer)
    wait_until(lambda: not list(tmp_path.iterdir()))
    assert server.run("-i", folder / "one.fq", "-o", tmp_path / "next.tsv").returncode == 0


@pytest.mark.parametrize("first", ["", IN_ITSELF])
def test_the_end_of_a_server_cancels_what_it_runs(
    database: Database, tmp_path: Path, first: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with served(database.path, tmp_path / "s", first=first) as server:
        client, writer = endless(server, place)
        status, said = server.stop()
        assert status == 0 and "error" not in said
        told = client.communicate(timeout=30)[1].decode()
        os.close(writer)
    assert client.returncode in (1, 143) and told.splitlines()[-1].startswith("ngsgpu: ")
    assert not (tmp_path / "s").exists()
    wait_until(lambda: not list(place.iterdir()))


def test_a_killed_server_blocks_no_other(database: Database, folder: Path, tmp_path: Path) -> None:
    socket = tmp_path / "s"
    with served(database.path, socket) as server:
        words = ["db", "serve", "-d", str(database.path), "--socket", str(socket)]
        second = subprocess.run([sys.executable, "-c", START, *words], capture_output=True)
        assert second.returncode == 2 and b"listens at" in second.stderr
        assert f"process {server.process.pid}" in second.stderr.decode()
        server.process.kill()
        server.process.communicate()
    assert socket.is_socket()
    refused = server.run("-i", folder / "one.fq", "-o", "-")
    assert refused.returncode == 2 and b"no server listens at" in refused.stderr
    with served(database.path, socket) as server:
        assert server.run("-i", folder / "one.fq", "-o", "-").returncode == 0


def test_requests_that_are_refused(
    database: Database, copy: Path, folder: Path, tmp_path: Path
) -> None:
    reads = ["-i", folder / "one.fq", "-o", "-"]
    later = "import ngsgpu._version; ngsgpu._version.__version__ = '99'\n"
    with served(database.path, tmp_path / "s", first=later) as server:
        refused = server.run(*reads)
        assert refused.returncode == 2 and b"the server is ngsgpu 99, this is" in refused.stderr
    with served(copy, tmp_path / "s") as server:
        assert server.run(*reads).returncode == 0
        for more in (["--gpus", 0], ["--no-verify"]):
            refused = server.run(*reads, *more)
            assert refused.returncode == 2 and b"options of `ngsgpu db serve`" in refused.stderr
        partition = ["--only-partition", 0, "--candidates", tmp_path / "c"]
        refused = server.run(*reads[:2], *partition)
        assert refused.returncode == 2 and b"another database open" in refused.stderr
        manifest = copy / "manifest.json"
        manifest.write_bytes(manifest.read_bytes() + b" ")
        refused = server.run(*reads)
        assert refused.returncode == 2 and b"an earlier state" in refused.stderr
        manifest.unlink()
        missing = server.run(*reads)
        assert missing.returncode == 2 and b"no ngsgpu classification database" in missing.stderr


def test_one_partition(database: Database, folder: Path, tmp_path: Path) -> None:
    words = ["--only-partition", 0, "-i", folder / "one.fq", "--candidates"]
    with served(database.path, tmp_path / "s", "--only-partition", 0) as server:
        assert server.run(*words, tmp_path / "served").returncode == 0
    alone = [sys.executable, "-m", "ngsgpu", "classify", "-d", database.path, *words]
    subprocess.run([*map(str, alone), tmp_path / "alone"], check=True, capture_output=True)
    assert (tmp_path / "served").read_bytes() == (tmp_path / "alone").read_bytes()


def test_a_server_by_the_database_alone(database: Database, folder: Path, tmp_path: Path) -> None:
    """Started in the background, used and ended without a path of a socket; and without a user."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}

    def ngsgpu(*words: object, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ngsgpu", *map(str, words)],
            capture_output=True, env=environment, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    serve = ["db", "serve", "-d", database.path]
    classify = ["classify", "-d", database.path, "--server", "-i", folder / "one.fq", "-o", "-"]
    assert ngsgpu(*serve, "--detach", "--backend", "cpu").startswith("ready: ")
    (socket,) = (tmp_path / "ngsgpu").iterdir()
    assert socket.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ngsgpu").stat().st_mode & 0o777 == 0o700
    assert ngsgpu(*classify).startswith("read\t")
    ngsgpu(*serve, "--stop")
    assert not socket.exists()
    assert "no server listens" in ngsgpu(*serve, "--stop", status=2)
    assert "none.db" in ngsgpu("db", "serve", "-d", "none.db", "--detach", status=2)
    ngsgpu(*serve, "--detach", "--idle-timeout", 8)
    assert ngsgpu(*classify).startswith("read\t")
    wait_until(lambda: not socket.exists())
    (tmp_path / "ngsgpu").chmod(0o755)
    assert "nobody else can enter" in ngsgpu(*classify, status=2)


def test_clients_wait_until_a_server_is_ready(
    database: Database, folder: Path, tmp_path: Path
) -> None:
    slow = "import time, ngsgpu.cli.classification.serve as own\n"
    slow += "own._rehearse = lambda _: time.sleep(1.5)\n"
    socket, done = tmp_path / "s", []

    def client() -> None:
        wait_until(socket.exists)
        words = [sys.executable, "-m", "ngsgpu", "classify", "-d", database.path, "-o", "-"]
        words += ["--server", socket, "-i", folder / "one.fq"]
        done.append(subprocess.run([*map(str, words)], capture_output=True).returncode)

    waiting = threading.Thread(target=client)
    waiting.start()
    with served(database.path, socket, first=slow):
        waiting.join(60)
    assert done == [0]
