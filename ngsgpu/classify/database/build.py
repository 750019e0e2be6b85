"""Builds databases: sketch, index, store.

Each partition of a planned database can be built by a separate job, which reads only the files
that contain its targets. If everything fits into memory, `build_database` reads once: it sketches
all targets and assigns them to partitions afterwards.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ngsgpu.classify.database.database import Database, Partition, open_database
from ngsgpu.classify.database.folder import check_place, database_folder, locked
from ngsgpu.classify.database.memory import (
    check,
    fits_at_once,
    plan_build,
    plan_partitions,
    release_memory,
    with_reading,
)
from ngsgpu.classify.database.plan import inputs_of, plan_database, plan_targets
from ngsgpu.classify.database.planned import PlannedTargets, check_number
from ngsgpu.classify.database.stats import BuildStatistics
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.classify.sketch.references import TargetCollector, TargetSink, find_references
from ngsgpu.device.leases import keep_gpus
from ngsgpu.device.plan import HostPlan, MemoryPlan
from ngsgpu.errors import UsageError
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.commit import commit_all
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, check_distinct, listed
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress
from ngsgpu.taxonomy.dump import load_taxonomy

logger = logging.getLogger("ngsgpu")

_Result = TypeVar("_Result")
_SinkT = TypeVar("_SinkT", bound=TargetSink)


class Builder(Protocol):
    """Sketches references and builds indexes."""

    def sketch(
        self, files: Sequence[str], new_sink: Callable[[], _SinkT], advance: Callable[[int], None]
    ) -> tuple[list[Any], _SinkT]:
        """Sketch the references in files.

        Args:
            files: FASTA files.
            new_sink: makes the sink of the records; called again if reading restarts.
            advance: called with the number of bases sketched since the last call.

        Returns:
            Sketches, for the other methods, and the sink.
        """

    def index(self, database: Database, number: int, sketches: list[Any]) -> Partition:
        """Build the index of a partition.

        Args:
            database: of the partition.
            number: of the partition.
            sketches: see ``sketch``.
        """

    def store(
        self,
        database: Database,
        number: int,
        sketches: list[Any],
        also: Callable[[], Sequence[AtomicFile]] = tuple,
    ) -> None:
        """Build the index of a partition and write it to the disk.

        Args:
            database: of the partition.
            number: of the partition.
            sketches: see ``sketch``.
            also: completes files that get their names together with the partition.
        """


@contextmanager
def builder_of(parameters: DatabaseParameters, options: RunOptions) -> Iterator[Builder]:
    """Builder of the backend of a run."""
    if options.backend == "cpu":
        from ngsgpu.classify.database.cpu_build import CpuBuilder

        yield CpuBuilder(parameters, options)
        return
    from ngsgpu.classify.database.gpu_build import GpuBuilder

    with GpuBuilder(parameters, options) as builder:
        yield builder


def with_backend(
    options: RunOptions, work: Callable[[RunOptions], _Result], *, in_memory: bool = False
) -> _Result:
    """Run on the chosen backend, or on the CPU if it may take over.

    Args:
        options: of the run.
        work: builds or changes a database, from the beginning, by the options that it is given.
        in_memory: whether the database is queried next, on the same GPUs if possible.
    """
    on_cpu = replace(options, backend="cpu")
    return on_backend(
        options, lambda: work(options), lambda: work(on_cpu), gives_back=not in_memory
    )


Finish = Callable[[Database, RunOptions], Sequence[AtomicFile]]
"""Completes the files that get their names together with what was built, by a run's options."""


@contextmanager
def _statistics(stats: str | None, only: int | None = None) -> Iterator[Finish]:
    """The file of the statistics, which is committed by what it is about.

    Args:
        stats: JSON file; None: there is none.
        only: number of the partition that is built; None: all.
    """
    begin = time.monotonic()
    outputs = OutputSet([] if stats is None else [stats])

    def finish(database: Database, options: RunOptions) -> Sequence[AtomicFile]:
        if stats is not None:
            numbers = range(len(database.partitions)) if only is None else [only]
            seconds = time.monotonic() - begin
            statistics = BuildStatistics.of(database, numbers, options, seconds)
            outputs.write(0, statistics.to_json().encode())
            outputs.complete()
        return outputs.files

    try:
        yield finish
    finally:
        outputs.abort()  # removes what was not committed


