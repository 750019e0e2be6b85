"""Batches of record stages on a GPU: their order and reuse, on machines without one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

from ngsgpu.deplete import DepletionParameters, IndexParameters
from ngsgpu.deplete import gpu as deplete_gpu
from ngsgpu.deplete.cpu import COUNTERS as DEPLETE_COUNTERS
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.errors import UnsuitableError
from ngsgpu.io.gpu.parse import HEADROOM
from ngsgpu.io.gpu.records import MIN_CHUNK
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.merge import MergeParameters
from ngsgpu.merge import gpu as merge_gpu
from ngsgpu.merge.cpu import COUNTERS as MERGE_COUNTERS
from ngsgpu.merge.cpu import Wanted
from ngsgpu.merge.sample import unlearned
from ngsgpu.run import record_gpu
from ngsgpu.run.record_gpu import LEAST_BYTES, RecordKernels, ResultBatch, run_on_gpu
from ngsgpu.trim import TrimParameters
from ngsgpu.trim import gpu as trim_gpu
from ngsgpu.trim.cpu import FAILED, KEPT1, KEPT2, UNPAIRED1
from ngsgpu.trim.duplicates import Duplicates
from ngsgpu.trim.rules import Rules, rules_of

ROOT = Path(__file__).parents[2]
CHUNK = SimpleNamespace(
    slot=SimpleNamespace(
        raw="raw", line_end="line_end", seq_start=np.zeros(1000), qual_start="qual_start",
        lengths="lengths",
    ),
    begin=3, max_length=100,
)  # fmt: skip


class FakeArray(np.ndarray):
    """An array that is on the host already."""

    def get(self, stream: Any = None, out: Any = None, blocking: bool = True) -> Any:
        if out is None:
            return np.asarray(self)
        out[:] = self
        return out


class Gpu:
    """A GPU that notes what happens on it.

    Attributes:
        events: in their order.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.events: list[tuple[Any, ...]] = []
        stream = SimpleNamespace(wait_event=lambda event: self.events.append(("wait", event)))
        cuda = SimpleNamespace(
            Event=lambda disable_timing: SimpleNamespace(
                record=lambda stream: None, synchronize=lambda: None
            ),
            Stream=lambda non_blocking: stream,
            get_current_stream=lambda: stream,
            Device=lambda: SimpleNamespace(attributes={"MaxSharedMemoryPerBlockOptin": 100 << 10}),
        )
        make = {
            name: lambda shape, dtype, made=made: made(shape, dtype).view(FakeArray)
            for name, made in (("empty", np.empty), ("zeros", np.zeros))
        }
        cupy = SimpleNamespace(
            cuda=cuda,
            asarray=np.asarray,
            uint8=np.uint8,
            uint32=np.uint32,
            uint64=np.uint64,
            **make,
        )
        monkeypatch.setitem(sys.modules, "cupy", cupy)
        monkeypatch.setattr(record_gpu, "pinned_empty", lambda size: np.empty(size, np.uint8))
        monkeypatch.setattr(record_gpu, "no_bad_pair", lambda: None)
        monkeypatch.setattr(record_gpu, "DeviceReadFiles", self._read)
        monkeypatch.setattr(record_gpu, "DeviceWriter", lambda files, threads: _Writer(self))
        for module in (deplete_gpu, merge_gpu, trim_gpu):
            monkeypatch.setattr(module, "KERNELS", SimpleNamespace(launch=self._launch))
            monkeypatch.setattr(module, "device_classes", lambda: "classes", raising=False)
        monkeypatch.setattr(Struct, "on_device", lambda self, **values: self.pack(**_there(values)))

    def _launch(self, kernel: str, grid: Any, block: Any, arguments: Any, **more: Any) -> None:
        self.events.append((kernel, grid, arguments, more))

    def _read(self, lane: ReadFiles, *, chunk_bytes: int, first_pair: int, **options: Any) -> Any:
        self.events.append(("lane", lane.inputs, chunk_bytes, first_pair))
        return _Lane(int(lane.inputs[0]))


def _there(values: dict[str, Any]) -> dict[str, Any]:
    return {name: 0 if isinstance(one, np.ndarray) else one for name, one in values.items()}


class _Lane:
    cursors: tuple[Any, ...] = ()

    def __init__(self, batches: int) -> None:
        self._batches = batches

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def batches(self) -> Iterator[Any]:
        for number in range(self._batches):
            yield SimpleNamespace(
                parts=((CHUNK, number), (CHUNK, number + 1)), step=2, units=100, records=100
            )


