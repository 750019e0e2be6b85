"""With little memory, and on several GPUs, the GPU corrects to the same bytes as the CPU."""

from __future__ import annotations

import gc
import json
import random
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.cli import main
from ngsgpu.correct.cpu_run import correct_on_cpu
from ngsgpu.correct.gpu import BatchSizes
from ngsgpu.correct.gpu_run import GpuCorrection
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceError
from ngsgpu.minhash import build_tables
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import ReadMemory
from ngsgpu.readset.gpu_divided import are_linked
from tests.support.correct.gpu_cases import (
    COVERAGE,
    NAMES,
    assert_equal,
    assert_tables_equal,
    budget_for,
    divide_always,
    make_reads,
)
from tests.support.correct.random_reads import simulate, write_fastq
from tests.support.crowd import crowd

pytestmark = pytest.mark.gpu


def exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let budgets be what is given, whatever other tests have left in CuPy's pool."""
    monkeypatch.setattr(
        "ngsgpu.readset.gpu_divided.largest_array_bytes", lambda limit, there=0: limit - there
    )
    monkeypatch.setattr("ngsgpu.device.team.limit_pool", lambda limit: 0)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("name", NAMES[1:])
def test_little_memory_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, on_gpu: bool
) -> None:
    from ngsgpu.readset.gpu import DeviceReadSet

    reads, parameters = make_reads(NAMES.index(name) + 10 * on_gpu)
    tables = build_tables(reads, parameters.minhash)
    expected = correct_on_cpu(reads, tables, parameters, COVERAGE)
    exactly(monkeypatch)
    budget = budget_for(name, ReadMemory.of(reads), parameters)
    given = DeviceReadSet.from_host(reads) if on_gpu else reads
    with GpuCorrection(given, parameters, COVERAGE, gpu_memory=budget) as run:
        run.place_reads()
        placement = run.plan.placement
        run.build_tables()
        found = run.correct()
        (gpu,) = run._held
        assert gpu.tables is not None
        assert_tables_equal(gpu.reads, gpu.tables, reads, tables)
        for table, own in enumerate(gpu.tables.tables):
            assert is_on_host(own.ids) == own.on_host == (table >= placement.tables)
        assert is_on_host(gpu.reads.planes) == (not placement.planes)
        if reads.arrays.qualities.size:
            assert is_on_host(gpu.reads.qualities) == (not placement.qualities)
    assert_equal(found, expected)


def is_on_host(array: Any) -> bool:
    """Whether an array lies in pinned host memory."""
    import cupy

    return isinstance(array.data.mem, cupy.cuda.UnownedMemory)


