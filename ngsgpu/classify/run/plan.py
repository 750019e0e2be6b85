"""Memory of a classification, planned without reading any reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.database.memory import expected_locations, plan_build
from ngsgpu.classify.index.index import index_bytes
from ngsgpu.classify.params import DatabaseParameters, OutputRules, QueryParameters
from ngsgpu.classify.query.engine import Engine, partition_bytes
from ngsgpu.classify.run.samples import Sample
from ngsgpu.classify.run.two_pass import SHARE_OF_MEMORY
from ngsgpu.classify.sketch.references import find_references
from ngsgpu.device.plan import Allocation, HostPlan
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.paths import Paths, listed
from ngsgpu.run.options import RunOptions
from ngsgpu.run.plan import plan_records, text_bytes

_WORKSPACE: Final = 16 << 20
"""Of a thread: features and locations of the queries of a task."""


def plan_samples(
    database: Database | None,
    samples: Sequence[Sample],
    parameters: QueryParameters,
    rules: OutputRules,
    *,
    references: Paths = (),
    partitions: Sequence[int] | None = None,
    options: RunOptions | None = None,
) -> HostPlan:
    """Plan the memory of classifying samples.

    Args:
        database: the database; None if it is built in memory.
        samples: the samples, which are classified in turn; none if that is not known.
        parameters: query parameters.
        rules: rules for the outputs.
        references: what it is built of.
        partitions: numbers of the partitions to query; None: all.
        options: threads and so on.

    Raises:
        InputError: a partition cannot be opened.
        UsageError: a rank or a partition does not exist.
    """
    options = options or RunOptions()
    building: tuple[Allocation, ...] = ()
    if database is not None:
        parts = Engine(database, parameters, partitions).partitions
        gpus = min(options.gpus, len(parts)) if len(parts) > 1 else 1
        shares = [partition_bytes(parts[member::gpus]) for member in range(gpus)]
        tables = [Allocation("database", sum(shares))]
        on_gpu = [Allocation("database", max(shares))]
    else:
        files = find_references(listed(references))
        locations = expected_locations(files, DatabaseParameters())
        tables = on_gpu = [Allocation("database", index_bytes(locations))]
        building = plan_build(options, locations, "a database").allocations[1:]
    own = [Allocation("workspaces", options.threads * _WORKSPACE), *building]
    if rules.is_two_pass:
        most = int(SHARE_OF_MEMORY * options.budget)
        texts = [text_bytes(sample.lanes) for sample in samples] or [None]
        kept = max(most if text is None else min(most, text) for text in texts)
        own.append(Allocation("queries", kept))
    lanes = [lane for sample in samples for lane in sample.lanes] or [ReadFiles(("-", "-"))]
    return plan_records("classification", lanes, options, *own, *tables, on_gpu=on_gpu)
