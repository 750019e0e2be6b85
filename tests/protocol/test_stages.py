"""What every stage that reads reads keeps to, on each backend, whatever its algorithm."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from ngsgpu.io.compress.zstd import library as zstd
from ngsgpu.io.output import in_memory
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.run.options import RunOptions
from tests.support import content, copies
from tests.support.commands import Commands
from tests.support.io.records import Record, bgzf, decompressed, fastq, members, write
from tests.support.protocol import STAGES, Stage, alternating, make_pairs, named, write_mates

Contents = dict[str, bytes | None]

every_stage = pytest.mark.parametrize("name", STAGES)
every_stream = pytest.mark.parametrize(
    "name", [name for name, own in STAGES.items() if own.streams]
)
SIDES = make_pairs()[1:]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An index and a database of parts of the genome."""
    from ngsgpu.cli import main

    folder = tmp_path_factory.mktemp("paths")
    genome = make_pairs()[0]
    host = write(folder / "host.fa", f">host\n{genome[:600]}\n".encode())
    targets = write(folder / "targets.fa", f">one\n{genome[:900]}\n>two\n{genome[700:]}\n".encode())
    made = {"host": folder / "host.idx", "database": folder / "db"}
    assert main(["deplete-index", str(host), "-o", str(made["host"]), "-q"]) == 0
    assert main(["db", "build", str(targets), "-d", str(made["database"]), "-q"]) == 0
    return made


class Runs:
    """Runs of a stage in a folder.

    Args:
        ngsgpu: the command line.
        stage: whose command it is.
        paths: of what the command needs beside reads.
        folder: for inputs and outputs.
    """

    def __init__(
        self, ngsgpu: Commands, stage: Stage, paths: dict[str, Path], folder: Path
    ) -> None:
        self.ngsgpu, self.stage, self.paths, self.folder = ngsgpu, stage, paths, folder
        self.plain = write_mates(folder / "plain", *SIDES)

    def command(self, inputs: list[object], out: Path, backend: str) -> list[str]:
        return self.stage.command(self.paths, inputs, out, backend)

    def written(
        self, inputs: list[Path] | None = None, *options: object, backend: str = "cpu"
    ) -> Contents:
        """What a run writes that has to succeed, to a new folder."""
        out = self.folder / f"out{len(list(self.folder.iterdir()))}"
        out.mkdir()
        given = named(self.stage, self.plain if inputs is None else inputs)
        done = self.ngsgpu(*self.command(given, out, backend), *options)
        assert done.status == 0, done.err
        return self.seen(out)

    def seen(self, out: Path) -> Contents:
        """All outputs, without what names the inputs."""
        found = content(out)
        found.pop("counts/manifest.json", None)
        return found


@pytest.fixture
def runs(ngsgpu: Commands, paths: dict[str, Path], name: str, tmp_path: Path) -> Runs:
    return Runs(ngsgpu, STAGES[name], paths, tmp_path)


@pytest.fixture
def takes_streams(runs: Runs, backend: str) -> None:
    """For tests whose inputs or outputs are no files."""
    if backend != "cpu" and not runs.stage.streams_on_gpu:
        pytest.skip("on a GPU it needs files")


_expected: dict[str, Contents] = {}


@pytest.fixture
def expected(runs: Runs, name: str) -> Contents:
    """What one thread of the CPU writes of plain files, all at once."""
    if name not in _expected:
        _expected[name] = runs.written(None, "--threads", 1)
        outputs = runs.stage.outputs.values()
        assert all(_expected[name][own] != b"" for own in outputs)
    return _expected[name]


def in_turn(contents: Contents) -> Contents:
    """Outputs with those for both mates as one."""
    sides = [(contents[side] or b"").splitlines(keepends=True) for side in ("1.fq", "2.fq")]
    records = [[lines[at : at + 4] for at in range(0, len(lines), 4)] for lines in sides]
    both = [b"".join(record) for pair in zip(*records, strict=True) for record in pair]
    return {name: data for name, data in contents.items() if name != "2.fq"} | {
        "1.fq": b"".join(both)
    }


