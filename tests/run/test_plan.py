"""Plans for GPUs, from the free memory that a stand-in has, and how plans are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ngsgpu.classify.database import gpu_build
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.device import plan as device_plan
from ngsgpu.device.plan import UP_TO, Allocation, GpuMemory, HostPlan
from ngsgpu.errors import DeviceMemoryError, HostMemoryError, InputError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.kmers import CountParameters, count
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.plan import in_turn, plan_records, reading_bytes, show_plan, text_bytes
from ngsgpu.run.record_gpu import MEMORY_PER_CHUNK_BYTE
from ngsgpu.suffix import build
from tests.support.all_commands import check_schema

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> RunOptions:
    """A run on a GPU with 8 GiB."""

    def memory(limit: int | None = None) -> GpuMemory:
        return GpuMemory(10 * GIB, 9 * GIB, 8 * GIB if limit is None else limit)

    for module in (device_plan, count, build, gpu_build):
        monkeypatch.setattr(module, "gpu_memory", memory)
    return RunOptions(backend="cuda", threads=2, memory=4 * GIB)


def reads(folder: Path, name: str = "r.fq", size: int = 1000) -> ReadFiles:
    (folder / name).write_bytes(b"x" * size)
    return ReadFiles((str(folder / name),))


def test_of_records_beside_tables(tmp_path: Path, options: RunOptions) -> None:
    table = Allocation("index", GIB)
    plan = plan_records("depletion", [reads(tmp_path)], options, table, on_gpu=[table])
    assert plan.total == INTERPRETER_BYTES + 3000 + GIB
    there = plan.on_gpu()
    assert there.total == GIB + MEMORY_PER_CHUNK_BYTE * (16 << 20)
    assert there.line() == "1.5 GiB of 8.0 GiB: index 1.0 GiB, records 512.0 MiB"

    def limited(memory: int) -> device_plan.MemoryPlan:
        own = replace(options, gpu_memory=memory)
        return plan_records("depletion", [], own, on_gpu=[table]).on_gpu()

    small = limited(GIB + (96 << 20))
    assert small.bytes_of("records") == 96 << 20
    small.check()
    with pytest.raises(DeviceMemoryError, match="depletion takes at least"):
        limited(GIB).check()


def test_of_other_stages(tmp_path: Path, options: RunOptions) -> None:
    path = reads(tmp_path, size=40_000).inputs[0]
    assert count.plan_files([path], CountParameters(31), options).on_gpu().fits
    sequence = tmp_path / "s.fa"
    sequence.write_text(">s\n" + "ACGT" * 100 + "\n")
    for kind in ("bwa", "sa"):
        assert build.plan_index(sequence, kind, options).on_gpu().fits
    with pytest.raises(DeviceMemoryError, match="index of 800 letters"):
        build.plan_index(sequence, "fm", replace(options, gpu_memory=100)).on_gpu()


@pytest.mark.parametrize("locations", [0, 1000, 100_000_000, 1_000_000_000])
def test_of_a_database(options: RunOptions, locations: int) -> None:
    """Keys are divided into more ranges where there are more of them."""
    plan = gpu_build.plan_gpu(locations, DatabaseParameters(), options)
    assert plan.fits
    assert plan.keep == (locations <= 100_000_000)
    with pytest.raises(DeviceMemoryError, match="cut the database into more partitions"):
        gpu_build.plan_gpu(10**12, DatabaseParameters(), replace(options, gpu_memory=GIB))


@pytest.mark.parametrize("holds_on_gpu", [False, True])
def test_what_is_shown(
    tmp_path: Path, options: RunOptions, capsys: pytest.CaptureFixture[str], holds_on_gpu: bool
) -> None:
    plan = HostPlan(
        doing="sorting",
        allocations=(Allocation("text", GIB, ("reading",)), Allocation("array", MIB, ("sorting",))),
        budget=2 * GIB,
        sizes={"letters": 3},
        notes=("input    3 letters",),
        holds_on_gpu=holds_on_gpu,
    )
    there = device_plan.plan_on_gpu("sorting", None, Allocation("text", 9 * GIB))
    file = tmp_path / "plan.json"
    with pytest.raises(DeviceMemoryError, match=r"sorting takes at least 9\.0 GiB"):
        show_plan(replace(plan, on_gpu=lambda: there), options, file)
    memory = ["memory   1.0 GiB of 2.0 GiB: text 1.0 GiB, array 1.0 MiB"] if holds_on_gpu else []
    assert capsys.readouterr().out.splitlines() == [
        "backend  cuda", "input    3 letters", *memory, "GPU      9.0 GiB of 8.0 GiB: text 9.0 GiB",
    ]  # fmt: skip
    document = check_schema(file)
    assert (document["memory"]["letters"], document["memory"]["planned_bytes"]) == (3, GIB)
    assert document["gpu_memory"]["allocations"][0]["bytes"] == 9 * GIB
    with pytest.raises(HostMemoryError, match="sorting takes"):
        show_plan(replace(plan, budget=1), replace(options, backend="cpu"), None)


def test_steps_that_follow_one_another() -> None:
    program = Allocation("program", INTERPRETER_BYTES)
    budget = INTERPRETER_BYTES + 100

    def step(about: str, *sizes: int) -> HostPlan:
        parts = (Allocation(str(number), size) for number, size in enumerate(sizes))
        return HostPlan(doing="", about=about, allocations=(program, *parts), budget=budget)

    plan = in_turn("working", first=step("", 60, 20), second=step(UP_TO, 70, 50))
    assert [(own.steps, own.bytes) for own in plan.allocations[1:]] == [
        (("first",), 60), (("first",), 20), (("second",), 70), (("second",), 30),
    ]  # fmt: skip
    assert plan.total == budget and plan.fits
    assert not in_turn("working", first=step("", 101), second=step(UP_TO, 1)).fits


def test_text_that_is_read_at_a_time(tmp_path: Path) -> None:
    options = RunOptions(threads=2, chunk_bytes=1000)
    plain, packed = reads(tmp_path, size=500), reads(tmp_path, "p.fq.gz", 500)
    assert text_bytes([plain, packed]) == 500 + 16 * 500
    assert text_bytes([plain, ReadFiles(("-",))]) is None
    assert reading_bytes(plain.inputs, options) == 3 * 500
    assert reading_bytes([*plain.inputs, "-"], options) == 3 * (500 + 10 * 1000)
    with pytest.raises(InputError, match="there is no such file"):
        text_bytes([ReadFiles((str(tmp_path / "none"),))])
