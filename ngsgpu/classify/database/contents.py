"""What the indexes of a database hold: features, their locations, and the space they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.index.index import COUNT_BITS, MAX_IN_ENTRY, Index
from ngsgpu.io.mapped import check_mapped

_LINES_AT_ONCE: Final = 1 << 21
_CLASSES: Final = 33
"""Numbers of locations are counted by their bits: 0, 1, 2, 3-4, 5-8, ..., up to 2^31."""


def locations_of_features(index: Index) -> Iterator[NDArray[np.int64]]:
    """Number of locations of each feature, int64, in the order of the index, part by part."""
    starts = index.directory[:, 0]
    for line in range(0, len(starts) - 1, _LINES_AT_ONCE):
        bounds = starts[line : line + _LINES_AT_ONCE + 1].astype(np.int64)
        entries = index.entries[bounds[0] : bounds[-1]]
        if len(entries) == 0:
            continue
        # A feature with very many locations has several entries: they have one key in one line.
        rest = entries >> COUNT_BITS
        begins = np.ones(len(entries), dtype=np.bool_)
        begins[1:] = rest[1:] != rest[:-1]
        lines = bounds[:-1] - bounds[0]
        begins[lines[lines < len(entries)]] = True
        counts = (entries & MAX_IN_ENTRY).astype(np.int64)
        yield np.add.reduceat(counts, np.flatnonzero(begins))


def database_contents(database: Database, threads: int = 1) -> dict[str, Any]:
    """Sizes, features and locations of all partitions that are built, for JSON.

    Args:
        database: the database; its indexes are compared with their checksums.
        threads: that do so.

    Raises:
        InputError: a partition is damaged.
    """
    limit = database.parameters.max_locations
    partitions: list[dict[str, Any]] = []
    classes = np.zeros(_CLASSES, dtype=np.int64)
    for number in database.built():
        partition = database.load_partition(number)
        partition.check(threads)
        own = np.zeros(_CLASSES, dtype=np.int64)
        full = most = 0
        for counts in locations_of_features(partition.index):
            bits = np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64) + (counts > 0)
            own += np.bincount(bits, minlength=_CLASSES)
            full += int((counts >= limit).sum())
            most = max(most, int(counts.max()))
        classes += own
        partitions.append(
            {
                "number": number,
                "targets": database.partitions[number].targets,
                "windows": database.partitions[number].windows,
                "bytes": partition.nbytes,
                "features": int(own[1:].sum()),
                "removed_features": int(own[0]),
                "full_features": full,
                "locations": len(partition.index.locations),
                "most_locations": most,
            }
        )
    sizes = {own["number"]: own["bytes"] for own in partitions}
    bases = int(database.targets.length.sum())
    total = database.manifest_bytes + database.part_bytes + sum(sizes.values())
    check_mapped()
    return {
        "path": str(database.path),
        "files": len(database.targets.files),
        "targets": len(database.targets),
        "without_taxon": database.without_taxon,
        "bases": bases,
        "bytes": total,
        "bytes_of_indexes": sum(sizes.values()),
        "bytes_per_base": round(total / max(1, bases), 3),
        "max_locations": limit,
        "partitions": partitions,
        "features_by_locations": [
            {"most": 0 if bits == 0 else 1 << (bits - 1), "features": int(classes[bits])}
            for bits in range(int(np.flatnonzero(classes).max(initial=0)) + 1)
        ],
    }


def contents_lines(found: dict[str, Any]) -> list[str]:
    """``database_contents`` as tables for people."""
    names = ("files", "targets", "without_taxon", "bases", "bytes", "bytes_of_indexes")
    lines = [f"{name.replace('_', ' '):18}{found[name]:,}" for name in names]
    lines.append(f"{'bytes per base':18}{found['bytes_per_base']:g}")
    columns = (
        "number", "targets", "windows", "bytes", "features", "locations", "most_locations",
        "full_features", "removed_features",
    )  # fmt: skip
    heads = ("partition", *columns[1:])
    lines += ["", "\t".join(name.replace("_", " ") for name in heads)]
    for own in found["partitions"]:
        lines.append("\t".join(f"{own[name]:,}" for name in columns))
    total = sum(own["features"] for own in found["features_by_locations"])
    lines += ["", "locations\tfeatures\tshare"]
    before = -1
    for own in found["features_by_locations"]:
        most, features = own["most"], own["features"]
        if features == most == 0:
            before = 0
            continue
        name = f"{most}" if most <= before + 1 else f"{before + 1:,}-{most:,}"
        lines.append(f"{name}\t{features:,}\t{100 * features / max(1, total):.2f} %")
        before = most
    return lines
