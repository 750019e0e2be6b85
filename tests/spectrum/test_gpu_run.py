"""The host side of a correction by k-mers on GPUs: placement, several GPUs, little memory."""

from __future__ import annotations

import gc
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.device.team import limited_gpu_memory
from ngsgpu.errors import DeviceError, DeviceMemoryError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.run import gpu_run
from ngsgpu.run.options import RunOptions
from ngsgpu.spectrum import (
    SpectrumCorrections,
    SpectrumParameters,
    correct_files,
    correct_reads,
    gpu_plan,
)
from ngsgpu.spectrum.gpu import filter_words, table_bytes
from ngsgpu.spectrum.gpu_plan import SpectrumGpuPlan
from ngsgpu.spectrum.gpu_team import SpectrumTeam
from ngsgpu.spectrum.kmers.counts import count_reads, find_thresholds
from tests.support.io.random_fastq import read_on_host
from tests.support.spectrum.fake_gpu import SpectrumGpus
from tests.support.spectrum.gpu_cases import (
    NAMES,
    assert_same,
    budget_for,
    divide_always,
    make_reads,
    small_units,
)
from tests.support.spectrum.samples import errors_in

MUCH = 1 << 40
CELLS = [(name, gpus) for n, name in enumerate(NAMES) for gpus in (1, 2, 3, 4) if (n + gpus) % 2]
"""Each place of the data on an odd or an even number of GPUs."""


def corrected(
    fakes: SpectrumGpus,
    parameters: SpectrumParameters,
    *,
    on_gpu: bool = True,
    trim: bool = False,
    **options: Any,
) -> tuple[SpectrumCorrections, SpectrumGpuPlan]:
    """The corrections, step by step, and the plan, which must hold on each GPU."""
    assert parameters.kmer is not None
    reads, gpus = fakes.reads, len(fakes.pools)
    run = RunOptions(backend="cuda", gpus=gpus, **options)
    with limited_gpu_memory(run.gpu_memory, gpus):
        team = SpectrumTeam(parameters, run)
        team.place(DeviceReadSet.from_host(reads) if on_gpu else reads)
        plan = team.plan
        assert all(pool.used <= plan.total <= plan.budget for pool in fakes.pools)
        counted: list[int] = []
        histogram = team.count(parameters.kmer, counted.append)
        assert np.array_equal(histogram, count_reads(reads, parameters.kmer).histogram)
        assert sum(counted) == sum(fakes.collected)
        team.make_solid(find_thresholds(histogram, parameters.min_count))
        done: list[int] = []
        found = team.correct(parameters.kmer, trim=trim, advance=done.append)
        assert sum(done) == sum(fakes.listed) == reads.reads
        assert all(pool.peak <= plan.total for pool in fakes.pools)
        assert fakes.host_bytes <= plan.host
        team.close()
    return found, plan


@pytest.mark.parametrize(("name", "gpus"), CELLS)
def test_several_gpus_and_little_memory_change_nothing(
    monkeypatch: pytest.MonkeyPatch, name: str, gpus: int
) -> None:
    small_units(monkeypatch)
    seed = 10 * NAMES.index(name) + gpus
    reads, parameters, trim = make_reads(seed)
    expected = correct_reads(reads, parameters, trim=trim)
    fakes = SpectrumGpus(reads, (MUCH,) * gpus).install(monkeypatch)
    budget = budget_for(name, reads, parameters, gpus)
    found, plan = corrected(
        fakes, parameters, on_gpu=seed % 2 == 0, trim=trim, gpu_memory=budget, memory=MUCH
    )
    assert_same(found, expected)
    assert plan.divided_over == 1
    if name != "in parts":
        assert bool(plan.moved_reads) == (NAMES.index(name) > NAMES.index("in parts"))
    # Each has about as many k-mers to count; who corrects is a matter of time.
    share = sum(fakes.collected) / gpus
    assert all(0.8 * share < own < 1.2 * share for own in fakes.collected)
    gc.collect()
    assert all(pool.used == 0 for pool in fakes.pools)


