"""The read set on a GPU: the host's arrays, and the struct passed to kernels."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from ngsgpu.device.arena import ALIGNMENT
from ngsgpu.device.cuda.kernels import KernelModule, grid_for
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import mapped_copy
from ngsgpu.device.plan import ROUNDING_BYTES, Allocation
from ngsgpu.device.spread import seen_from_here, spread_arena
from ngsgpu.device.team import here
from ngsgpu.readset.cpu import ReadArrays
from ngsgpu.readset.kmers import KmerSpectrum, kmer_occurrences, sampling_shift, spectrum_of
from ngsgpu.readset.qualities import LEVEL_BITS, Levels
from ngsgpu.readset.readset import AmbiguousBases, ReadSet
from ngsgpu.sequence.codec import words_for

if TYPE_CHECKING:
    from ngsgpu.readset import ReadSet

Movable = Literal["qualities", "planes"]
"""Arrays of a read set that may stay on the host, where kernels read them over the bus."""

_ARRAYS: Final = ("planes", "plane_start", "qualities", "quality_start", "lengths")

READS: Final = Struct(__name__, "Reads", {
    "planes": "const uint64_t*",
    "plane_start": "const int64_t*",
    "qualities": "const uint8_t*",
    "quality_start": "const int64_t*",
    "lengths": "const int32_t*",
    "uniform_length": "int64_t",
    "quality_bits": "int64_t",
})  # fmt: skip
"""The arrays of a read set, as of ``ReadArrays``."""

AMBIGUOUS: Final = Struct(__name__, "AmbiguousBases", {
    "reads": "const uint32_t*",
    "start": "const int64_t*",
    "positions": "const int32_t*",
    "count": "int64_t",
})  # fmt: skip
"""``DeviceAmbiguousBases``, and how many reads have any."""


_MOST_ARRAYS: Final = len(_ARRAYS) + len(AmbiguousBases._fields)


def divided_bytes(size: int) -> int:
    """Bytes that the arrays of a read set take of memory that is divided over GPUs.

    Args:
        size: their own bytes.
    """
    return size + ALIGNMENT * _MOST_ARRAYS


class DeviceAmbiguousBases(NamedTuple):
    """``AmbiguousBases`` in CuPy arrays.

    Attributes:
        reads: uint32[m], the reads that have any, ascending.
        start: int64[m + 1], where each read's positions begin.
        positions: int32, positions within the read.
    """

    reads: Any
    start: Any
    positions: Any


@dataclass(eq=False)
class DeviceReadSet:
    """All reads of a run on one GPU; CuPy arrays as in ``ReadArrays``.

    They are in GPU memory, except for those moved by ``keep_on_host``.

    Attributes:
        planes: see ``ReadArrays``, as for those up to ``quality_bits``.
        ambiguous: positions of letters other than ACGT.
        reads: number of reads.
        bases: number of bases.
        paired: whether reads 2p and 2p + 1 are mates.
        min_length: shortest read, in bases; 0 without reads.
        max_length: longest read, in bases; 0 without reads.
        on_host: arrays in pinned host memory.
        divided: whether the other arrays are divided over several GPUs, all of which read them.
        levels: Phred scores of the quality codes, if these are all that occur.
    """

    planes: Any
    plane_start: Any
    qualities: Any
    quality_start: Any
    lengths: Any
    uniform_length: int
    quality_bits: int
    ambiguous: DeviceAmbiguousBases
    reads: int
    bases: int
    paired: bool
    min_length: int
    max_length: int
    on_host: tuple[Movable, ...] = ()
    divided: bool = False
    levels: Levels = ()

    @cached_property
    def struct(self) -> Any:
        """The struct ``READS`` on the device."""
        return READS.on_device(**{name: getattr(self, name) for name in READS.fields})

    def ambiguous_struct(self) -> Any:
        """The struct ``AMBIGUOUS`` on the device."""
        return AMBIGUOUS.on_device(**self.ambiguous._asdict(), count=len(self.ambiguous.reads))

    @property
    def equal_bits(self) -> int | None:
        """Bits of a quality of reads that have one length; None for others."""
        return self.quality_bits if self.uniform_length >= 0 else None

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _ARRAYS)

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes, on the GPU and on the host."""
        return sum(int(array.nbytes) for array in (*self._arrays, *self.ambiguous))

    @property
    def device_nbytes(self) -> int:
        """Size of the arrays in GPU memory, in bytes."""
        return self.nbytes - sum(int(getattr(self, name).nbytes) for name in self.on_host)

    def keep_on_host(self, names: Collection[Movable]) -> None:
        """Move arrays to pinned host memory, where kernels can still read them.

        Raises:
            DeviceError: could not allocate the pinned memory.
        """
        for name in names:
            if name not in self.on_host:
                setattr(self, name, mapped_copy(getattr(self, name)))
                self.on_host += (name,)
        self.__dict__.pop("struct", None)

    def divide(self, devices: Sequence[int], but: Collection[str] = ()) -> None:
        """Divide the arrays that are not on the host over GPUs, which ``can_spread``.

        Args:
            devices: numbers of the GPUs.
            but: arrays that are divided already.

        Raises:
            MemoryError: a GPU does not have as much memory.
            DeviceError: CUDA fails.
        """
        if self.divided:
            return
        there = sum(int(getattr(self, name).nbytes) for name in but)
        with spread_arena(divided_bytes(self.device_nbytes - there), devices).in_use():
            for name in _ARRAYS:
                if name not in self.on_host and name not in but:
                    setattr(self, name, getattr(self, name).copy())
            self.ambiguous = DeviceAmbiguousBases(*(array.copy() for array in self.ambiguous))
        self.divided = True
        self.__dict__.pop("struct", None)

    def on_current_device(self) -> DeviceReadSet:
        """The read set for the current GPU: a copy, but for arrays on the host or divided."""
        there = seen_from_here if self.divided else here
        arrays = {name: there(getattr(self, name)) for name in _ARRAYS if name not in self.on_host}
        return replace(self, **arrays, ambiguous=DeviceAmbiguousBases(*map(there, self.ambiguous)))

    def gathered(self) -> DeviceReadSet:
        """A copy of the divided read set in the current GPU's memory."""

        def gather(array: Any) -> Any:
            return seen_from_here(array).copy()

        arrays = {name: gather(getattr(self, name)) for name in _ARRAYS if name not in self.on_host}
        ambiguous = DeviceAmbiguousBases(*map(gather, self.ambiguous))
        return replace(self, **arrays, ambiguous=ambiguous, divided=False)

    def gather(self) -> None:
        """Move the divided read set to the current GPU's memory."""
        vars(self).update(vars(self.gathered()))
        self.__dict__.pop("struct", None)

    @classmethod
    def from_host(cls, reads: ReadSet, on_host: Collection[Movable] = ()) -> DeviceReadSet:
        """Copy a read set to the current device.

        Args:
            reads: the read set.
            on_host: arrays to put in pinned host memory instead.

        Raises:
            DeviceError: could not allocate the pinned memory.
        """
        import cupy

        arrays = reads.arrays
        placed = {
            name: (mapped_copy if name in on_host else cupy.asarray)(getattr(arrays, name))
            for name in _ARRAYS
        }
        return cls(
            **placed,
            uniform_length=arrays.uniform_length,
            quality_bits=arrays.quality_bits,
            ambiguous=DeviceAmbiguousBases(*map(cupy.asarray, reads.ambiguous)),
            reads=reads.reads,
            bases=reads.bases,
            paired=reads.paired,
            min_length=reads.min_length,
            max_length=reads.max_length,
            on_host=tuple(on_host),
            levels=reads.levels,
        )

    @classmethod
    def from_host_divided(
        cls, reads: ReadSet, devices: Sequence[int], on_host: Collection[Movable] = ()
    ) -> DeviceReadSet:
        """Copy a read set to GPUs, which ``can_spread``, and divide it over them.

        Args:
            reads: the read set.
            devices: numbers of the GPUs.
            on_host: arrays to put in pinned host memory instead.

        Raises:
            MemoryError: a GPU does not have as much memory.
            DeviceError: CUDA fails, or could not allocate the pinned memory.
        """
        moved = sum(getattr(reads.arrays, name).nbytes for name in on_host)
        with spread_arena(divided_bytes(reads.nbytes - moved), devices).in_use():
            return replace(cls.from_host(reads, on_host), divided=True)

    def to_host(self) -> ReadSet:
        """Copy the read set to the host."""
        import cupy

        planes, plane_start, qualities, quality_start, lengths = map(cupy.asnumpy, self._arrays)
        ambiguous_reads, ambiguous_start, ambiguous_positions = map(cupy.asnumpy, self.ambiguous)
        return ReadSet(
            arrays=ReadArrays(
                planes=planes,
                plane_start=plane_start,
                qualities=qualities,
                quality_start=quality_start,
                lengths=lengths,
                uniform_length=self.uniform_length,
                quality_bits=self.quality_bits,
            ),
            ambiguous=AmbiguousBases(ambiguous_reads, ambiguous_start, ambiguous_positions),
            reads=self.reads,
            bases=self.bases,
            paired=self.paired,
            min_length=self.min_length,
            max_length=self.max_length,
            levels=self.levels,
        )