@every_stage
@pytest.mark.parametrize(
    ("threads", "units", "chunk"), [(1, 1, 1 << 20), (2, 7, 5_000), (4, 10_000, 20_000)]
)
def test_threads_tasks_and_chunks_decide_nothing(
    runs: Runs, expected: Contents, backend: str, monkeypatch: pytest.MonkeyPatch,
    threads: int, units: int, chunk: int,
) -> None:  # fmt: skip
    small = partial(RunOptions, units_per_task=units, chunk_bytes=chunk)
    monkeypatch.setattr("ngsgpu.run.options.RunOptions", small)
    assert runs.written(None, "--threads", threads, backend=backend) == expected


@every_stage
def test_outputs_in_memory_that_several_threads_fill(
    runs: Runs, expected: Contents, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AtomicFile, "is_in_memory", True)
    monkeypatch.setattr(in_memory, "_SMALL", 1000)
    assert runs.written(None, "--threads", 8, backend=backend) == expected


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "gzip of several members": lambda text: members(text, 5000),
    "BGZF": lambda text: bgzf(text, 999),
    "Zstandard": zstd.compress,
}


@every_stage
@pytest.mark.parametrize("form", FORMS)
def test_compressed_inputs(runs: Runs, expected: Contents, backend: str, form: str) -> None:
    """Whatever their names."""
    inputs = [write(runs.folder / own.name, FORMS[form](own.read_bytes())) for own in runs.plain]
    assert runs.written(inputs, "--threads", 2, backend=backend) == expected


