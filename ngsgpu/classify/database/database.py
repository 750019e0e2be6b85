"""Databases on disk.

::

    DB/manifest.json          version, parameters, partitions, sizes and checksums of files
    DB/taxonomy-0001/*.npy    the taxonomy, if there is one
    DB/targets-0001/*.npy     reference sequences: names, lengths, taxa, partitions, files
    DB/partition-0000-0001/   the index of a partition and the checksums of its blocks, with a
                              separate manifest

The manifest names the directories. A change of the database writes new ones next to the old and
then replaces the manifest, so readers see one state or the other. A partition is built, stored and
queried separately; its digest, over the parameters and its targets, proves that it belongs to the
manifest.

Opening always performs the quick checks, so that no array leads out of another. The contents of
targets and taxonomy are compared with their checksums then; those of an index block by block on
first access, or as a whole if all of it is read anyway or a partition has no block checksums, as
in earlier versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.folder import HeldVersion, hold_version
from ngsgpu.classify.database.manifests import (
    BLOCKS,
    INDEX_ARRAYS,
    database_manifest,
    partition_manifest,
)
from ngsgpu.classify.database.targets import (
    TARGET_ARRAYS,
    PlannedPartition,
    TargetTable,
    check_targets,
    partition_folder,
)
from ngsgpu.classify.index.index import KEY_BITS, MIN_BITS, Index, Members
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.sketch.references import windows_of_lengths
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import MANIFEST, REMEDY, fields_of, opened_whole, sealed
from ngsgpu.io.output.store import (
    FileList,
    check_content,
    check_sizes,
    damaged_files,
    open_array,
    size_of,
)

if TYPE_CHECKING:
    from ngsgpu.taxonomy.tree import Taxonomy


@dataclass(frozen=True)
class Partition:
    """A partition's targets and index.

    Attributes:
        number: from 0.
        target: int32[n], numbers of its targets in the database, ascending.
        first_window: uint32[n + 1], where the windows of each begin, and their number.
        index: see ``ngsgpu.classify.index.index``.
        sums: uint64, checksums of the index's blocks (``ngsgpu.classify.index.index``); empty if
            nothing is to be verified.
        folder: its directory.
        files: sizes and checksums of its files; none for a partition in memory.
        manifest_bytes: size of its manifest on the disk.
    """

    number: int
    target: NDArray[np.int32]
    first_window: NDArray[np.uint32]
    index: Index
    sums: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    folder: Path = Path()
    files: FileList = field(default_factory=dict)
    manifest_bytes: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of its files on the disk, by its manifest."""
        return self.manifest_bytes + size_of(self.files)

    def check(self, threads: int = 1) -> None:
        """Compare all of the index with the checksums of its files.

        Raises:
            InputError: names the file that has changed.
        """
        if self.files:
            arrays = {name: getattr(self.index, name) for name in INDEX_ARRAYS}
            check_content(self.folder, self.files, arrays, threads)

    def damage(self) -> InputError:
        """The error for a partition with damaged blocks; names the file."""
        try:
            self.check()
        except InputError as error:
            return error
        return InputError(self.folder, "its block checksums do not match its index", REMEDY)


