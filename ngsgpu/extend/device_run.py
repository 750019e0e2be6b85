"""An extension on GPUs: reads, tables and tasks on the device, text by threads of the host.

While a batch is extended, the text of the one before it is made: threads read the pieces of the
inputs that hold its records, which the first reading has found, and format.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.read_again import ReadLengths
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.team import limited_gpu_memory
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.gpu_plan import place_reads
from ngsgpu.extend.gpu_run import GpuExtension
from ngsgpu.extend.host_run import HostRun
from ngsgpu.extend.outputs import Text, TextMaker
from ngsgpu.extend.params import Rules
from ngsgpu.extend.run import Run
from ngsgpu.extend.sections import Section, can_seek, indexed_sections, read_sections, with_results
from ngsgpu.io.gpu.feed import say_read_by_cpu
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.layout import ReadFilesLayout
from ngsgpu.io.reread import check_same
from ngsgpu.minhash.ends_gpu import build_end_tables_on_gpu
from ngsgpu.pool import map_ahead
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet
from ngsgpu.readset.gpu_read import read_to_device

logger = logging.getLogger("ngsgpu")


class DeviceRun(Run):
    """See ``Run``.

    Attributes:
        layouts: where the reads' sequences lie in the files; None where that is not known.
        team: the GPUs, when the tables are built.
    """

    backend = "cuda"
    reads: DeviceReadSet | ReadSet
    layouts: tuple[ReadFilesLayout, ...] | None = None
    team: GpuExtension

    def __enter__(self) -> Self:
        """Limit the memory of the GPUs."""
        super().__enter__()
        self._open.enter_context(limited_gpu_memory(self.options.gpu_memory, self.options.gpus))
        return self

    def read(self, lanes: Sequence[ReadFiles]) -> None:
        """Read all lanes into a read set on the GPU, or on the host where it does not fit."""
        try:
            with self.timed("read"), self.progress.stage("reading", unit="reads") as stage:
                found = read_to_device(
                    lanes,
                    quality_bits=self.parameters.quality_bits,
                    phred_offset=self.phred_offset,
                    threads=self.options.threads,
                    memory=self.options.gpu_memory,
                    keep_bytes=self.options.kept_bytes,
                    advance=stage.advance,
                )
            self.reads, self.layouts = found.reads, found.layouts
        except DeviceMemoryError as error:
            say_read_by_cpu(error)
            host = HostRun(self.parameters, self.options, self.phred_offset, self.progress)
            host.read(lanes)
            self.reads = host.reads
            self.seconds |= host.seconds

    def take(self, reads: ReadSet) -> None:
        """Take reads that are in memory already."""
        self.reads = reads

    def build(self) -> None:
        """Copy reads to the GPU that are not there, and build the tables of their ends.

        Raises:
            DeviceError: the GPU's memory does not suffice.
        """
        hashes = self.parameters.ends.hashes
        with (
            self.timed("tables"),
            self.progress.stage("building tables", total=hashes, unit="tables") as stage,
            cuda_errors("building the tables"),
        ):
            reads, plan = place_reads(self.reads, self.parameters, self.options)
            logger.info("GPU memory: %s", plan.line())
            self.gpu = plan.document()
            self.reads = reads
            tables = build_end_tables_on_gpu(reads, self.parameters.ends, advance=stage.advance)
            self.team = GpuExtension(reads, tables, self.options.gpus, plan.batch_bytes)

    def results(self, rules: Rules, pairs: NDArray[np.int64]) -> Iterator[Extensions]:
        """Extend some pairs; yields the results of consecutive ones, in order."""
        yield from self.team.results(rules, pairs)
        self.counters = self.team.counters
        self.gpu["taken_bytes"] = self.team.taken_bytes()
        self.gpu["utilisation"] = round(self.team.utilisation, 4)

    def texts(self, lanes: Sequence[ReadFiles], rules: Rules, maker: TextMaker) -> Iterator[Text]:
        """Read the lanes again and extend all pairs; yields their text."""
        read_lengths = ReadLengths.of(self.reads)
        pairs = np.arange(read_lengths.reads // 2, dtype=np.int64)

        def work(one: tuple[Section, Extensions]) -> Text:
            return maker.text(*one)

        with (
            ExitStack() as opened,
            ThreadPoolExecutor(self.options.threads, thread_name_prefix="ngsgpu-text") as pool,
        ):
            if self.layouts is not None and can_seek(self.layouts):
                sections = indexed_sections(self.layouts, read_lengths, opened)
            else:
                sections = read_sections(lanes, read_lengths, self.batches)
            together = with_results(sections, self.results(rules, pairs))
            yield from map_ahead(pool, work, together, 2 * self.options.threads + 2)
        for lane in self.layouts or ():
            for file in lane.files:
                check_same(file)
