"""A run on GPUs: the inputs go to the device as they are and are split into records there."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.team import limited_gpu_memory
from ngsgpu.errors import DeviceError, DeviceMemoryError
from ngsgpu.io.compress.reads.blocks import LEVEL
from ngsgpu.io.gpu.deflate_reads import KERNELS as DEFLATE_KERNELS
from ngsgpu.io.gpu.deflate_reads import ReadsPacker
from ngsgpu.io.gpu.feed import say_read_by_cpu
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import EditCounts, Edits, EditStyle, load_kernels
from ngsgpu.io.output.patch import write_patched
from ngsgpu.io.output.precopy import Precopy
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.reread import ReadFilesLayout
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_read import read_to_device
from ngsgpu.run.staged import CpuRun, P, StagedRun
from ngsgpu.run.trimming import warn_of_adapters

_LOG = logging.getLogger("ngsgpu")


class GpuRun(StagedRun[P]):
    """A run on GPUs.

    Attributes:
        reads: the reads, after reading; on the host if they do not fit on the GPU.
        layouts: positions of their sequences in the files; None if unknown.
    """

    backend = "cuda"
    reads: DeviceReadSet | ReadSet
    layouts: tuple[ReadFilesLayout, ...] | None = None

    def __enter__(self) -> Self:
        """Limit the memory of the GPUs."""
        super().__enter__()
        self._open.enter_context(limited_gpu_memory(self.options.gpu_memory, self.options.gpus))
        return self

    @abstractmethod
    def on_cpu(self) -> CpuRun[P]:
        """The same run on the CPU."""

    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into a read set on the GPU, or on the host where it does not fit.

        Raises:
            InputError: an input cannot be read.
            DeviceError: CUDA fails.
        """
        sample = ReadSample()
        try:
            with self.step("read", "reading") as stage:
                found = read_to_device(
                    lanes,
                    quality_bits=self.parameters.quality_bits,
                    phred_offset=self.phred_offset,
                    threads=self.options.threads,
                    memory=self.options.gpu_memory,
                    keep_bytes=self.options.kept_bytes,
                    sample=sample,
                    advance=stage.advance,
                )
            self.reads, self.layouts = found.reads, found.layouts
            self.adapters = warn_of_adapters(sample, lanes, self.HARM)
            return
        except DeviceMemoryError as error:
            say_read_by_cpu(error)
        # Only now are the frames of the failed attempt gone, and its arrays with them.
        run = self.on_cpu()
        run.read(lanes)
        self.reads, self.adapters, self.kept = run.reads, run.adapters, run.kept
        self.seconds |= run.seconds

    def meanwhile(self, load: Callable[[], None]) -> None:
        """Have a thread load kernels of the CPU, which would otherwise wait for that later on.

        Args:
            load: calls them; if it fails, so will those who need them.
        """
        thread = ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-load")
        self._open.enter_context(thread).submit(load)

    def take(self, reads: ReadSet) -> None:
        """Use reads that are already in memory."""
        self.reads = reads

    def compress(self, outputs: OutputSet) -> None:
        """Have outputs compressed by the GPU, if it has memory for that; it must be idle.

        The bytes are the CPU's, which goes on with it where the GPU fails.
        """
        if not self._may_compress(outputs):
            return
        try:
            outputs.pack_by(ReadsPacker(self.options.threads))
        except DeviceError as error:
            _LOG.info("%s; compressing on the CPU", error)

    def _may_compress(self, outputs: OutputSet) -> bool:
        return outputs.compresses and self.options.compress_level == LEVEL


class EditingGpuRun(GpuRun[P]):
    """A run on GPUs whose outputs are the inputs with some bases replaced.

    Attributes:
        precopy: copies the inputs meanwhile, where the places of their sequences are known.
    """

    precopy: Precopy | None = None
    _style: EditStyle

    def take(self, reads: ReadSet) -> None:
        """Copy reads to the GPU, unless its memory does not suffice."""
        self.reads = reads
        try:
            with cuda_errors("copying the reads to the GPU"):
                self.reads = DeviceReadSet.from_host(reads)
        except DeviceMemoryError as error:
            _LOG.info("%s; leaving them on the host", error)

    def copy_inputs(self, lanes: Sequence[ReadFiles], outputs: OutputSet, style: EditStyle) -> None:
        """Begin to copy the inputs to the outputs, where that is possible.

        Args:
            lanes: the inputs.
            outputs: the outputs.
            style: how edits are going to be written.
        """
        if self._may_compress(outputs):
            DEFLATE_KERNELS.compile_aside()
        if self.layouts is not None:
            targets = [lane.outputs for lane in lanes]
            precopy = Precopy(self.layouts, targets, outputs, self.options.threads)
            self.precopy = self._open.enter_context(precopy)
            self._style = style

    def load_writers(self) -> None:
        """Load what is going to write edits into copies; before the GPU works for long.

        Numba is imported, which keeps other threads from launching kernels.
        """
        if self.precopy is not None:
            mates, style = 2 if self.reads.paired else 1, self._style
            self.meanwhile(lambda: load_kernels(mates, style))

    def write_into_copies(
        self,
        lanes: Sequence[ReadFiles],
        edits: Edits,
        style: EditStyle,
        outputs: OutputSet,
        advance: Callable[[int], None],
    ) -> EditCounts:
        """Write edits into the copies of the inputs, which there must be.

        Raises:
            InputError: a file has changed.
        """
        assert self.layouts is not None and self.precopy is not None
        return write_patched(
            self.layouts,
            [lane.outputs for lane in lanes],
            outputs,
            edits,
            paired=self.reads.paired,
            max_length=self.reads.max_length,
            threads=self.options.threads,
            copied=self.precopy.finish(),
            style=style,
            advance=advance,
        )
