"""Adding references to a database, as partitions of their own or to the last one."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ngsgpu.classify.build import all_batches, index_partition
from ngsgpu.classify.database import (
    Database,
    Partition,
    open_database,
    write_manifest,
    write_partition,
)
from ngsgpu.classify.index import (
    Pairs,
    keys_of_locations,
    removed_keys,
)
from ngsgpu.classify.plan import (
    BuildOptions,
    PartitionRequest,
    assemble_database,
    partition_of,
    taxa_of,
)
from ngsgpu.classify.references import (
    TargetCollector,
    Targets,
    find_references,
)
from ngsgpu.classify.sketching import sketch_batches
from ngsgpu.classify.taxonomy import load_taxonomy
from ngsgpu.errors import InputError, UsageError
from ngsgpu.progress import Progress


def add_references(
    path: str | Path,
    references: Sequence[str | Path],
    *,
    taxonomy: str | Path | None = None,
    maps: Sequence[str | Path] = (),
    request: PartitionRequest | None = None,
    into_last: bool = False,
    options: BuildOptions | None = None,
) -> Database:
    """Add references to a database, as new partitions or to the last one.

    The other partitions are not touched. With ``into_last`` the result is that of building the
    last partition of its own and the new references.

    Args:
        path: the database.
        references: FASTA files, or directories of them.
        taxonomy: only to check that it is the database's own.
        maps: as for ``build_database``.
        request: into how many new partitions to cut.
        into_last: whether to add to the last partition instead.
        options: threads, memory and the like.

    Raises:
        InputError: as for ``build_database``; a name is in the database already, or the taxonomy
            is another one.
    """
    options = options or BuildOptions()
    old = open_database(path)
    if taxonomy is not None and load_taxonomy(taxonomy).digest() != old.taxonomy_digest:
        raise InputError(
            taxonomy,
            "this is not the taxonomy that the database was built with",
            "leave out --taxonomy, or build a new database",
        )
    if old.taxonomy is None and maps:
        raise UsageError("--map needs a database with a taxonomy")
    if into_last and request not in (None, PartitionRequest()):
        raise UsageError("--into-last adds no partitions: leave out --partitions")
    known = old.targets.names()
    collector = TargetCollector(known, old.targets.files)
    with Progress(options.progress) as progress:
        with progress.stage("sketching references", unit="bases") as stage:
            pairs = sketch_batches(
                all_batches(find_references(references), collector, options),
                old.parameters.sketch,
                threads=options.threads,
                advance=stage.advance,
            )
        added = collector.targets
        node = np.concatenate([old.targets.node, taxa_of(added, old.taxonomy, maps)])
        last = len(old.partitions) - 1
        if into_last:
            dealt = np.full(len(added), last, dtype=np.int32)
        else:
            fresh = _with_own_files(added, len(old.targets.files))
            dealt = partition_of(fresh, old.parameters, request or PartitionRequest()) + last + 1
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
            generation=old.generation + 1,
        )
        kept = last if into_last else last + 1
        new = replace(new, partitions=old.partitions[:kept] + new.partitions[kept:])
        removed = None
        if into_last:
            partition = old.load_partition(last)
            pairs = [pairs_of(partition), *pairs]
            removed = removed_keys(partition.index)
        for number in range(kept, len(new.partitions)):
            write_partition(
                new,
                index_partition(new, number, pairs, threads=options.threads, removed=removed),
            )
        write_manifest(new)
    _remove_others(new)
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


def _remove_others(database: Database) -> None:
    """Remove the folders of earlier generations that the manifest does not name any more."""
    generation = f"-{database.generation:04d}"
    named = {partition.folder for partition in database.partitions}
    for folder in database.path.iterdir():
        kind = folder.name.split("-", 1)[0]
        if kind == "partition" and folder.name not in named:
            shutil.rmtree(folder, ignore_errors=True)
        if kind in ("targets", "taxonomy") and not folder.name.endswith(generation):
            shutil.rmtree(folder, ignore_errors=True)
