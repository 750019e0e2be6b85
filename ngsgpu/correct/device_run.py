"""A run on a GPU: the inputs go to the device as they are, are split and corrected there.

The outputs are copies of the inputs that other threads make meanwhile; the corrections are then
written into them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Self

from ngsgpu.correct.corrections import Corrections
from ngsgpu.correct.gpu_run import GpuCorrection
from ngsgpu.correct.host_run import HostRun
from ngsgpu.correct.read_again import ReadAgain, ReadLengths
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.team import limited_gpu_memory
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.io.gpu.feed import say_read_by_cpu
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.layout import ReadFilesLayout
from ngsgpu.io.output.patch import EditCounts, Edits, write_patched
from ngsgpu.io.output.precopy import Precopy
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_kmers import count_kmers_on_gpu
from ngsgpu.readset.gpu_read import read_to_device
from ngsgpu.readset.kmers import KmerSpectrum

logger = logging.getLogger("ngsgpu")


class DeviceRun(ReadAgain):
    """See ``Run``.

    Attributes:
        reads: the reads, once they were read; on the host where the GPU cannot hold them.
        host: reads, counts and writes then.
        layouts: where their sequences lie in the files; None where that is not known.
        precopy: copies the inputs meanwhile, where their places are known.
    """

    backend = "cuda"
    reads: DeviceReadSet | ReadSet
    layouts: tuple[ReadFilesLayout, ...] | None = None
    precopy: Precopy | None = None
    host: HostRun | None = None

    def __enter__(self) -> Self:
        """Limit the memory of the GPU."""
        super().__enter__()
        self._open.enter_context(limited_gpu_memory(self.options.gpu_memory))
        return self

    def read(self, lanes: Sequence[ReadFiles], outputs: OutputSet) -> DeviceReadSet | ReadSet:
        """Read all lanes into a read set on the GPU, and begin to copy them to the outputs."""
        found = None
        try:
            with self.reading() as stage:
                found = read_to_device(
                    lanes,
                    quality_bits=self.parameters.quality_bits,
                    phred_offset=self.phred_offset,
                    threads=self.options.threads,
                    memory=self.options.gpu_memory,
                    keep_bytes=self.options.kept_bytes,
                    advance=stage.advance,
                )
        except DeviceMemoryError as error:
            say_read_by_cpu(error)
        if found is None:
            self.reads = self._on_host().read(lanes, outputs)
            return self.reads
        self.reads, self.layouts = found.reads, found.layouts
        if self.layouts is not None:
            targets = [lane.outputs for lane in lanes]
            precopy = Precopy(self.layouts, targets, outputs, self.options.threads)
            self.precopy = self._open.enter_context(precopy)
        return self.reads

    def take(self, reads: ReadSet) -> None:
        """Copy reads to the GPU."""
        self.reads = reads
        try:
            with cuda_errors("copying the reads to the GPU"):
                self.reads = DeviceReadSet.from_host(reads)
        except DeviceMemoryError as error:
            logger.info("%s; leaving them on the host", error)
            self._on_host().take(reads)

    def _on_host(self) -> HostRun:
        """What does the stages that the GPU's memory does not suffice for."""
        self.host = HostRun(self.parameters, self.options, self.phred_offset, self.progress)
        self.host.seconds = self.seconds
        return self.host

    def count(self) -> KmerSpectrum:
        """The k-mer spectrum of the reads."""
        if isinstance(self.reads, ReadSet):
            assert self.host is not None
            return self.host.count()
        with self.timed("spectrum"), cuda_errors("counting k-mers"):
            return count_kmers_on_gpu(self.reads, self.parameters.minhash.kmer)

    def correct(self, coverage: float) -> Corrections:
        """Build the tables and correct every read.

        Raises:
            DeviceError: the GPU's memory does not suffice.
            UnsuitableError: a read is too long for the GPU.
        """
        with GpuCorrection(
            self.reads,
            self.parameters,
            coverage,
            gpu_memory=self.options.gpu_memory,
            host_memory=self.options.memory,
            gpus=self.options.gpus,
        ) as correction:
            with self.timed("place"):
                correction.place_reads()
            self.gpu_plan = correction.plan.document()
            with self.building_tables() as stage:
                correction.build_tables(stage.advance)
            with self.correcting(self.reads.reads) as stage:
                return correction.correct(stage.advance)

    def write(
        self, lanes: Sequence[ReadFiles], corrections: Corrections, outputs: OutputSet
    ) -> EditCounts:
        """Write the lanes with the corrections."""
        reads = self.reads
        if isinstance(reads, ReadSet):
            assert self.host is not None
            return self.host.write(lanes, corrections, outputs)
        if self.layouts is None or self.precopy is None:
            return self.write_again(lanes, ReadLengths.of(reads), corrections, outputs)
        edits = Edits(corrections.edit_start, corrections.edit_count, corrections.edits)
        with self.writing(reads.reads) as stage:
            return write_patched(
                self.layouts,
                [lane.outputs for lane in lanes],
                outputs,
                edits,
                paired=reads.paired,
                max_length=reads.max_length,
                threads=self.options.threads,
                copied=self.precopy.finish(),
                advance=stage.advance,
            )
