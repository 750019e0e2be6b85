"""Databases that are built in little GPU memory, or on several GPUs, are those of the CPU."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.classify import gpu_build, gpu_build_plan, gpu_build_run, gpu_references
from ngsgpu.classify.build import build_database
from ngsgpu.classify.gpu_build import IndexBuilder
from ngsgpu.classify.gpu_build_plan import BuildPlan
from ngsgpu.classify.params import KEEP_ALL, DatabaseParameters, SketchParameters
from ngsgpu.classify.plan import BuildOptions, PartitionRequest
from tests.classify.world import SKETCH, World, make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), genome=3000, reads=10)


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[BuildPlan]:
    """Text in small pieces, features on the host, and what was planned then."""
    made: list[BuildPlan] = []
    for module in (gpu_build_run, gpu_references):
        monkeypatch.setattr(module, "PIECE_BYTES", 4096)
    monkeypatch.setattr(gpu_build_run, "BATCH_BYTES", 8192)
    sketch_files = gpu_build_run.sketch_files

    def sketch(*values: Any, **named: Any) -> Any:
        return sketch_files(*values, **{**named, "key_room": 3000, "switch_bytes": 2000})

    plan_build = gpu_build_plan.plan_build

    def plan(*values: Any, **named: Any) -> BuildPlan:
        made.append(plan_build(*values, **named))
        return made[-1]

    monkeypatch.setattr(gpu_build_run, "sketch_files", sketch)
    monkeypatch.setattr(gpu_build, "plan_build", plan)
    monkeypatch.setattr(gpu_build_plan, "_SPARE", 0)
    monkeypatch.setattr(gpu_build_plan, "_BATCH", 500)
    monkeypatch.setattr(gpu_build_plan, "_SAMPLE", 1000)
    return made


def build(world: World, path: Path, backend: str, **more: Any) -> None:
    options = {"gpus": more.pop("gpus", 1), "gpu_memory": more.pop("gpu_memory", 1 << 30)}
    build_database(
        more.pop("references", world.references),
        path,
        parameters=more.pop("parameters", DatabaseParameters(SKETCH)),
        taxonomy=world.taxonomy,
        maps=[world.map],
        options=BuildOptions(threads=3, backend=backend, **options),  # type: ignore[arg-type]
        **more,
    )


def same_files(one: Path, two: Path) -> None:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file


def limit_room(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Plan for so many bytes of GPU memory, though more can be had."""
    monkeypatch.setattr(gpu_build, "free_for_one_array", lambda limit: room)


def choose_table(monkeypatch: pytest.MonkeyPatch, use_table: bool | None) -> None:
    monkeypatch.setitem(IndexBuilder.__init__.__kwdefaults__, "use_table", use_table)


PARAMETERS = [
    DatabaseParameters(SKETCH),
    DatabaseParameters(SketchParameters(16, 32, 127, 112), max_locations=2),
    DatabaseParameters(SketchParameters(4, 20, 90, 90)),
    DatabaseParameters(SketchParameters(12, 16, 300, 100), max_locations=3, remove_overfull=True),
    DatabaseParameters(SketchParameters(4, 20, 90, 90), max_locations=4, remove_overfull=True),
]


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("use_table", [False, True])
@pytest.mark.parametrize("room", [1 << 30, 200_000, 60_000])
@pytest.mark.parametrize("parameters", PARAMETERS)
def test_ranges_of_keys(
    world: World,
    tmp_path: Path,
    plans: list[BuildPlan],
    monkeypatch: pytest.MonkeyPatch,
    parameters: DatabaseParameters,
    room: int,
    use_table: bool,
    gpus: int,
):
    """Sorted or by way of tables, one after the other."""
    from cupy.cuda import runtime

    if gpus > runtime.getDeviceCount():
        pytest.skip(f"{gpus} GPUs are needed")
    limit_room(monkeypatch, room)
    choose_table(monkeypatch, use_table)
    request = PartitionRequest(number=2)
    build(world, tmp_path / "cpu", "cpu", parameters=parameters, request=request)
    build(world, tmp_path / "cuda", "cuda", parameters=parameters, request=request, gpus=gpus)
    same_files(tmp_path / "cpu", tmp_path / "cuda")
    assert len(plans) == 2
    for plan in plans:
        assert (plan.table is not None) == use_table
        assert plan.bits >= 2 or room > 200_000


@pytest.mark.parametrize(
    "parameters",
    [
        DatabaseParameters(SKETCH, ambiguous_rank="species"),
        DatabaseParameters(SKETCH, max_locations=KEEP_ALL),
    ],
)
def test_what_a_table_cannot_do_is_sorted(
    world: World,
    tmp_path: Path,
    plans: list[BuildPlan],
    monkeypatch: pytest.MonkeyPatch,
    parameters: DatabaseParameters,
):
    limit_room(monkeypatch, 100_000)
    choose_table(monkeypatch, True)
    for backend in ("cpu", "cuda"):
        build(world, tmp_path / backend, backend, parameters=parameters)
    same_files(tmp_path / "cpu", tmp_path / "cuda")
    assert plans[0].table is None and plans[0].bits > 0


def test_tables_that_are_too_small_are_done_without(
    world: World, tmp_path: Path, plans: list[BuildPlan], monkeypatch: pytest.MonkeyPatch
):
    limit_room(monkeypatch, 200_000)
    choose_table(monkeypatch, True)
    monkeypatch.setattr(gpu_build_plan, "_LOAD", 50.0)
    for backend in ("cpu", "cuda"):
        build(world, tmp_path / backend, backend)
    same_files(tmp_path / "cpu", tmp_path / "cuda")
    assert plans[0].table is not None


@pytest.mark.parametrize("use_table", [None, True])
def test_a_database_in_48_megabytes(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use_table: bool | None
):
    """The limit holds: CuPy refuses what is beyond it."""
    source = random.Random(7)
    genome = "".join(source.choices("ACGT", k=3_000_000))
    references = tmp_path / "references"
    references.mkdir()
    for number in range(6):
        copy = list(genome)
        for at in source.sample(range(len(copy)), k=len(copy) // 100):
            copy[at] = source.choice("ACGT")
        (references / f"{number}.fa").write_text(f">copy{number}\n{''.join(copy)}\n")
    choose_table(monkeypatch, use_table)
    for backend in ("cpu", "cuda"):
        build(world, tmp_path / backend, backend, references=[references], gpu_memory=48 << 20)
    same_files(tmp_path / "cpu", tmp_path / "cuda")