@dataclass(frozen=True)
class Database:
    """A database: everything but the indexes, which ``load_partition`` opens.

    Attributes:
        path: its directory; empty for one in memory.
        parameters: how it is built.
        targets: the reference sequences.
        partitions: of them.
        taxonomy: None without one.
        taxonomy_digest: of the taxonomy.
        generation: counts the changes of the database.
        loaded: partitions in memory, by number, for a database that is not on disk.
        verified: whether contents are compared with their checksums.
        manifest_bytes: size of the manifest on the disk.
        part_bytes: sizes of its targets and of its taxonomy there, by the manifest.
        held: keeps its files on the disk as long as it lives (``folder.hold_version``).
    """

    path: Path
    parameters: DatabaseParameters
    targets: TargetTable
    partitions: tuple[PlannedPartition, ...]
    taxonomy: Taxonomy | None
    taxonomy_digest: str
    generation: int = 1
    loaded: dict[int, Partition] = field(default_factory=dict)
    verified: bool = True
    manifest_bytes: int = 0
    part_bytes: int = 0
    held: HeldVersion | None = field(default=None, repr=False, compare=False)

    @cached_property
    def windows(self) -> NDArray[np.int64]:
        """Windows of each target."""
        return windows_of_lengths(self.targets.length, self.parameters.sketch)

    @property
    def without_taxon(self) -> int:
        """Number of reference sequences that have no taxon."""
        return int((self.targets.node < 0).sum())

    @cached_property
    def digest(self) -> str:
        """Of what decides calls: the parameters, targets, their taxa and partitions."""
        state = hashlib.sha256(self.taxonomy_digest.encode())
        for partition in self.partitions:
            state.update(partition.digest.encode())
        state.update(np.ascontiguousarray(self.targets.node).data)
        state.update(np.ascontiguousarray(self.targets.partition).data)
        return state.hexdigest()

    def moved(self, path: Path, generation: int) -> Database:
        """The same database in another folder, all its parts of a generation."""
        partitions = tuple(
            replace(planned, folder=partition_folder(number, generation))
            for number, planned in enumerate(self.partitions)
        )
        return replace(self, path=path, generation=generation, partitions=partitions)

    def close(self) -> None:
        """Let its files be removed when it is changed; what is mapped of them stays readable."""
        if self.held is not None:
            self.held.close()

    def members(self, number: int) -> Members:
        """A partition's targets."""
        return Members.of(number, self.targets.partition, self.windows)

    def built(self) -> list[int]:
        """Numbers of the partitions that are there."""
        return [
            number
            for number, partition in enumerate(self.partitions)
            if number in self.loaded or (self.path / partition.folder).exists()
        ]

    def load_partition(self, number: int) -> Partition:
        """Open a partition, memory-mapped.

        Raises:
            InputError: it is not built yet, is damaged, or belongs to another database.
        """
        if number in self.loaded:
            return self.loaded[number]
        planned = self.partitions[number]
        folder = self.path / planned.folder
        if not folder.exists():
            raise InputError(
                folder,
                f"partition {number} is not built yet",
                f"build it with `ngsgpu db build -d {self.path} --only-partition {number}`",
            )
        return opened_whole([folder], lambda: self._opened(number, planned, folder))

    def _opened(self, number: int, planned: PlannedPartition, folder: Path) -> Partition:
        values = partition_manifest(folder, planned)
        files = values["files"]
        check_sizes(folder, files)
        index = open_index(folder)
        target, first_window, _ = self.members(number)
        _check_index(folder, index, values, int(first_window[-1]))
        sums = np.zeros(0, dtype=np.uint64)
        if self.verified and f"{BLOCKS}.npy" in files:
            sums = open_array(folder, BLOCKS, np.uint64)
            check_content(folder, files, {BLOCKS: sums})
            if len(sums) not in (1 << bits for bits in range(index.bits + 1)):
                raise InputError(folder / f"{BLOCKS}.npy", "does not match the index", REMEDY)
        size = len(sealed(values))
        return Partition(number, target, first_window, index, sums, folder, files, size)


def _check_index(folder: Path, index: Index, values: dict[str, Any], windows: int) -> None:
    """Refuse an index whose size differs from its manifest, or that is not an index.

    Args:
        folder: of the partition.
        index: its index.
        values: its manifest.
        windows: of all of its targets.

    Raises:
        InputError: it is inconsistent.
    """
    ends = [len(index.entries), len(index.locations)]
    fits = (
        MIN_BITS <= index.bits <= KEY_BITS
        and len(index.directory) == (1 << index.bits) + 1
        and ends == [values["entries"], values["locations"]]
        and index.directory[0].tolist() == [0, 0]
        and index.directory[-1].tolist() == ends
        and (windows > 0 or len(index.locations) == 0)
    )
    if not fits:
        raise InputError(folder, "the arrays of the index are inconsistent", REMEDY)


