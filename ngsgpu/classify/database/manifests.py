"""The manifests of a database and of its partitions: their fields, and reading them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ngsgpu.classify.database.folder import FORMAT
from ngsgpu.classify.database.targets import TARGET_ARRAYS, PlannedPartition
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import (
    FILES,
    MANIFEST,
    REMEDY,
    is_count,
    is_fraction,
    is_name,
    is_text,
    read_manifest,
)

PARTITION_FORMAT: Final = "ngsgpu classification partition"
VERSION: Final = 2
_OLDEST: Final = 1
"""Has features of windows, and does not say so."""
BLOCKS: Final = "blocks"
INDEX_ARRAYS: Final = ("directory", "entries", "locations")

_SHAPE: Final = {
    "generation": is_count,
    "parameters": {
        "sketch": {
            **{f"{name}?": is_count for name in ("kmer", "sketch", "smer", "window", "stride")},
            "features?": is_text,
            "fraction?": is_fraction,
        },
        "max_locations?": is_count,
        "remove_overfull?": bool,
        "ambiguous_rank?": is_text,
        "max_taxa?": is_count,
    },
    "targets": {
        "folder": is_name,
        "count?": is_count,
        "bases?": is_count,
        "without_taxon?": is_count,
        "references": [is_text],
        "files": FILES,
    },
    "taxonomy": ({"folder": is_name, "digest": is_text, "files": FILES}, None),
    "partitions": [
        {"folder": is_name, "targets": is_count, "windows": is_count, "digest": is_text}
    ],
}
_PARTITION_SHAPE: Final = {
    "digest": is_text,
    "entries": is_count,
    "locations": is_count,
    "files": FILES,
}


def database_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest of a database.

    Raises:
        InputError: there is none, or it is damaged.
    """
    values = read_manifest(path / MANIFEST, FORMAT, VERSION, _SHAPE, oldest=_OLDEST)
    if values["targets"]["files"].keys() != {f"{name}.npy" for name in TARGET_ARRAYS}:
        raise InputError(path / MANIFEST, "the manifest is damaged: its files", REMEDY)
    return values


def partition_manifest(folder: Path, planned: PlannedPartition) -> dict[str, Any]:
    """Read a partition's manifest and check that it is the one that was planned.

    Raises:
        InputError: it is not.
    """
    values = read_manifest(
        folder / MANIFEST, PARTITION_FORMAT, VERSION, _PARTITION_SHAPE, oldest=_OLDEST
    )
    known = {f"{name}.npy" for name in (*INDEX_ARRAYS, BLOCKS)}
    if not known - {f"{BLOCKS}.npy"} <= values["files"].keys() <= known:
        raise InputError(folder / MANIFEST, "the manifest is damaged: its files", REMEDY)
    if values["digest"] != planned.digest:
        raise InputError(
            folder,
            "the partition belongs to another database: its targets or parameters differ",
            REMEDY,
        )
    return values
