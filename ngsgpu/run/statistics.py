"""What the JSON files of all runs' statistics begin with."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from ngsgpu._version import __version__

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def statistics_json(schema: str, schema_version: int, statistics: DataclassInstance) -> str:
    """A run's statistics as JSON text.

    Args:
        schema: says what the document describes.
        schema_version: changes when an entry changes its meaning or goes.
        statistics: the entries.
    """
    head = {"schema": schema, "schema_version": schema_version, "version": __version__}
    return json.dumps(head | dataclasses.asdict(statistics), indent=1) + "\n"
