"""The host side of an extension on GPUs: placement, batches, several GPUs, and what goes wrong."""

from __future__ import annotations

import gc
import gzip
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ngsgpu.errors import DeviceError, DeviceMemoryError
from ngsgpu.extend import (
    EndParameters,
    ExtensionOutputs,
    ExtensionParameters,
    RunOptions,
    extend_files,
    extend_reads,
    gpu_plan,
    gpu_run,
)
from ngsgpu.extend.gpu_plan import BATCH_BYTES, ExtensionGpuPlan
from ngsgpu.minhash.ends import build_end_tables
from ngsgpu.minhash.ends_gpu import build_end_tables_on_gpu
from ngsgpu.readset import ReadSet, gpu_divided
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory
from ngsgpu.run.again import sections
from tests.support.extend.data import INSERT, simulated_pairs, write_pairs
from tests.support.extend.fake_gpu import ExtendingGpus, read_on_host
from tests.support.io.records import fastq, write

PARAMETERS = ExtensionParameters(insert_mean=float(INSERT), insert_sd=8.0)
Inputs = tuple[list[Path], list[Path]]


@pytest.fixture(params=["files", "gzip", "interleaved", "lanes", "fasta"])
def inputs(request: pytest.FixtureRequest, tmp_path: Path) -> Inputs:
    pairs = simulated_pairs()
    first, second = write_pairs(tmp_path, pairs)
    mixed = [record for both in zip(pairs.first, pairs.second, strict=True) for record in both]
    half = len(mixed) // 4 * 2
    if request.param == "gzip":
        files = [
            write(Path(f"{path}.gz"), gzip.compress(path.read_bytes())) for path in (first, second)
        ]
        return files[:1], files[1:]
    if request.param == "interleaved":
        return [write(tmp_path / "both.fq", fastq(mixed))], []
    if request.param == "lanes":
        cut = mixed[:half], mixed[half:]
        return [write(tmp_path / f"{i}.fq", fastq(part)) for i, part in enumerate(cut)], []
    if request.param == "fasta":
        text = b"".join(b">%s\n%s\n" % record[:2] for record in mixed)
        return [write(tmp_path / "both.fa", text)], []
    return [first], [second]


def run(
    inputs: Inputs,
    folder: Path,
    parameters: ExtensionParameters = PARAMETERS,
    **options: Any,
) -> dict[str, bytes]:
    """Contents of the outputs by name; the statistics are left out."""
    folder.mkdir()
    extend_files(
        *inputs,
        interleaved=not inputs[1],
        outputs=ExtensionOutputs(
            str(folder / "e"), str(folder / "r1"), str(folder / "r2"), str(folder / "stats")
        ),
        parameters=parameters,
        options=RunOptions(**options),
    )
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "stats"}


def fake(
    inputs: Inputs, monkeypatch: pytest.MonkeyPatch, gpus: int = 1, linked: bool = False
) -> ExtendingGpus:
    from ngsgpu.io.inputs import plan_lanes

    lanes, _ = plan_lanes(*inputs, ["x"], ["y"] if inputs[1] else [], interleaved=not inputs[1])
    return ExtendingGpus(read_on_host(lanes), (1 << 40,) * gpus, linked).install(monkeypatch)


@pytest.mark.parametrize("placed", [True, False])
def test_files_are_those_of_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inputs: Inputs, placed: bool
) -> None:
    expected = run(inputs, tmp_path / "cpu", threads=2)
    gpus = fake(inputs, monkeypatch)
    gpus.placed = placed
    for module in (gpu_plan, gpu_run):
        monkeypatch.setattr(module, "MAX_PAIRS", 128, raising=False)
        monkeypatch.setattr(module, "MIN_PAIRS", 128)
    monkeypatch.setattr(sections.indexed_sections, "__kwdefaults__", {"pairs": 50})
    assert run(inputs, tmp_path / "gpu", threads=2, backend="cuda") == expected
    statistics = [json.loads((tmp_path / name / "stats").read_text()) for name in ("cpu", "gpu")]
    assert [one["backend"] for one in statistics] == ["cpu", "cuda"]
    for key in ("pairs", "lengths", "length_histogram", "tasks", "reads", "insert"):
        assert statistics[0][key] == statistics[1][key]
    plan = statistics[1]["gpu_memory"]
    assert plan["planned_bytes"] >= plan["read_bytes"] + plan["table_bytes"]
    assert gpus.pools[0].peak <= plan["planned_bytes"]