@pytest.mark.parametrize(("name", "gpus"), [own for own in CELLS if own[1] > 1])
def test_gpus_with_memory_in_common(monkeypatch: pytest.MonkeyPatch, name: str, gpus: int) -> None:
    small_units(monkeypatch, pages=True)
    divide_always(monkeypatch)
    seed = 100 + 10 * NAMES.index(name) + gpus
    reads, parameters, trim = make_reads(seed)
    expected = correct_reads(reads, parameters, trim=trim)
    fakes = SpectrumGpus(reads, (MUCH,) * gpus, linked=True).install(monkeypatch)
    budget = budget_for(name, reads, parameters, gpus, gpus)
    found, plan = corrected(
        fakes, parameters, on_gpu=seed % 2 == 0, trim=trim, gpu_memory=budget, memory=MUCH
    )
    assert_same(found, expected)
    assert plan.divided_over == gpus
    # Reads and table are on all of them.
    assert plan.reads < 1.5 * reads.nbytes / gpus
    gc.collect()
    assert all(pool.used == 0 for pool in fakes.pools)


@pytest.mark.parametrize("gpus", [1, 2, 3, 4])
def test_many_parts(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    small_units(monkeypatch)
    monkeypatch.setattr(gpu_plan, "MOST_ROWS", 500)
    reads, parameters, trim = make_reads(400 + gpus)
    expected = correct_reads(reads, parameters, trim=trim)
    fakes = SpectrumGpus(reads, (MUCH,) * gpus).install(monkeypatch)
    found, plan = corrected(fakes, parameters, trim=trim)
    assert_same(found, expected)
    assert plan.rows == 500 < min(fakes.collected)


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("divided", [False, True])
def test_counted_kmers_that_go_to_the_host(
    monkeypatch: pytest.MonkeyPatch, gpus: int, divided: bool
) -> None:
    small_units(monkeypatch, pages=True)
    monkeypatch.setattr(gpu_plan, "kept_bytes", lambda words: MUCH)
    if divided:
        divide_always(monkeypatch)
    reads, parameters, trim = make_reads(200 + gpus)
    expected = correct_reads(reads, parameters, trim=trim)
    fakes = SpectrumGpus(reads, (MUCH,) * gpus, linked=divided).install(monkeypatch)
    found, plan = corrected(fakes, parameters, trim=trim)
    assert_same(found, expected)
    assert plan.moved == ["counted k-mers"]
    assert plan.divided_over == (gpus if divided else 1)


@pytest.mark.parametrize("gpus", [2, 3])
@pytest.mark.parametrize("bloom", [False, True])
def test_a_table_that_is_larger_than_was_planned(
    monkeypatch: pytest.MonkeyPatch, gpus: int, bloom: bool
) -> None:
    """Those that divide it take of the memory of everything else."""
    small_units(monkeypatch, pages=True)
    divide_always(monkeypatch)
    reads, parameters, trim = make_reads(300 + gpus)
    parameters = replace(parameters, filter="bloom" if bloom else "exact", min_count=2)
    expected = correct_reads(reads, parameters, trim=trim)
    fakes = SpectrumGpus(reads, (MUCH,) * gpus, linked=True).install(monkeypatch)
    monkeypatch.setattr(gpu_plan, "USUAL_COVERAGE", 1000)
    # Counted k-mers have room on the GPUs, though, until the table needs it.
    monkeypatch.setattr(gpu_plan, "kept_bytes", lambda words: 1000)
    found, plan = corrected(fakes, parameters, trim=trim)
    assert_same(found, expected)
    assert parameters.kmer is not None
    kmers = len(count_reads(reads, parameters.kmer).kmers)
    assert plan.divided_tables < (8 * filter_words(kmers) if bloom else table_bytes(kmers))


@pytest.mark.parametrize("divided", [False, True])
def test_a_table_that_is_too_large(monkeypatch: pytest.MonkeyPatch, divided: bool) -> None:
    small_units(monkeypatch, pages=True)
    if divided:
        divide_always(monkeypatch)
    reads, parameters, _ = make_reads(7)
    fakes = SpectrumGpus(reads, (MUCH, MUCH), linked=divided).install(monkeypatch)
    monkeypatch.setattr("ngsgpu.spectrum.gpu_team.solid_bytes", lambda *kept, bloom: 8 << 20)
    with pytest.raises(DeviceMemoryError, match=r"the set of [\d,]+ k-mers takes"):
        corrected(fakes, parameters)
    gc.collect()


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_reads_that_are_too_short_or_none(monkeypatch: pytest.MonkeyPatch, gpus: int) -> None:
    small_units(monkeypatch)
    parameters = SpectrumParameters(kmer=15)
    for texts in ([], ["ACGT"] * 40, ["", "A" * 100], ["N" * 30, "ACGTT" * 6]):
        reads = ReadSet.from_sequences(texts)
        expected = correct_reads(reads, parameters)
        for divided in (False, True):
            with monkeypatch.context() as patch:
                if divided:
                    divide_always(patch)
                fakes = SpectrumGpus(reads, (MUCH,) * gpus, linked=True).install(patch)
                assert_same(corrected(fakes, parameters)[0], expected)


def test_equal_kmers_are_of_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    small_units(monkeypatch)
    reads = ReadSet.from_sequences(["A" * 100] * 50)
    parameters = SpectrumParameters(kmer=21)
    fakes = SpectrumGpus(reads, (MUCH,) * 3).install(monkeypatch)
    assert_same(corrected(fakes, parameters)[0], correct_reads(reads, parameters))
    assert sorted(fakes.collected) == [0, 0, 4000]


def test_one_of_several_gpus_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    small_units(monkeypatch)
    reads, parameters, _ = make_reads(7)
    fakes = SpectrumGpus(reads, (MUCH,) * 2).install(monkeypatch)

    def fail(*arguments: object) -> None:
        raise DeviceError("kernel correct_reads: it fell off the bus")

    monkeypatch.setattr(fakes, "_correct_reads", fail)
    with pytest.raises(DeviceError, match="fell off"):
        correct_reads(reads, parameters, RunOptions(backend="cuda", gpus=2))


@pytest.fixture(scope="module")
def fastq(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ReadSet]:
    """A file of reads, and the same reads."""
    texts, qualities, _ = errors_in(random.Random(3), genome=600, reads=300, length=60)
    path = tmp_path_factory.mktemp("reads") / "r.fq"
    records = zip(texts, qualities, strict=True)
    path.write_text("".join(f"@r\n{text}\n+\n{quality}\n" for text, quality in records))
    return path, read_on_host([ReadFiles((str(path),), (0,))], by_level=True)


@pytest.mark.parametrize("gpus", [1, 3])
@pytest.mark.parametrize("divided", [False, True])
def test_files_and_statistics(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fastq: tuple[Path, ReadSet],
    gpus: int,
    divided: bool,
) -> None:
    path, reads = fastq
    written, documents = [], []
    for backend in ("cpu", "cuda"):
        if backend == "cuda":
            small_units(monkeypatch)
            if divided:
                divide_always(monkeypatch)
            SpectrumGpus(reads, (MUCH,) * gpus, linked=True).install(monkeypatch)

            def on_host(*lanes: Any, **options: Any) -> Any:
                raise DeviceMemoryError("too little")

            monkeypatch.setattr(gpu_run, "read_to_device", on_host)
        output, stats = tmp_path / f"{backend}.fq", tmp_path / f"{backend}.json"
        correct_files(
            [path],
            [output],
            stats=stats,
            options=RunOptions(backend=backend, gpus=gpus),  # type: ignore[arg-type]
        )
        written.append(output.read_bytes())
        documents.append(json.loads(stats.read_text()))
    assert written[0] == written[1] != path.read_bytes()
    for key in ("kmers", "classes", "corrected", "corrected_bases_by_position"):
        assert documents[0][key] == documents[1][key]
    plan = documents[1]["gpu_memory"]
    assert plan["divided_over"] == (gpus if divided else 1)
    assert documents[1]["device"] == ("GPU" if gpus == 1 else f"{gpus} GPUs")
