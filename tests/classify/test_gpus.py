"""How several GPUs share a search: what the host does, with the CPU's kernels for the GPUs'."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest, QueryParameters
from ngsgpu.classify.query import gpu as gpu_query
from ngsgpu.classify.query.cpu import PartitionArrays, merge_candidates
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu import Search
from ngsgpu.classify.query.gpu_batch import GpuMates, GpuNames, GpuReads
from ngsgpu.classify.query.queries import NO_MATES, CandidateArrays, Mates, Queries
from tests.support.classify.world import SKETCH, World, make_world

_current = [0]


class Device:
    """As CuPy's."""

    attributes = MappingProxyType({"MultiProcessorCount": 4})

    def __init__(self, number: int | None = None) -> None:
        self.id = _current[-1] if number is None else number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def __enter__(self) -> None:
        _current.append(self.id)

    def __exit__(self, *error: object) -> None:
        _current.pop()


class Array(np.ndarray[Any, Any]):
    """An array of CuPy's, which knows its GPU."""

    gpu = 0

    def __array_finalize__(self, other: object) -> None:
        self.gpu = getattr(other, "gpu", 0)

    @property
    def device(self) -> Device:  # type: ignore[override]
        return Device(self.gpu)

    @property
    def data(self) -> Any:  # type: ignore[override]
        def copy_from_device_async(source: Any, size: int, stream: Any) -> None:
            assert size == self.nbytes == source.array.nbytes
            self[...] = source.array

        return SimpleNamespace(
            ptr=self.ctypes.data, array=self, copy_from_device_async=copy_from_device_async
        )


def on_gpu(values: Any) -> Array:
    array = np.ascontiguousarray(values).copy().view(Array)
    array.gpu = Device().id
    return array


class CpuSearcher:
    """Searches partitions by the CPU's kernels, for what lies on its own GPU."""

    def __init__(
        self,
        engine: Engine,
        partitions: list[PartitionArrays],
        memory: int | None = None,
        like: CpuSearcher | None = None,
    ) -> None:
        self.device = Device()
        assert like is None or like.device == self.device
        self.taxa = on_gpu(engine.taxon_of_target) if len(engine.taxon_of_target) else None
        self._engine = SimpleNamespace(**vars(engine))
        self._engine.partitions = partitions

    def start(self, reads: GpuReads) -> Search:
        mates = []
        for raw, start, length, first in reads.mates:
            assert raw.device == start.device == length.device == self.device == Device()
            cut = slice(first, first + reads.queries * reads.step, reads.step)
            begin, own = start[cut].astype(np.int64), np.array(length[cut])
            mates.append(Mates(np.array(raw), np.array(begin), np.array(begin + own), own))
        none = np.zeros(reads.queries, dtype=np.int64)
        queries = Queries(mates[0], mates[1] if len(mates) == 2 else NO_MATES, none, none)
        block = Engine.find_candidates(self._engine, queries)  # type: ignore[arg-type]
        best = block.candidates
        fields = (best.target, best.hits, best.window_begin, best.window_end)
        sizes = np.stack([block.features, block.length1, block.length2]).astype(np.int32)
        return Search(reads, on_gpu(np.stack(fields, axis=-1)), on_gpu(sizes), None)

    def finish(self, search: Search) -> None:
        assert search.candidates.device == Device()


def launch_threads(
    kernel: str, units: int, other: Any, queries: Any, most: Any, taxa: Any, candidates: Any
) -> None:
    assert kernel == "merge_candidates"
    assert (units, most) == (queries, candidates.shape[1])
    assert other.device == candidates.device == Device()

    def lists(array: Any) -> CandidateArrays:
        four = [np.ascontiguousarray(array[:, :, i]) for i in range(4)]
        taxon = np.full_like(four[0], -1)
        if isinstance(taxa, Array):
            taxon = np.where(four[0] >= 0, np.asarray(taxa)[four[0]], taxon)
        return CandidateArrays(*four, taxon)

    best = lists(candidates)
    merge_candidates(lists(other), best)
    candidates[...] = np.stack(best[:4], axis=-1)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), genome=1500, reads=60)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
    event = SimpleNamespace(record=lambda stream: None)
    stream = SimpleNamespace(wait_event=lambda event: None, synchronize=lambda: None)
    cuda.__dict__.update(
        Device=Device, Event=lambda **options: event, get_current_stream=lambda: stream
    )
    cupy.__dict__.update(
        cuda=cuda,
        empty=lambda shape, dtype: on_gpu(np.empty(shape, dtype)),
        concatenate=lambda arrays, axis=0: on_gpu(np.concatenate(arrays, axis)),
    )
    for name, module in (("cupy", cupy), ("cupy.cuda", cuda)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(gpu_query, "Searcher", CpuSearcher)
    monkeypatch.setattr(gpu_query, "KERNELS", SimpleNamespace(launch_threads=launch_threads))
    yield
    assert _current == [0]


def reads_of(world: World, layout: str) -> GpuReads:
    text = np.frombuffer("".join(world.reads).encode(), dtype=np.uint8)
    length = np.array([len(read) for read in world.reads], dtype=np.int32)
    start = (np.cumsum(length) - length).astype(np.uint32)
    arrays = on_gpu(text), on_gpu(start), on_gpu(length)
    if layout == "single":
        return GpuReads((GpuMates(*arrays, 0),), len(length), 1)
    # Mates alternate; the first pair was used before.
    return GpuReads((GpuMates(*arrays, 2), GpuMates(*arrays, 3)), len(length) // 2 - 1, 2)


@pytest.mark.parametrize("layout", ["single", "interleaved"])
@pytest.mark.parametrize("partitions", [1, 2, 5])
@pytest.mark.parametrize("lowest", ["sequence", "genus"])
def test_gpus_share_a_search(
    world: World, gpus: None, tmp_path: Path, layout: str, partitions: int, lowest: str
) -> None:
    database = build_database(
        world.references,
        None,
        parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy,
        maps=[world.map],
        request=PartitionRequest(number=partitions),
    )
    engine = Engine(database, QueryParameters(candidates=3, lowest=lowest))
    reads = reads_of(world, layout)
    text = on_gpu(np.zeros(0, dtype=np.uint8))
    none = on_gpu(np.zeros(reads.queries, dtype=np.uint32))
    names = GpuNames(text, none, none, 0)
    alone = gpu_query.GpuEngine(engine, 1).find(reads, names)
    assert (alone.candidates[:, 0, 0] >= 0).any()
    for number in (2, 3, 4):
        first = gpu_query.GpuEngine(engine, number)
        again = Engine(database, engine.parameters, like=engine)
        for own in (first, gpu_query.GpuEngine(again, number, like=first)):
            shared = own.find(reads, names)
            assert shared.candidates.device == shared.sizes.device == Device(0)
            there = alone.candidates[:, :, 0] >= 0
            assert np.array_equal(shared.candidates[:, :, 0], alone.candidates[:, :, 0])
            assert np.array_equal(shared.candidates[there], alone.candidates[there])
            assert np.array_equal(shared.sizes, alone.sizes)