@pytest.mark.parametrize("gpus", [1, 3])
def test_estimates_and_works_on_several_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int
) -> None:
    first, second = write_pairs(tmp_path, simulated_pairs())
    inputs = [first], [second]
    parameters = replace(PARAMETERS, insert_mean=None, insert_sd=None, outward=True, strict=1)
    expected = run(inputs, tmp_path / "cpu", parameters)
    fakes = fake(inputs, monkeypatch, gpus)
    for module in (gpu_plan, gpu_run):
        monkeypatch.setattr(module, "MAX_PAIRS", 32, raising=False)
        monkeypatch.setattr(module, "MIN_PAIRS", 32)
    assert run(inputs, tmp_path / "gpu", parameters, backend="cuda", gpus=gpus) == expected
    assert all(fakes.extended)


def test_reads_in_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, second = write_pairs(tmp_path, simulated_pairs())
    gpus = fake(([first], [second]), monkeypatch)
    expected, insert = extend_reads(gpus.reads, PARAMETERS)
    found, same = extend_reads(gpus.reads, PARAMETERS, RunOptions(backend="cuda"))
    assert insert == same
    for name in expected._fields:
        assert np.array_equal(getattr(expected, name), getattr(found, name)), name
    assert len(extend_reads(ReadSet.from_sequences([], paired=True), PARAMETERS)[0].kind) == 0


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("gpus", [2, 3])
def test_gpus_with_memory_in_common(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, on_gpu: bool
) -> None:
    first, second = write_pairs(tmp_path, simulated_pairs())
    inputs = [first], [second]
    expected = run(inputs, tmp_path / "cpu")
    fakes = fake(inputs, monkeypatch, gpus, linked=True)
    monkeypatch.setattr(gpu_divided, "divisions", lambda gpus, linked: [(gpus, True)])
    for module in (gpu_plan, gpu_run):
        monkeypatch.setattr(module, "MAX_PAIRS", 64, raising=False)
        monkeypatch.setattr(module, "MIN_PAIRS", 64)
    if not on_gpu:

        def on_host(*lanes: Any, **options: Any) -> Any:
            raise DeviceMemoryError("too little")

        monkeypatch.setattr("ngsgpu.run.gpu_run.read_to_device", on_host)
    before = [pool.used for pool in fakes.pools]
    assert run(inputs, tmp_path / "gpu", backend="cuda", gpus=gpus) == expected
    assert all(fakes.extended)
    plan = json.loads((tmp_path / "gpu" / "stats").read_text())["gpu_memory"]
    assert plan["divided_over"] == gpus
    assert all(0 < pool.peak <= plan["planned_bytes"] for pool in fakes.pools)
    gc.collect()
    assert [pool.used for pool in fakes.pools] == before


def test_data_are_divided_where_they_do_not_fit_on_each_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain_batches(monkeypatch)
    # Human reads, 30-fold.
    memory = ReadMemory.expected(900_000_000, 90 * 10**9, 100, paired=True, quality_bits=8)

    def plan(budget: int, host: int = 1 << 40, linked: bool = True) -> ExtensionGpuPlan:
        return gpu_plan.plan_team(
            memory, PARAMETERS, 4, linked=linked, budget=budget, host_budget=host
        )

    whole = plan(1 << 40)
    assert (whole.divided_over, whole.moved) == (1, [])
    gib = 1 << 30
    divided = plan(139 * gib)
    assert (divided.divided_over, divided.moved) == (4, [])
    assert divided.total <= 139 * gib < whole.total
    assert divided.reads + divided.tables < (whole.reads + whole.tables) / 3.9
    assert divided.line().endswith("divided over 4 GPUs")
    # Without links, qualities stay on the host, and then tables.
    least = whole.total - memory.qualities
    alone = plan(least, linked=False)
    assert (alone.divided_over, alone.moved) == (1, ["qualities"])
    assert plan(139 * gib, linked=False).moved == ["qualities"]
    assert plan(80 * gib, linked=False).moved == ["qualities", "2 of 4 tables"]
    with pytest.raises(DeviceError, match="takes"):
        plan(8 * gib, linked=False)


