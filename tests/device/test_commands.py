"""Every command leases the GPUs that it uses, before CUDA or CuPy is touched, and no others.

A hook of the interpreter watches imports and libraries in the command's own process, threads that
make CUDA ready included, and looks which locks are held at that moment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.run.options import RunOptions
from tests.support.classify.world import SKETCH, make_world

UUIDS = tuple(f"GPU-{letter * 8}-0000" for letter in "abcd")
MATES = ["-i", "1.fq", "-I", "2.fq"]
CUDA = ["--backend", "cuda"]
TOUCH = "import ctypes, contextlib\nwith contextlib.suppress(OSError): ctypes.CDLL('libcuda.so.1')"
CLASSIFY = ["classify", "-i", "1.fq", "-o", "OUT/c", *CUDA]

LEASING = {
    "correct": (1, ["correct", "-i", "1.fq", "-o", "OUT/c.fq", *CUDA]),
    "correct 2": (2, ["correct", *MATES, "-o", "OUT/1", "-O", "OUT/2", *CUDA, "--gpus", "2"]),
    "correct by k-mers 3": (
        3,
        ["correct", "--method", "spectrum", "-i", "1.fq", "-o", "OUT/c.fq", *CUDA, "--gpus", "3"],
    ),
    "extend 2": (2, ["extend", *MATES, "-o", "OUT/e.fq", *CUDA, "--gpus", "2"]),
    "merge": (1, ["merge", *MATES, "-o", "OUT/m.fq", *CUDA]),
    "merge 4": (1, ["merge", *MATES, "-o", "OUT/m.fq", *CUDA, "--gpus", "4"]),
    "classify": (1, [*CLASSIFY, "-d", "two"]),
    "classify 3, one partition": (3, [*CLASSIFY, "-d", "one", "--gpus", "3"]),
    "classify 3, two partitions": (2, [*CLASSIFY, "-d", "two", "--gpus", "3"]),
    "classify 3, one of two": (
        3,
        ["classify", "-d", "two", "-i", "1.fq", "--only-partition", "1", "--candidates", "OUT/c",
         *CUDA, "--gpus", "3"],
    ),
    "classify 2, references": (2, [*CLASSIFY, "--references", "refs", "--gpus", "2"]),
    "db build": (1, ["db", "build", "refs", "-d", "OUT/db", *CUDA]),
    "db add": (1, ["db", "add", "more.fa", "-d", "one", *CUDA]),
    "db build 2": (2, ["db", "build", "refs", "-d", "OUT/db", *CUDA, "--gpus", "2"]),
    "gpu run 2": (2, ["gpu", "run", "-n", "2", "--", sys.executable, "-c", TOUCH]),
}  # fmt: skip
"""How many leases commands hold; CUDA fails here, so that they end when they touch it."""

OTHERS = {
    "kmers": ["kmers", "spectrum", "-i", "1.fq", "-o", "OUT/k"],
    "db plan": ["db", "plan", "refs", "-d", "OUT/db"],
    "db build": ["db", "build", "refs", "-d", "OUT/db", "--backend", "cpu"],
    "db add": ["db", "add", "more.fa", "-d", "one", "--into-last"],
    "db info": ["db", "info", "-d", "one"],
    "db verify": ["db", "verify", "-d", "one"],
    "classify": ["classify", "-d", "one", "-i", "1.fq", "-o", "OUT/c", "--gpus", "0"],
    "correct": ["correct", "-i", "1.fq", "-o", "OUT/c", "--backend", "cpu"],
    "gpu list": ["gpu", "list"],
}

WATCH = """
import fcntl, json, os, sys, threading
from pathlib import Path

def held():
    names = []
    for path in sorted(Path(os.environ["NGSGPU_LOCK_DIR"]).glob("*GPU-*.lock")):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                names.append(path.stem.rpartition(".")[2])
    return names

def watch(event, arguments):
    name = str(arguments[0]) if arguments else ""
    if event == "import" and name == "cupy" or event == "ctypes.dlopen" and "libcuda" in name:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        seen = [name, threading.current_thread().name, visible, held()]
        with open(os.environ["SEEN"], "a") as file:
            file.write(json.dumps(seen) + "\\n")

