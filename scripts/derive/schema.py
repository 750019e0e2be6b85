"""Options of commands in the schema of the workflow's config.

In the schema, a comment stands before each property that is an option of a command:

    # derived: ngsgpu correct --keep-variants
    keep_variants:
      ...

Type, choices, range, default and description below it follow from the option. What the workflow has
otherwise is named behind the option: ``(default, maximum)`` stay as they are written.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from ngsgpu.declared.parameters import Parameter
from scripts.derive.as_yaml import OneLine, dump
from scripts.derive.stages import ROOT, commands, meaning

SCHEMA = ROOT / "workflow" / "schemas" / "config.schema.yaml"
PROPERTY = re.compile(
    r"(?P<head>^(?P<indent> +)# derived: ngsgpu (?P<command>[a-z -]+?) (?P<flag>--[a-z-]+)"
    r"(?: \((?P<kept>[a-z, ]+)\))?\n)"
    r"(?P<body>(?P=indent)(?P<name>\w+):.*\n(?:(?P=indent) +.*\n)*)",
    re.MULTILINE,
)


def files() -> dict[Path, str]:
    """The schema."""
    return {SCHEMA: PROPERTY.sub(_property, SCHEMA.read_text())}


def derived() -> Iterator[tuple[str, str]]:
    """Commands and options of the properties that are derived."""
    for found in PROPERTY.finditer(SCHEMA.read_text()):
        yield found["command"], found["flag"]


def _property(found: re.Match[str]) -> str:
    parameter = next(
        own for own in commands()[found["command"]].parameters if own.flag == found["flag"]
    )
    written = yaml.safe_load(found["body"])[found["name"]]
    kept = (found["kept"] or "").split(", ")
    made = {key: written[key] for key in kept if key in written}
    made |= {key: value for key, value in _schema(parameter).items() if key not in kept}
    if "oneOf" in made:
        # The number stands in an alternative; so do its bounds.
        made["oneOf"][-1] |= {key: made.pop(key) for key in ("minimum", "maximum") if key in made}
    body = {key: made[key] for key in _ORDER if key in made}
    text = dump({found["name"]: body}, OneLine)
    return found["head"] + textwrap.indent(text, found["indent"])


_ORDER = (
    "type", "pattern", "enum", "oneOf", "minimum", "exclusiveMinimum", "maximum",
    "exclusiveMaximum", "not", "default", "description",
)  # fmt: skip


def _schema(parameter: Parameter) -> dict[str, Any]:
    """A parameter as JSON Schema."""
    option, default = parameter.option, parameter.default
    text = re.sub("^[A-Z](?![A-Z])", lambda own: own[0].lower(), meaning(parameter).rstrip("."))
    about = {"default": option.word if default is None else default, "description": text}
    if parameter.is_tuple:
        about["default"] = ",".join(map(str, default))
        own = f"({'|'.join(map(str, option.choices or ()))})"
        return {"type": "string", "pattern": f"^{own}(,{own})*$"} | about
    if option.choices:
        return {"enum": list(option.choices)} | about
    kind = {int: "integer", float: "number", bool: "boolean"}.get(parameter.kind, "string")
    bounds = {
        "minimum": option.least,
        "exclusiveMinimum": option.above,
        "maximum": option.most,
        "exclusiveMaximum": option.below,
    }
    one = {"type": kind} | {key: own for key, own in bounds.items() if own is not None}
    return ({"oneOf": [{"const": option.word}, one]} if option.word else one) | about