KERNELS = KernelModule("ngsgpu.readset")
THREADS = 256
_BLOCKS_PER_MULTIPROCESSOR = 16


def count_kmers_on_gpu(reads: DeviceReadSet, k: int) -> KmerSpectrum:
    """Spectrum of a read set.

    Args:
        reads: the read set; ambiguous bases count as their replacements.
        k: k-mer length, 1 to 32.
    """
    import cupy

    occurrences = kmer_occurrences(reads.uniform_length, reads.lengths, reads.reads, k)
    shift = sampling_shift(occurrences)
    room = int((occurrences >> shift) * 1.25) + 1024
    found = cupy.zeros(1, dtype=cupy.uint64)
    while True:
        sample = cupy.empty(room, dtype=cupy.uint64)
        found[:] = 0
        KERNELS.launch(
            "sample_kmers",
            grid_for(reads.reads, THREADS, _BLOCKS_PER_MULTIPROCESSOR),
            (THREADS,),
            (
                reads.struct,
                np.int64(reads.reads),
                np.int32(k),
                np.uint64((1 << shift) - 1),
                np.int64(room),
                sample,
                found,
            ),
        )
        count = int(found[0])
        if count <= room:
            break
        room = count
    sample = sample[:count]
    radix_sort(sample)
    return spectrum_of(cupy.asnumpy(sample), k, shift, occurrences / max(1, reads.bases))