sys.addaudithook(watch)
"""

RUN = """
import json, os, sys
from pathlib import Path
import ngsgpu.correct, ngsgpu.extend, ngsgpu.classify.run.pipeline, ngsgpu.merge.stage
import ngsgpu.classify.database.change.add
from ngsgpu.cli import main

assert "cupy" not in sys.modules
for place, command in json.load(sys.stdin).items():
    if os.fork() == 0:
        os.environ["NGSGPU_LOCK_DIR"], os.environ["SEEN"] = f"{place}/locks", f"{place}/seen"
        os.dup2(os.open(f"{place}/stderr", os.O_WRONLY | os.O_CREAT), 2)
        os._exit(main([word.replace("OUT", place) for word in command]))
    status = os.waitstatus_to_exitcode(os.wait()[1])
    Path(place, "status").write_text(str(status))
"""
"""Runs commands one after the other in forks of one process, which has not touched CUDA."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reads, references, databases, a stand-in for nvidia-smi, and the hook."""
    world = make_world(tmp_path_factory.mktemp("commands"))
    world.fastq("1.fq", world.reads[:40])
    world.fastq("2.fq", world.reads[:40])
    for name, partitions in (("one", 1), ("two", 2)):
        build_database(
            world.references,
            world.folder / name,
            parameters=DatabaseParameters(SKETCH),
            taxonomy=world.taxonomy,
            maps=[world.map],
            request=PartitionRequest(partitions),
            options=RunOptions(),
        )
    (world.folder / "refs").mkdir()
    for path in world.references:
        (world.folder / "refs" / path.name).write_bytes(path.read_bytes())
    world.fasta("more.fa", [world.sequences[0][::-1]])
    program = world.folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    rows = [f"{i}, {uuid}, NVIDIA H200, 143771, 143167, 9.0, 580.82.07, 00000000:{i}B:00.0"
            for i, uuid in enumerate(UUIDS)]  # fmt: skip
    program.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(rows) + "\nEND\n")
    program.chmod(0o755)
    (world.folder / "hook").mkdir()
    (world.folder / "hook" / "sitecustomize.py").write_text(WATCH)
    return world.folder


@pytest.fixture(scope="module")
def places(folder: Path) -> dict[str, Path]:
    """A folder for each command: its outputs, what it touched of CUDA, locks, status, messages."""
    commands = {name: command for name, (_, command) in LEASING.items()}
    commands |= {f"without: {name}": command for name, command in OTHERS.items()}
    places = {name: folder / f"case{number}" for number, name in enumerate(commands)}
    for place in places.values():
        place.mkdir()
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CUDA_VISIBLE_DEVICES", "NGSGPU_LEASE")
    }
    environment["PATH"] = f"{folder / 'bin'}:{os.environ['PATH']}"
    package = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join([str(folder / "hook"), package])
    environment["NGSGPU_LOCK_DIR"] = str(folder / "locks")
    environment["SEEN"] = str(folder / "seen")
    subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps({str(places[name]): command for name, command in commands.items()}),
        cwd=folder, env=environment, text=True, timeout=280, check=True,
    )  # fmt: skip
    return places


@pytest.mark.parametrize("name", LEASING)
def test_gpus_are_leased_before_cuda_is_touched(places, name):
    leases, command = LEASING[name]
    place = places[name]
    seen = [json.loads(line) for line in (place / "seen").read_text().splitlines()]
    if command[0] != "gpu":
        assert (place / "status").read_text() == "1", (place / "stderr").read_text()
        assert "ngsgpu-cuda" in {thread for _, thread, _, _ in seen}
    for _, _, visible, held in seen:
        assert visible == ",".join(UUIDS[:leases])
        assert held == list(UUIDS[:leases])


@pytest.mark.parametrize("name", OTHERS)
def test_commands_without_gpus(places, name):
    place = places[f"without: {name}"]
    assert (place / "status").read_text() == "0", (place / "stderr").read_text()
    assert not (place / "seen").exists()
    assert not (place / "locks").exists()
