"""Corrections with little GPU memory, several GPUs, and memory that runs out, without a GPU."""

from __future__ import annotations

import gc
import itertools
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters, RunOptions, correct_reads
from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.cpu_run import correct_on_cpu, plan_correction
from ngsgpu.correct.gpu import BatchSizes
from ngsgpu.correct.gpu_combine import decide, join
from ngsgpu.correct.gpu_plan import plan_for_this_gpu
from ngsgpu.correct.gpu_run import GpuCorrection
from ngsgpu.correct.workspace import sampled_anchors
from ngsgpu.errors import DeviceError
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory
from ngsgpu.run.options import Contents
from tests.support.correct.fake_gpu import Array, FakeGpus, OutOfMemoryError
from tests.support.correct.gpu_cases import (
    COVERAGE,
    NAMES,
    assert_equal,
    budget_for,
    divide_always,
    make_reads,
)

RESERVE = 512 << 20
"""What is left to CUDA itself."""

SMALL = BatchSizes(edit_bytes=1 << 15, workspace_blocks=2)


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_little_memory_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, on_gpu: bool
) -> None:
    reads, parameters = make_reads(NAMES.index(name) + 10 * on_gpu)
    gpus = FakeGpus(reads, parameters, COVERAGE)
    expected = correct_on_cpu(reads, gpus.tables, parameters, COVERAGE)
    gpus.install(monkeypatch)
    pool = gpus.pools[0]
    budget = budget_for(name, ReadMemory.of(reads), parameters)
    given = DeviceReadSet.from_host(reads) if on_gpu else reads
    tables, corrected = [], []
    with GpuCorrection(given, parameters, COVERAGE, gpu_memory=budget) as run:
        run.place_reads()
        # A table has no more entries than reads, so that no more than planned can be taken.
        assert pool.used <= run.plan.total <= budget
        run.build_tables(tables.append)
        assert gpus.host_bytes <= run.plan.host
        assert (gpus.host_bytes > 0) == (run.plan.host > 0)
        found = run.correct(corrected.append)
    assert_equal(found, expected)
    assert sum(tables) == parameters.minhash.tables
    assert sum(corrected) == reads.reads
    assert pool.peak <= budget
    del run
    assert pool.used == (given.device_nbytes if isinstance(given, DeviceReadSet) else 0) + (
        given.struct.nbytes if isinstance(given, DeviceReadSet) else 0
    )


