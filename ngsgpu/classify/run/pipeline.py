"""Classification from files to files.

A `Classifier` opens the partitions of a database once and classifies any number of samples with
them, from reads or from the candidates that runs over single partitions have written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.formats import formats
from ngsgpu.classify.outputs.given import SampleGiven, SamplesGiven
from ngsgpu.classify.params import OutputRules, QueryParameters
from ngsgpu.classify.query.candidate_file import CandidateFile
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.merge import check_files, join_blocks, merged_blocks
from ngsgpu.classify.query.queries import Queries, QueryBlock
from ngsgpu.classify.run.cpu_run import QUERIES_PER_TASK, SampleRun
from ngsgpu.classify.run.errors import Estimate
from ngsgpu.classify.run.samples import (
    ClassificationStatistics,
    Sample,
    SampleOutputs,
    cuts_of,
    queries_of,
)
from ngsgpu.classify.run.sorted_reads import check_lanes, rereadable
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import warn_of_mates
from ngsgpu.io.output.writer import OutputGroup
from ngsgpu.io.paths import Paths, check_distinct, is_stream, listed
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress, Stage, say_if_compiling
from ngsgpu.run.rehearsal import end_rehearsal, is_rehearsal

if TYPE_CHECKING:
    from ngsgpu.classify.query.gpu import GpuEngine
    from ngsgpu.classify.query.gpu_batch import GpuBatch

logger = logging.getLogger("ngsgpu")

BASES_PER_TASK: Final = 1 << 22

_Source = Callable[[Sample, SampleRun, Stage], tuple[Iterator[Any], Callable[[Any], QueryBlock]]]
"""A sample's items, and what finds the candidates of one; the run samples the reads."""