class _Writer:
    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def put(self, index: int, data: Any, size: int, ready: Any) -> Any:
        self._gpu.events.append(("put", index, bytes(data[:size])))
        return "copied", index, bytes(data[:size])


class Numbers(RecordKernels):
    """Writes the number of each batch to the first output, and every second one's to the other."""

    FOUND = np.uint8
    sizes = (8, 8)

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self.done = 0

    def launch(self, batch: ResultBatch, records: Any) -> None:
        self._gpu.events.append(("launch", self.done))
        for output in batch.outputs:
            output[0] = self.done
        batch.totals[:] = 1, self.done % 2
        self.done += 1

    def counts(self) -> int:
        return self.done


def lanes(*batches: int) -> list[tuple[ReadFiles, Mapping[int, int]]]:
    return [
        (ReadFiles((str(count), "")), {0: 2 * lane, 1: 2 * lane + 1})
        for lane, count in enumerate(batches)
    ]


def test_batches_are_written_in_order_and_not_reused_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Gpu(monkeypatch)
    seen: list[int] = []
    kernels = Numbers(gpu)
    options: dict[str, Any] = {"phred_offset": 33, "advance": seen.append}
    assert run_on_gpu(lambda size: kernels, lanes(5, 0, 2), Any, **options) == 7
    assert sum(seen) == 700
    puts = [event for event in gpu.events if event[0] == "put"]
    assert puts == [
        ("put", 4 * (number > 4) + output, bytes([number]))
        for number in range(7)
        for output in range(1 + number % 2)
    ]
    assert [event[3] for event in gpu.events if event[0] == "lane"] == [0, 500, 500]
    # A batch takes the memory of that of three turns before, whose copies it waits for; the last
    # one is sent while the next one is worked on.
    for number in range(3, 7):
        at = gpu.events.index(("launch", number))
        assert gpu.events[at - 1][:2] == ("wait", ("copied", (number - 3) % 2, bytes([number - 3])))


def test_memory_makes_chunks_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(monkeypatch)
    made: list[int] = []

    def kernels(size: int) -> Numbers:
        made.append(size)
        return Numbers(gpu)

    for memory in (1, LEAST_BYTES * 4, None):
        run_on_gpu(kernels, lanes(1), Any, phred_offset=33, chunk_bytes=1 << 20, memory=memory)
    assert made == [MIN_CHUNK, 4 * MIN_CHUNK, 1 << 20]
    assert [event[2] for event in gpu.events if event[0] == "lane"] == made


def parameters_of(package: str, kernel: str) -> list[str]:
    """Names of a kernel's parameters, from its source."""
    source = (ROOT / "ngsgpu" / package / "kernels.cu").read_text()
    found = re.search(rf"\b{kernel}\((.*?)\)\s*\{{", source, re.DOTALL)
    shared = (ROOT / "ngsgpu/run/record.cuh").read_text().replace("\\\n", " ")
    mates = re.search(r"#define MATES\(Byte\)(.*)", shared)
    assert found is not None and mates is not None
    names = re.sub(r"\bMATES\([\w ]+\)", mates[1], found[1]).split(",")
    return [re.findall(r"\w+", one)[-1] for one in names]


def check_launches(gpu: Gpu, package: str, kernels: Sequence[str], batch: ResultBatch) -> None:
    """Check that kernels were launched with what their parameters are named for."""
    of_units = [event for event in gpu.events if event[0] != "count_reads"]
    for launched, kernel in zip(of_units, kernels, strict=True):
        assert launched[:2] == (kernel, (2,))
        given = dict(zip(parameters_of(package, kernel), launched[2], strict=True))
        for mate, record in ((1, 0), (2, 1)):
            for name in ("raw", "line_end", "qual_start", "lengths"):
                assert given.get(f"{name}{mate}", name) == name
            assert given[f"seq_start{mate}"] is CHUNK.slot.seq_start
            assert (given[f"begin{mate}"], given[f"record{mate}"]) == (3, record)
        assert given["step"] == 2
        assert given.get("units", given.get("pairs")) == 100
        for name in ("offsets", "tile_bytes"):
            assert given.get(name, getattr(batch, name)) is getattr(batch, name)
        assert given.get("totals", batch.totals) is batch.totals


def test_depletion_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(monkeypatch)
    monkeypatch.setattr(deplete_gpu, "to_device", np.asarray)
    index: Any = SimpleNamespace(
        parameters=IndexParameters(), table=np.zeros(16, np.uint32), kmers=9
    )
    lane = ReadFiles(("1", ""), (0, 1))
    kernels = deplete_gpu.DepletionKernels(index, DepletionParameters(), lane, 1 << 20)
    assert kernels.sizes == [HEADROOM + (1 << 20) + 64] * 2
    batch = ResultBatch((4, 4), 1000, kernels.FOUND)
    (records,) = _Lane(1).batches()
    kernels.launch(batch, records)
    check_launches(gpu, "deplete", ("find_kept", "write_kept"), batch)
    assert kernels.counts().tolist() == [0] * len(DEPLETE_COUNTERS)


