"""Host memory for building databases: what is read ahead, what fits, and what is refused.

A build that would take too much host memory is refused in advance. In addition to the program
itself, sequences read ahead wait in memory while features are collected (9 bytes each), then the
features are sorted into the index (28 bytes each).
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.index.index import index_bytes
from ngsgpu.classify.params import DatabaseParameters
from ngsgpu.classify.sketch.references import SMALL_FILE
from ngsgpu.device.plan import Allocation, HostPlan
from ngsgpu.io.compress.source import unpacked_size
from ngsgpu.run.options import RunOptions

logger = logging.getLogger("ngsgpu")

BYTES_PER_LOCATION_BUILT: Final = 28
"""Build memory per location: pairs, sorted pairs, the index."""
_SHARE_OF_MEMORY: Final = 0.7
_PROGRAM: Final = 210 << 20
_BYTES_PER_FEATURE: Final = 4
"""On the host, where a GPU sorts."""
_FEATURES: Final = "features"
_READING: Final = "reading"
_READ_AHEAD: Final = 2 << 20
"""Minimum for a file read ahead; its text and its letters take as much each."""


def expected_locations(files: Sequence[str], parameters: DatabaseParameters) -> int:
    """About how many locations references have, going by the sizes of their files."""
    return parameters.sketch.expected_features(sum(map(unpacked_size, files)))


def plan_build(options: RunOptions, locations: int, what: str, partitions: int = 1) -> HostPlan:
    """Plan the memory of building.

    Args:
        options: threads, memory budget and backend.
        locations: built at a time.
        what: what is built.
        partitions: of the database.
    """
    per = BYTES_PER_LOCATION_BUILT if options.backend == "cpu" else _BYTES_PER_FEATURE
    reading = 2 * _READ_AHEAD * _files_ahead(options)
    room, remedies = options.budget - _PROGRAM - reading, []
    if room > per and locations > 0:
        number = -(-partitions * locations * per // room)
        remedies.append(f"about {number:,} partitions")
    return HostPlan(
        doing=f"building {what}",
        allocations=(
            Allocation("program", _PROGRAM),
            Allocation(_READING, reading),
            Allocation(_FEATURES, locations * per),
        ),
        budget=options.budget,
        remedies=tuple(remedies),
    )


def fits_at_once(files: Sequence[str], parameters: DatabaseParameters, own: RunOptions) -> bool:
    """Whether all references can be sketched at once; the rest of the memory is for reading.

    Args:
        files: paths of FASTA files.
        parameters: of the database.
        own: run options, with the memory budget.
    """
    plan = plan_build(own, expected_locations(files, parameters), "the database")
    return plan.fits and plan.bytes_of(_FEATURES) <= _SHARE_OF_MEMORY * own.budget


def read_ahead_bytes(options: RunOptions) -> int | None:
    """Decompressed size in bytes up to which whole files are read ahead; None: no limit."""
    if options.memory is None:
        return None
    room = (options.memory - _PROGRAM) // (4 * _files_ahead(options))
    return max(_READ_AHEAD, min(SMALL_FILE, room))


def plan_partitions(
    database: Database, numbers: Sequence[int], options: RunOptions, *, at_once: bool = False
) -> HostPlan:
    """Plan the memory of building partitions of a planned database.

    Args:
        database: the planned database.
        numbers: partitions to be built.
        options: threads, memory budget and backend.
        at_once: whether the features of all of them are there at the same time.
    """
    most = [
        database.parameters.sketch.most_features(database.partitions[number].windows)
        for number in numbers
    ]
    number = numbers[most.index(max(most))]
    what, locations = f"partition {number}", max(most)
    if at_once:
        what, locations = "the database", sum(most)
    plan = plan_build(options, locations, what, len(database.partitions))
    sizes = {
        "targets": len(database.targets),
        "partitions": len(database.partitions),
        "locations": locations,
        "index_bytes": sum(map(index_bytes, most)),
    }
    return replace(plan, sizes=sizes)


def with_reading(plan: HostPlan, files: Sequence[str], options: RunOptions) -> HostPlan:
    """A plan with what is read ahead of some files, which without a limit may be more.

    Args:
        plan: of ``plan_partitions``.
        files: paths of FASTA files.
        options: threads and memory budget.
    """
    if options.memory is not None:
        return plan
    largest = sorted(min(SMALL_FILE, unpacked_size(path)) for path in files)
    ahead = 2 * sum(largest[-_files_ahead(options) :])
    return replace(
        plan,
        allocations=tuple(
            replace(own, bytes=max(own.bytes, ahead)) if own.name == _READING else own
            for own in plan.allocations
        ),
    )


def check(plan: HostPlan, options: RunOptions) -> None:
    """Refuse a plan that does not fit; only warn if no limit was given.

    Raises:
        HostMemoryError: states the minimum.
    """
    if options.memory is not None:
        plan.check()
    elif not plan.fits:
        logger.warning("%s", str(plan.refusal()).partition(";")[0])


def release_memory() -> None:
    """Return freed memory to the system; the C library keeps some for each thread."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _files_ahead(options: RunOptions) -> int:
    return options.threads + 2