@pytest.mark.parametrize(
    ("gpus", "budget", "host", "divided", "moved"),
    [
        (1, 78, 110, (1, False), ["qualities", "1 of 4 tables"]),
        (1, 139, 110, (1, False), []),
        (2, 78, 240, (2, True), []),
        (2, 139, 240, (1, False), []),
        (4, 78, 240, (4, False), []),
        (4, 139, 240, (1, False), []),
        (8, 78, 240, (8, False), []),
    ],
)
def test_human_pairs(
    monkeypatch: pytest.MonkeyPatch,
    gpus: int,
    budget: int,
    host: int,
    divided: tuple[int, bool],
    moved: list[str],
) -> None:
    """305 million pairs of 150 bases, of four levels of quality; GiB of GPUs and of the host."""
    plain_batches(monkeypatch)
    reads = 609_200_000
    memory = ReadMemory.expected(reads, 150 * reads, 150, paired=True, quality_bits=2)
    gib = 1 << 30
    plan = gpu_plan.plan_team(
        memory, ExtensionParameters(), gpus, linked=True, budget=budget * gib,
        host_budget=host * gib,
    )  # fmt: skip
    assert (plan.divided_over, plan.reads_divided) == divided
    assert plan.moved == moved
    assert plan.total <= budget * gib and plan.host <= host * gib


def small_gpu(
    monkeypatch: pytest.MonkeyPatch, inputs: Inputs, spare: int, **options: Any
) -> ExtendingGpus:
    """A GPU that has ``spare`` bytes beside what a run takes at least."""
    from ngsgpu.extend.gpu_plan import plan_gpu

    gpus = fake(inputs, monkeypatch)
    memory = ReadMemory.of(gpus.reads)
    plan = plan_gpu(memory, PARAMETERS, budget=1 << 50, host_budget=1 << 50)
    monkeypatch.setattr("ngsgpu.device.plan._RESERVE", 0)
    gpus.pools[0].size = plan.total - memory.qualities + spare
    return gpus


