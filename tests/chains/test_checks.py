"""What a chain checks before its first step runs, what its messages name, and who may read it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from datetime import date
from io import FileIO
from pathlib import Path

import pytest

import ngsgpu as package
from ngsgpu.chains import places
from ngsgpu.chains.flow import WIRINGS
from ngsgpu.errors import NgsgpuError
from tests.support import content
from tests.support.commands import Commands, read_json
from tests.support.io.records import write
from tests.support.protocol import make_pairs, write_mates


@pytest.fixture
def world(tmp_path: Path, ngsgpu: Commands, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with 1.fq, 2.fq, an index and a database."""
    monkeypatch.chdir(tmp_path)
    genome, *sides = make_pairs(count=60)
    for mate, path in zip("12", write_mates(tmp_path / "reads", *sides), strict=True):
        path.rename(tmp_path / f"{mate}.fq")
    write(tmp_path / "g.fa", f">one\n{genome}\n".encode())
    assert ngsgpu("deplete-index", "g.fa", "-o", "host.idx", "-q").status == 0
    assert ngsgpu("db", "build", "g.fa", "-d", "db", "-q").status == 0
    return tmp_path


LATE = {
    "level": ("correct: {compress_level: 13}", "--compress-level must be from 1 to 12, not 13"),
    "no level": ("correct: {compress_level: x}", "step correct: "),
    "memory": ("correct: {memory: -5}", "step correct: '-5' is not a size"),
    "no memory": ("correct: {memory: [1G, 2G]}", "--memory takes one value"),
    "model": ("correct: {model: none.forests}", "none.forests"),
    "method": ("correct: {method: spectrum, hashes: 8}", "for --method msa"),
    "host": ("deplete: {index: none.idx}", "none.idx: cannot be read"),
    "no host": ("deplete: {index: g.fa}", "g.fa"),
    "database": ("classify: {database: none}", "there is no ngsgpu classification database here"),
    "no database": ("classify", "give a database with -d"),
    "columns": ("classify: {database: db, columns: [taxon, nope]}", "no columns 'nope'"),
    "lowest": ("classify: {database: db, lowest: kingdom of one}", "step classify: "),
    "partition": (
        "classify: {database: db, only_partition: 7, candidates: x}", "there is no partition 7",
    ),
    "server": ("classify: {database: db, server: none.sock, gpus: 1}", "options of `ngsgpu db"),
    "references": ("classify: {references: none.fa}", "none.fa"),
    "adapters": (
        "second: {command: trim, adapter_fasta: none.fa, json: b.json, out1: b.fq}", "none.fa",
    ),
    "colors": ("unitigs: {color: [db]}", "belong together"),
    "even": ("unitigs: {k: 30}", "step unitigs: "),
    "assembly": ("assemble: {method: euler, names: shovill}", "--method euler has no"),
    "outputs": ("correct: {stats: none/a.json}", "none/a.json: the directory does not exist"),
    "folder": ("correct: {stats: ../db}", "this is a directory"),
    "kept": ("correct: {out1: none/a.fq}", "none/a.fq: the directory does not exist"),
    "counts": ("kmers: {out: ../1.fq}", "1.fq"),
    "flag": ("correct: {mask: [true]}", "--mask takes one value"),
    "no flag": ("correct: {mask: 3}", "'mask' is true or false, not 3"),
    "table": ("correct: {hashes: {a: 1}}", "--hashes takes no table"),
    "nested": ("classify: {database: db, columns: [[taxon]]}", "--columns takes one value"),
    "twice": ("correct: {hash-es: 3, hash_es: 4}", "'hash_es' is there twice"),
    "two names": (
        "classify: {database: db, candidates: a, candidate_file: b}", "--candidates is given twice",
    ),
    "two values": ("correct: {hashes: [8, 16]}", "--hashes takes one value"),
}  # fmt: skip


@pytest.mark.parametrize("name", LATE)
def test_what_a_later_step_would_refuse_is_said_before_the_first_runs(
    world: Path, ngsgpu: Commands, name: str
) -> None:
    """And leaves nothing, as ``--dry-run`` does."""
    step, said = LATE[name]
    write(world / "c.yaml", f"steps:\n  - trim\n  - {step}\n".encode())
    before = content(world)
    for more in ([], ["--dry-run"]):
        done = ngsgpu("run", "c.yaml", "-i", "1.fq", "-o", "out", "-q", *more)
        assert done.status in (1, 2)
        assert said in done.error
        assert "ngsgpu-" not in done.error
    assert content(world) == before
    assert not (world / "out").exists()


