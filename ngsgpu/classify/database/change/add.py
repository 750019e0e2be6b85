"""Adds references to a database, as new partitions or to the last one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.build import Builder, builder_of, with_backend, with_needed_gpus
from ngsgpu.classify.database.cpu_build import CpuBuilder, index_partition
from ngsgpu.classify.database.database import Database, Partition, open_database
from ngsgpu.classify.database.folder import changed, check_inputs
from ngsgpu.classify.database.info import check_contents
from ngsgpu.classify.database.memory import check, expected_locations, plan_build
from ngsgpu.classify.database.plan import (
    assemble_database,
    check_taxa,
    check_windows,
    inputs_of,
    partition_of,
    taxa_of,
)
from ngsgpu.classify.database.write import write_manifest, write_partition
from ngsgpu.classify.index.index import Pairs, keys_of_locations, removed_keys
from ngsgpu.classify.params import PartitionRequest
from ngsgpu.classify.sketch.references import TargetCollector, Targets, find_references
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.paths import Paths, listed
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress
from ngsgpu.taxonomy.dump import load_taxonomy


def add_references(
    path: str | Path,
    references: Paths,
    *,
    taxonomy: str | Path | None = None,
    maps: Paths = (),
    request: PartitionRequest | None = None,
    into_last: bool = False,
    options: RunOptions | None = None,
) -> Database:
    """Add references to a database, as new partitions or to the last one.

    The other partitions do not change. With ``into_last`` the result equals building the last
    partition from its own and the new references.

    Args:
        path: the database.
        references: FASTA files, or directories of them.
        taxonomy: only to check that it is the database's own.
        maps: as for ``build_database``.
        request: number of new partitions.
        into_last: whether to add to the last partition instead.
        options: threads, memory and so on.

    Raises:
        InputError: as for ``build_database``; a name is already in the database, the taxonomy
            differs, or something to be rewritten is damaged.
    """
    references, maps = listed(references), listed(maps)
    path = Path(os.path.realpath(path))
    files = find_references(references)
    check_inputs(path, inputs_of(references, files, taxonomy, maps))
    if into_last and request not in (None, PartitionRequest()):
        raise UsageError("`into_last` adds no partitions: omit `number`")
    if request is not None and request.size is not None:
        raise UsageError("what is added has the database's `fraction`: omit `max_size`")
    open_database(path)  # what is wrong with it is said before we wait
    addition = _Addition(path, files, taxonomy, maps, request or PartitionRequest())
    options = options or RunOptions()
    if into_last:
        return addition.to_last(options)
    return with_backend(options, addition.as_partitions)


@dataclass(frozen=True, slots=True)
class _Addition:
    """What is added to which database; see ``add_references``."""

    path: Path
    files: Sequence[str]
    taxonomy: str | Path | None
    maps: Sequence[str | Path]
    request: PartitionRequest

    def as_partitions(self, options: RunOptions) -> Database:
        """Add new partitions."""
        with self._changed() as (old, generation):
            check_contents(old, [])
            locations = expected_locations(self.files, old.parameters)
            check(plan_build(options, locations, "what is added"), options)
            options = with_needed_gpus(options, old.parameters, [self.files])
            with (
                Progress(options.progress) as progress,
                builder_of(old.parameters, options) as builder,
            ):
                sketches, added = self._sketch(old, builder, progress)
                fresh = _with_own_files(added, len(old.targets.files))
                first = len(old.partitions)
                dealt = first + partition_of(fresh, old.parameters, self.request)
                new = self._with_targets(old, added, dealt, generation)
                new = replace(new, partitions=old.partitions + new.partitions[first:])
                numbers = range(first, len(new.partitions))
                with progress.stage("building", total=len(numbers), unit="partitions") as stage:
                    for number in numbers:
                        builder.store(new, number, sketches)
                        stage.advance()
            write_manifest(new)
        return new

    def to_last(self, options: RunOptions) -> Database:
        """Add to the last partition."""
        with self._changed() as (old, generation):
            last = len(old.partitions) - 1
            check_contents(old, [last])
            kept = old.parameters.sketch.most_features(old.partitions[last].windows)
            locations = kept + expected_locations(self.files, old.parameters)
            check(plan_build(options, locations, "what is added"), options)
            with Progress(options.progress) as progress:
                sketches, added = self._sketch(old, CpuBuilder(old.parameters, options), progress)
            dealt = np.full(len(added), last, dtype=np.int32)
            new = self._with_targets(old, added, dealt, generation)
            new = replace(new, partitions=old.partitions[:last] + new.partitions[last:])
            before = old.load_partition(last)
            partition = index_partition(
                new,
                last,
                [pairs_of(before), *sketches],
                threads=options.threads,
                removed=removed_keys(before.index),
            )
            write_partition(new, partition, options.threads)
            write_manifest(new)
        return new

    @contextmanager
    def _changed(self) -> Iterator[tuple[Database, int]]:
        """Lock the database; yields it and the generation of new parts."""
        with changed(self.path) as generation:
            old = open_database(self.path, holds=False)
            own = self.taxonomy
            if own is not None and load_taxonomy(own).digest() != old.taxonomy_digest:
                raise InputError(
                    own,
                    "this is not the taxonomy the database was built with",
                    "omit `taxonomy`, or build a new database",
                )
            if old.taxonomy is None and self.maps:
                raise UsageError("`maps` needs a database with a taxonomy")
            yield old, generation

    def _sketch(
        self, old: Database, builder: Builder, progress: Progress
    ) -> tuple[list[Any], Targets]:
        """Sketch the references; their targets follow those of the database."""

        def collector() -> TargetCollector:
            return TargetCollector(old.targets.names(), old.targets.files)

        with progress.stage("sketching references", unit="bases") as stage:
            sketches, collected = builder.sketch(self.files, collector, stage.advance)
        check_windows(collected.targets, old.parameters)
        return sketches, collected.targets

    def _with_targets(
        self, old: Database, added: Targets, dealt: NDArray[np.int32], generation: int
    ) -> Database:
        """The database with more targets, dealt to these partitions."""
        found = taxa_of(added, old.taxonomy, self.maps)
        if self.maps:
            check_taxa(found, added, old.taxonomy, self.maps)
        return assemble_database(
            old.path,
            Targets(
                names=old.targets.names() + added.names,
                length=old.targets.length.tolist() + added.length,
                file=old.targets.file.tolist() + added.file,
                files=added.files,
            ),
            old.parameters,
            old.taxonomy,
            np.concatenate([old.targets.node, found]),
            np.concatenate([old.targets.partition, dealt.astype(np.int32)]),
            taxonomy_digest=old.taxonomy_digest,
            generation=generation,
        )


def _with_own_files(targets: Targets, files: int) -> Targets:
    """Targets whose files are counted from the first that is not among the ``files`` before."""
    return Targets(
        targets.names, targets.length, [file - files for file in targets.file],
        targets.files[files:], targets.headers,
    )  # fmt: skip


def pairs_of(partition: Partition) -> Pairs:
    """The pairs that a partition's index keeps, in the order of targets and windows."""
    index = partition.index
    keys = keys_of_locations(index)
    order = np.argsort(index.locations, kind="stable")
    windows = index.locations[order]
    start = np.searchsorted(windows, partition.first_window.astype(np.int64))
    own = np.repeat(partition.first_window[:-1], np.diff(start))
    return Pairs(
        keys[order], windows - own, start.astype(np.int64), partition.target.astype(np.int64)
    )