class Classifier:
    """Classifies samples with one database, whose partitions are opened once.

    Args:
        database: the database.
        parameters: query parameters; MetaCache's values by default.
        partitions: numbers of the partitions to query; all by default.
        rules: rules for the outputs.
        options: threads and so on.
        like: a classifier with the same database, which stays open for others; it is used as it
            is, on the GPUs of that classifier if it has some, and in place of ``partitions``.

    Raises:
        InputError: a partition cannot be opened, or is damaged.
        UsageError: a rank or a partition does not exist, or rules exclude each other.
    """

    def __init__(
        self,
        database: Database,
        parameters: QueryParameters | None = None,
        *,
        partitions: Sequence[int] | None = None,
        rules: OutputRules | None = None,
        options: RunOptions | None = None,
        like: Classifier | None = None,
    ) -> None:
        self.options = options or RunOptions()
        self.rules = rules or OutputRules()
        if self.rules.coverage_share > 0 and self.rules.evidence.by_model:
            raise UsageError("`coverage_share` needs `metacache`: the model looks at places")
        self._shares = like is not None
        if self.options.backend == "cpu":
            say_if_compiling()
        self.engine: Engine = Engine(
            database,
            parameters or QueryParameters(),
            partitions,
            None if like is None else like.engine,
            by_model=self.rules.evidence.by_model,
        )
        self._gpu: GpuEngine | None = None
        if like is not None:
            if (there := like._gpu) is not None:
                self._gpu = on_backend(
                    self.options, lambda: self._gpu_engine(there), self._without_gpu,
                    gives_back=False,
                )  # fmt: skip
            return
        with ThreadPoolExecutor(1, thread_name_prefix="ngsgpu-check") as pool:
            whole = pool.submit(self._check_whole)  # while a GPU takes them
            if self.options.backend == "cuda" and self.engine.partitions:
                self._gpu = on_backend(self.options, self._gpu_engine, self._without_gpu)
            whole.result()

    def classify(
        self,
        samples: Sequence[Sample],
        outputs: SampleOutputs,
        *,
        phred_offset: PhredOffset = "auto",
    ) -> list[ClassificationStatistics]:
        """Classify samples in turn.

        Args:
            samples: names and files.
            outputs: output files; those of all samples appear together.
            phred_offset: as for ``read_batches``.

        Raises:
            InputError: reads cannot be read; nothing was written.
            OutputError: an output cannot be written; none was.
            UsageError: outputs are contradictory.
        """
        outputs.check(len(samples))
        check_lanes(samples, outputs)
        _check_distinct(samples, outputs)
        if is_rehearsal():
            for own in samples:  # refuses what its outputs cannot show
                self._sample_run(own, outputs.of_sample(own.name))
            end_rehearsal(outputs.of_samples(own.name for own in samples))
        warn_of_mates(lane for sample in samples for lane in sample.lanes)
        with Progress(self.options.progress) as progress:

            def source(sample: Sample, run: SampleRun, stage: Stage) -> tuple[Iterator[Any], Any]:
                if (gpu := self._gpu) is not None:
                    taxa = self.engine.taxon_of_target
                    batches = self._gpu_batches(gpu, sample, phred_offset, run, stage)
                    return batches, lambda batch: batch.to_host(taxa)
                queries = self._queries(sample, phred_offset, run, stage)
                return queries, self.engine.find_candidates

            return self._run(samples, outputs, source, progress)

    def merge(
        self, files: Paths, outputs: SampleOutputs, sample: str | None = None
    ) -> ClassificationStatistics:
        """Call the queries of a sample by the candidates that all partitions found.

        Args:
            files: a file of candidates for each partition, in any order.
            outputs: what to write where.
            sample: name of the sample; that in the files by default.

        Raises:
            InputError: a file is damaged, or they do not belong together or to the database.
        """
        files = listed(files)
        with ExitStack() as stack:
            opened = []
            for path in files:
                file = CandidateFile(path)
                stack.callback(file.close)
                opened.append(file)
            name = check_files(opened, self.engine)
            outputs.check(1)
            name = sample or name
            check_distinct(files, outputs.of_samples([name]))
            progress = stack.enter_context(Progress(self.options.progress))

            def source(
                _: Sample, run: SampleRun, stage: Stage
            ) -> tuple[Iterator[list[QueryBlock]], Any]:
                run.allow_for(Estimate(0, opened[0].header.read_errors or None))
                return merged_blocks(opened, self.engine, stage.advance), join_blocks

            return self._run([Sample(name, ())], outputs, source, progress)[0]

    def _run(
        self,
        samples: Sequence[Sample],
        outputs: SampleOutputs,
        source: _Source,
        progress: Progress,
    ) -> list[ClassificationStatistics]:
        done = []
        shared, known = outputs.shared, formats()
        given_all = SamplesGiven([])
        with (
            OutputGroup() as group,
            group.outputs(
                [*shared.values()], compression_level=self.options.compress_level
            ) as written,
        ):
            for sample in samples:
                how = outputs.of_sample(sample.name), source, progress, group
                reads_again = self.rules.is_two_pass or self._gpu is not None
                again = bool(outputs.records) and reads_again
                with rereadable(sample) if again else nullcontext(sample) as own:
                    statistics, given = self._run_sample(own, *how)
                done.append(statistics)
                if shared and given is not None:
                    given_all.samples.append((sample.name, given.tree))
            for index, name in enumerate(shared):
                written.write(index, known[name].make(given_all).encode())
        return done

    def _run_sample(
        self,
        sample: Sample,
        outputs: SampleOutputs,
        source: _Source,
        progress: Progress,
        group: OutputGroup,
    ) -> tuple[ClassificationStatistics, SampleGiven | None]:
        """Classify a sample on the GPUs, if they are in use and can, else on the CPU."""

        def classify() -> tuple[ClassificationStatistics, SampleGiven | None]:
            run = self._sample_run(sample, outputs)
            with progress.stage(f"classifying {sample.name}", unit="queries") as stage:
                items, find = source(sample, run, stage)
                with self._on_gpu(sample):
                    return run.run(items, find, group), run.given

        def on_cpu() -> tuple[ClassificationStatistics, SampleGiven | None]:
            self._without_gpu()
            return classify()

        def may_begin_again() -> bool:
            inputs = [path for lane in sample.lanes for path in lane.inputs]
            files = all(Path(path).is_file() for path in inputs)
            return files and not any(map(is_stream, outputs.named().values()))

        if self._gpu is None:
            return classify()
        return on_backend(
            self.options, classify, on_cpu,
            may_begin_again=may_begin_again, gives_back=not self._shares,
        )  # fmt: skip

    def _sample_run(self, sample: Sample, outputs: SampleOutputs) -> SampleRun:
        how = (self.engine, sample.name, outputs, self.rules, self.options, sample.lanes)
        if self._gpu is None:
            return SampleRun(*how)
        from ngsgpu.classify.run.gpu_run import GpuSampleRun

        run = GpuSampleRun(*how)
        run.gpu_memory = {"planned_bytes": self._gpu.planned_bytes}
        return run

    @contextmanager
    def _on_gpu(self, sample: Sample) -> Iterator[None]:
        """Limit the GPUs' memory and translate CUDA's errors."""
        if self._gpu is None:
            yield
            return
        from ngsgpu.device.errors import cuda_errors

        with self._limited(), cuda_errors(f"classifying {sample.name}"):
            yield

    def _check_whole(self) -> None:
        """Compare all of the partitions that the engine does not compare block by block."""
        if self.engine.database.verified:
            for partition in self.engine.opened:
                if self.options.backend == "cuda" or len(partition.sums) == 0:
                    partition.check(self.options.threads)

    def _gpu_engine(self, like: GpuEngine | None = None) -> GpuEngine | None:
        """The partitions on GPUs; see ``GpuEngine``.

        Raises:
            DeviceError: they do not fit.
        """
        from ngsgpu.classify.query.gpu import GpuEngine
        from ngsgpu.device.errors import cuda_errors

        with self._limited(), cuda_errors("copying the database to the GPU"):
            return GpuEngine(self.engine, self.options.gpus, self.options.gpu_memory, like)

    def _without_gpu(self) -> None:
        """Fall back to the CPU for the remaining reads."""
        self._gpu = None
        note = "the CPU took over from the GPU"
        self.options = replace(self.options, backend="cpu", backend_note=note)

    def _limited(self) -> AbstractContextManager[None]:
        """Limit the memory of all participating GPUs inside the block."""
        from ngsgpu.classify.query.gpu import max_gpus
        from ngsgpu.device.team import limited_gpu_memory

        gpus = self.options.gpus
        gpus = min(gpus, max_gpus(len(self.engine.partitions)) or gpus)
        return limited_gpu_memory(self.options.gpu_memory, gpus)

    def _gpu_batches(
        self,
        engine: GpuEngine,
        sample: Sample,
        phred_offset: PhredOffset,
        run: SampleRun,
        stage: Stage,
    ) -> Iterator[GpuBatch]:
        """The sample's queries on the GPU, with candidates."""
        from ngsgpu.classify.run.gpu_run import GpuSampleRun, GpuSource
        from ngsgpu.io.gpu.records import CHUNK_BYTES

        assert isinstance(run, GpuSampleRun)
        source = GpuSource(
            engine,
            threads=self.options.threads,
            chunk_bytes=min(self.options.chunk_bytes, CHUNK_BYTES),
            phred_offset=phred_offset,
            sampled=run.sampled,
            errors=run.errors,
            records=run.records,
        )
        for lane in sample.lanes:
            for batch in source.batches(lane):
                yield batch
                stage.advance(len(batch))

    def _queries(
        self, sample: Sample, phred_offset: PhredOffset, run: SampleRun, stage: Stage
    ) -> Iterator[Queries]:
        """The sample's queries, cut into tasks."""
        units = self.options.units_per_task or QUERIES_PER_TASK
        for lane in sample.lanes:
            batches = lane.batches(
                threads=self.options.threads,
                phred_offset=phred_offset,
                chunk_bytes=self.options.chunk_bytes,
            )
            if run.sorted_reads is not None:
                batches = run.sorted_reads.keep(lane, batches)
            for mates in run.sampled.of_lane(batches, interleaved=lane.interleaved):
                run.errors.take(mates[0], 2 if lane.interleaved else 1)
                queries = queries_of(mates, lane)
                for begin, end in cuts_of(queries, units, BASES_PER_TASK):
                    yield queries.part(begin, end)
                stage.advance(len(queries))


def _check_distinct(samples: Sequence[Sample], outputs: SampleOutputs) -> None:
    """Refuse to write over reads, or two files to one place, whichever samples they are of."""
    reads = [[path for lane in sample.lanes for path in lane.inputs] for sample in samples]
    for own in reads:
        check_distinct(own)
    written = outputs.of_samples([sample.name for sample in samples])
    check_distinct([], written, also_read=chain.from_iterable(reads))
