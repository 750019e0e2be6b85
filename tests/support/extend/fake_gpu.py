"""GPUs for machines without one that build tables of ends and extend pairs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.device.pinned import ReusedMemory
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.cpu_run import Extender
from ngsgpu.extend.rules import Rules
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.minhash import ends, ends_gpu
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_read import DeviceInput
from ngsgpu.run import gpu_run
from tests.support.correct.fake_gpu import Device, FakeGpus, OutOfMemoryError
from tests.support.io.layouts import kept, layouts_of

WORKSPACE_BYTES = 1 << 20


def read_on_host(lanes: Sequence[ReadFiles], **options: Any) -> ReadSet:
    offset = options.get("phred_offset", "auto")
    builder = ReadSetBuilder(
        paired=True,
        quality_bits=options.get("quality_bits", 8),
        phred_offset=33 if offset == "auto" else offset,
        by_level=True,
    )
    for lane in lanes:
        for mates in lane.batches(threads=1, phred_offset=offset, chunk_bytes=5000):
            builder.add(*mates)
    return builder.finish()


class ExtendingGpus(FakeGpus):
    """GPUs that extend one read set.

    Attributes:
        placed: whether the first reading knows where the records lie.
        extended: how many pairs each GPU extended.
        fail_after: pairs after which extending fails.
    """

    def __init__(
        self, reads: ReadSet, sizes: tuple[int, ...] = (1 << 40,), linked: bool = False
    ) -> None:
        parameters = CorrectionParameters(minhash=MinhashParameters(hashes=1))
        super().__init__(reads, parameters, 1.0, sizes, linked)
        self.placed = True
        self.extended = [0] * len(sizes)
        self.fail_after: int | None = None
        self._adding = threading.Lock()

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """Stand in for CuPy, the kernels, and the reader."""
        super().install(monkeypatch)
        cuda: Any = sys.modules["cupy.cuda"]
        cuda.Stream = lambda non_blocking: nullcontext()
        kernels = SimpleNamespace(launch=self._launch)
        monkeypatch.setattr(ends_gpu, "KERNELS", kernels)
        monkeypatch.setattr(gpu_run, "read_to_device", self._read)
        gpu = SimpleNamespace(
            DeviceExtender=lambda *arguments: FakeExtender(self, *arguments),
            workspace_bytes=lambda *sizes: WORKSPACE_BYTES,
            result_bytes=lambda rules, pairs: 0,
        )
        monkeypatch.setitem(sys.modules, "ngsgpu.extend.gpu", gpu)
        return self

    def _read(self, lanes: Sequence[ReadFiles], **options: Any) -> DeviceInput:
        reads = DeviceReadSet.from_host(read_on_host(lanes, **options))
        options["advance"](reads.reads)
        fasta = Path(lanes[0].inputs[0]).read_bytes()[:1] == b">"
        layouts = tuple(kept(lane) for lane in layouts_of(list(lanes))) if not fasta else None
        return DeviceInput(reads, layouts if self.placed else None)

    def _sign_ends(
        self, struct: Any, count: Any, k: Any, window: Any, function: Any, keys: Any, positions: Any
    ) -> None:
        positions[:] = 0
        ends.sign_ends(
            self._read_arrays(struct), 0, int(count) // 2, int(k), int(window), int(function),
            np.asarray(keys)[None], np.asarray(positions)[None],
        )  # fmt: skip

    def _mark_ends(
        self, keys: Any, first: Any, count: Any, shift: Any, part: Any, marks: Any
    ) -> None:
        own = np.asarray(keys)[int(first) : int(first + count)]
        parts = own >> np.uint64(shift) if shift < 64 else np.zeros(len(own), np.uint64)
        marks[:] = (own != ends.NO_KEY) & (parts == part)

    def _fill_ends(
        self, keys: Any, members: Any, count: Any, positions: Any, below: Any, entries: Any
    ) -> None:
        assert count == len(keys) == len(members) == len(entries)
        shift = np.uint64(max(0, int(below) - ends.MARK_BITS))
        marks = (np.asarray(keys) >> shift) & np.uint64((1 << ends.MARK_BITS) - 1)
        own = np.asarray(positions)[members].astype(np.uint64)
        entries[:] = (marks << np.uint64(40)) | (own << np.uint64(32)) | members.astype(np.uint64)

    def _find_cells(  # type: ignore[override]
        self, keys: Any, count: Any, below: Any, base: Any, first_cell: Any, cells: Any, first: Any
    ) -> None:
        assert count == len(keys)
        own = np.asarray(keys) >> np.uint64(below) if below < 64 else np.zeros(count, np.uint64)
        wanted = np.arange(int(cells), dtype=np.uint64) + np.uint64(first_cell)
        first[: int(cells)] = np.searchsorted(own, wanted) + base


class FakeExtender:
    """As ``ngsgpu.extend.gpu.DeviceExtender``, by the CPU's kernels."""

    def __init__(
        self, gpus: ExtendingGpus, reads: Any, tables: Any, rules: Rules, memory: Any
    ) -> None:
        assert isinstance(memory, ReusedMemory)
        assert reads.ambiguous.start.device == Device() == tables.entries.device
        self._gpus, self._number = gpus, Device().id
        entries = np.concatenate([np.array(tables.entries), np.array(tables.on_host)])
        host = ends.EndTables(entries, np.array(tables.cells), *tables[3:])
        arrays = gpus._read_arrays(reads.struct)
        own = ReadSet(
            arrays, gpus.reads.ambiguous, gpus.reads.reads, gpus.reads.bases, True,
            gpus.reads.min_length, gpus.reads.max_length, gpus.reads.levels,
        )  # fmt: skip
        self._extender = Extender(own, host, rules, 1)

    def extend(self, pairs: Any) -> Extensions:
        assert Device().id == self._number
        with self._gpus._adding:
            self._gpus.extended[self._number] += len(pairs)
            done = sum(self._gpus.extended)
        if self._gpus.fail_after is not None and done > self._gpus.fail_after:
            raise OutOfMemoryError(1 << 30, 0)
        return self._extender.extend(pairs)

    @property
    def utilisation(self) -> float:
        return 0.5

    @property
    def counters(self) -> Any:
        return self._extender.counters