def build_database(
    references: Paths,
    path: str | Path | None,
    *,
    parameters: DatabaseParameters | None = None,
    taxonomy: str | Path | None = None,
    maps: Paths = (),
    request: PartitionRequest | None = None,
    options: RunOptions | None = None,
    stats: str | None = None,
) -> Database:
    """Build a database.

    Args:
        references: FASTA files, or directories of them.
        path: the directory to create or replace; None builds in memory only.
        parameters: index parameters; MetaCache's values by default.
        taxonomy: directory with nodes.dmp and names.dmp; None: calls are sequences only.
        maps: sequence-to-taxon tables; see ``ngsgpu.taxonomy.mapping``.
        request: number of partitions, or size of the database.
        options: threads, memory and so on.
        stats: JSON file for the statistics.

    Raises:
        InputError: a reference, the taxonomy or a map cannot be used, or no database may be created
            at the path (see ``folder.check_place``).
        OutputError: the database cannot be written; an older one is unchanged.
        UsageError: the request is impossible.
    """
    references, maps = listed(references), listed(maps)
    files = find_references(references)
    if path is not None:
        check_place(path, inputs_of(references, files, taxonomy, maps))
    if stats is not None:
        check_distinct([], [stats, *([] if path is None else [path])], also_read=files)
    parameters, request = parameters or DatabaseParameters(), request or PartitionRequest()
    if request.size is not None:  # before sketching, it must be known which features are kept
        if path is None:
            raise UsageError("`max_size` is for databases on the disk; give `fraction`")
        planned = plan_database(
            files, path, parameters=parameters, taxonomy=taxonomy, maps=maps,
            request=request, options=options,
        )  # fmt: skip
        parameters, request = planned.parameters, replace(request, size=None)
    build = _Build(files, parameters, taxonomy, maps, request)

    with _statistics(stats) as finish:

        def work(own: RunOptions) -> Database:
            if path is not None and not fits_at_once(files, build.parameters, own):
                return build.part_by_part(Path(path), own, finish)
            own = with_needed_gpus(own, build.parameters, [files])
            return build.at_once(None if path is None else Path(path), own, finish)

        return with_backend(options or RunOptions(), work, in_memory=path is None)


def plan_build_of(
    references: Paths,
    path: str | Path,
    *,
    parameters: DatabaseParameters,
    options: RunOptions,
    **settings: Any,
) -> tuple[HostPlan, Database]:
    """Plan the memory of ``build_database``; reads the references, writes nothing.

    Args:
        references: see ``build_database``.
        path: likewise.
        parameters: likewise.
        options: likewise.
        settings: others of ``plan_database``.

    Returns:
        The plan, and the planned database.
    """
    planned = plan_database(references, path, parameters=parameters, options=options, **settings)
    files = planned.targets.files
    at_once = fits_at_once(files, planned.parameters, options)
    plan = plan_partitions(planned, range(len(planned.partitions)), options, at_once=at_once)
    return _complete(plan, planned, files, options), planned


def plan_partition(database: Database, number: int, options: RunOptions) -> HostPlan:
    """Plan the memory of ``build_partition``, whose arguments these are.

    Raises:
        UsageError: no such partition.
    """
    check_number(database, number)
    plan = plan_partitions(database, [number], options)
    return _complete(plan, database, PlannedTargets(database, number).files, options)


def _complete(
    plan: HostPlan, database: Database, files: Sequence[str], options: RunOptions
) -> HostPlan:
    """A plan with what is read ahead, and with that of the GPUs."""

    def on_gpu() -> MemoryPlan:
        from ngsgpu.classify.database.gpu_build import plan_gpu

        return plan_gpu(plan.sizes["locations"], database.parameters, options)

    return replace(with_reading(plan, files, options), on_gpu=on_gpu)


def with_needed_gpus(
    options: RunOptions, parameters: DatabaseParameters, builds: Iterable[Iterable[str]]
) -> RunOptions:
    """The options with only as many GPUs as the largest build needs; the others are released.

    Args:
        options: of the build.
        parameters: of the database.
        builds: the files that each build reads.
    """
    if options.backend == "cpu" or options.gpus == 1:
        return options
    from ngsgpu.classify.database.gpu_build import gpus_for

    sizes = [sum(map(unpacked_size, files)) for files in builds]
    gpus = gpus_for(max(sizes, default=0), parameters, options)
    keep_gpus(gpus)
    return replace(options, gpus=gpus)