@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_several_gpus_and_batches_change_nothing(
    monkeypatch: pytest.MonkeyPatch, seed: int, gpus: int
) -> None:
    from ngsgpu.readset.gpu import DeviceReadSet

    crowd(monkeypatch)
    reads, parameters = make_reads(100 + seed)
    expected = correct_on_cpu(reads, build_tables(reads, parameters.minhash), parameters, COVERAGE)
    exactly(monkeypatch)
    divide_always(monkeypatch)
    divided_over = gpus if are_linked(Team(gpus)) else 1
    name = ["results", "qualities"][seed // 2]
    memory = budget_for(name, ReadMemory.of(reads), parameters, divided_over)
    given = DeviceReadSet.from_host(reads) if seed % 2 else reads
    with GpuCorrection(
        given,
        parameters,
        COVERAGE,
        gpu_memory=memory,
        gpus=gpus,
        batches=BatchSizes(edit_bytes=1 << 15, workspace_blocks=2),
    ) as run:
        run.place_reads()
        assert run.plan.divided_over == divided_over
        run.build_tables()
        assert_equal(run.correct(), expected)


@pytest.mark.parametrize("gpus", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_each_of_linked_gpus_builds_some_tables(
    monkeypatch: pytest.MonkeyPatch, seed: int, gpus: int
) -> None:
    crowd(monkeypatch)
    # Arrays of the same GPU are copied, too, as if they were of another one.
    monkeypatch.setattr("ngsgpu.minhash.gpu.here", lambda array: array.copy())
    reads, parameters = make_reads(100 + seed)
    expected = correct_on_cpu(reads, build_tables(reads, parameters.minhash), parameters, COVERAGE)
    with GpuCorrection(reads, parameters, COVERAGE, gpu_memory=2 << 30, gpus=gpus) as run:
        run.place_reads()
        assert run.plan.divided_over == 1 and not run.plan.moved
        run.build_tables()
        assert_equal(run.correct(), expected)


def test_no_more_is_taken_than_planned() -> None:
    """On reads enough for the arrays to matter: 60,000 of 100 bases."""
    import cupy

    rng = random.Random(5)
    genome = "".join(rng.choices("ACGT", k=200_000))
    starts = [rng.randrange(len(genome) - 100) for _ in range(60_000)]
    letters = [genome[start : start + 100] for start in starts]
    reads = ReadSet.from_sequences(letters, ["I" * 100] * len(letters))
    _, parameters = make_reads(0)
    cupy.get_default_memory_pool().free_all_blocks()
    before = cupy.get_default_memory_pool().total_bytes()
    with GpuCorrection(reads, parameters, COVERAGE) as run:
        run.place_reads()
        run.build_tables()
        run.correct()
        taken = cupy.get_default_memory_pool().total_bytes() - before
        arena = run._held[0].arena
        print(f"planned {run.plan.total:,}, taken {taken:,}, used of the arena {arena.peak:,}")
        assert arena.peak <= run.plan.arena
        assert taken <= run.plan.total


@pytest.mark.parametrize("step", ["arena", "tables", "batches"])
def test_memory_that_runs_out_once(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    import cupy

    reads, parameters = make_reads(7)
    expected = correct_on_cpu(reads, build_tables(reads, parameters.minhash), parameters, COVERAGE)
    failed: list[str] = []

    def failing(function: object) -> object:
        def fail(*arguments: object, **options: object) -> object:
            if not failed:
                failed.append(step)
                raise cupy.cuda.memory.OutOfMemoryError(1 << 30, 0)
            return function(*arguments, **options)  # type: ignore[operator]

        return fail

    names = {
        "arena": "ngsgpu.correct.gpu_run.Arena",
        "tables": "ngsgpu.minhash.gpu_parts.radix_argsort",
        "batches": "ngsgpu.correct.gpu.anchors_in_bucket_order",
    }
    module, _, name = names[step].rpartition(".")
    original = getattr(__import__(module, fromlist=[name]), name)
    monkeypatch.setattr(names[step], failing(original))
    with GpuCorrection(reads, parameters, COVERAGE) as run:
        run.place_reads()
        run.build_tables()
        assert_equal(run.correct(), expected)
    assert failed == [step]


def test_too_little_memory_is_told() -> None:
    reads, parameters = make_reads(7)
    gc.collect()  # arrays in what earlier tests left count as taken
    run = GpuCorrection(reads, parameters, COVERAGE, gpu_memory=1 << 20)
    with run, pytest.raises(DeviceError, match=r"takes at least .* and 1\.0 MiB may be used"):
        run.place_reads()


def test_the_command_with_little_memory(tmp_path: Path) -> None:
    rng = random.Random(11)
    letters, qualities = simulate(rng, paired=True, quality=True)
    assert qualities is not None
    for mate in (0, 1):
        write_fastq(tmp_path / f"r{mate}.fq", letters[mate::2], qualities[mate::2], "\n")
    written = []
    for name, options in {
        "cpu": ["--backend", "cpu"],
        "gpu": ["--backend", "cuda"],
        "little": ["--backend", "cuda", "--gpu-memory", "96M"],
    }.items():
        files = [str(tmp_path / f"{name}{mate}.fq") for mate in (0, 1)]
        inputs = ["-i", str(tmp_path / "r0.fq"), "-I", str(tmp_path / "r1.fq")]
        stats = tmp_path / f"{name}.json"
        outputs = ["-o", files[0], "-O", files[1], "--stats", str(stats)]
        assert main(["correct", "-q", *options, *inputs, *outputs]) == 0
        written.append([Path(file).read_bytes() for file in files])
        plan = json.loads(stats.read_text())["gpu_memory"]
        assert (plan == {}) == (name == "cpu")
        if name == "little":
            assert plan["planned_bytes"] <= 96 << 20
    assert written[0] == written[1] == written[2]