def open_index(folder: Path) -> Index:
    """Map the index of a partition.

    Raises:
        InputError: a part of it is missing or damaged.
    """
    return Index(
        open_array(folder, "directory", np.uint32, 2),
        open_array(folder, "entries", np.uint32),
        open_array(folder, "locations", np.uint32),
    )


def open_database(
    path: str | Path,
    *,
    load: Sequence[int] | None = (),
    verified: bool = True,
    holds: bool = True,
) -> Database:
    """Open a database: the old version or the new one while it is being changed.

    Args:
        path: its directory.
        load: partitions to open at once; None: all.
        verified: whether to verify checksums, of the targets now, of indexes when they are used.
        holds: whether what was opened stays on the disk until the database is closed, even if it
            changes. Not for who changes it, and need not wait for itself.

    Raises:
        InputError: it is missing, damaged, truncated or of another version, or its taxonomy is not
            the one it was built with.
    """
    path = Path(path)
    while True:
        held = hold_version(path) if holds else None
        before = _version_on_disk(path)
        try:
            database = _open(path, verified=verified, held=held)
            everything = range(len(database.partitions))
            for number in everything if load is None else load:
                if number in everything:
                    database.loaded[number] = database.load_partition(number)
        except InputError:
            if _version_on_disk(path) == before:
                raise
        else:
            if _version_on_disk(path) == before:
                return database


def _version_on_disk(path: Path) -> tuple[int, ...]:
    """Identity of a database's manifest, which every change replaces; empty without one."""
    try:
        info = (path / MANIFEST).stat()
    except OSError:
        return ()
    return info.st_ino, info.st_mtime_ns, info.st_size


def _open(path: Path, *, verified: bool, held: HeldVersion | None) -> Database:
    values = database_manifest(path)
    taxonomy = values["taxonomy"]
    with fields_of(path / MANIFEST):
        database = Database(
            path=path,
            parameters=DatabaseParameters.from_json(values["parameters"]),
            targets=_open_targets(path, values["targets"], verified=verified),
            partitions=tuple(PlannedPartition(**planned) for planned in values["partitions"]),
            taxonomy=None if taxonomy is None else _open_taxonomy(path, taxonomy),
            taxonomy_digest="" if taxonomy is None else taxonomy["digest"],
            generation=values["generation"],
            verified=verified,
            manifest_bytes=len(sealed(values)),
            part_bytes=sum(
                size_of(own["files"]) for own in (values["targets"], taxonomy) if own is not None
            ),
            held=held,
        )
    nodes = 0 if database.taxonomy is None else len(database.taxonomy)
    check_targets(
        path / values["targets"]["folder"], database.targets, database.windows,
        database.partitions, nodes,
    )  # fmt: skip
    return database


def _open_targets(path: Path, values: dict[str, Any], *, verified: bool) -> TargetTable:
    folder, files = path / values["folder"], values["files"]
    check_sizes(folder, files)
    arrays = {name: open_array(folder, name, dtype) for name, dtype in TARGET_ARRAYS.items()}
    if verified:
        check_content(folder, files, arrays)
    return TargetTable(**arrays, files=tuple(values["references"]))


def _open_taxonomy(path: Path, values: dict[str, Any]) -> Taxonomy:
    """Open the taxonomy; its digest is of all it holds, so that checksums only name the file."""
    from ngsgpu.taxonomy.tree import Taxonomy

    folder, files = path / values["folder"], values["files"]
    check_sizes(folder, files)
    try:
        taxonomy = Taxonomy.load(folder)
        if taxonomy.digest() != values["digest"]:
            raise InputError(folder, "this is not the taxonomy the database was built with", REMEDY)
    except InputError as error:
        changed = [name for name in files if damaged_files(folder, {name: files[name]})]
        if len(changed) != 1:  # more than one: a taxonomy that is whole, but another
            raise
        raise InputError(folder / changed[0], error.cause, REMEDY) from error
    return taxonomy