@dataclass(frozen=True, slots=True)
class _Build:
    """Input of a build; see ``build_database``."""

    files: Sequence[str]
    parameters: DatabaseParameters
    taxonomy: str | Path | None
    maps: Sequence[str | Path]
    request: PartitionRequest

    @property
    def inputs(self) -> list[str | Path]:
        """All files that are read."""
        return inputs_of((), self.files, self.taxonomy, self.maps)

    def part_by_part(self, path: Path, options: RunOptions, finish: Finish) -> Database:
        """Plan a database and build its partitions one by one."""
        logger.info("the references do not fit into memory: building in parts")
        check(plan_build(options, 0, "any database"), options)
        database = plan_database(
            self.files, path, parameters=self.parameters, taxonomy=self.taxonomy, maps=self.maps,
            request=self.request, options=options,
        )  # fmt: skip
        numbers = range(len(database.partitions))
        read = (PlannedTargets(database, number).files for number in numbers)
        options = with_needed_gpus(options, self.parameters, read)
        check(plan_partitions(database, numbers, options), options)
        also: list[AtomicFile] = []
        with database_folder(path, self.inputs, also) as place:
            there = database.moved(*place)
            for number in numbers:
                _build_partition(there, number, options)
                release_memory()
            also += finish(replace(there, path=path), options)
            _write_manifest(there, path, also)
        return open_database(path)

    def at_once(self, path: Path | None, options: RunOptions, finish: Finish) -> Database:
        """Sketch all references, then deal them out and build the partitions."""
        tree = None if self.taxonomy is None else load_taxonomy(self.taxonomy)
        with (
            Progress(options.progress) as progress,
            builder_of(self.parameters, options) as builder,
        ):
            with progress.stage("sketching references", unit="bases") as stage:
                pairs, collector = builder.sketch(self.files, TargetCollector, stage.advance)
            database = plan_targets(
                path or Path(), collector.targets, self.parameters, tree, self.maps, self.request
            )
            numbers = range(len(database.partitions))
            with progress.stage("building", total=len(numbers), unit="partitions") as stage:
                if path is None:
                    for number in numbers:
                        database.loaded[number] = builder.index(database, number, pairs)
                        stage.advance()
                    commit_all(finish(database, options))
                    return database
                also: list[AtomicFile] = []
                with database_folder(path, self.inputs, also) as place:
                    there = database.moved(*place)
                    for number in numbers:
                        builder.store(there, number, pairs)
                        stage.advance()
                    also += finish(replace(there, path=path), options)
                    _write_manifest(there, path, also)
        return replace(there, path=path)


def _write_manifest(database: Database, path: Path, also: Sequence[AtomicFile]) -> None:
    """Store the manifest; that of an older database, which it replaces, with the other files."""
    is_new = database.path != Path(os.path.realpath(path))
    write_manifest(database, () if is_new else also)


def build_partition(
    database: Database,
    number: int,
    options: RunOptions | None = None,
    stats: str | None = None,
) -> None:
    """Build and store one partition of a planned database, possibly concurrently with others.

    Args:
        database: the planned database.
        number: of the partition.
        options: threads, memory and so on.
        stats: JSON file for the statistics.

    Raises:
        InputError: a reference cannot be read, or has changed since planning.
        UsageError: no such partition.
        OutputError: it cannot be written.
    """
    if stats is not None:
        check_distinct([], [stats, database.path])
    with locked(database.path, shared=True):
        database = open_database(database.path)  # another plan may be there since
        check_number(database, number)

        with _statistics(stats, only=number) as finish:

            def work(own: RunOptions) -> None:
                check(plan_partitions(database, [number], own), own)
                files = PlannedTargets(database, number).files
                own = with_needed_gpus(own, database.parameters, [files])
                _build_partition(database, number, own, lambda: finish(database, own))

            with_backend(options or RunOptions(), work)


def _build_partition(
    database: Database,
    number: int,
    options: RunOptions,
    also: Callable[[], Sequence[AtomicFile]] = tuple,
) -> None:
    total = int(database.targets.length[database.targets.partition == number].sum())
    planned = PlannedTargets(database, number)
    with (
        Progress(options.progress) as progress,
        builder_of(database.parameters, options) as builder,
    ):
        with progress.stage(f"sketching partition {number}", total=total, unit="bases") as stage:
            pairs, read = builder.sketch(
                planned.files, lambda: PlannedTargets(database, number), stage.advance
            )
            read.done()
        builder.store(database, number, pairs, also)
