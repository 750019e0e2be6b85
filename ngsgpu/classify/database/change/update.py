"""Brings a database up to date with its references, without building it anew if possible.

References that are new are added to the last partition. Everything else that may have changed
(a reference, which ones there are, taxonomy, taxa, parameters, number of partitions) needs a new
plan. A reference counts as changed if its file is newer than the database's manifest.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.fit import bytes_beside, fitted
from ngsgpu.classify.params import DatabaseParameters, PartitionRequest
from ngsgpu.classify.sketch.references import find_references
from ngsgpu.io.output.manifest import MANIFEST
from ngsgpu.io.paths import Paths, listed
from ngsgpu.run.options import RunOptions
from ngsgpu.taxonomy.dump import load_taxonomy

logger = logging.getLogger("ngsgpu")


def update_database(
    references: Paths,
    path: str | Path,
    *,
    parameters: DatabaseParameters,
    taxonomy: str | Path | None = None,
    maps: Paths = (),
    request: PartitionRequest | None = None,
    options: RunOptions | None = None,
) -> Database | None:
    """Add the references that a complete database lacks to its last partition.

    Args:
        references: all references of the database.
        path: the database.
        parameters: as for ``plan_database``, like the others.
        taxonomy: directory of the taxonomy.
        maps: tables of sequence names and taxids.
        request: number of partitions.
        options: threads, memory and so on.

    Returns:
        The database, changed or not; None if it has to be planned anew, after a line in the log
        that says why.

    Raises:
        InputError: as for ``add_references``.
    """
    references, maps = listed(references), listed(maps)
    path = Path(path)
    if not (path / MANIFEST).exists():
        return None
    files = find_references(references)
    old = open_database(path, holds=False)
    why = _why_anew(old, files, parameters, taxonomy, maps, request or PartitionRequest())
    if why is not None:
        logger.warning("%s: planned anew, since %s", path, why)
        return None
    new = _new_files(old, files)
    if not new:
        return old
    logger.warning("%s: adding %d of %d references", path, len(new), len(files))
    return add_references(path, new, taxonomy=taxonomy, maps=maps, into_last=True, options=options)


def _new_files(old: Database, files: Sequence[str]) -> list[str]:
    """Files that a database has no references of."""
    known = set(old.targets.files)
    return [file for file in files if file not in known]


def _why_anew(
    old: Database,
    files: Sequence[str],
    parameters: DatabaseParameters,
    taxonomy: str | Path | None,
    maps: Sequence[str | Path],
    request: PartitionRequest,
) -> str | None:
    """The reason why a database cannot be kept; None if it can."""
    written = _changed_at(old.path / MANIFEST)
    gone = sorted(set(old.targets.files) - set(files))
    if gone:
        return f"{gone[0]} is no longer among its references"
    changed = [file for file in old.targets.files if _changed_at(file) > written]
    partitions = len(old.partitions)
    if changed:
        return f"{changed[0]} has changed"
    if request.size is not None and _new_files(old, files):
        return "its size is limited, and there are new references"
    if old.parameters != _fitted(old, parameters, request):
        return "it was built with other options"
    if request.bytes is None and partitions != (request.number or 1):
        return f"it has {partitions} partitions"
    if len(old.built()) < partitions:
        return "not all of its partitions were built"
    return _why_other_taxa(old, taxonomy, [own for own in maps if _changed_at(own) > written])


def _fitted(
    old: Database, parameters: DatabaseParameters, request: PartitionRequest
) -> DatabaseParameters:
    """The parameters that a plan of the database's references would have."""
    targets = old.targets
    beside = bytes_beside(len(targets), len(targets.name_bytes), targets.files, old.taxonomy)
    return fitted(parameters, int(old.windows.sum()), beside, request)


def _why_other_taxa(
    old: Database, taxonomy: str | Path | None, maps: Sequence[str | Path]
) -> str | None:
    """Whether another taxonomy, or tables that have changed, give its sequences other taxa."""
    from ngsgpu.taxonomy.mapping import map_targets

    digest = "" if taxonomy is None else load_taxonomy(taxonomy).digest()
    if digest != old.taxonomy_digest:
        return "its taxonomy has changed"
    if not maps or old.taxonomy is None:
        return None
    targets = old.targets
    files = [targets.files[file] for file in targets.file]
    # Taxids in headers, which a database does not keep, cannot change unless their files do.
    node = map_targets(targets.names(), [b""] * len(targets), old.taxonomy, maps, files=files)
    differ = (node >= 0) & (node != targets.node)
    return f"{maps[0]} gives its sequences other taxa" if differ.any() else None


def _changed_at(path: str | Path) -> int:
    """When a file, or a link to it, was changed, in nanoseconds."""
    return max(Path(path).stat().st_mtime_ns, Path(path).lstat().st_mtime_ns)
