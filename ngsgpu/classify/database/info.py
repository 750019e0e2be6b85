"""What users ask of a database: summaries, and whether its checksums are right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.folder import hold_version
from ngsgpu.classify.database.manifests import database_manifest, partition_manifest
from ngsgpu.classify.database.memory import BYTES_PER_LOCATION_BUILT
from ngsgpu.classify.database.targets import PlannedPartition
from ngsgpu.classify.index.index import index_bytes
from ngsgpu.device.memory import format_size
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import REMEDY
from ngsgpu.io.output.store import damaged_files


def partition_lines(database: Database, built: list[int] | None) -> list[str]:
    """A table of the partitions; ``built`` None leaves out whether they are there."""
    sketch = database.parameters.sketch
    columns = ["partition", "targets", "windows", "index at most", "to build it"]
    lines = ["\t".join(columns if built is None else [*columns, "built"])]
    for number, planned in enumerate(database.partitions):
        locations = sketch.most_features(planned.windows)
        row = [
            str(number),
            f"{planned.targets:,}",
            f"{planned.windows:,}",
            format_size(index_bytes(locations)),
            format_size(BYTES_PER_LOCATION_BUILT * locations),
        ]
        lines.append(
            "\t".join(row if built is None else [*row, "yes" if number in built else "no"])
        )
    return lines


def taxon_lines(database: Database) -> list[str]:
    """How many reference sequences have no taxon, if the others have one."""
    if database.taxonomy is None or database.without_taxon == 0:
        return []
    where = "" if database.path == Path() else f" (`ngsgpu db info -d {database.path} --unmapped`)"
    return [
        f"{database.without_taxon:,} of {len(database.targets):,} reference sequences have no "
        f"taxon{where}: reads called as one of these count at the root"
    ]


def database_info(database: Database) -> dict[str, Any]:
    """Parameters, sizes and partitions of a database, for JSON."""
    targets = database.targets
    built = set(database.built())
    most_features = database.parameters.sketch.most_features
    parameters = database.parameters.to_json()
    return {
        "path": str(database.path),
        "digest": database.digest,
        "targets": len(targets),
        "bases": int(targets.length.sum()),
        "windows": int(database.windows.sum()),
        "without_taxon": database.without_taxon,
        "taxa": 0 if database.taxonomy is None else len(database.taxonomy),
        "taxonomy_digest": database.taxonomy_digest,
        "parameters": {**parameters.pop("sketch"), **parameters},
        "partitions": [
            {
                "number": number,
                "targets": planned.targets,
                "windows": planned.windows,
                "index_bytes": index_bytes(most_features(planned.windows)),
                "build_bytes": BYTES_PER_LOCATION_BUILT * most_features(planned.windows),
                "built": number in built,
            }
            for number, planned in enumerate(database.partitions)
        ],
    }


def target_lines(database: Database, *, only: NDArray[np.bool_] | None = None) -> Iterator[str]:
    """A table of the reference sequences, or of some (bool[targets])."""
    targets = database.targets
    yield "name\tlength\twindows\tpartition\ttaxid\ttaxon\tfile"
    for target in range(len(targets)) if only is None else np.flatnonzero(only).tolist():
        node = int(targets.node[target])
        taxid, name = "-", "-"
        if database.taxonomy is not None and node >= 0:
            taxid, name = str(database.taxonomy.taxid[node]), database.taxonomy.name(node)
        fields = (
            targets.name(target),
            targets.length[target],
            database.windows[target],
            targets.partition[target],
            taxid,
            name,
            targets.files[targets.file[target]],
        )
        yield "\t".join(map(str, fields))


def check_contents(database: Database, partitions: Sequence[int]) -> None:
    """Verify the checksums of the targets, the taxonomy and some partitions.

    Raises:
        InputError: a file has changed.
    """
    values = database_manifest(database.path)
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
    held = hold_version(path)
    try:
        return _verify(path)
    finally:
        if held is not None:
            held.close()


def _verify(path: Path) -> tuple[int, list[str]]:
    values = database_manifest(path)
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
