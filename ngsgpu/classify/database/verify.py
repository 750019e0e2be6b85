"""Verifies the checksums of a database, whole files at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ngsgpu.classify.database.database import VERSION, Database, open_database, partition_manifest
from ngsgpu.classify.database.folder import FORMAT, MANIFEST
from ngsgpu.classify.database.targets import PlannedPartition
from ngsgpu.errors import InputError
from ngsgpu.io.output.store import REMEDY, damaged_files, read_json


def check_contents(database: Database, partitions: Sequence[int]) -> None:
    """Verify the checksums of the targets, the taxonomy and some partitions.

    Raises:
        InputError: a file has changed.
    """
    values = read_json(database.path / MANIFEST, FORMAT, VERSION)
    parts = [(database.path / part["folder"], part["files"])
             for part in (values["targets"], values["taxonomy"]) if part is not None]  # fmt: skip
    for number in partitions:
        planned = database.partitions[number]
        folder = database.path / planned.folder
        if folder.exists():
            parts.append((folder, partition_manifest(folder, planned)["files"]))
    for folder, files in parts:
        if damaged := damaged_files(folder, files):
            raise InputError(database.path, f"is damaged ({damaged[0]})", REMEDY)


def verify_database(path: str | Path) -> tuple[int, list[str]]:
    """Verify the checksums of all files of a database.

    Returns:
        The number of files, and the damaged ones with the reason.

    Raises:
        InputError: there is no database, or its manifest cannot be read.
    """
    path = Path(path)
    values = read_json(path / MANIFEST, FORMAT, VERSION)
    damaged: list[str] = []
    files = 1
    for part in ("targets", "taxonomy"):
        if values[part] is not None:
            files += len(values[part]["files"])
            damaged += damaged_files(path / values[part]["folder"], values[part]["files"])
    for number, planned in enumerate(values["partitions"]):
        folder = path / planned["folder"]
        if not folder.exists():
            damaged.append(f"{folder}: partition {number} is not built yet")
            continue
        try:
            own = partition_manifest(folder, PlannedPartition(**planned))
        except InputError as error:
            damaged.append(str(error))
            continue
        files += 1 + len(own["files"])
        damaged += damaged_files(folder, own["files"])
    if not damaged:
        open_database(path)
    return files, damaged
