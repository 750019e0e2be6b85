"""Trimming on a GPU: the kernels, and what they need on the device.

Equal reads are marked on the host, in their order, by hashes from the device: the table takes as
much memory as there are different reads. What was cut off as adapters is counted on the host, too.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ngsgpu.declared.limits import MAX_READ_LENGTH
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.io.gpu.parse import SLOTS, THREADS, most_records, slot_bytes
from ngsgpu.io.gpu.records import CHUNK_BYTES, MIN_CHUNK, DeviceRecordBatch
from ngsgpu.run.record_gpu import (
    BATCHES,
    RecordKernels,
    ResultBatch,
    grid_of_tiles,
    output_bytes,
    record_arguments,
)
from ngsgpu.trim.counts import KMER, LETTERS, MOST_INSERT, TOTALS, Counts, ReadCounts
from ngsgpu.trim.cpu import FAILED, KEPT1, KEPT2, REASON_BYTES, REASON_ENDS, UNPAIRED1, UNPAIRED2
from ngsgpu.trim.duplicates import CODES, Duplicates
from ngsgpu.trim.filters import RESULTS
from ngsgpu.trim.rules import NO_UMI, Rules, Window

KERNELS: Final = KernelModule("ngsgpu.trim.cuda")

_KINDS: Final = {
    int: "int32_t",
    bool: "int32_t",
    float: "double",
    tuple[int, int]: "int32_t[2]",
    Window: "int32_t[3]",
    NDArray[np.uint8]: "const uint8_t*",
    NDArray[np.int64]: "const int64_t*",
}
RULES: Final = Struct(
    __name__,
    "Rules",
    {
        **{name: _KINDS[kind] for name, kind in get_type_hints(Rules).items()},
        "sequences": "int32_t",
        "umi_prefix_length": "int32_t",
        "reasons": "const uint8_t*",
        "reason_ends": "const int64_t*",
        "paired": "int32_t",
        "interleaved": "int32_t",
        "wanted": "uint32_t",
    },
)
"""``Rules``, how many ``adapters`` these are, and the outputs: a bit of each that is wanted."""

TRIMMED: Final = Struct(
    __name__,
    "Trimmed",
    {
        "begin": "int32_t[2]",
        "end": "int32_t[2]",
        "output": "uint8_t[2]",
        "reason": "uint8_t[2]",
        "last": "uint8_t[2]",
        "kept": "uint8_t",
    },
)
"""What is left of both mates, the outputs and reasons of these, letters of a UMI that might be
corrected (or 0), and whether the unit counts as kept."""

_BEGUN: Final = 5
SECTIONS: Final = (RESULTS, TOTALS, 8, MOST_INSERT + 1, 2 * _BEGUN)
"""Lengths of the counters: of ``Counts`` the results, totals, tails and inserts; of each mate
adapters that lack 0 to 4 first bases."""

_COUNTED_UNITS: Final = 256
"""Units per block of ``count_reads``."""

_REASON_BYTES: Final = 32
_TAG_BYTES: Final = 16
"""Bytes by which a name grows at most: by a reason, and by a UMI but for its letters."""

_MOST_INT: Final = 2**31 - 1


class Wanted(NamedTuple):
    """What a run has to make.

    Attributes:
        outputs: numbers of those that are written.
        notes: whether what is cut off as an adapter is counted by its sequence.
        paired: whether reads have mates.
        duplicates: of which equal reads are known; None if they are not counted.
        dedup: whether they are left out.
    """

    outputs: frozenset[int]
    notes: bool
    paired: bool
    duplicates: Duplicates | None
    dedup: bool

    @property
    def interleaved(self) -> bool:
        """Whether second mates follow the first ones."""
        return self.paired and KEPT2 not in self.outputs

    def sizes(self, rules: Rules, chunk_bytes: int) -> list[int]:
        """Bytes that each output of a batch may take."""
        one, records = output_bytes(chunk_bytes), most_records(chunk_bytes)
        if rules.umi != NO_UMI:  # of letters of both mates' names or reads
            one = 3 * one + _TAG_BYTES * records
        mates = 2 if self.paired else 1
        most = {
            KEPT1: mates * one if self.interleaved else one,
            KEPT2: one,
            UNPAIRED1: one if UNPAIRED2 in self.outputs else mates * one,
            UNPAIRED2: one,
            FAILED: mates * (one + _REASON_BYTES * records),
        }
        return [most[number] if number in self.outputs else 1 for number in sorted(most)]

    def chunk_within(self, rules: Rules, memory: int) -> int:
        """Bytes per chunk of a file with which a run needs no more device memory than this."""
        chunk = CHUNK_BYTES
        while chunk > MIN_CHUNK and self._device_bytes(rules, chunk) > memory:
            chunk //= 2
        return chunk

    def _device_bytes(self, rules: Rules, chunk_bytes: int) -> int:
        """Device memory for counts, records, what is found, and outputs, and a quarter more."""
        counted = 8 * 8 * MAX_READ_LENGTH * LETTERS
        slots = (2 if self.paired else 1) * SLOTS * slot_bytes(chunk_bytes)
        found = most_records(chunk_bytes) * (TRIMMED.dtype.itemsize + 8 + 20 * BATCHES)
        rooms = (self.paired + self.notes) * output_bytes(chunk_bytes)
        outputs = BATCHES * sum(self.sizes(rules, chunk_bytes))
        return (counted + slots + found + rooms + outputs) * 5 // 4


class _Fetched(NamedTuple):
    """What a batch leaves for the host: hashes, and what was cut off first and second mates."""

    keys: NDArray[np.uint64] | None
    notes: list[NDArray[np.uint8]]


class TrimmingKernels(RecordKernels):
    """Trimming on the current GPU; equal to ``ngsgpu.trim.cpu``.

    Args:
        rules: what is done.
        wanted: what is made.
        chunk_bytes: bytes per chunk of a file.
    """

    FOUND = np.uint8

    def __init__(self, rules: Rules, wanted: Wanted, chunk_bytes: int) -> None:
        import cupy

        self._own, self._wanted = rules, wanted
        self.sizes = wanted.sizes(rules, chunk_bytes)
        held: dict[str, NDArray[Any]] = {
            "adapters": rules.adapters,
            "adapter_ends": rules.adapter_ends,
            "umi_prefix": rules.umi_prefix,
            "reasons": REASON_BYTES,
            "reason_ends": REASON_ENDS.astype(np.int64),
        }
        # Arrays of no bytes have no address.
        self._held = {name: cupy.asarray(own) if len(own) else None for name, own in held.items()}
        numbers = {
            name: np.minimum(own, _MOST_INT) if "int32_t" in RULES.fields[name] else own
            for name, own in rules._asdict().items()
            if name not in held
        }
        self._rules = RULES.on_device(
            **numbers,
            **self._held,
            sequences=len(rules.adapter_ends) - 1,
            umi_prefix_length=len(rules.umi_prefix),
            paired=wanted.paired,
            interleaved=wanted.interleaved,
            wanted=sum(1 << number for number in wanted.outputs),
        )
        self._units = most_records(chunk_bytes)
        self._trimmed = cupy.empty(self._units * TRIMMED.dtype.itemsize, dtype=cupy.uint8)
        room = output_bytes(chunk_bytes)
        self._turned = cupy.empty(room if wanted.paired else 1, dtype=cupy.uint8)
        # What is cut off has as many qualities, in whose place a line feed has room.
        self._notes = [
            cupy.empty(room // 2 if wanted.notes else 1, dtype=cupy.uint8) for _ in range(2)
        ]
        self._note_bytes = cupy.zeros(2, dtype=cupy.uint32)
        self._counters = cupy.zeros(sum(SECTIONS), dtype=cupy.uint64)
        self._longest = 0
        self._content = cupy.zeros((2, 2, 2, MAX_READ_LENGTH, LETTERS), dtype=cupy.uint64)
        self._kmers = cupy.zeros((2, 2, 4**KMER), dtype=cupy.uint64)
        self._totals = cupy.zeros((2, 2, 4), dtype=cupy.uint64)
        self._adapters: tuple[Counter[bytes], Counter[bytes]] = (Counter(), Counter())
        self._equal = 0
        self._hashed = 0
        if wanted.duplicates is not None:
            self._codes = cupy.asarray(CODES)
            self._factors = cupy.asarray(wanted.duplicates.factors)
            self._keys = cupy.empty(self._units, dtype=cupy.uint64)

    def launch(self, batch: ResultBatch, records: DeviceRecordBatch) -> None:
        """See ``RecordKernels``."""
        before = self._fetch()
        self._longest = max(self._longest, *(chunk.max_length for chunk, _ in records.parts))
        grid, arguments = grid_of_tiles(records.units), record_arguments(records)
        duplicate = None
        if self._wanted.duplicates is not None:
            self._hash(self._wanted.duplicates, grid, arguments, records.units)
        if self._wanted.dedup:
            duplicate = batch.found
            duplicate[: records.units].set(self._mark(self._fetch_keys()).view(np.uint8))
        self._count_reads(arguments, None, is_64=self._own.is_64)
        if self._wanted.notes:
            self._note_bytes.fill(0)
        places = batch.offsets, batch.tile_bytes
        notes = self._notes if self._wanted.notes else (None, None)
        KERNELS.launch(
            "trim_units",
            grid,
            (THREADS,),
            (
                *arguments,
                self._rules,
                _address(duplicate),
                self._turned,
                self._trimmed,
                *places,
                self._counters,
                *map(_address, notes),
                self._note_bytes,
            ),
        )
        self._count_reads(arguments, self._trimmed)
        KERNELS.launch(
            "write_units",
            grid,
            (THREADS,),
            (
                *arguments,
                self._rules,
                self._trimmed,
                *places,
                *batch.outputs,
                batch.totals,
            ),
        )
        self._take(before)

    def _count_reads(
        self, arguments: tuple[Any, ...], trimmed: Any | None, *, is_64: bool = False
    ) -> None:
        """Count reads as they are, or what is left of those that are kept."""
        *of_mates, step, units = arguments
        when, half = 0 if trimmed is None else 1, len(of_mates) // 2
        for mate in range(2 if self._wanted.paired else 1):
            KERNELS.launch(
                "count_reads",
                (-(-int(units) // _COUNTED_UNITS),),
                (THREADS,),
                (
                    *of_mates[half * mate : half * (mate + 1)],
                    step,
                    units,
                    np.uint32(mate),
                    _address(trimmed),
                    np.uint32(is_64),
                    *self._content[when, mate],
                    self._kmers[when, mate],
                    self._totals[when, mate],
                ),
            )

    def _hash(
        self, duplicates: Duplicates, grid: tuple[int], arguments: tuple[Any, ...], units: int
    ) -> None:
        """Hash the letters of the units."""
        KERNELS.launch(
            "hash_units",
            grid,
            (THREADS,),
            (
                *arguments,
                np.uint32(self._wanted.paired),
                duplicates.mask,
                self._codes,
                self._factors,
                self._keys,
            ),
        )
        self._hashed = units

    def _fetch_keys(self) -> NDArray[np.uint64]:
        """The hashes of units that were not marked yet; waits for the device."""
        keys: NDArray[np.uint64] = self._keys[: self._hashed].get()
        self._hashed = 0
        return keys

    def _mark(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which units are equal to one before; counts them."""
        assert self._wanted.duplicates is not None
        seen, count = self._wanted.duplicates.mark(keys)
        self._equal += count
        return seen

    def _fetch(self) -> _Fetched:
        """What the last batch has left on the device for the host."""
        notes = []
        if self._wanted.notes:
            sizes = self._note_bytes.get().tolist()
            notes = [own[:size].get() for own, size in zip(self._notes, sizes, strict=True)]
        return _Fetched(self._fetch_keys() if self._hashed else None, notes)

    def _take(self, fetched: _Fetched) -> None:
        """Count it, while the device is at work."""
        if fetched.keys is not None:
            self._mark(fetched.keys)
        for own, text in zip(self._adapters, fetched.notes, strict=False):
            own.update(text.tobytes().split(b"\n")[:-1])

    def counts(self) -> Counts:
        """The counts."""
        self._take(self._fetch())
        counted = self._counters.get().astype(np.int64)
        bounds = pairwise(accumulate(SECTIONS, initial=0))
        results, totals, tails, inserts, begun = (counted[begin:end] for begin, end in bounds)
        content, kmers, sums = (
            own.get().astype(np.int64) for own in (self._content, self._kmers, self._totals)
        )
        content = content[:, :, :, : self._longest]
        letters = zip(
            content[:, :, 0].reshape(4, -1, LETTERS),
            content[:, :, 1].reshape(4, -1, LETTERS),
            kmers.reshape(4, -1),
            sums.reshape(4, -1),
            strict=True,
        )
        reads = [ReadCounts(*own) for own in letters]
        for mate, own in enumerate(self._adapters):
            text = self._own.adapters[slice(*self._own.adapter_ends[mate : mate + 2])].tobytes()
            for lacking, number in enumerate(begun.reshape(2, _BEGUN)[mate].tolist()):
                if number:
                    own[text[: len(text) - lacking]] += number
        return Counts(
            reads[:2],
            reads[2:],
            results,
            totals,
            tails.reshape(2, 4),
            inserts,
            self._adapters,
            self._equal,
        )


def _address(array: Any | None) -> Any:
    """A pointer for a kernel, which may be none."""
    return np.uint64(0) if array is None else array
