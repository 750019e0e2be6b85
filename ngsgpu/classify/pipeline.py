"""Classification from files to files.

A `Classifier` opens the partitions of a database once and classifies any number of samples with
them, from reads or from the candidates that runs over single partitions have written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ngsgpu.classify.candidate_file import CandidateFile
from ngsgpu.classify.database import Database
from ngsgpu.classify.engine import Engine, Queries, QueryBlock
from ngsgpu.classify.merge import check_files, join_blocks, merged_blocks
from ngsgpu.classify.outputs.biom import biom_table
from ngsgpu.classify.outputs.tree import CountedTree, tree_of
from ngsgpu.classify.params import QueryParameters
from ngsgpu.classify.sample_run import ClassifyOptions, OutputRules, SampleRun, as_it_is
from ngsgpu.classify.samples import PLACEHOLDER, Sample, SampleOutputs, queries_of
from ngsgpu.classify.stats import ClassificationStatistics
from ngsgpu.device.inventory import numba_cache
from ngsgpu.errors import DeviceError
from ngsgpu.io.atomic import check_distinct, write_text_atomically
from ngsgpu.io.reader import PhredOffset
from ngsgpu.progress import Progress, Stage

if TYPE_CHECKING:
    from ngsgpu.classify.gpu_query import DeviceEngine

logger = logging.getLogger("ngsgpu")

PACKAGE: Final = Path(__file__).parents[1]
BASES_A_TASK: Final = 1 << 22

_Source = Callable[[Sample, Stage], tuple[Iterator[Any], Callable[[Any], QueryBlock]]]
"""What a sample's items are, and how to find the candidates of one."""


