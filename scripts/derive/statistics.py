"""JSON Schemas of what ``--stats`` writes, and the page that lists their keys."""

from __future__ import annotations

import inspect
import json
import re
import types
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from ngsgpu.run.plan import RunPlan
from ngsgpu.run.statistics import RunStatistics
from scripts.derive.stages import ROOT

_DOCS: Final = ROOT / "docs"
CLASSES: Final = {
    "trim": "ngsgpu.trim.stats:TrimStatistics",
    "deplete": "ngsgpu.deplete.stats:DepletionStatistics",
    "deplete-index": "ngsgpu.deplete.stats:HostStatistics",
    "correct": "ngsgpu.correct.stats:CorrectionStatistics",
    "correct --method spectrum": "ngsgpu.spectrum.stats:SpectrumStatistics",
    "extend": "ngsgpu.extend.stats:ExtensionStatistics",
    "merge": "ngsgpu.merge.stats:MergeStatistics",
    "classify": "ngsgpu.classify.run.samples:ClassificationStatistics",
    "extract": "ngsgpu.classify.extract.stage:ExtractionStatistics",
    "db build": "ngsgpu.classify.database.stats:BuildStatistics",
    "kmers count": "ngsgpu.kmers.stats:CountStatistics",
    "kmers intersect, subtract and union": "ngsgpu.kmers.stats:CombinationStatistics",
    "unitigs": "ngsgpu.assemble.stats:UnitigSummary",
    "assemble": "ngsgpu.assemble.contigs.run:AssemblyStatistics",
    "assemble --method euler": "ngsgpu.assemble.euler.pipeline:EulerStatistics",
    "index build": "ngsgpu.suffix.stats:IndexSummary",
    "index query": "ngsgpu.suffix.stats:QuerySummary",
    "run": "ngsgpu.chains.runner:ChainStatistics",
}
"""Commands, and the classes of their statistics."""

_Schema = type[RunStatistics] | type[RunPlan]
_SIMPLE: Final = {int: "integer", float: "number", bool: "boolean", str: "string"}
_HEAD: Final = ("schema", "schema_version", "version")
_PAGE: Final = """\
# Statistics

`--stats FILE` writes what a run did as JSON. The first table has the keys of all commands, the
others those of each; a JSON Schema of each lies beside this page. Keys are only added while
`schema_version` stays ([what stays](stability.md)); [formats](formats.md#statistics) says more of
times, GPUs and leases. With `--dry-run`, the file gets the plan of the memory: the last table. This
page is made from the classes that hold the statistics.
"""


def files() -> dict[Path, str]:
    """The page and the schemas."""
    found = {command: _class(place) for command, place in CLASSES.items()}
    classes: list[_Schema] = [*found.values(), RunPlan]
    made = {
        _DOCS / "schemas" / f"{own.SCHEMA}.json": json.dumps(schema_of(own), indent=1) + "\n"
        for own in classes
    }
    parts = [_PAGE, "## All commands", "", *_table(RunStatistics, [])]
    common = [field.name for field in fields(RunStatistics)]
    for command, own in found.items():
        parts += _section(command.replace(" --method ", ", method "), own, common)
    parts += _section("Dry runs", RunPlan, [])
    return made | {_DOCS / "statistics.md": "\n".join(parts) + "\n"}


def _section(title: str, own: _Schema, without: list[str]) -> list[str]:
    link = f"[`{own.SCHEMA}`](schemas/{own.SCHEMA}.json), version {own.SCHEMA_VERSION}"
    return ["", f"## {title}", "", f"Schema {link}.", "", *_table(own, without)]


def schema_of(own: _Schema) -> dict[str, Any]:
    """The JSON Schema of a class of statistics."""
    hints = get_type_hints(own)
    properties: dict[str, Any] = {
        "schema": {"const": own.SCHEMA},
        "schema_version": {"const": own.SCHEMA_VERSION},
        "version": {"type": "string"},
        **({"job": {"type": "object"}} if issubclass(own, RunStatistics) else {}),
    }
    described = _attributes(own.__mro__[1]) | _attributes(own)
    for field in fields(own):
        text = _plain(described[field.name])
        properties[field.name] = {**_type_schema(hints[field.name]), "description": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": own.SCHEMA,
        "type": "object",
        "required": [*_HEAD, *(field.name for field in fields(own))],
        "properties": properties,
    }


def _class(place: str) -> type[RunStatistics]:
    module, name = place.split(":")
    found: type[RunStatistics] = getattr(import_module(module), name)
    return found


def _attributes(own: type) -> dict[str, str]:
    """What the docstring of a class says of its attributes."""
    text = inspect.cleandoc(own.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*(?:\n      .*)*)", text, re.MULTILINE)
    return {name: said[0].upper() + re.sub(r"\s+", " ", said[1:]) for name, said in entries}


def _plain(text: str) -> str:
    return text.replace("``", "")


def _table(own: _Schema, without: list[str]) -> list[str]:
    """Keys, types and meanings."""
    hints, described = get_type_hints(own), _attributes(own)
    rows = ["| key | type | |", "| --- | --- | --- |"]
    for field in fields(own):
        if field.name not in without:
            said = described[field.name].replace("``", "`").replace("|", "&#124;")
            rows.append(f"| `{field.name}` | {_type_name(hints[field.name])} | {said} |")
    return rows


def _type_schema(kind: Any) -> dict[str, Any]:
    """A type as JSON Schema."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind is type(None):
        return {"type": "null"}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type_schema(one) for one in inner]}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(inner[1])}
    if origin is list:
        return {"type": "array", "items": _type_schema(inner[0])}
    if kind is Any:
        return {}
    raise TypeError(f"no JSON Schema is known for {kind}")


def _type_name(kind: Any) -> str:
    """A type in words."""
    found = _type_schema(kind)
    if "anyOf" in found:
        return " or ".join(_type_name(one) for one in get_args(kind))
    if found.get("type") == "array":
        return f"array of {_type_name(get_args(kind)[0])}"
    if found.get("type") == "object" and found["additionalProperties"]:
        return f"object of {_type_name(get_args(kind)[1])}"
    return str(found.get("type", "value"))
