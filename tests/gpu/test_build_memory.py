"""Databases that are built in little GPU memory, or on several GPUs, are those of the CPU."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.classify.database import gpu_build as gpu_build_run
from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.index import gpu_build
from ngsgpu.classify.index import gpu_plan as gpu_build_plan
from ngsgpu.classify.index.gpu_build import IndexBuilder
from ngsgpu.classify.index.gpu_plan import BuildPlan
from ngsgpu.classify.params import KEEP_ALL, DatabaseParameters, PartitionRequest, SketchParameters
from ngsgpu.classify.sketch import gpu_references
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.errors import DeviceError
from ngsgpu.run.options import RunOptions
from tests.support.classify.world import SKETCH, World, make_world


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
    monkeypatch.setattr(gpu_build_run, "_BYTES_PER_FEATURE", 1 << 30)  # takes all GPUs
    monkeypatch.setattr(gpu_build_plan, "_SPARE", 0)
    monkeypatch.setattr(gpu_build_plan, "_BATCH", 500)
    monkeypatch.setattr(gpu_build_plan, "_SAMPLE", 1000)
    return made


def build(world: World, path: Path, backend: str, **more: Any) -> None:
    options = {"gpus": more.pop("gpus", 1), "gpu_memory": more.pop("gpu_memory", 1 << 30)}
    known = "references" not in more
    build_database(
        more.pop("references", world.references),
        path,
        parameters=more.pop("parameters", DatabaseParameters(SKETCH)),
        taxonomy=world.taxonomy if known else None,
        maps=[world.map] if known else [],
        options=RunOptions(threads=3, backend=backend, **options),  # type: ignore[arg-type]
        **more,
    )


def same_files(one: Path, two: Path) -> None:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file


def limit_room(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Plan for so many bytes of GPU memory, though more can be had."""
    monkeypatch.setattr(gpu_build, "largest_array_bytes", lambda limit: room)


def choose_table(monkeypatch: pytest.MonkeyPatch, use_table: bool | None) -> None:
    monkeypatch.setitem(IndexBuilder.__init__.__kwdefaults__, "use_table", use_table)


PARAMETERS = [
    DatabaseParameters(SKETCH),
    DatabaseParameters(SketchParameters(16, 32, 127, 112), max_locations=2),
    DatabaseParameters(SketchParameters(4, 20, 90, 90)),
    DatabaseParameters(SketchParameters(16, 32, 127, 112, 0.4), max_locations=2),
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


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("use_table", [False, True])
@pytest.mark.parametrize("room", [1 << 30, 60_000])
def test_memory_that_runs_out_in_spite_of_the_plan(
    world: World,
    tmp_path: Path,
    plans: list[BuildPlan],
    monkeypatch: pytest.MonkeyPatch,
    room: int,
    use_table: bool,
    gpus: int,
):
    """Whatever fails now and then, while counting or writing, is done in halves."""
    from cupy.cuda import runtime

    if gpus > runtime.getDeviceCount():
        pytest.skip(f"{gpus} GPUs are needed")
    source = random.Random(room + use_table)
    failed = []

    def sort(words: Any) -> None:
        if len(words) > 40 and source.random() < 0.3:
            failed.append(len(words))
            raise MemoryError("no more")
        radix_sort(words)

    monkeypatch.setattr(gpu_build, "radix_sort", sort)
    limit_room(monkeypatch, room)
    choose_table(monkeypatch, use_table)
    build(world, tmp_path / "cpu", "cpu")
    for turn in range(5):
        build(world, tmp_path / f"cuda{turn}", "cuda", gpus=gpus)
        same_files(tmp_path / "cpu", tmp_path / f"cuda{turn}")
    assert failed


def test_memory_that_never_suffices(
    world: World,
    tmp_path: Path,
    plans: list[BuildPlan],
    monkeypatch: pytest.MonkeyPatch,
):
    def sort(words: Any) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(gpu_build, "radix_sort", sort)
    with pytest.raises(DeviceError, match=r"not enough GPU memory .*`gpu_memory`"):
        build(world, tmp_path / "cuda", "cuda")
    assert not (tmp_path / "cuda").exists()


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six copies of three million bases, with 1 % of these changed."""
    source = np.random.default_rng(7)
    genome = source.choice(np.frombuffer(b"ACGT", dtype=np.uint8), 3_000_000)
    references = tmp_path_factory.mktemp("copies")
    for number in range(6):
        copy = genome.copy()
        places = source.integers(0, len(copy), len(copy) // 100)
        copy[places] = source.choice(np.frombuffer(b"ACGT", dtype=np.uint8), len(places))
        text = b">copy%d\n%s\n" % (number, copy.tobytes())
        (references / f"{number}.fa").write_bytes(text)
    return references


@pytest.fixture(scope="module")
def copies_database(world: World, copies: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    database = tmp_path_factory.mktemp("database") / "cpu"
    build(world, database, "cpu", references=[copies])
    return database


@pytest.mark.parametrize("use_table", [None, False, True])
@pytest.mark.parametrize("megabytes", [28, 30, 32, 36, 40, 48, 64, 90, 128])
def test_little_memory(
    world: World,
    copies: Path,
    copies_database: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    use_table: bool | None,
    megabytes: int,
):
    """The limit holds: CuPy refuses what is beyond it. It suffices, or an error says so."""
    choose_table(monkeypatch, use_table)
    memory = megabytes << 20
    try:
        build(world, tmp_path / "cuda", "cuda", references=[copies], gpu_memory=memory)
    except DeviceError as error:
        assert megabytes < 36 and "`gpu_memory`" in str(error)
    else:
        same_files(copies_database, tmp_path / "cuda")
