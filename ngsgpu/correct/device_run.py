"""A run on a GPU: the inputs go to the device as they are, are split and corrected there.

The outputs are copies of the inputs that other threads make meanwhile; the corrections are then
written into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.gpu import correct_on_gpu
from ngsgpu.correct.lanes import Lane
from ngsgpu.correct.read_again import ReadAgain, Shape
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.gpu_memory import limited_gpu_memory
from ngsgpu.io.gpu_read import read_to_device
from ngsgpu.io.patch import EditCounts, Edits, write_patched
from ngsgpu.io.places import LanePlaces
from ngsgpu.io.precopy import Precopy
from ngsgpu.io.writer import OutputSet
from ngsgpu.minhash.gpu import build_tables_on_gpu
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_kmers import count_kmers_on_gpu
from ngsgpu.readset.kmers import KmerSpectrum

KEPT_SHARE = 4
"""Part of the host's memory for inflated data, which then need not be inflated again: 1 / this."""


class DeviceRun(ReadAgain):
    """See ``Run``.

    Attributes:
        reads: the reads, once they were read.
        places: where their sequences lie in the files; None where that is not known.
        precopy: copies the inputs meanwhile, where their places are known.
    """

    backend = "cuda"
    reads: DeviceReadSet
    places: tuple[LanePlaces, ...] | None = None
    precopy: Precopy | None = None

    def __enter__(self) -> Self:
        """Limit the memory of the GPU."""
        self._open = ExitStack()
        self._open.enter_context(limited_gpu_memory(self.options.gpu_memory))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.__exit__(kind, error, traceback)

    def read(self, lanes: Sequence[Lane], outputs: OutputSet) -> DeviceReadSet:
        """Read all lanes into a read set on the GPU, and begin to copy them to the outputs."""
        with self.reading() as stage:
            found = read_to_device(
                lanes,
                quality_bits=self.parameters.quality_bits,
                phred_offset=self.phred_offset,
                threads=self.options.threads,
                memory=self.options.gpu_memory,
                keep_bytes=self.options.budget // KEPT_SHARE,
                advance=stage.advance,
            )
        self.reads, self.places = found.reads, found.places
        if self.places is not None:
            targets = [lane.outputs for lane in lanes]
            precopy = Precopy(self.places, targets, outputs, self.options.threads)
            self.precopy = self._open.enter_context(precopy)
        return self.reads

    def take(self, reads: ReadSet) -> None:
        """Copy reads to the GPU."""
        with cuda_errors("copying the reads to the GPU"):
            self.reads = DeviceReadSet.from_host(reads)

    def count(self) -> KmerSpectrum:
        """The k-mer spectrum of the reads."""
        with self.timed("spectrum"), cuda_errors("counting k-mers"):
            return count_kmers_on_gpu(self.reads, self.parameters.minhash.kmer)

    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            UsageError: a read is too long for the GPU.
        """
        with self.building_tables() as stage, cuda_errors("building the tables"):
            tables = build_tables_on_gpu(self.reads, self.parameters.minhash, advance=stage.advance)
        with self.correcting(self.reads.reads) as stage, cuda_errors("correcting"):
            return correct_on_gpu(
                self.reads, tables, self.parameters, coverage, advance=stage.advance
            )

    def write(
        self, lanes: Sequence[Lane], corrections: Corrections, outputs: OutputSet
    ) -> EditCounts:
        """Write the lanes with the corrections."""
        reads = self.reads
        if self.places is None or self.precopy is None:
            shape = Shape(
                reads=reads.reads,
                paired=reads.paired,
                uniform_length=reads.uniform_length,
                lengths=reads.lengths.get(),
                max_length=reads.max_length,
            )
            return self.write_again(lanes, shape, corrections, outputs)
        edits = Edits(corrections.edit_start, corrections.edit_count, corrections.edits)
        with self.writing(reads.reads) as stage:
            return write_patched(
                self.places,
                [lane.outputs for lane in lanes],
                outputs,
                edits,
                paired=reads.paired,
                max_length=reads.max_length,
                threads=self.options.threads,
                copied=self.precopy.finish(),
                advance=stage.advance,
            )
