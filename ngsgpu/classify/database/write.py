"""Storing databases: partitions, and the manifest with all that belongs to the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from ngsgpu.classify.database.database import Database, Partition, open_index
from ngsgpu.classify.database.folder import FORMAT, atomic_directory
from ngsgpu.classify.database.manifests import BLOCKS, INDEX_ARRAYS, PARTITION_FORMAT, VERSION
from ngsgpu.classify.index.index import block_sums
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.manifest import MANIFEST, save_manifest
from ngsgpu.io.output.store import FileList, save_arrays


def write_partition(
    database: Database,
    partition: Partition,
    threads: int = 1,
    also: Callable[[], Sequence[AtomicFile]] = tuple,
) -> None:
    """Store a partition's index; see ``store_partition``.

    Raises:
        OutputError: it cannot be written; an older one is unchanged.
    """
    index = partition.index
    arrays = {name: getattr(index, name) for name in INDEX_ARRAYS}

    def save(folder: Path) -> tuple[FileList, int, int]:
        return save_arrays(folder, arrays, threads), len(index.entries), len(index.locations)

    store_partition(database, partition.number, save, threads, also)


def store_partition(
    database: Database,
    number: int,
    save: Callable[[Path], tuple[FileList, int, int]],
    threads: int = 1,
    also: Callable[[], Sequence[AtomicFile]] = tuple,
) -> None:
    """Store a partition's index.

    Args:
        database: its database.
        number: of the partition.
        save: writes the arrays of the index into a directory, and returns the files (see
            ``store.save_arrays``) and the numbers of entries and locations.
        threads: threads that sum blocks.
        also: completes files that get their names together with the partition.

    Raises:
        OutputError: it cannot be written; an older one is unchanged.
    """
    planned = database.partitions[number]
    with atomic_directory(database.path / planned.folder, also) as folder:
        files, entries, locations = save(folder)
        sums = block_sums(open_index(folder), threads)
        files = {**files, **save_arrays(folder, {BLOCKS: sums})}
        values = {
            "format": PARTITION_FORMAT,
            "version": VERSION,
            "digest": planned.digest,
            "entries": entries,
            "locations": locations,
            "files": files,
        }
        save_manifest(folder / MANIFEST, values)


def write_manifest(database: Database, also: Sequence[AtomicFile] = ()) -> None:
    """Store all but the partitions, replacing the manifest last.

    Args:
        database: what is stored.
        also: complete files that get their names together with the manifest.

    Raises:
        OutputError: something cannot be written.
    """
    path, generation = database.path, database.generation
    files: dict[str, FileList] = {}
    folder_of_targets = f"targets-{generation:04d}"
    with atomic_directory(path / folder_of_targets) as folder:
        files["targets"] = save_arrays(folder, database.targets.arrays())
    names = {"targets": folder_of_targets}
    if database.taxonomy is not None:
        names["taxonomy"] = f"taxonomy-{generation:04d}"
        with atomic_directory(path / names["taxonomy"]) as folder:
            files["taxonomy"] = database.taxonomy.save(folder)
    values = {
        "format": FORMAT,
        "version": VERSION,
        "generation": generation,
        "parameters": database.parameters.to_json(),
        "targets": {
            "folder": names["targets"],
            "count": len(database.targets),
            "bases": int(database.targets.length.sum()),
            "without_taxon": database.without_taxon,
            "references": list(database.targets.files),
            "files": files["targets"],
        },
        "taxonomy": None
        if database.taxonomy is None
        else {
            "folder": names["taxonomy"],
            "digest": database.taxonomy_digest,
            "files": files["taxonomy"],
        },
        "partitions": [
            {
                "folder": planned.folder,
                "targets": planned.targets,
                "windows": planned.windows,
                "digest": planned.digest,
            }
            for planned in database.partitions
        ],
    }
    save_manifest(path / MANIFEST, values, also)
