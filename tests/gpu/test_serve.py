"""A server that has a database in GPU memory: its runs are those of a command, byte for byte."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.device.gpus import visible_gpus
from ngsgpu.run.options import RunOptions
from tests.support.classify.serving import Served, results, served
from tests.support.classify.world import SKETCH, World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), genome=3000, reads=900)


@pytest.fixture(scope="module")
def folder(world: World) -> Path:
    """Reads in several forms, and a database of three partitions."""
    for number in (1, 2):
        world.fastq(f"r{number}.fq", world.reads[300 * (number - 1) : 300 * number])
    world.fasta("r.fa", world.reads)
    (world.folder / "r.fq.gz").write_bytes(gzip.compress((world.folder / "r1.fq").read_bytes()))
    world.fastq("long.fq", [world.sequences[0], *world.reads[:20]])
    (world.folder / "cut.fq").write_text("@r\nACGT\n+\n")
    (world.folder / "sheet.tsv").write_text("sample\tfastq_1\nx\tr1.fq\ny\tr2.fq\n")
    build_database(
        world.references, world.folder / "db", parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy, maps=[world.map], request=PartitionRequest(number=3),
        options=RunOptions(threads=2),
    )  # fmt: skip
    return world.folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    gpus = min(2, len(visible_gpus()))
    how = ["--backend", "cuda", "--gpus", gpus]
    with served(folder / "db", folder / "socket", *how) as running:
        yield running


OUTPUTS = "-o OUT/o.tsv --report OUT/r.txt --kraken-reads OUT/k.txt --biom OUT/b.biom "
RUNS = (
    f"-i r1.fq -I r2.fq {OUTPUTS} --evidence OUT/e.tsv --stats OUT/s.json",
    f"-i r.fq.gz {OUTPUTS} --classified-out OUT/c.fq --unclassified-out OUT/u.fq.gz",
    f"-i r.fa {OUTPUTS} --lowest species --insert-size 600 --candidates-kept 3",
    f"-i r.fa {OUTPUTS} --lowest sequence",
    f"-i r1.fq -I r2.fq {OUTPUTS} --metacache",
    f"-i long.fq {OUTPUTS}",
    "--samples sheet.tsv -o OUT/{sample}.tsv --report OUT/{sample}.txt",
    "-i cut.fq -o OUT/o.tsv",
    "-i none.fq -o OUT/o.tsv",
)


@pytest.mark.parametrize("run", RUNS)
def test_a_server_does_what_a_command_does(
    server: Served, folder: Path, tmp_path: Path, run: str
) -> None:
    """Also after runs with other parameters, on the arrays that it keeps."""
    found = {}
    for name in ("first", "again", "alone", "cpu"):
        place = tmp_path / name
        place.mkdir()
        own = server.words(*run.replace("OUT", str(place)).split())
        if name in ("alone", "cpu"):
            own = [word for word in own if "--server" not in word]
            own += ["--backend", "cuda" if name == "alone" else "cpu"]
        # The server leases the GPUs; with other locks, this is done beside it.
        locks = {"NGSGPU_LOCK_DIR": str(tmp_path / "locks")} if name == "alone" else {}
        done = subprocess.run(own, cwd=folder, capture_output=True, env=os.environ | locks)
        content = results(place)
        content.pop("s.json", None)
        errors = [line for line in done.stderr.splitlines() if b"error" in line]
        found[name] = done.returncode, errors, content
    assert found["first"] == found["again"] == found["alone"] == found["cpu"]


def test_reads_from_a_pipe(server: Served, folder: Path) -> None:
    reads = (folder / "r1.fq").read_bytes()
    given = server.run("-i", "-", "-o", "-", "--sample", "s", input=reads)
    named = server.run("-i", folder / "r1.fq", "-o", "-", "--sample", "s")
    assert given.returncode == named.returncode == 0 and given.stdout == named.stdout


def test_clients_wait_for_each_other(server: Served, folder: Path, tmp_path: Path) -> None:
    """One after the other, and an interrupted one stops only itself."""
    reader, writer = os.pipe()
    place = tmp_path / "cancelled"
    place.mkdir()
    first = server.start("-i", "-", "-o", place / "o.tsv", stdin=reader)
    os.close(reader)
    while not list(place.iterdir()):
        assert first.poll() is None
        time.sleep(0.02)
    waiting = [
        server.start("-i", folder / "r.fa", "-o", tmp_path / f"{number}.tsv") for number in range(3)
    ]
    time.sleep(1)
    assert all(client.poll() is None for client in waiting)
    first.send_signal(signal.SIGINT)
    assert first.communicate(timeout=60) and first.returncode == 130
    os.close(writer)
    for client in waiting:
        assert client.communicate(timeout=120) and client.returncode == 0
    assert len({(tmp_path / f"{number}.tsv").read_bytes() for number in range(3)}) == 1
    assert not list(place.iterdir())


def test_the_server_keeps_its_lease(server: Served, folder: Path) -> None:
    """Also after a run that the CPU took over; another command does not get its GPUs."""
    assert server.run("-i", folder / "long.fq", "-o", "-").returncode == 0
    listed = subprocess.run(
        [sys.executable, "-m", "ngsgpu", "gpu", "list"], capture_output=True, text=True, check=True
    ).stdout
    assert str(server.process.pid) in listed
    refused = server.run("-i", folder / "r1.fq", "-o", "-", "--backend", "cpu")
    assert refused.returncode == 2 and b"open for --backend cuda" in refused.stderr


def test_one_partition_and_the_end(folder: Path, tmp_path: Path) -> None:
    """With other locks, beside the module's server."""
    words = ["--only-partition", 1, "-i", folder / "r1.fq", "--candidates"]
    alone = [sys.executable, "-m", "ngsgpu", "classify", "-d", folder / "db", "--backend", "cpu"]
    subprocess.run([*map(str, [*alone, *words, tmp_path / "cpu"])], check=True)
    how = ["--backend", "cuda", "--only-partition", 1]
    locks = f"import os; os.environ['NGSGPU_LOCK_DIR'] = {str(tmp_path / 'locks')!r}\n"
    with served(folder / "db", tmp_path / "s", *how, first=locks) as server:
        assert server.run(*words, tmp_path / "served").returncode == 0
        status, said = server.stop()
    assert status == 0 and "rror" not in said and not (tmp_path / "s").exists()
    assert (tmp_path / "served").read_bytes() == (tmp_path / "cpu").read_bytes()