def test_merging_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(monkeypatch)
    parameters = MergeParameters.flash()
    tables, rules = unlearned(parameters, 33), parameters.rules(65, 33)
    kernels = merge_gpu.MergingKernels(rules, tables, Wanted(True, True), 1 << 20)
    one = HEADROOM + (1 << 20) + 64
    assert kernels.sizes == [2 * one, 2 * one, one]
    batch = ResultBatch((4, 4, 4), 1000, kernels.FOUND)
    (records,) = _Lane(1).batches()
    kernels.launch(batch, records)
    check_launches(gpu, "merge", ("find_overlaps", "write_records"), batch)
    words = merge_gpu.plane_words(100)
    assert gpu.events[0][3] == {"shared_bytes": merge_gpu.shared_bytes(words)}
    assert kernels.counts().counters.tolist() == [0] * len(MERGE_COUNTERS)
    monkeypatch.setattr(CHUNK, "max_length", 1 << 20)
    with pytest.raises(UnsuitableError, match="reads of 1,048,576 bases are too long for the GPU"):
        kernels.launch(batch, records)


def trimming_rules(parameters: TrimParameters) -> Rules:
    adapters = parameters.adapter_sequence, parameters.second_adapter
    return rules_of(
        parameters, paired=True, two_colours=False, adapters=adapters, others=[], is_64=False
    )


def test_trimming_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = Gpu(monkeypatch)
    rules = trimming_rules(TrimParameters(adapter_sequence="ACGT"))
    wanted = trim_gpu.Wanted(frozenset([KEPT1, KEPT2]), True, True, Duplicates(1), False)
    kernels = trim_gpu.TrimmingKernels(rules, wanted, 1 << 20)
    kernels._keys[:] = 3  # all units are equal
    batch = ResultBatch((4,) * 5, 1000, kernels.FOUND)
    (records,) = _Lane(1).batches()
    kernels.launch(batch, records)
    check_launches(gpu, "trim/cuda", ("hash_units", "trim_units", "write_units"), batch)
    counted = [number for number, event in enumerate(gpu.events) if event[0] == "count_reads"]
    assert counted == [1, 2, 4, 5]
    for number, mate, trimmed in zip(counted, (0, 1) * 2, (0, 0, 1, 1), strict=True):
        names = parameters_of("trim/cuda", "count_reads")
        given = dict(zip(names, gpu.events[number][2], strict=True))
        assert (given["record"], given["step"], given["units"], given["mate"]) == (
            mate,
            2,
            100,
            mate,
        )
        assert (given["trimmed"] is kernels._trimmed) == bool(trimmed)
    counts = kernels.counts()
    assert (counts.results.tolist(), counts.duplicates) == ([0] * 32, 99)


def test_room_for_trimmed_records() -> None:
    """Pairs in one file take that of both; names take a UMI and reasons."""
    chunk = 1 << 20
    one, reasons = HEADROOM + chunk + 64, 32 * (1 << 15)
    plain, umi = (
        trimming_rules(TrimParameters(umi=umi, umi_loc="per_index" if umi else None))
        for umi in (False, True)
    )

    def sizes(rules: Rules, *outputs: int) -> list[int]:
        return trim_gpu.Wanted(frozenset(outputs), False, True, None, False).sizes(rules, chunk)

    assert sizes(plain, KEPT1, KEPT2) == [one, one, 1, 1, 1]
    assert sizes(plain, KEPT1, UNPAIRED1) == [2 * one, 1, 2 * one, 1, 1]
    assert sizes(plain, FAILED) == [1, 1, 1, 1, 2 * (one + reasons)]
    assert sizes(umi, KEPT1, KEPT2) == [3 * one + reasons // 2] * 2 + [1] * 3


def test_memory_makes_chunks_of_trimming_smaller() -> None:
    rules = trimming_rules(TrimParameters())
    wanted = trim_gpu.Wanted(frozenset([KEPT1, KEPT2, FAILED]), True, True, None, False)
    chunks = [wanted.chunk_within(rules, memory) for memory in (1, 64 << 20, 256 << 20, 1 << 40)]
    assert chunks == sorted(chunks)
    assert (chunks[0], chunks[-1]) == (MIN_CHUNK, 16 << 20)
    assert MIN_CHUNK < chunks[1] < chunks[2] < 16 << 20