@pytest.mark.parametrize(
    ("seed", "gpus"), [(0, 1), (1, 2), (2, 3), (3, 1), (0, 2), (1, 3), (2, 1), (3, 3)]
)
def test_several_gpus_and_batches_change_nothing(
    monkeypatch: pytest.MonkeyPatch, seed: int, gpus: int
) -> None:
    reads, parameters = make_reads(100 + seed)
    fake = FakeGpus(reads, parameters, COVERAGE, sizes=(1 << 40,) * gpus)
    expected = correct_on_cpu(reads, fake.tables, parameters, COVERAGE)
    fake.install(monkeypatch)
    on_gpu = seed % 2 == 1
    given = DeviceReadSet.from_host(reads) if on_gpu else reads
    memory = budget_for(["results", "qualities"][seed // 2], ReadMemory.of(reads), parameters)
    corrected: list[int] = []
    with GpuCorrection(
        given, parameters, COVERAGE, gpu_memory=memory, gpus=gpus, batches=SMALL
    ) as run:
        run.place_reads()
        run.build_tables()
        found = run.correct(corrected.append)
    assert_equal(found, expected)
    assert sum(corrected) == reads.reads
    assert len(corrected) > 2
    mates = 2 if reads.paired else 1
    # Each GPU observes the whole sample.
    observed = gpus * len(sampled_anchors(reads.reads, mates))
    assert (sum(fake.corrected) - observed) * mates == reads.reads


@pytest.mark.parametrize("gpus", [2, 3, 7])
@pytest.mark.parametrize("seed", range(3))
def test_each_of_linked_gpus_builds_some_tables(
    monkeypatch: pytest.MonkeyPatch, seed: int, gpus: int
) -> None:
    reads, parameters = make_reads(400 + seed)
    fake = FakeGpus(reads, parameters, COVERAGE, sizes=(1 << 40,) * gpus, linked=True)
    expected = correct_on_cpu(reads, fake.tables, parameters, COVERAGE)
    fake.install(monkeypatch)
    tables: list[int] = []
    given = DeviceReadSet.from_host(reads) if seed % 2 else reads
    with GpuCorrection(given, parameters, COVERAGE, gpus=gpus, batches=SMALL) as run:
        run.place_reads()
        assert run.plan.divided_over == 1
        run.build_tables(tables.append)
        assert all(pool.peak <= run.plan.total for pool in fake.pools)
        found = run.correct()
    assert_equal(found, expected)
    assert sum(tables) == parameters.minhash.tables


@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_gpus_with_memory_in_common(
    monkeypatch: pytest.MonkeyPatch, name: str, on_gpu: bool
) -> None:
    reads, parameters = make_reads(200 + NAMES.index(name) + 10 * on_gpu)
    count = 2 + NAMES.index(name) % 2
    gpus = FakeGpus(reads, parameters, COVERAGE, sizes=(1 << 40,) * count, linked=True)
    expected = correct_on_cpu(reads, gpus.tables, parameters, COVERAGE)
    gpus.install(monkeypatch)
    divide_always(monkeypatch)
    budget = budget_for(name, ReadMemory.of(reads), parameters, count)
    given = DeviceReadSet.from_host(reads) if on_gpu else reads
    tables, corrected = [], []
    with GpuCorrection(
        given, parameters, COVERAGE, gpu_memory=budget, gpus=count, batches=SMALL
    ) as run:
        run.place_reads()
        assert run.plan.divided_over == count
        assert all(pool.used <= run.plan.total <= budget for pool in gpus.pools)
        run.build_tables(tables.append)
        assert gpus.host_bytes <= run.plan.host
        found = run.correct(corrected.append)
    assert_equal(found, expected)
    # Together, not each of them.
    assert sum(tables) == parameters.minhash.tables
    assert sum(corrected) == reads.reads
    assert all(pool.peak <= budget for pool in gpus.pools)


def test_reads_that_are_too_short_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = CorrectionParameters(minhash=MinhashParameters(hashes=5))
    letters_of_all = ([], ["ACGT"] * 6, ["", "A" * 100])
    for letters, count, divided in itertools.product(letters_of_all, (1, 2, 7), (False, True)):
        reads = ReadSet.from_sequences(letters, paired=True)
        gpus = FakeGpus(reads, parameters, COVERAGE, sizes=(1 << 40,) * count, linked=True)
        expected = correct_on_cpu(reads, gpus.tables, parameters, COVERAGE)
        with monkeypatch.context() as patch:
            gpus.install(patch)
            if divided:
                divide_always(patch)
            with GpuCorrection(reads, parameters, COVERAGE, gpus=count) as run:
                run.place_reads()
                run.build_tables()
                assert_equal(run.correct(), expected)


Refusal = Callable[[int], bool]


def first_time(holds: Refusal) -> Refusal:
    """True for the first size only for which ``holds`` says so."""
    told: list[int] = []

    def refuse(size: int) -> bool:
        if told or not holds(size):
            return False
        told.append(size)
        return True

    return refuse


def refusals(reads: ReadSet) -> dict[str, Refusal]:
    """What to refuse at each step: the arena, keys, edits and workspace."""
    return {
        "taking GPU memory": lambda size: size > 100 << 20,
        "building tables": lambda size: size == 8 * reads.reads,
        "preparing the correction": lambda size: size > 1 << 20,
    }


STEPS = ["taking GPU memory", "building tables", "preparing the correction"]


def run_refusing(
    gpus: FakeGpus, step: str, refuse: Refusal, advance: Callable[[int], None] = lambda done: None
) -> Corrections:
    """Correct, while some arrays are refused in one step."""
    with GpuCorrection(gpus.reads, gpus.parameters, COVERAGE) as run:
        works = [run.place_reads, lambda: run.build_tables(advance), run.correct]
        for name, work in zip(STEPS, works, strict=True):
            gpus.refuse = refuse if name == step else lambda size: False
            found = work()
    assert isinstance(found, Corrections)
    return found


@pytest.mark.parametrize("step", STEPS)
def test_memory_that_runs_out_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    reads, parameters = make_reads(7)
    gpus = FakeGpus(reads, parameters, COVERAGE)
    expected = correct_on_cpu(reads, gpus.tables, parameters, COVERAGE)
    gpus.install(monkeypatch)
    tables: list[int] = []
    with caplog.at_level(logging.WARNING):
        found = run_refusing(gpus, step, first_time(refusals(reads)[step]), tables.append)
    assert_equal(found, expected)
    assert sum(tables) == parameters.minhash.tables
    assert [record.message.partition(":")[0] for record in caplog.records] == [step]
    gc.collect()
    assert (gpus.pools[0].used, gpus.host_bytes) == (0, 0)


@pytest.mark.parametrize("step", STEPS)
def test_memory_that_runs_out_again(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    reads, parameters = make_reads(7)
    gpus = FakeGpus(reads, parameters, COVERAGE)
    gpus.install(monkeypatch)
    with pytest.raises(DeviceError) as caught:
        run_refusing(gpus, step, refusals(reads)[step])
    assert re.fullmatch(
        rf"{step.replace('ing tables', 'ing the tables')}: not enough GPU memory, although less "
        r"was taken the second time: [\d.]+ MiB are needed and [\d,.]+ [GT]iB of 1\.0 TiB are free "
        r"\(Out of memory .*\); use a GPU that is free, give `gpu_memory` a smaller size, or use "
        r"`backend='cpu'`",
        str(caught.value),
    )
    del caught
    gc.collect()
    assert (gpus.pools[0].used, gpus.host_bytes) == (0, 0)


def test_edits_that_cannot_be_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, parameters = make_reads(7)
    gpus = FakeGpus(reads, parameters, COVERAGE).install(monkeypatch)
    expected = correct_on_cpu(reads, gpus.tables, parameters, COVERAGE)
    copy, refused = Array.copy, []

    def without_room(array: Array) -> Array:
        if sys._getframe(1).f_code.co_name == "fetch":
            refused.append(array.size)
            raise OutOfMemoryError(array.nbytes, 0)
        return copy(array)

    monkeypatch.setattr(Array, "copy", without_room)
    with GpuCorrection(reads, parameters, COVERAGE, batches=SMALL) as run:
        run.place_reads()
        run.build_tables()
        assert_equal(run.correct(), expected)
    assert len(refused) > 3


def test_one_of_several_gpus_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, parameters = make_reads(7)
    gpus = FakeGpus(reads, parameters, COVERAGE, sizes=(1 << 40, 1 << 40))
    gpus.install(monkeypatch)

    def fail(*arguments: object) -> None:
        raise DeviceError("kernel correct_anchors: it fell off the bus")

    with GpuCorrection(reads, parameters, COVERAGE, gpus=2, batches=SMALL) as run:
        run.place_reads()
        run.build_tables()
        monkeypatch.setattr(gpus, "_correct_anchors", fail)
        with pytest.raises(DeviceError, match="fell off"):
            run.correct()


def test_a_limit_leaves_out_what_others_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, parameters = make_reads(7)
    gpus = FakeGpus(reads, parameters, COVERAGE, sizes=(1 << 31,)).install(monkeypatch)
    others = sys.modules["cupy"].empty(1000 << 20, np.uint8)
    with GpuCorrection(reads, parameters, COVERAGE) as run:
        run.place_reads()
        assert run.plan.budget == (1 << 31) - (1000 << 20) - RESERVE
    with GpuCorrection(reads, parameters, COVERAGE, gpu_memory=1100 << 20) as run:
        run.place_reads()
        assert run.plan.budget == 100 << 20
        assert run.plan.batches.edit_bytes < BatchSizes().edit_bytes
    assert gpus.pools[0].used == others.nbytes


def test_reads_that_do_not_fit_stay_on_the_host(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    reads, parameters = make_reads(13)
    parameters = replace(parameters, coverage=COVERAGE)
    gpus = FakeGpus(reads, parameters, COVERAGE)
    expected = correct_on_cpu(reads, gpus.tables, parameters, COVERAGE)
    gpus.install(monkeypatch)
    gpus.refuse = first_time(lambda size: size == reads.arrays.qualities.nbytes)
    budget = budget_for("planes", ReadMemory.of(reads), parameters)
    with caplog.at_level(logging.INFO, logger="ngsgpu"):
        found, _ = correct_reads(reads, parameters, RunOptions(backend="cuda", gpu_memory=budget))
    assert_equal(found, expected)
    assert any("leaving them on the host" in record.message for record in caplog.records)
    assert any(
        re.match(r"GPU memory: .*: results, .*qualities, planes$", record.message)
        for record in caplog.records
    )


def test_plan_of_a_dry_run(monkeypatch: pytest.MonkeyPatch) -> None:
    reads, parameters = make_reads(13)
    gpus = FakeGpus(reads, parameters, COVERAGE, sizes=(4 << 30,)).install(monkeypatch)
    run = plan_correction(
        parameters,
        Contents(reads.reads, reads.bases, reads.max_length, reads.paired),
        threads=1,
        budget_bytes=1 << 30,
    )
    plan = plan_for_this_gpu(run, parameters, RunOptions(gpu_memory=1 << 30))
    assert plan.budget == 1 << 30
    # Where ambiguous bases are is not known before.
    assert 0 <= ReadMemory.of(reads).total - plan.reads < reads.bases
    assert re.search(r", before that [\d.]+ MiB to read$", plan.line())
    plan = plan_for_this_gpu(run, parameters, RunOptions())
    assert plan.budget == gpus.pools[0].size - RESERVE


@pytest.mark.parametrize("seed", range(20))
def test_joined_results_are_those_of_one(seed: int) -> None:
    """Votes that two GPUs counted decide as if one had counted them all."""
    random = np.random.default_rng(seed)
    count = 500
    votes = random.integers(0, 4, (count, 6)) * random.integers(0, 2, (count, 6))

    def results(votes: np.ndarray, mine: np.ndarray) -> dict[str, np.ndarray]:
        first = np.array([next((v for v in row if v), 0) for row in votes], np.uint64)
        number = np.count_nonzero(votes, axis=1).astype(np.uint32)
        conflict = [len({*row.tolist()} - {0}) > 1 for row in votes]
        state = number | (np.array(conflict, np.uint32) << np.uint32(31))
        one = np.random.default_rng(seed + 1000)
        arrays = {
            "classes": one.integers(0, 3, count).astype(np.uint8),
            "edit_start": one.integers(0, 99, count),
            "edit_count": one.integers(1, 9, count).astype(np.uint16),
            "complete_start": one.integers(0, 99, count),
            "complete_count": one.integers(1, 9, count).astype(np.uint16),
            "edit_hash": one.integers(1, 4, count).astype(np.uint64),
            "complete_hash": one.integers(1, 4, count).astype(np.uint64),
        }
        arrays = {name: array * mine for name, array in arrays.items()}
        return arrays | {"vote_hash": first, "vote_state": state}

    whose = random.integers(0, 3, count)
    parts = [results(votes[:, 2 * gpu : 2 * gpu + 2], whose == gpu) for gpu in range(3)]
    joined = join(join(parts[0], parts[1]), parts[2])
    whole = results(votes, np.ones(count, bool))
    decided = joined["classes"] != 0
    for ours, theirs in zip(decide(joined)[:2], decide(whole)[:2], strict=True):
        assert np.array_equal(ours[decided], theirs[decided])
        assert ours.dtype == theirs.dtype
    assert np.array_equal(decide(joined)[2], decide(whole)[2])
    assert joined["vote_state"].dtype == np.uint32
    assert np.array_equal(joined["vote_state"], whole["vote_state"])
