"""How a database is built, and into how many partitions."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any, Final

from ngsgpu.classify.params.sketch import SketchParameters
from ngsgpu.declared.options import flag, option, value
from ngsgpu.declared.roles import Text
from ngsgpu.declared.values import parameters
from ngsgpu.errors import UsageError

KEEP_ALL: Final = (1 << 31) - 1
"""Limit of locations that is none."""


@parameters
class DatabaseParameters:
    """How a database is built."""

    sketch: SketchParameters = field(default_factory=SketchParameters)
    max_locations: int = option(
        254,
        "N|all",
        "Keep the first N locations of a feature in each partition.",
        word="all",
        least=1,
        most=KEEP_ALL,
    )
    remove_overfull: bool = flag(
        "Drop features exceeding --max-locations instead.", "--remove-overfull"
    )
    ambiguous_rank: Text = option(
        "",
        "RANK",
        "Drop features found in more than --max-taxa taxa of this rank.",
        shown_default="none",
    )
    max_taxa: int = option(
        1, "N", "Maximum number of taxa of --ambiguous-rank with a feature.", least=1
    )

    def to_json(self) -> dict[str, Any]:
        """As the manifest holds them: of the features' parameters those that matter.

        Those of features of windows are as in databases of older versions.
        """
        values = asdict(self)
        sketch = values["sketch"]
        if self.sketch.sketch is None:
            del sketch["sketch"]
            sketch["features"] = self.sketch.features
        else:
            del sketch["smer"]
        if not self.sketch.is_thin:
            del sketch["fraction"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> DatabaseParameters:
        """From the manifest; of older databases, which have a sketch size."""
        sketch = dict(values["sketch"])
        sketch.pop("features", None)
        return cls(**{**values, "sketch": SketchParameters(**sketch)})


@parameters
class PartitionRequest:
    """The requested partitioning of a database; by default one partition, if possible."""

    number: int | None = option(
        None,
        "N",
        "Number of partitions.",
        "--partitions",
        shown_default="1",
        least=1,
        most=10_000,
    )
    bytes: int | None = value(None, "Memory limit for the index of a partition.")
    size: int | None = value(
        None, "Limit for the size of the database, which has as many features."
    )

    def __post_init__(self) -> None:
        if self.number is not None and self.bytes is not None:
            raise UsageError("give `number` or `partition_memory`, not both")