def test_every_step_is_rehearsed(world: Path, ngsgpu: Commands) -> None:
    """None reads before it has checked all: pipes are still full, missing files are not missed."""
    options = {"deplete": "{index: host.idx}", "classify": "{database: db}"}
    for name in WIRINGS:
        step = name.replace(" count", "")
        write(world / "c.yaml", f"steps: [{{{step}: {options.get(step, '')}}}]".encode())
        words = ["-i", "none.fq", "-I", "none too.fq", "-o", name, "-q", "--backend", "cpu"]
        done = ngsgpu("run", "c.yaml", *words)
        assert done.status == 2 and "none.fq: no such file" in done.error, name
    write(world / "c.yaml", b"steps: [trim, {adapters: {fasta: none/x.fa}}]")
    pipe = world / "pipe"
    os.mkfifo(pipe)
    assert "the directory does not exist" in ngsgpu("run", "c.yaml", "-i", pipe, "-o", "out").error


def test_names_of_options_come_before_names_of_parameters(world: Path, ngsgpu: Commands) -> None:
    """``candidates`` is --candidates FILE, not the parameter of --candidates-kept."""
    write(world / "c.yaml", b"steps: [{classify: {database: db, candidates: 3}}]")
    done = ngsgpu("run", "c.yaml", "-i", "1.fq", "-o", "out")
    assert "--only-partition and --candidates go together" in done.error
    write(
        world / "c.yaml",
        b"steps: [{classify: {database: db, only_partition: 0, candidates: '{sample}.cand'}}]",
    )
    assert ngsgpu("run", "c.yaml", "-q", "-i", "1.fq", "--sample", "1", "-o", "out").status == 0
    alone = "classify -q -d db --only-partition 0 -i 1.fq --candidates 1.cand --sample 1"
    assert ngsgpu(*alone.split()).status == 0
    assert (world / "out/1.cand").read_bytes() == (world / "1.cand").read_bytes()
    assert "1.reads.tsv.gz" not in content(world / "out")


@pytest.mark.parametrize("name", ["c.yaml", "c.toml"])
def test_what_looks_like_a_date_is_a_title(world: Path, ngsgpu: Commands, name: str) -> None:
    texts = {
        "c.yaml": "steps: [{trim: {report_title: 2026-05-01}}]",
        "c.toml": "steps = ['trim']\n[trim]\nreport_title = 2026-05-01\n",
    }
    write(world / name, texts[name].encode())
    assert ngsgpu("run", name, "-q", "-i", "1.fq", "-o", "out").status == 0
    found = read_json(world / "out/chain.stats.json")
    assert found["parameters"]["trim"]["report_title"] == "2026-05-01"


def test_chains_of_python(world: Path) -> None:
    steps = [{"trim": {"report_title": date(2026, 5, 1), "length_required": 20}}]
    done = package.chain(steps, "1.fq", out="out", backend="cpu")
    assert done.parameters["trim"]["report_title"] == "2026-05-01"
    wrong = [
        ["trim", {"classify": {"database": "none"}}], ["trim", {"correct": {"hashes": {1, 2}}}],
        ["trim", {"correct": {"coverage": float("nan")}}], [("trim",)], [None],
    ]  # fmt: skip
    for own in wrong:
        with pytest.raises(NgsgpuError):
            package.chain(own, "1.fq", out="other", backend="cpu")  # type: ignore[arg-type]
    assert not Path("other").exists()


def test_a_stream_is_read_once(world: Path, ngsgpu: Commands) -> None:
    """By the first step, unless it passes reads on."""
    done = ngsgpu("run", "--steps", "adapters,kmers", "-i", "-", "-o", "out")
    assert done.status == 2
    assert done.error.startswith("step kmers: adapters has read the stream of reads before")


def test_a_folder_of_another_sample(world: Path, ngsgpu: Commands) -> None:
    """Is not mixed with the new one, whether that run came to its end or not."""
    run = ["run", "--steps", "trim", "-q", "-o", "out", "-i"]
    for _ in range(2):
        assert ngsgpu(*run, "1.fq", "--sample", "A").status == 0
    before = content(world)
    done = ngsgpu(*run, "2.fq", "--sample", "B")
    assert done.status == 2
    assert "out has the outputs of sample A; choose another folder for B" in done.error
    assert content(world) == before
    write(world / "bad.fq", (world / "1.fq").read_bytes()[:-20])
    run[run.index("out")] = "failed"
    assert ngsgpu(*run, "bad.fq").status == 2
    assert "of sample bad" in ngsgpu(*run, "1.fq").error


