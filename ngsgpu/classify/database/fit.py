"""The fraction of features with which a database fits into a size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ngsgpu.classify.index.index import index_bytes, stored_bytes
from ngsgpu.classify.params import (
    ALL_KEYS,
    LEAST_KEPT,
    DatabaseParameters,
    PartitionRequest,
    SketchParameters,
)
from ngsgpu.device.memory import format_size
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.taxonomy.tree import Taxonomy

_BYTES_PER_TARGET: Final = 28
"""Stored with each reference sequence, besides its name."""
_MANIFEST: Final = 4096
"""Manifests and the headers of arrays, at most."""
_PER_PARTITION: Final = 1024
_PER_FILE: Final = 6
"""What a manifest needs besides the name of a file."""


def bytes_beside(
    targets: int, name_bytes: int, files: Sequence[str], taxonomy: Taxonomy | None
) -> int:
    """About how many bytes a database has besides its indexes, rather too many.

    Args:
        targets: number of reference sequences.
        name_bytes: length of all their names.
        files: the files they came from.
        taxonomy: of the database.
    """
    paths = sum(len(path.encode(errors="surrogateescape")) + _PER_FILE for path in files)
    tree = 0 if taxonomy is None else taxonomy.nbytes
    return _MANIFEST + targets * _BYTES_PER_TARGET + name_bytes + paths + tree


def kept_within(size: int, most: int, bytes_with: Callable[[int], int]) -> int:
    """The largest ``SketchRules.kept``, up to ``most``, of a database that fits into a size.

    Args:
        size: bytes.
        most: largest value.
        bytes_with: bytes of the database by that value, never falling.

    Raises:
        UsageError: none fits.
    """
    low, high = LEAST_KEPT, most
    if bytes_with(low) > size:
        raise UsageError(
            f"`max_size` {format_size(size)} is too small: with the smallest fraction of features, "
            f"1 in {ALL_KEYS // LEAST_KEPT:,}, the database has {format_size(bytes_with(low))}"
        )
    while low < high:
        middle = (low + high + 1) // 2
        if bytes_with(middle) <= size:
            low = middle
        else:
            high = middle - 1
    return low


def fitted(
    parameters: DatabaseParameters, windows: int, beside: int, request: PartitionRequest
) -> DatabaseParameters:
    """Parameters with the fraction of features that is expected to fit, where a size is requested.

    Args:
        parameters: of the database, with all features.
        windows: of all its reference sequences.
        beside: see ``bytes_beside``.
        request: the size, and the number of partitions or their size.

    Raises:
        UsageError: none fits, or a fraction was given as well.
    """
    size = request.size
    if size is None:
        return parameters
    if parameters.sketch.is_thin:
        raise UsageError("give `fraction` or `max_size`, not both")
    partitions = request.number or 1
    if request.bytes is not None:
        most = index_bytes(parameters.sketch.most_features(windows))
        partitions = -(-min(size, most) // request.bytes)

    def bytes_with(kept: int) -> int:
        own = with_kept(parameters, kept).sketch.most_features(-(-windows // partitions))
        return beside + partitions * (_PER_PARTITION + stored_bytes(own, own))

    return with_kept(parameters, kept_within(size, ALL_KEYS, bytes_with))


def with_kept(parameters: DatabaseParameters, kept: int) -> DatabaseParameters:
    """The parameters with another ``SketchRules.kept``."""
    sketch: SketchParameters = replace(parameters.sketch, fraction=kept / ALL_KEYS)
    return replace(parameters, sketch=sketch)
