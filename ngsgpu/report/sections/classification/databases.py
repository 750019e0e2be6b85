"""The report's table of databases: what the samples were classified with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ngsgpu.errors import InputError
from ngsgpu.report import words
from ngsgpu.report.absent import read_note
from ngsgpu.report.files import Json
from ngsgpu.report.page import Table


def database_table(databases: Mapping[str, Path]) -> Table | None:
    """What is known of each database, a line each; None if the study names none.

    Args:
        databases: by name, what ``ngsgpu db info --json`` says of the database.

    Raises:
        InputError: a file is there but damaged.
    """
    if not databases:
        return None
    rows = []
    for name, path in databases.items():
        facts = _facts(path)
        targets = facts.number("targets")
        without = facts.number("without_taxon")
        share = f" ({words.share(without, targets)})" if without else ""
        rows.append(
            (
                name,
                words.count(targets),
                words.count(facts.number("bases")),
                words.count(facts.number("taxa")) if facts.number("taxa") else "no taxonomy",
                words.count(without) + share,
                words.count(len(facts.entries("partitions")) or None),
                str(facts.get("digest") or words.NOTHING)[:12],
            )
        )
    headings = (
        "database", "reference sequences", "bases", "taxa in the taxonomy",
        "sequences without a taxon", "partitions", "digest",
    )  # fmt: skip
    return Table(headings, rows, text_columns=frozenset({6}))


def _facts(path: Path) -> Json:
    """What a database's file says; nothing if it is not there."""
    if not path.is_file() or read_note(path) is not None:
        return Json(path, {})
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        cause = f"it cannot be read as JSON ({error})"
        raise InputError(path, cause, "make it again with ngsgpu db info --json") from error
    if not isinstance(document, dict):
        raise InputError(path, "it is not an object", "make it again with ngsgpu db info --json")
    return Json(path, document)
