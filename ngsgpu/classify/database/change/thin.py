"""Thins databases: a new one with a smaller fraction of the features, without the references."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.fit import kept_within, with_kept
from ngsgpu.classify.database.folder import check_place, database_folder
from ngsgpu.classify.database.info import check_contents
from ngsgpu.classify.database.plan import assemble_database
from ngsgpu.classify.database.write import write_manifest, write_partition
from ngsgpu.classify.index.index import stored_bytes
from ngsgpu.classify.index.thin import sizes_by_key, thinned
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.sketch.references import Targets
from ngsgpu.errors import UsageError
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress

_MORE_MANIFEST: Final = 64
"""Bytes by which a manifest may grow: the fraction, and numbers with other digits."""


def thin_database(
    path: str | Path,
    output: str | Path,
    *,
    fraction: float | None = None,
    size: int | None = None,
    options: RunOptions | None = None,
) -> Database:
    """Write a database with a smaller fraction of all features.

    The result equals building with this fraction, to the byte.

    Args:
        path: the database, with all of its partitions.
        output: the directory to create or replace.
        fraction: of all features, not of those that the database has.
        size: bytes of the result at most; instead of the fraction.
        options: threads and progress.

    Raises:
        InputError: the database is damaged or not complete, or none may be created there.
        OutputError: the result cannot be written; an older one is unchanged.
        UsageError: the database has fewer features than that, or none fits into the size.
    """
    if (fraction is None) == (size is None):
        raise UsageError("give `fraction` or `max_size`, and not both")
    options = options or RunOptions()
    output, inputs = Path(output), [Path(os.path.realpath(path))]
    check_place(output, inputs)
    old = open_database(path)
    numbers = range(len(old.partitions))
    check_contents(old, numbers)
    sketch = old.parameters.sketch
    if fraction is not None:
        kept = replace(sketch, fraction=fraction).kept
        if kept > sketch.kept:
            raise UsageError(f"`fraction` must be at most {sketch.fraction:g}, which {path} has")
    elif size is not None:
        kept = _kept(old, size, options.threads)
    parameters = with_kept(old.parameters, kept)
    new = _with_parameters(old, parameters, output)
    with (
        Progress(options.progress) as progress,
        progress.stage("thinning", total=len(numbers), unit="partitions") as stage,
        database_folder(output, inputs) as place,
    ):
        there = new.moved(*place)
        for number in numbers:
            own = old.load_partition(number)
            index = thinned(own.index, kept, options.threads)
            write_partition(there, replace(own, index=index), options.threads)
            stage.advance()
        write_manifest(there)
    old.close()
    return open_database(output)


def _kept(old: Database, size: int, threads: int) -> int:
    """The largest ``SketchRules.kept`` with which the result fits into a size."""
    partitions = [old.load_partition(number) for number in range(len(old.partitions))]
    manifests = [old.manifest_bytes, *(own.manifest_bytes for own in partitions)]
    beside = old.part_bytes + sum(manifests) + _MORE_MANIFEST * len(manifests)
    sizes = [sizes_by_key(own.index, threads) for own in partitions]

    def bytes_with(kept: int) -> int:
        return beside + sum(stored_bytes(*own[kept].tolist()) for own in sizes)

    return kept_within(size, old.parameters.sketch.kept, bytes_with)


def _with_parameters(old: Database, parameters: DatabaseParameters, path: Path) -> Database:
    """The same reference sequences as a database that has other parameters."""
    targets = old.targets
    return assemble_database(
        path,
        Targets(
            names=targets.names(),
            length=targets.length.tolist(),
            file=targets.file.tolist(),
            files=list(targets.files),
        ),
        parameters,
        old.taxonomy,
        np.array(targets.node),
        np.array(targets.partition),
        taxonomy_digest=old.taxonomy_digest,
    )
