"""Statistics of building a database or a partition, as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ngsgpu.run.options import RunOptions
from ngsgpu.run.statistics import RunStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ngsgpu.classify.database.database import Database


@dataclass(slots=True, kw_only=True)
class BuildStatistics(RunStatistics):
    """Resources of building partitions; see also ``RunStatistics``.

    Attributes:
        database: path, targets, those without a taxon, taxa of the taxonomy (0: there is none),
            partitions.
        built: numbers of the partitions that were built, their targets and bases.
    """

    SCHEMA = "ngsgpu.db_build"
    database: dict[str, Any] = field(default_factory=dict)
    built: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, database: Database, numbers: Sequence[int], options: RunOptions, seconds: float
    ) -> Self:
        """The statistics of a build that has ended.

        Args:
            database: of the partitions.
            numbers: of the partitions built.
            options: of the run, with the backend that did the work.
            seconds: its time.
        """
        targets = database.targets
        members = [targets.partition == number for number in numbers]
        return cls.begun(
            options,
            options.backend,
            database.parameters,
            database={
                "path": str(database.path),
                "targets": len(targets),
                "without_taxon": database.without_taxon,
                "taxa": 0 if database.taxonomy is None else len(database.taxonomy),
                "partitions": len(database.partitions),
            },
            built={
                "partitions": list(numbers),
                "targets": sum(int(own.sum()) for own in members),
                "bases": sum(int(targets.length[own].sum()) for own in members),
            },
            time_s={"total": round(seconds, 3)},
        )