class Classifier:
    """Classifies samples with one database, whose partitions are opened once.

    Args:
        database: the database.
        parameters: how queries are classified; MetaCache's values by default.
        partitions: numbers of the partitions to look into; all by default.
        rules: how outputs are made.
        options: threads and the like.

    Raises:
        InputError: a partition cannot be opened.
        UsageError: a rank or a partition does not exist.
    """

    def __init__(
        self,
        database: Database,
        parameters: QueryParameters | None = None,
        *,
        partitions: Sequence[int] | None = None,
        rules: OutputRules | None = None,
        options: ClassifyOptions | None = None,
    ) -> None:
        self.options = options or ClassifyOptions()
        self.rules = rules or OutputRules()
        if numba_cache(PACKAGE).files == 0:
            logger.info("compiling kernels (first start only, up to half a minute)")
        self.engine = Engine(database, parameters or QueryParameters(), partitions)
        self._device = self._device_engine()

    def classify(
        self,
        samples: Sequence[Sample],
        outputs: SampleOutputs,
        *,
        phred_offset: PhredOffset = "auto",
    ) -> list[ClassificationStatistics]:
        """Classify samples, one after the other.

        Args:
            samples: names and files.
            outputs: what to write where; the files of a sample appear together.
            phred_offset: as for ``read_batches``.

        Raises:
            InputError: reads cannot be read; nothing was written for their sample.
            OutputError: an output cannot be written; then none of the sample was.
            UsageError: outputs contradict each other.
        """
        outputs.check(len(samples))
        for sample in samples:
            inputs = [path for lane in sample.lanes for path in lane.inputs]
            check_distinct(inputs, list(outputs.of_sample(sample.name).named().values()))
        with Progress(self.options.progress) as progress:

            def source(sample: Sample, stage: Stage) -> tuple[Iterator[Any], Any]:
                if self._device is not None:
                    return self._device_blocks(sample, phred_offset, stage), as_it_is
                return self._queries(sample, phred_offset, stage), self.engine.find_candidates

            return self._run(samples, outputs, source, progress)

    def merge(
        self, files: Sequence[str | Path], outputs: SampleOutputs, sample: str | None = None
    ) -> ClassificationStatistics:
        """Call the queries of a sample by the candidates that all partitions found.

        Args:
            files: a file of candidates for each partition, in any order.
            outputs: what to write where.
            sample: name of the sample; that in the files by default.

        Raises:
            InputError: a file is damaged, or they do not belong together or to the database.
        """
        with ExitStack() as stack:
            opened = []
            for path in files:
                file = CandidateFile(path)
                stack.callback(file.close)
                opened.append(file)
            name = check_files(opened, self.engine)
            outputs.check(1)
            check_distinct(files, list(outputs.named().values()))
            progress = stack.enter_context(Progress(self.options.progress))

            def source(_: Sample, stage: Stage) -> tuple[Iterator[list[QueryBlock]], Any]:
                return merged_blocks(opened, self.engine, stage.advance), join_blocks

            return self._run([Sample(sample or name, ())], outputs, source, progress)[0]

    def _run(
        self,
        samples: Sequence[Sample],
        outputs: SampleOutputs,
        source: _Source,
        progress: Progress,
    ) -> list[ClassificationStatistics]:
        done = []
        trees: list[tuple[str, CountedTree]] = []
        with ThreadPoolExecutor(self.options.threads, thread_name_prefix="ngsgpu-work") as pool:
            for sample in samples:
                own = outputs.of_sample(sample.name)
                run = SampleRun(self.engine, sample.name, own, self.rules, self.options, pool)
                with progress.stage(f"classifying {sample.name}", unit="queries") as stage:
                    items, find = source(sample, stage)
                    done.append(run.run(items, find))
                if outputs.biom is not None and run.totals is not None:
                    trees.append((sample.name, tree_of(self.engine.labels, run.totals)))
        if outputs.biom is not None and PLACEHOLDER not in outputs.biom:
            write_text_atomically(outputs.biom, biom_table(trees))
        return done

    def _device_engine(self) -> DeviceEngine | None:
        """The partitions on a GPU, if one is to be used and can hold them."""
        options = self.options
        if options.backend == "cpu" or not self.engine.partitions:
            return None
        from ngsgpu.classify.gpu_query import DeviceEngine
        from ngsgpu.device.errors import cuda_errors
        from ngsgpu.device.gpu_memory import limit_pool

        try:
            with cuda_errors("copying the database to the GPU"):
                if options.gpu_memory is not None:
                    limit_pool(options.gpu_memory)
                return DeviceEngine(self.engine)
        except DeviceError as error:
            if not options.may_fall_back:
                raise
            logger.warning("%s; going on with the CPU", error)
            self.options = replace(options, backend="cpu", device="")
            return None

    def _device_blocks(
        self, sample: Sample, phred_offset: PhredOffset, stage: Stage
    ) -> Iterator[QueryBlock]:
        """The sample's queries, with candidates that the GPU found."""
        from ngsgpu.classify.gpu_source import GPU_CHUNK_BYTES, DeviceSource
        from ngsgpu.device.errors import cuda_errors

        assert self._device is not None
        source = DeviceSource(
            self._device,
            threads=self.options.threads,
            queries_a_task=4 * self.options.queries_a_task,
            chunk_bytes=min(self.options.chunk_bytes, GPU_CHUNK_BYTES),
            phred_offset=phred_offset,
        )
        for lane in sample.lanes:
            with cuda_errors(f"classifying {lane.inputs[0]}"):
                for block in source.blocks(lane):
                    yield block
                    stage.advance(len(block))

    def _queries(
        self, sample: Sample, phred_offset: PhredOffset, stage: Stage
    ) -> Iterator[Queries]:
        """The sample's queries, cut into tasks."""
        for lane in sample.lanes:
            batches = lane.batches(
                threads=self.options.threads,
                phred_offset=phred_offset,
                chunk_bytes=self.options.chunk_bytes,
            )
            for mates in batches:
                queries = queries_of(mates, lane)
                for begin, end in _cuts(queries, self.options.queries_a_task):
                    yield queries.part(begin, end)
                stage.advance(len(queries))


def _cuts(queries: Queries, most: int) -> Iterator[tuple[int, int]]:
    """Cut queries into tasks, by number and by bases, of which a query may have many."""
    lengths = queries.first.length.astype(np.int64)
    if queries.paired:
        lengths += queries.second.length
    bases = np.cumsum(lengths)
    begin = 0
    while begin < len(queries):
        before = int(bases[begin - 1]) if begin > 0 else 0
        by_bases = int(np.searchsorted(bases, before + BASES_A_TASK, side="right"))
        end = min(begin + most, max(begin + 1, by_bases), len(queries))
        yield begin, end
        begin = end
