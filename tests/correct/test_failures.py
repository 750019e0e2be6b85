"""A failure in a thread ends the run with one line, whatever the thread was doing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.cli import main
from ngsgpu.correct import RunOptions, correct_reads
from ngsgpu.errors import OUT_OF_MEMORY
from ngsgpu.readset import ReadSet, ReadSetBuilder
from tests.support.commands import names
from tests.support.correct.data import mates, simulated_pairs
from tests.support.io.records import fastq, write

# Where a thread of a command works: what is replaced, and the command.
PLACES = {
    "correct": "ngsgpu.correct.cpu.correct_anchors",
    "extend": "ngsgpu.extend.cpu.extend_pairs",
    "merge": "ngsgpu.merge.stage.merge_records",
    "sign": "ngsgpu.minhash.cpu.sign_reads",
    "sort": "ngsgpu.minhash.cpu.sort_by_key",
    "sign ends": "ngsgpu.minhash.ends.sign_ends",
    "pack": "ngsgpu.readset.cpu.pack_records",
    "split": "ngsgpu.io.text.scan.scan_fastq",
    "read": "ngsgpu.io.compress.source.Source._read_chunk",
    "deflate": "ngsgpu.io.output.encoder._packed",
    "write": "ngsgpu.io.output.atomic.AtomicFile.write",
    "kmers": "ngsgpu.readset.kmers.sample_kmers",
    "sketch": "ngsgpu.classify.database.cpu_build.sketch_pieces",
}
COMMANDS = {"extend": "extend", "sign ends": "extend", "merge": "merge", "sketch": "db"}


def _exhausted(*_: Any, **__: Any) -> None:
    raise MemoryError


def _command(name: str, folder: Path) -> list[str]:
    sides = [fastq(side) for side in mates(simulated_pairs())]
    one, two = (str(write(folder / f"{i}.fq", text)) for i, text in enumerate(sides))
    out = folder / "out"
    out.mkdir()
    common = ["-t", "3", "-q", "--backend", "cpu"]
    if name == "db":
        write(folder / "g.fa", b">g\n" + b"ACGTTGCAAC" * 100 + b"\n")
        return ["db", "build", str(folder / "g.fa"), "-d", str(out / "db"), *common]
    if name == "correct":
        return [name, "-i", one, "-I", two, "-o", f"{out}/1.fq", "-O", f"{out}/2.fq.gz", *common]
    insert = ["--insert-size", "200", "--insert-sd", "20"] if name == "extend" else []
    return [name, "-i", one, "-I", two, "-o", f"{out}/1.fq.gz", *insert, *common]


@pytest.mark.parametrize("place", PLACES)
def test_memory_that_runs_out_in_a_thread(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = _command(COMMANDS.get(place, "correct"), tmp_path)
    monkeypatch.setattr(PLACES[place], _exhausted)
    assert main(command) == OUT_OF_MEMORY
    error = capsys.readouterr().err
    assert error.startswith("ngsgpu: error: memory ran out; use fewer threads")
    assert error.count("\n") == 1
    assert names(tmp_path / "out") == []
    assert not [one for one in threading.enumerate() if one.name.startswith("ngsgpu-write")]


def test_more_tasks_than_threads_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that failed used to take a workspace along, until the rest waited for one for ever."""
    monkeypatch.setattr(PLACES["correct"], _exhausted)
    records = simulated_pairs()
    reads = ReadSet.from_sequences([r.bases for r in records], [r.qualities for r in records])
    with pytest.raises(MemoryError):
        correct_reads(reads, options=RunOptions(threads=3, units_per_task=4))


@pytest.mark.parametrize("command", ["correct", "extend"])
@pytest.mark.parametrize("how", ["replaced", "written to"])
def test_an_input_that_changes_between_its_readings(
    command: str,
    how: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All lengths are as they were, so that only the file itself says so."""
    words = _command(command, tmp_path)
    first = Path(words[words.index("-i") + 1])
    other = first.read_bytes().translate(bytes.maketrans(b"ACGT", b"CGTA"))
    finish = ReadSetBuilder.finish

    def change(builder: ReadSetBuilder) -> ReadSet:
        if how == "replaced":
            write(tmp_path / "other", other)
            (tmp_path / "other").replace(first)
        else:
            write(first, other)
        return finish(builder)

    monkeypatch.setattr(ReadSetBuilder, "finish", change)
    assert main(words) == 2
    assert capsys.readouterr().err == (
        f"ngsgpu: error: {first}: the file changed during the run; "
        "run again when no other program writes to it\n"
    )
    assert names(tmp_path / "out") == []
