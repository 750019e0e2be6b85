"""The memory of a run is known before it is taken, and a run that does not fit is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.correct import (
    CorrectionParameters,
    MinhashParameters,
    RunOptions,
    correct_files,
    plan_files,
)
from ngsgpu.correct.cpu_run import CorrectionPlan, plan_correction
from ngsgpu.device.memory import parse_size
from ngsgpu.errors import OUT_OF_MEMORY, UsageError
from ngsgpu.extend.cpu_run import plan_extension
from ngsgpu.extend.outputs import ExtensionOutputs
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.extend.stage import extend_files
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.readset import ReadSetBuilder
from ngsgpu.run.options import Contents
from tests.support.commands import Commands, names
from tests.support.correct.data import mates, simulated_pairs
from tests.support.io.records import fasta, fastq, write

Batches = tuple[RecordBatch, ...]


def test_dry_run(tmp_path: Path, ngsgpu: Commands) -> None:
    first, second = mates(simulated_pairs())
    one, two = write(tmp_path / "1.fq", fastq(first)), write(tmp_path / "2.fq", fastq(second))
    done = ngsgpu.corrects("-i", one, "-I", two, "--dry-run", "--memory", "3G", "--hashes", 40)
    count, bases = 2 * len(first), sum(len(r.bases) for r in simulated_pairs())
    assert re.search(r"^backend +cpu", done.out, re.MULTILINE)
    assert f"reads    {count:,} with {bases:,} bases, the longest 100\n" in done.out
    assert "tables   40\n" in done.out
    assert "batches  1 of 4,096 pairs\n" in done.out
    assert re.search(
        r"^memory   [\d.]+ MiB of 3\.0 GiB: reads .*, tables .*, results ", done.out, 8
    )
    assert names(tmp_path) == ["1.fq", "2.fq"]


def test_dry_run_reads_the_input(tmp_path: Path, ngsgpu: Commands) -> None:
    bad = write(tmp_path / "bad.fq", fastq(simulated_pairs())[:-10])
    done = ngsgpu.correct("-i", bad, "-o", tmp_path / "out", "--dry-run")
    assert done.status == 2
    assert str(bad) in done.error
    assert names(tmp_path) == ["bad.fq"]


@pytest.mark.parametrize("text", [b"", fastq(simulated_pairs()), fasta(simulated_pairs())])
@pytest.mark.parametrize("dry", [["--dry-run"], []])
def test_too_little_memory(
    tmp_path: Path, ngsgpu: Commands, monkeypatch: pytest.MonkeyPatch, text: bytes, dry: list[str]
) -> None:
    def never(*_: object, **__: object) -> None:
        pytest.fail("tables were built")

    monkeypatch.setattr("ngsgpu.correct.cpu_run.build_tables", never)
    path = write(tmp_path / "in", text)
    done = ngsgpu.correct("-i", path, "-o", tmp_path / "out", "--memory", "100M", *dry)
    assert done.status == OUT_OF_MEMORY
    count = text.count(b"run:1:")
    assert re.match(
        rf"correcting {count:,} reads takes [\d.,]+ MiB of memory and 100\.0 MiB may be used; "
        r"try .*--memory \d+M on a machine that has it$",
        done.error,
    )
    assert names(tmp_path) == ["in"]


def test_as_much_memory_as_was_asked_for(tmp_path: Path, ngsgpu: Commands) -> None:
    path = write(tmp_path / "in", fastq(simulated_pairs()))
    refused = ngsgpu.correct("-i", path, "-o", tmp_path / "out", "--memory", "100M")
    wanted = re.search(r"--memory (\S+)", refused.error)
    assert wanted
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out", "--memory", wanted[1])


def plan(
    reads: int, budget: int, *, hashes: int = 48, quality_bits: int = 8, length: int = 100
) -> CorrectionPlan:
    parameters = CorrectionParameters(
        minhash=MinhashParameters(hashes=hashes), quality_bits=quality_bits
    )
    return plan_correction(
        parameters,
        Contents(reads, reads * length, length, paired=True),
        threads=8,
        budget_bytes=budget,
    )


@pytest.mark.parametrize("reads", [0, 1, 1000, 3_000_000, 500_000_000])
@pytest.mark.parametrize("part", [0.01, 0.5, 0.8, 0.95, 0.999, 1.0])
def test_advice_is_right(reads: int, part: float) -> None:
    whole = plan(reads, 1).total
    budget = int(part * whole)
    made = plan(reads, budget)
    if part == 1.0:
        made.check()
        return
    with pytest.raises(UsageError) as refused:
        made.check()
    message = str(refused.value)
    for advice in re.findall(r"`(\w+=\S+)`", message):
        name, value = advice.replace("'", "").split("=")
        changes = {
            "hashes": lambda v: plan(reads, budget, hashes=int(v)),
            "quality_bits": lambda v: plan(reads, budget, quality_bits=int(v)),
            "memory": lambda v: plan(reads, parse_size(v)),
        }
        changes[name](value).check()
    if part > 0.9 and reads > 1000:
        assert "`hashes=" in message
        assert "`quality_bits=2`" in message


def test_memory_of_the_goal() -> None:
    """At most 1 GB for a million reads of 100 bases and 48 tables, above what is always taken."""
    more = plan(11_000_000, 1 << 50).total - plan(10_000_000, 1 << 50).total
    assert more < 1e9


def test_plan_from_python(tmp_path: Path) -> None:
    path = write(tmp_path / "in", fastq(simulated_pairs()))
    made = plan_files([path], interleaved=True)
    assert (made.contents.reads, made.contents.paired, made.contents.longest) == (
        len(simulated_pairs()),
        True,
        100,
    )
    assert plan_files([path]).contents.paired is False
    with pytest.raises(UsageError, match="no reads given"):
        plan_files([])


@pytest.mark.parametrize("command", ["correct", "extend"])
def test_reading_ends_when_the_reads_cannot_fit(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ngsgpu: Commands
) -> None:
    """With part of what is needed, not more than that part is read, about."""
    first, second = mates(simulated_pairs())
    one, two = write(tmp_path / "1.fq", fastq(first)), write(tmp_path / "2.fq", fastq(second))
    added = []
    add_all = ReadSetBuilder.add_all

    def counted(builder: ReadSetBuilder, batches: Iterator[Batches]) -> Iterator[Batches]:
        for batch in add_all(builder, batches):
            added.append(sum(map(len, batch)))
            yield batch

    monkeypatch.setattr(ReadSetBuilder, "add_all", counted)
    # As if reads took very much.
    monkeypatch.setattr("ngsgpu.minhash.tables.entry_bytes", lambda *_: 1 << 14)
    monkeypatch.setattr("ngsgpu.minhash.ends.planned_bytes", lambda reads, *_: reads << 19)
    total = 2 * len(first)
    nothing = Contents(0, 0, 100, paired=True)
    if command == "correct":
        least = plan_correction(CorrectionParameters(), nothing, threads=1, budget_bytes=1)
    else:
        least = plan_extension(ExtensionParameters(), nothing, threads=1, budget_bytes=1)
    memory = least.total + (total * 3 << 17)
    options = RunOptions(memory=memory, chunk_bytes=1 << 12, threads=1)
    inputs, outputs = ([one], [two]), ([tmp_path / "a"], [tmp_path / "b"])
    with pytest.raises(UsageError, match=r"about .* takes .* of memory and") as refused:
        if command == "correct":
            correct_files(inputs[0], outputs[0], inputs[1], outputs[1], options=options)
        else:
            extend_files(*inputs, outputs=ExtensionOutputs(str(tmp_path / "a")), options=options)
    assert 0.3 * total < sum(added) < 0.9 * total
    estimated = int(re.search(r"about ([\d,]+)", str(refused.value))[1].replace(",", ""))
    assert estimated * (1 if command == "correct" else 2) == pytest.approx(total, rel=0.1)
    assert names(tmp_path) == ["1.fq", "2.fq"]