@every_stage
@pytest.mark.parametrize("chunk", [2_000, 1 << 20])
def test_pairs_in_one_file(
    runs: Runs, expected: Contents, backend: str, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr("ngsgpu.run.options.RunOptions", partial(RunOptions, chunk_bytes=chunk))
    inputs = write_mates(runs.folder / "one", alternating(*SIDES))
    found = runs.written(inputs, backend=backend)
    assert found == (in_turn(expected) if runs.stage.joined else expected)


@every_stage
def test_lanes_follow_one_another(runs: Runs, expected: Contents, backend: str) -> None:
    """Into one output; an empty one among them."""
    inputs: list[object] = []
    for lane, (begin, end) in enumerate(((0, 100), (100, 100), (100, None))):
        sides = [side[begin:end] for side in SIDES]
        inputs += named(runs.stage, write_mates(runs.folder / f"lane{lane}", *sides))
    out = runs.folder / "out"
    out.mkdir()
    done = runs.ngsgpu(*runs.command(inputs, out, backend))
    assert done.status == 0, done.err
    assert runs.seen(out) == expected


@every_stage
@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_compressed_outputs(runs: Runs, expected: Contents, backend: str, suffix: str) -> None:
    """Of the same bytes on any number of threads."""
    stage = runs.stage.compressed(suffix)
    packed = Runs(runs.ngsgpu, stage, runs.paths, runs.folder / "packed")
    found = [packed.written(None, "--threads", threads, backend=backend) for threads in (1, 4)]
    assert found[0] == found[1]
    for own, data in expected.items():
        if data is None or own.startswith("counts"):
            assert found[0][own] == data
        else:
            path = packed.folder / "out1" / f"{own}{suffix}"
            assert decompressed(path) == data


@every_stage
@pytest.mark.parametrize("form", ["plain", "gzip"])
def test_no_reads(runs: Runs, backend: str, form: str) -> None:
    """Nothing goes in, nothing comes out, in files that are there."""
    data, stage = b"", runs.stage
    if form == "gzip":
        data, stage = gzip.compress(data), stage.compressed(".gz")
    empty = Runs(runs.ngsgpu, stage, runs.paths, runs.folder / "empty")
    inputs = [write(empty.folder / f"{mate}.fq", data) for mate in (1, 2)]
    stats = ["--stats", runs.folder / "stats.json"]
    found = empty.written(inputs, *stats, backend=backend)
    out = next(empty.folder.glob("out*"))
    for own in stage.outputs.values():
        assert own in found
        if own.removesuffix(".gz").endswith((".fq", ".fa")):
            assert decompressed(out / own) == b""


@every_stage
@pytest.mark.parametrize(
    ("sides", "said"),
    [
        ([SIDES[0], SIDES[1][:-1]], "record 350: ends after 349 records"),
        ([alternating(*SIDES)[:-1]], "record 699: an interleaved file must have an even number"),
        ([SIDES[0], SIDES[1][1:] + SIDES[1][:1]], "record 1, line 1: the names"),
        ([alternating(*SIDES)[1:] + SIDES[0][:1]], "record 2, line 5: the names"),
    ],
    ids=["missing", "missing in one file", "out of step", "out of step in one file"],
)
def test_mates_that_are_none(
    runs: Runs, backend: str, sides: list[list[Record]], said: str
) -> None:
    """The file that has them is named, and nothing written."""
    if not runs.stage.interleaved:
        pytest.skip("they are single reads to it")
    inputs = write_mates(runs.folder / "wrong", *sides)
    out = runs.folder / "out"
    out.mkdir()
    done = runs.ngsgpu(*runs.command(named(runs.stage, inputs), out, backend))
    assert done.status == 2
    assert done.error.startswith(f"{inputs[-1]}, {said}")
    assert content(out) == {}


@every_stage
@pytest.mark.parametrize("layout", ["two files", "one file"])
def test_a_bad_record_is_named_and_nothing_written(runs: Runs, backend: str, layout: str) -> None:
    """In the same words on any backend; what stood there stays."""
    sides = [*SIDES] if layout != "one file" else [alternating(*SIDES)]
    inputs = write_mates(runs.folder / "bad", *sides)
    text = inputs[-1].read_bytes()[:-60]
    write(inputs[-1], text)
    out = runs.folder / "out"
    out.mkdir()
    old = runs.stage.files[0]
    write(out / old, b"old")
    done = runs.ngsgpu(*runs.command(named(runs.stage, inputs), out, backend))
    assert done.status == 2
    number = text.count(b"@read")
    assert done.error.startswith(f"{inputs[-1]}, record {number:,}, line {4 * number:,}: ")
    assert content(out) == {old: b"old"}


def fill(path: Path, data: bytes) -> None:
    """Write to a pipe whose reader may go away."""
    try:
        path.write_bytes(data)
    except BrokenPipeError:
        return


@every_stream
@pytest.mark.usefixtures("takes_streams")
@pytest.mark.parametrize("cut", [0, 60])
def test_named_pipes(runs: Runs, expected: Contents, backend: str, cut: int) -> None:
    """Of which the second one ends within a record, or not."""
    inputs = [runs.folder / f"{mate}.pipe" for mate in (1, 2)]
    texts = [own.read_bytes() for own in runs.plain]
    texts[1] = texts[1][: len(texts[1]) - cut]
    for path, text in zip(inputs, texts, strict=True):
        os.mkfifo(path)
        threading.Thread(target=fill, args=(path, text), daemon=True).start()
    if not cut:
        assert runs.written(inputs, backend=backend) == expected
        return
    out = runs.folder / "out"
    out.mkdir()
    done = runs.ngsgpu(*runs.command(named(runs.stage, inputs), out, backend))
    assert done.status == 2
    assert done.error.startswith(f"{inputs[1]}, record {len(SIDES[1])}, line ")
    assert content(out) == {}


@every_stage
def test_a_stage_that_needs_files_on_a_gpu_says_so(runs: Runs, backend: str) -> None:
    """And what to do."""
    if backend == "cpu" or runs.stage.streams_on_gpu:
        pytest.skip("it takes streams")
    out = runs.folder / "out"
    out.mkdir()
    pipe = runs.folder / "1.pipe"
    os.mkfifo(pipe)
    done = runs.ngsgpu(*runs.command(named(runs.stage, [pipe, runs.plain[1]]), out, backend))
    assert done.status == 2
    assert done.error.endswith("; name files or use --backend cpu")
    assert content(out) == {}


@every_stream
@pytest.mark.usefixtures("takes_streams")
@pytest.mark.parametrize("layout", ["one file", "second mates"])
def test_standard_input_and_output(
    runs: Runs, expected: Contents, backend: str, layout: str
) -> None:
    """Compressed in, plain out; what is kept of standard input goes with the run."""
    out, temporary = runs.folder / "out", runs.folder / "temporary"
    out.mkdir()
    temporary.mkdir()
    given, records = ["-"], alternating(*SIDES)
    if layout == "second mates":
        given, records = [str(runs.plain[0]), "-"], SIDES[1]
    own = runs.stage.files[0]
    option = next(option for option, name in runs.stage.outputs.items() if name == own)
    command = runs.command(named(runs.stage, given), out, backend)
    command[command.index(option) + 1] = "-"
    done = subprocess.run(
        [copies.ngsgpu(), *command],
        input=gzip.compress(fastq(records)),
        env=os.environ | {"TMPDIR": str(temporary), "NGSGPU_LOCK_DIR": str(runs.folder / "locks")},
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    joined = runs.stage.joined and layout == "one file"
    wanted = in_turn(expected) if joined else dict(expected)
    assert done.stdout == wanted.pop(own)
    assert runs.seen(out) == wanted
    assert content(temporary) == {}


@every_stage
def test_outputs_that_are_there_are_replaced(runs: Runs, expected: Contents, backend: str) -> None:
    out = runs.folder / "out"
    out.mkdir()
    for own in runs.stage.files:
        write(out / own, b"old")
    done = runs.ngsgpu(*runs.command(named(runs.stage, runs.plain), out, backend))
    assert done.status == 0, done.err
    assert runs.seen(out) == expected


@every_stage
@pytest.mark.usefixtures("takes_streams")
def test_all_outputs_or_none_where_the_disk_is_full(runs: Runs, backend: str) -> None:
    files = {own: option for option, own in runs.stage.outputs.items()}
    for full in [*runs.stage.files, "stats"]:
        out = runs.folder / f"full-{full}"
        out.mkdir()
        before = {own: b"old" for own in runs.stage.files if own != full}
        for own, data in before.items():
            write(out / own, data)
        command = runs.command(named(runs.stage, runs.plain), out, backend)
        if full == "stats":
            command += ["--stats", "/dev/full"]
        else:
            command[command.index(files[full]) + 1] = "/dev/full"
        done = runs.ngsgpu(*command)
        assert done.status == 1
        assert done.error.endswith("the disk is full; free some space or write elsewhere")
        assert content(out) == before


@every_stream
@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGTERM, 143, b"ngsgpu: terminated\n"),
        (signal.SIGINT, 130, b"ngsgpu: interrupted\n"),
        (signal.SIGKILL, -9, b""),
    ],
)
def test_a_run_that_is_ended_leaves_what_stood_there(
    runs: Runs, expected: Contents, number: int, status: int, said: bytes
) -> None:
    """While it reads; the next one removes what a killed one could not."""
    out, temporary = runs.folder / "out", runs.folder / "temporary"
    out.mkdir()
    temporary.mkdir()
    old = runs.stage.files[0]
    write(out / old, b"old")
    # A copy would go a moment after it is killed.
    program = [copies.ngsgpu()] if said else [sys.executable, "-m", "ngsgpu"]
    command = runs.command(named(runs.stage, ["-"]), out, "cpu")
    with subprocess.Popen(
        [*program, *command],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(temporary)},
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        reads: list[Record] = alternating(*SIDES)
        process.stdin.write(fastq(reads))  # more than a pipe holds: it has begun to read
        process.stdin.flush()
        process.send_signal(number)
        assert process.wait(60) == status
        assert process.stderr.read().endswith(said)
    assert (out / old).read_bytes() == b"old"
    assert content(temporary) == {}  # what is kept of standard input has no name
    if number != signal.SIGKILL:
        assert content(out) == {old: b"old"}
    done = runs.ngsgpu(*runs.command(named(runs.stage, runs.plain), out, "cpu"))
    assert done.status == 0, done.err
    assert runs.seen(out) == expected