def test_messages_name_reads_and_not_their_files(world: Path, ngsgpu: Commands) -> None:
    write(world / "g.fq", b"@a\nACGT\n+\nIIII\n" * 3)
    fasta = write(world / "1.fa", b">a/1\nACGTACGTACGTACGT\n" * 40)
    words = ["-i", fasta, "-o", "out", "--backend", "cpu", "-q"]
    done = ngsgpu("run", "--steps", "deplete,merge", "--set", "deplete.index=host.idx", *words)
    assert "it needs pairs" in done.error
    done = ngsgpu("run", "--steps", "deplete,trim", "--set", "deplete.index=host.idx", *words)
    assert done.status == 2
    assert done.error.startswith("the reads of step deplete, record 1, line 1: ")
    mates = write(
        world / "m.fq",
        b"".join(
            b"@r%d/%d\nACGT%b\n+\n%b\n" % (number, mate, b"ACGTTGCAAC" * 5, b"I" * 54)
            for number in range(50)
            for mate in (2, 1)
        ),
    )
    done = ngsgpu(
        "run", "--steps", "deplete,correct", "--set", "deplete.index=host.idx", "-i", mates,
        "--interleaved", "-o", "x", "--backend", "cpu",
    )  # fmt: skip
    for said in (done.err, (world / "x/ngsgpu.log").read_text()):
        assert "the reads of step deplete: the first mates of its pairs are named as second" in said
        assert "/dev/shm" not in said


def watch(place: Path, seen: dict[str, int], stop: threading.Event) -> None:
    """Note the rights of all that appears below a folder."""
    while not stop.is_set():
        for folder, _, files in os.walk(place):
            if ".ngsgpu-" in folder or any(".ngsgpu-" in own for own in files):
                for path in (folder, *(f"{folder}/{own}" for own in files)):
                    try:
                        seen[path] = seen.get(path, 0) | stat.S_IMODE(Path(path).stat().st_mode)
                    except OSError:
                        continue
        time.sleep(0.002)


@pytest.mark.parametrize("where", ["memory", "TMPDIR", "output folder"])
def test_reads_between_steps_are_their_users_alone(world: Path, where: str) -> None:
    """Whatever the mask is."""
    place = {"memory": places._MEMORY, "TMPDIR": world / "tmp", "output folder": world}[where]
    (world / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(world / "tmp")}
    if where == "output folder":
        del environment["TMPDIR"]
    code = "import os; os.umask(0)\nfrom pathlib import Path\nfrom ngsgpu.chains import places\n"
    if where != "memory":
        code += "places._MEMORY = Path('/nowhere')\n"
    code += "from ngsgpu.__main__ import main_cli; main_cli()"
    write(
        world / "c.yaml",
        b"steps: [trim, correct, merge, {classify: {database: db}}, assemble]",
    )
    words = ["run", "c.yaml", "-q", "-i", "1.fq", "-I", "2.fq", "-o", "out", "--backend", "cpu"]
    seen: dict[str, int] = {}
    stop = threading.Event()
    watching = threading.Thread(target=watch, args=(place, seen, stop))
    watching.start()
    try:
        subprocess.run([sys.executable, "-c", code, *words], env=environment, check=True)
    finally:
        stop.set()
        watching.join()
    between = {path: mode for path, mode in seen.items() if ".ngsgpu-" in Path(path).parent.name}
    assert any(path.endswith("trim-out1.fastq") for path in between)
    assert not {path: oct(mode) for path, mode in between.items() if mode & 0o077}
    folders = {Path(path).parent for path in between}
    assert not {str(own) for own in folders if seen[str(own)] & 0o077}
    assert not list((world / "tmp").iterdir())


def test_a_sheet_with_inputs_that_cannot_be_read(world: Path, ngsgpu: Commands) -> None:
    """They are named, and the others run."""
    (world / "folder.fq").mkdir()
    sheet = "sample\tfastq_1\nA\t/proc/self/mem\nB\t1.fq\nC\tnone.fq\nD\tfolder.fq\nE\t2.fq\n"
    write(world / "s.tsv", sheet.encode())
    done = ngsgpu("run", "--steps", "trim", "--samples", "s.tsv", "-o", "out", "--backend", "cpu")
    assert done.status == 2
    assert "unexpected" not in done.err and "Traceback" not in done.err
    for sample in "ACD":
        assert f"ngsgpu: {sample}: " in done.err
    assert {path.parent.name for path in Path("out").glob("*/trimmed.fastq.gz")} == {"B", "E"}


def test_a_first_read_that_fails(
    world: Path, ngsgpu: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of what is only looked at, to learn the size."""

    class Failing(FileIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(5, os.strerror(5))

    class Bad(type(Path())):  # type: ignore[misc]
        def open(self, mode: str) -> FileIO:
            return Failing(self, mode.replace("b", ""))

    monkeypatch.setattr(places, "Path", Bad)
    done = ngsgpu("run", "--steps", "trim", "-i", "1.fq", "-o", "out", "--backend", "cpu")
    assert done.status == 2
    assert done.error.startswith("1.fq: Input/output error")