_LENGTH_BYTES: Final = 8 + 8 + 4
"""Starts and length of a read, if lengths differ."""


@dataclass(frozen=True, slots=True)
class ReadMemory:
    """Memory of a read set.

    Attributes:
        reads: number of reads.
        max_length: longest read, in bases.
        paired: whether reads have mates.
        uniform: whether all reads have the same length.
        planes: bytes of the bases.
        qualities: bytes of the qualities.
        other: bytes of lengths and ambiguous bases.
    """

    reads: int
    max_length: int
    paired: bool
    uniform: bool
    planes: int
    qualities: int
    other: int

    @property
    def total(self) -> int:
        """Bytes of it all."""
        return self.planes + self.qualities + self.other

    def on_host(self, moved: Collection[Movable]) -> int:
        """Bytes of arrays that are on the host."""
        return sum(int(getattr(self, name)) for name in moved)

    def allocations(self, moved: Collection[Movable] = ()) -> list[Allocation]:
        """The reads in a plan, whose ``moved`` arrays are on the host."""
        return [
            Allocation("reads", self.total - self.on_host(moved), arrays=_MOST_ARRAYS),
            Allocation("rounding", ROUNDING_BYTES),
            *(Allocation(name, int(getattr(self, name)), on_host=True) for name in moved),
        ]

    @property
    def equal_bits(self) -> int | None:
        """As ``DeviceReadSet.equal_bits``, if they are 8 or ``LEVEL_BITS``."""
        if not self.uniform or not self.reads:
            return None
        of_a_read = self.qualities // self.reads
        for bits in (8, LEVEL_BITS):
            if of_a_read == -(-self.max_length * bits // 8) > 0:
                return bits
        return None

    @classmethod
    def of(cls, reads: ReadSet | DeviceReadSet) -> ReadMemory:
        """The memory of a read set."""
        arrays: Any = getattr(reads, "arrays", reads)
        planes, qualities = int(arrays.planes.nbytes), int(arrays.qualities.nbytes)
        return cls(
            reads=reads.reads,
            max_length=reads.max_length,
            paired=reads.paired,
            uniform=arrays.uniform_length >= 0,
            planes=planes,
            qualities=qualities,
            other=int(reads.nbytes) - planes - qualities,
        )

    @classmethod
    def expected(
        cls, reads: int, bases: int, max_length: int, *, paired: bool, quality_bits: int
    ) -> ReadMemory:
        """Estimate for reads of which nothing else is known.

        Args:
            reads: number of reads.
            bases: number of bases.
            max_length: bases of the longest read.
            paired: whether the reads are pairs.
            quality_bits: bits per quality.
        """
        uniform = bases == reads * max_length
        return cls(
            reads=reads,
            max_length=max_length,
            paired=paired,
            uniform=uniform,
            planes=16 * reads * words_for(max_length),
            qualities=reads * -(-max_length * quality_bits // 8)
            if uniform
            else bases * quality_bits // 8 + reads,
            other=0 if uniform else _LENGTH_BYTES * reads,
        )
