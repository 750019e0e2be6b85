"""GPUs for machines without one that correct reads by their k-mers."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters
from ngsgpu.device.cuda import kernels as cuda_kernels
from ngsgpu.kmers import gpu as kmers_gpu
from ngsgpu.kmers.params import MAX_COUNT
from ngsgpu.readset import AmbiguousBases, ReadArrays, ReadSet
from ngsgpu.readset.gpu import AMBIGUOUS
from ngsgpu.sequence.hashing import mix64
from ngsgpu.spectrum import cpu
from ngsgpu.spectrum import gpu as spectrum_gpu
from ngsgpu.spectrum import gpu_correct as correct_gpu
from ngsgpu.spectrum.cpu import Results, Workspace
from ngsgpu.spectrum.kmers import counts as cpu_counts
from ngsgpu.spectrum.kmers import solid as cpu_solid
from ngsgpu.spectrum.kmers.reads import find_levels, is_clean, load_codes
from ngsgpu.spectrum.kmers.solid import Solid, make_solid
from ngsgpu.spectrum.params import SearchRules
from tests.support.correct.fake_gpu import Device, FakeGpus, at

_COPY_TO_DEVICE = 1
MULTIPROCESSORS = 4


class SpectrumGpus(FakeGpus):
    """GPUs that correct one read set by its k-mers.

    Attributes:
        collected: how many k-mers each GPU counted.
        listed: how many reads each looked at.
        handled: how many reads each corrected.
    """

    def __init__(
        self, reads: ReadSet, sizes: tuple[int, ...] = (1 << 40,), linked: bool = False
    ) -> None:
        parameters = CorrectionParameters(minhash=MinhashParameters(hashes=1))
        super().__init__(reads, parameters, 1.0, sizes, linked)
        self.collected = [0] * len(sizes)
        self.listed = [0] * len(sizes)
        self.handled = [0] * len(sizes)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Self:
        """Stand in for CuPy and the kernels."""
        super().install(monkeypatch)
        cupy: Any = sys.modules["cupy"]
        cupy.searchsorted = lambda values, wanted: self._asarray(np.searchsorted(values, wanted))
        cupy.ascontiguousarray = np.ascontiguousarray
        cupy.cuda.runtime.memcpy = _copied
        kernels = SimpleNamespace(launch=self._launch, launch_threads=self._launch_threads)
        for module in (kmers_gpu, spectrum_gpu, correct_gpu):
            monkeypatch.setattr(module, "KERNELS", kernels)
        monkeypatch.setattr(cuda_kernels, "_multiprocessors", lambda device: MULTIPROCESSORS)
        return self

    def _launch_threads(self, kernel: str, units: int, *arguments: Any) -> None:
        if units:
            self._launch(kernel, (1,), (1,), arguments)

    def _reads_of(self, struct: Any, ambiguous_struct: Any) -> tuple[ReadArrays, AmbiguousBases]:
        """The reads as the kernels find them."""
        fields = AMBIGUOUS.unpack(ambiguous_struct)
        found, own = self.reads.ambiguous, {}
        assert fields["count"] == len(found.reads)
        for name, array in found._asdict().items():
            own[name] = at(fields[name], array.dtype, array.size)
        return self._read_arrays(struct), AmbiguousBases(**own)

    def _kmers(self, struct: Any, ambiguous: Any, k: Any) -> Any:
        """All k-mers, and their parts."""
        room = np.empty((self.reads.bases + 1, 1), np.uint64)
        codes = np.empty(max(1, self.reads.max_length), np.uint8)
        number = cpu_counts._collect(
            *self._reads_of(struct, ambiguous), 0, self.reads.reads, int(k), 0, 0, codes, room
        )
        kmers = room[:number, 0] >> np.uint64(64 - 2 * int(k))
        shift = np.uint64(64 - spectrum_gpu.PART_BITS)
        parts = np.array([mix64(kmer) >> shift for kmer in kmers], np.int64)
        return kmers, parts

    def _count_parts(self, reads: Any, ambiguous: Any, count: Any, k: Any, found: Any) -> None:
        assert count == self.reads.reads
        _, parts = self._kmers(reads, ambiguous, k)
        found += np.bincount(parts, minlength=len(found)).astype(np.uint64)

    def _collect_kmers(
        self, reads: Any, ambiguous: Any, count: Any, k: Any, first: Any, last: Any, out: Any,
        found: Any,
    ) -> None:  # fmt: skip
        assert count == self.reads.reads
        kmers, parts = self._kmers(reads, ambiguous, k)
        own = kmers[(first <= parts) & (parts < last)]
        assert found[0] == 0
        out[: len(own)] = own
        found[0] = len(own)
        self.collected[Device().id] += len(own)

    def _count_firsts_1(self, kmers: Any, stride: Any, size: Any, firsts: Any) -> None:
        begins = np.flatnonzero(np.diff(kmers[0], prepend=~kmers[0, :1]))
        firsts[:] = np.bincount(begins // kmers_gpu.ROWS, minlength=len(firsts))

    def _list_firsts_1(
        self, kmers: Any, stride: Any, size: Any, up_to: Any, distinct: Any, found: Any, starts: Any
    ) -> None:
        begins = np.flatnonzero(np.diff(kmers[0], prepend=~kmers[0, :1]))
        assert len(begins) == distinct
        starts[:] = begins
        found[0] = kmers[0][begins]

    def _count_rows(self, starts: Any, distinct: Any, size: Any, counts: Any, out: Any) -> None:
        assert counts == 0
        ends = np.append(np.asarray(starts)[1:], size)
        out[:] = np.minimum(ends.astype(np.int64) - starts, MAX_COUNT)

    def _tally(self, counts: Any, size: Any, found: Any) -> None:
        found += np.bincount(counts, minlength=len(found)).astype(np.uint64)

    def _fill_table(
        self, kmers: Any, counts: Any, count: Any, solid_from: Any, strong_from: Any, words: Any,
        buckets: Any,
    ) -> None:  # fmt: skip
        assert len(kmers) == len(counts) == count
        slots = words.reshape(int(buckets), spectrum_gpu.SLOTS)
        for kmer, number in zip(kmers, counts, strict=True):
            level = 1 + int(number >= solid_from) + int(number >= strong_from)
            bucket = (int(mix64(kmer)) * int(buckets)) >> 64
            while slots[bucket].all():
                bucket = (bucket + 1) % int(buckets)
            slots[bucket, np.argmin(slots[bucket] != 0)] = (int(kmer) << 2) | level

    def _fill_filter(
        self, kmers: Any, counts: Any, count: Any, solid_from: Any, words: Any, size: Any
    ) -> None:
        assert len(kmers) == len(counts) == count
        own = np.asarray(kmers), np.asarray(counts)
        made = np.zeros(size, np.uint64)
        cpu_solid._programme(made, *own, int(solid_from))
        words |= made

    def _solid(self, struct: Any) -> Solid:
        """The set as the CPU has it."""
        fields = spectrum_gpu.SOLID.unpack(struct)
        if fields["bloom"]:
            return Solid(np.array(at(fields["words"], np.uint64, fields["buckets"])), 1)
        words = at(fields["words"], np.uint64, fields["buckets"] * spectrum_gpu.SLOTS)
        words = words[words != 0]
        levels = (words & np.uint64(3)).astype(np.uint16)
        return make_solid(words >> np.uint64(2), levels, 2, 3, bloom=False)

    def _list_weak(
        self, reads: Any, ambiguous: Any, first: Any, last: Any, solid: Any, k: Any, rule: Any,
        listed: Any, found: Any,
    ) -> None:  # fmt: skip
        known, k = self._solid(solid), int(k)
        codes = np.empty(max(1, self.reads.max_length), np.uint8)
        levels = np.empty_like(codes)
        arrays = self._reads_of(reads, ambiguous)
        weak = []
        for read in range(first, last):
            length = load_codes(*arrays, read, codes)
            if length < k:
                continue
            if rule == cpu.SEARCH:
                clean = is_clean(known, k, codes, length)
            else:
                clean = find_levels(known, k, codes, 0, length, levels) == length - k + 1
            if not clean:
                weak.append(read - first)
        # In no order.
        listed[: len(weak)] = weak[::-1]
        found[0] = len(weak)
        self.listed[Device().id] += int(last - first)

    def _correct_reads(
        self, reads: Any, ambiguous: Any, scores: Any, solid: Any, rules: Any, rule: Any,
        mutations: Any, trim: Any, offset: Any, listed: Any, count: Any, scratch: Any, stride: Any,
        room: Any, classes: Any, begins: Any, ends: Any, counts: Any, edits: Any,
    ) -> None:  # fmt: skip
        assert len(listed) == count
        assert len(edits) >= count * room
        known = self._solid(solid)
        chosen = SearchRules(**spectrum_gpu.RULES.unpack(rules))
        space = Workspace.allocate(self.reads.max_length)
        own = Results.allocate(1, int(room))
        arrays, codes = self._reads_of(reads, ambiguous), np.array(scores)
        for row, place in enumerate(listed.tolist()):
            read = int(offset) + place
            number = cpu.correct_reads(
                *arrays, codes, known, chosen, int(rule), int(mutations), bool(trim), read,
                read + 1, space, own,
            )  # fmt: skip
            classes[place], begins[place] = own.classes[0], own.begin[0]
            ends[place], counts[place] = own.end[0], number
            edits[row * room : row * room + number] = own.edits[:number]
        self.handled[Device().id] += int(count)

    def _pack_edits(
        self, listed: Any, count: Any, counts: Any, ends: Any, edits: Any, room: Any, out: Any
    ) -> None:
        for row, place in enumerate(listed.tolist()):
            number = int(counts[place])
            begin = int(ends[row]) - number
            out[begin : begin + number] = edits[row * room : row * room + number]


def _copied(target: int, source: int, size: int, kind: int) -> None:
    """As CUDA's, from the host to a GPU."""
    assert kind == _COPY_TO_DEVICE
    at(target, np.uint8, size)[:] = at(source, np.uint8, size)