def plain_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pair of a batch take 700 bytes, and its result as many, without a GPU."""
    gpu = SimpleNamespace(
        workspace_bytes=lambda rules, longest, pairs: 700 * pairs,
        result_bytes=lambda rules, pairs: 700 * pairs,
    )
    monkeypatch.setitem(sys.modules, "ngsgpu.extend.gpu", gpu)


@pytest.mark.parametrize(("tables", "on_host"), [(0, 0), (1, 1), (4, 4), (99, 4)])
def test_data_may_lie_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tables: int, on_host: int
) -> None:
    """Qualities first, then tables, at last the bases."""
    first, second = write_pairs(tmp_path, simulated_pairs())
    inputs = [first], [second]
    expected = run(inputs, tmp_path / "cpu")
    memory = ReadMemory.of(fake(inputs, monkeypatch).reads)
    less = tables * 16 * memory.reads if tables < 99 else 4 * 16 * memory.reads + memory.planes
    small_gpu(monkeypatch, inputs, -less)
    assert run(inputs, tmp_path / "gpu", backend="cuda") == expected
    plan = json.loads((tmp_path / "gpu" / "stats").read_text())["gpu_memory"]
    assert plan["tables_on_host"] == on_host
    assert plan["reads_on_host"] == ["qualities", "planes"][: 2 if tables == 99 else 1]


def test_batches_are_smaller_before_qualities_move(monkeypatch: pytest.MonkeyPatch) -> None:
    from ngsgpu.extend.gpu_plan import plan_gpu

    plain_batches(monkeypatch)
    memory = ReadMemory.expected(10**6, 10**8, 100, paired=True, quality_bits=8)
    given = replace(PARAMETERS, insert_mean=300.0, insert_sd=10.0)
    for parameters in (given, replace(given, insert_mean=None, insert_sd=None)):

        def plan(budget: int, parameters: ExtensionParameters = parameters) -> ExtensionGpuPlan:
            return plan_gpu(memory, parameters, budget=budget, host_budget=1 << 40)

        whole = plan(1 << 40)
        assert whole.batch_bytes == BATCH_BYTES
        assert whole.working >= 2 * 700 * (1 << 17)
        halved = plan(whole.total - 1)
        assert halved.batch_bytes < BATCH_BYTES
        assert (halved.host, halved.reads) == (0, memory.total)
        smallest = plan(halved.total)
        while smallest.host == 0:
            smallest = plan(smallest.total - 1)
        assert smallest.host == memory.qualities
        with pytest.raises(DeviceError, match="takes"):
            plan(memory.total - memory.qualities)


def test_too_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = write_pairs(tmp_path, simulated_pairs())
    inputs = [first], [second]
    expected = run(inputs, tmp_path / "cpu")
    small_gpu(monkeypatch, inputs, 0).pools[0].size = 1 << 20
    with pytest.raises(DeviceError, match="or use `backend='cpu'`"):
        run(inputs, tmp_path / "gpu", backend="cuda")
    assert not list((tmp_path / "gpu").iterdir())
    assert run(inputs, tmp_path / "auto", backend="cuda", may_fall_back=True) == expected


def test_a_failure_on_the_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text of the GPU that was written is withdrawn; the CPU begins again if it may."""
    first, second = write_pairs(tmp_path, simulated_pairs())
    inputs = [first], [second]
    expected = run(inputs, tmp_path / "cpu")
    gpus = fake(inputs, monkeypatch)
    for module in (gpu_plan, gpu_run):
        monkeypatch.setattr(module, "MAX_PAIRS", 32, raising=False)
        monkeypatch.setattr(module, "MIN_PAIRS", 32)
    gpus.fail_after = 300
    with pytest.raises(DeviceError):
        run(inputs, tmp_path / "gpu", backend="cuda")
    assert not list((tmp_path / "gpu").iterdir())
    assert run(inputs, tmp_path / "auto", backend="cuda", may_fall_back=True) == expected


@pytest.mark.parametrize(
    "parameters",
    [EndParameters(), EndParameters(kmer=32, window=70), EndParameters(8, 60, 2, 5)],
)
@pytest.mark.parametrize("lengths", [(80,), (40, 80, 100), (30,), ()])
@pytest.mark.parametrize(("on_device", "parts"), [(None, 1), (None, 4), (1, 1), (0, 64)])
def test_tables_are_those_of_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
    parameters: EndParameters,
    lengths: tuple[int, ...],
    on_device: int | None,
    parts: int,
) -> None:
    generator = np.random.default_rng(1)
    sizes = generator.choice(lengths, 60) if lengths else ()
    reads = ReadSet.from_sequences(["".join(generator.choice(list("ACGTN"), n)) for n in sizes])
    ExtendingGpus(reads).install(monkeypatch)
    expected = build_end_tables(reads, parameters)
    found = build_end_tables_on_gpu(
        DeviceReadSet.from_host(reads), parameters, on_device=on_device, parts=parts
    )
    assert found[3:] == expected[2:]
    assert len(found.entries) == (on_device if on_device is not None else parameters.hashes)
    assert np.array_equal(np.concatenate([found.entries, found.on_host]), expected.entries)
    assert np.array_equal(found.cells, expected.cells)
