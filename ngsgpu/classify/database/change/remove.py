"""Removes reference sequences from a database, by name, reference file or taxon.

Partitions that hold some of them get new indexes, from the old ones; the others stay as they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.change.add import pairs_of
from ngsgpu.classify.database.cpu_build import index_partition
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.folder import changed
from ngsgpu.classify.database.info import check_contents
from ngsgpu.classify.database.memory import check, plan_build
from ngsgpu.classify.database.plan import assemble_database
from ngsgpu.classify.database.write import write_manifest, write_partition
from ngsgpu.classify.index.index import removed_keys
from ngsgpu.classify.sketch.references import Targets
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.text.lines import read_line_blocks
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress

_ASSEMBLY: Final = re.compile(r"GC[AF]_[0-9]{9}\.[0-9]+")


def read_names(path: str | Path) -> list[str]:
    """The lines of a file, without empty ones; raises InputError."""
    return [
        os.fsdecode(line.strip())
        for block in read_line_blocks(path)
        for line in block.data.tobytes().split(b"\n")
        if line.strip()
    ]


def chosen_targets(
    database: Database, names: Sequence[str], taxids: Sequence[int]
) -> NDArray[np.bool_]:
    """The reference sequences that have a name, or a taxon; bool[targets].

    Args:
        database: the database.
        names: of sequences, of reference files with or without directories, or accessions of
            assemblies (``GCF_000005845.2``) in the names of files.
        taxids: everything at and below them is chosen.

    Raises:
        InputError: a name or taxid is not in the database.
    """
    targets = database.targets
    chosen = np.zeros(len(targets), dtype=np.bool_)
    place = {name: target for target, name in enumerate(targets.names())}
    files: dict[str, list[int]] = {}
    for number, path in enumerate(targets.files):
        file = Path(path).name
        found = {path, file, *_ASSEMBLY.findall(file)}
        for name in found:
            files.setdefault(name, []).append(number)
    for name in names:
        target = place.get(os.fsencode(name))
        if target is not None:
            chosen[target] = True
        elif name in files:
            chosen |= np.isin(targets.file, files[name])
        else:
            raise InputError(
                database.path, f"there is no sequence or reference file {name}",
                "see `ngsgpu db info --targets`",
            )  # fmt: skip
    for taxid in taxids:
        chosen |= _below(database, taxid)
    return chosen


def _below(database: Database, taxid: int) -> NDArray[np.bool_]:
    """Reference sequences of a taxon and of those below it."""
    taxonomy = database.taxonomy
    node = -1 if taxonomy is None else taxonomy.index_of(taxid)
    at = database.targets.node
    below = np.zeros(len(at), dtype=np.bool_)
    if taxonomy is not None and node >= 0:
        below = (at >= 0) & taxonomy.below([node])[at]
    if not below.any():
        cause = f"there is no sequence of the taxon {taxid}"
        raise InputError(database.path, cause, "see `ngsgpu db info --targets`")
    return below


def remove_references(
    path: str | Path,
    names: Sequence[str] = (),
    taxids: Sequence[int] = (),
    *,
    options: RunOptions | None = None,
) -> Database:
    """Remove reference sequences from a database, as ``chosen_targets`` chooses them.

    The result equals a database of the others, but for features that had lost locations, or all of
    them, to the limits of the database: what they lost stays lost. A partition without a sequence
    left is removed.

    Args:
        path: the database.
        names: see ``chosen_targets``.
        taxids: see ``chosen_targets``.
        options: threads, memory and so on.

    Raises:
        InputError: a name or taxid is not in the database, or something to be rewritten is damaged
            or not built.
        UsageError: nothing would be left.
    """
    path = Path(os.path.realpath(path))
    options = options or RunOptions()
    chosen_targets(open_database(path), names, taxids)  # what is wrong is said before we wait
    with changed(path) as generation:
        old = open_database(path, holds=False)
        removed = chosen_targets(old, names, taxids)
        if removed.all():
            raise UsageError(f"{path}: no sequence would be left; remove the directory instead")
        touched = np.unique(old.targets.partition[removed]).tolist()
        check_contents(old, touched)
        most = max((old.partitions[number].windows for number in touched), default=0)
        locations = old.parameters.sketch.most_features(most)
        what = "what is left of a partition"
        check(plan_build(options, locations, what, len(old.partitions)), options)
        new = _without(old, removed, set(touched), options, generation)
        write_manifest(new)
    return new


def _without(
    old: Database,
    removed: NDArray[np.bool_],
    touched: set[int],
    options: RunOptions,
    generation: int,
) -> Database:
    """Write the partitions of a database without some of its targets."""
    targets = old.targets
    kept = np.flatnonzero(~removed)
    names = targets.names()
    left, partition = np.unique(targets.partition[kept], return_inverse=True)
    used, file = np.unique(targets.file[kept], return_inverse=True)
    new = assemble_database(
        old.path,
        Targets(
            names=[names[target] for target in kept.tolist()],
            length=targets.length[kept].tolist(),
            file=file.tolist(),
            files=[targets.files[number] for number in used.tolist()],
        ),
        old.parameters,
        old.taxonomy,
        targets.node[kept],
        partition.astype(np.int32),
        taxonomy_digest=old.taxonomy_digest,
        generation=generation,
    )
    planned = [
        own if before in touched else replace(own, folder=old.partitions[before].folder)
        for before, own in zip(left.tolist(), new.partitions, strict=True)
    ]
    new = replace(new, partitions=tuple(planned))
    number_of = np.where(removed, -1, np.cumsum(~removed) - 1)
    work = [(after, before) for after, before in enumerate(left.tolist()) if before in touched]
    with (
        Progress(options.progress) as progress,
        progress.stage("removing", total=len(work), unit="partitions") as stage,
    ):
        for after, before in work:
            index = (own := old.load_partition(before)).index
            pairs = pairs_of(own)
            # Pairs of target -1 belong to no partition.
            pairs = replace(pairs, target=number_of[pairs.target])
            partition_left = index_partition(
                new, after, [pairs], threads=options.threads, removed=removed_keys(index)
            )
            write_partition(new, partition_left, options.threads)
            stage.advance()
    return new
