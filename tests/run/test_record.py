"""The driver of stages that decide record by record, with a stage that keeps every third unit."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.errors import DeviceError, InputError, UnsuitableError, UsageError
from ngsgpu.io.inputs import ReadFiles, plan_lanes
from ngsgpu.run.options import RunOptions
from ngsgpu.run.record import Batch, Made, RecordDriver, RecordStage, Task
from ngsgpu.run.statistics import RunStatistics
from tests.support.io.records import Record, fastq, write


class Statistics(RunStatistics):
    SCHEMA = "tests.thirds"


class Thirds(RecordStage[Statistics]):
    """Keeps units whose length, which is their number, is a multiple of three."""

    NAME = "third"
    DOING = "taking thirds"
    WORK = "taking thirds"
    phred_offset = "auto"
    learned = 0

    def learn(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        first = next(batches)
        self.learned = int(first.mates[0].seq_len[0])
        return itertools.chain([first], batches)

    def targets(self, lane: ReadFiles) -> dict[int, int]:
        return dict(enumerate(lane.outputs))

    def no_counts(self) -> Any:
        return np.zeros(2, dtype=np.int64)

    def on_cpu(self, task: Task) -> Made:
        mates, lane, begin, end, _ = task
        pieces: list[list[bytes]] = [[] for _ in lane.outputs]
        kept = 0
        for unit in range(begin, end):
            if mates[0].seq_len[unit] % 3:
                continue
            kept += 1
            for number, own in enumerate(mates):
                record = own.data[own.header_start[unit] - 1 : own.record_end[unit]]
                pieces[0 if lane.interleaved else number].append(record.tobytes())
        made = [np.frombuffer(b"".join(own), dtype=np.uint8) for own in pieces]
        return Made(made, np.array([end - begin, kept]))

    def on_gpu(self, chunk_bytes: int) -> Any:
        raise DeviceError("no memory is left; buy more")

    def texts(self, counts: Any) -> list[str]:
        return [f"{counts[1]} of {counts[0]}\n"]

    def statistics(self, options: RunOptions, backend: str, counts: Any) -> Statistics:
        return Statistics(
            backend=backend, device="", command=[], parameters={"kept": int(counts[1])}
        )


def inputs(folder: Path, layout: str, units: int) -> tuple[list[list[Path]], list[bytes]]:
    """Two lanes of units whose lengths are their numbers; what is expected of each output."""
    texts = [
        [Record(b"r%d" % size, letter * size, b"I" * size) for size in range(1, units)]
        for letter in (b"A", b"C")
    ]
    if layout == "single":
        texts = texts[:1]
    elif layout == "interleaved":
        texts = [[record for pair in zip(*texts, strict=True) for record in pair]]
    cut = len(texts[0]) // 4 * 2
    lanes = [
        [
            write(folder / f"{lane}.{mate}.fq", fastq(own[part]))
            for lane, part in enumerate((slice(cut), slice(cut, None)))
        ]
        for mate, own in enumerate(texts)
    ]
    kept = [fastq(record for record in own if len(record.bases) % 3 == 0) for own in texts]
    return lanes, kept


def run(folder: Path, lanes: list[list[Path]], layout: str, **options: Any) -> list[bytes]:
    """Both lanes to one output for each mate."""
    outputs = [folder / f"o{mate}" for mate in range(len(lanes))]
    planned = plan_lanes(
        lanes[0], lanes[1] if len(lanes) > 1 else [], outputs[:1], outputs[1:],
        interleaved=layout == "interleaved",
    )  # fmt: skip
    stage, stats, text = Thirds(), folder / "s.json", folder / "text"
    driver = RecordDriver(*planned, RunOptions(**options), texts=[str(text)], stats=stats)
    driver.note_time("prepared")
    statistics = driver.run(stage)
    assert stage.learned == 1
    document = json.loads(stats.read_text())
    assert list(document["time_s"]) == ["prepared", "third", "total"]
    assert document["backend"] == statistics.backend == "cpu"
    assert text.read_text().startswith(f"{document['parameters']['kept']} of ")
    return [path.read_bytes() for path in outputs]


@pytest.mark.parametrize("layout", ["single", "pairs", "interleaved"])
def test_output_depends_on_nothing_else(tmp_path: Path, layout: str) -> None:
    lanes, expected = inputs(tmp_path, layout, 90)
    ways = itertools.product((1, 3), (500, 1 << 20), (1, 7, None))
    for threads, chunk_bytes, units in ways:
        options = {"threads": threads, "chunk_bytes": chunk_bytes, "units_per_task": units}
        assert run(tmp_path, lanes, layout, **options) == expected


def test_the_cpu_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(self: object, stage: RecordStage[Statistics], *_: object) -> None:
        stage.on_gpu(1)

    monkeypatch.setattr(RecordDriver, "_work_on_gpu", fail)
    monkeypatch.setattr("ngsgpu.run.options.keep_gpus", lambda count: None)
    lanes, expected = inputs(tmp_path, "pairs", 30)
    with pytest.raises(DeviceError, match="buy more"):
        run(tmp_path, lanes, "pairs", backend="cuda")
    assert not (tmp_path / "o0").exists()
    assert run(tmp_path, lanes, "pairs", backend="cuda", may_fall_back=True) == expected
    assert "no memory is left; continuing on the CPU" in caplog.text


def test_refusals(tmp_path: Path) -> None:
    lanes, _ = inputs(tmp_path, "single", 30)
    with pytest.raises(UsageError, match="input and output"):
        RecordDriver([ReadFiles((str(lanes[0][0]),), (0,))], [str(lanes[0][0])], RunOptions())
    driver = RecordDriver([ReadFiles((str(lanes[0][0]),), (0,))], ["-"], RunOptions(backend="cuda"))
    with pytest.raises(UnsuitableError, match="taking thirds on a GPU needs files"):
        driver.run(Thirds())

    class Qualities(Thirds):
        NEEDS_QUALITIES = True

    fasta = write(tmp_path / "r.fa", b">r\nACGT\n")
    driver = RecordDriver([ReadFiles((str(fasta),), (0,))], [str(tmp_path / "o")], RunOptions())
    with pytest.raises(InputError, match="this is FASTA, but taking thirds needs qualities"):
        driver.run(Qualities())
    assert not (tmp_path / "o").exists()
