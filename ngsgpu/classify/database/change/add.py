"""Adds references to a database, as new partitions or to the last one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ngsgpu.classify.database.cpu_build import all_batches, index_partition, sketch_batches
from ngsgpu.classify.database.database import Database, Partition, open_database
from ngsgpu.classify.database.folder import changed, check_inputs
from ngsgpu.classify.database.info import check_contents
from ngsgpu.classify.database.memory import check, expected_locations, plan_build
from ngsgpu.classify.database.plan import (
    assemble_database,
    check_taxa,
    inputs_of,
    partition_of,
    taxa_of,
)
from ngsgpu.classify.database.write import write_manifest, write_partition
from ngsgpu.classify.index.index import (
    Pairs,
    keys_of_locations,
    removed_keys,
)
from ngsgpu.classify.params import PartitionRequest
from ngsgpu.classify.sketch.references import (
    TargetCollector,
    Targets,
    find_references,
)
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
    with changed(path) as generation:
        old = open_database(path, holds=False)
        if taxonomy is not None and load_taxonomy(taxonomy).digest() != old.taxonomy_digest:
            raise InputError(
                taxonomy,
                "this is not the taxonomy the database was built with",
                "omit `taxonomy`, or build a new database",
            )
        if old.taxonomy is None and maps:
            raise UsageError("`maps` needs a database with a taxonomy")
        last = len(old.partitions) - 1
        check_contents(old, [last] if into_last else [])
        options = options or RunOptions()
        windows = old.partitions[last].windows if into_last else 0
        kept = old.parameters.sketch.most_features(windows) if into_last else 0
        added = expected_locations(files, old.parameters)
        check(plan_build(options, kept + added, "what is added"), options)
        new = _with_references(
            old, files, maps, None if into_last else request or PartitionRequest(), options,
            generation,
        )  # fmt: skip
        write_manifest(new)
    return new


def _with_references(
    old: Database,
    files: Sequence[str],
    maps: Sequence[str | Path],
    request: PartitionRequest | None,
    options: RunOptions,
    generation: int,
) -> Database:
    """Write the partitions of a database with more references; with no request, the last one."""
    known = old.targets.names()
    collector = TargetCollector(known, old.targets.files)
    last = len(old.partitions) - 1
    with Progress(options.progress) as progress:
        with progress.stage("sketching references", unit="bases") as stage:
            pairs = sketch_batches(
                all_batches(files, collector, options),
                old.parameters.sketch,
                threads=options.threads,
                advance=stage.advance,
            )
        added = collector.targets
        found = taxa_of(added, old.taxonomy, maps)
        if maps:
            check_taxa(found, added, old.taxonomy, maps)
        node = np.concatenate([old.targets.node, found])
        if request is None:
            dealt = np.full(len(added), last, dtype=np.int32)
        else:
            fresh = _with_own_files(added, len(old.targets.files))
            dealt = partition_of(fresh, old.parameters, request) + last + 1
        targets = Targets(
            names=known + added.names,
            length=old.targets.length.tolist() + added.length,
            file=old.targets.file.tolist() + added.file,
            files=added.files,
        )
        new = assemble_database(
            old.path,
            targets,
            old.parameters,
            old.taxonomy,
            node,
            np.concatenate([old.targets.partition, dealt.astype(np.int32)]),
            taxonomy_digest=old.taxonomy_digest,
            generation=generation,
        )
        kept = last if request is None else last + 1
        new = replace(new, partitions=old.partitions[:kept] + new.partitions[kept:])
        removed = None
        if request is None:
            partition = old.load_partition(last)
            pairs = [pairs_of(partition), *pairs]
            removed = removed_keys(partition.index)
        for number in range(kept, len(new.partitions)):
            write_partition(
                new,
                index_partition(new, number, pairs, threads=options.threads, removed=removed),
            )
    return new


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
