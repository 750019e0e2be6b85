"""Wrappers, modules, Galaxy tools and the schema say what the commands declare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from ngsgpu.declared.parameters import Parameter
from scripts.derive import galaxy, nextflow, schema, wrappers
from scripts.derive.__main__ import products
from scripts.derive.stages import RESOURCES, Stage, commands, names_files, reason_without, table
from scripts.derive.stages import stages as known

STAGES = known()

stages = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)


def test_products_are_current() -> None:
    """Else run ``python -m scripts.derive``."""
    assert [path for path, text in products().items() if path.read_text() != text] == []


def test_no_product_is_left_of_a_command() -> None:
    made = {path for path in products() if path.name in ("wrapper.py", "main.nf")}
    made |= {path for path in products() if path.suffix == ".xml"}
    found = {*wrappers.FOLDER.glob("*/wrapper.py"), *nextflow.FOLDER.glob("*/main.nf")}
    assert found | {*galaxy.FOLDER.glob("*.xml")} == made


def test_every_command_with_files_has_products_or_a_reason() -> None:
    have = {stage.call for stage in STAGES}
    for name, command in commands().items():
        if any(map(names_files, command.parameters)):
            assert (name in have) or reason_without(name), name


def shown(stage: Stage) -> Iterator[Parameter]:
    """The parameters that every product has to show."""
    for parameter in stage.command.parameters:
        if parameter.name not in stage.left_out:
            yield parameter


@stages
def test_every_option_is_shown(stage: Stage) -> None:
    wrapper = wrappers.FOLDER / wrappers.folder_of(stage)
    module = nextflow.FOLDER / nextflow.module_of(stage)
    texts = {
        "wrapper": (wrapper / "wrapper.py").read_text() + (wrapper / "meta.yaml").read_text(),
        "module": (module / "main.nf").read_text(),
        "tool": (galaxy.FOLDER / f"ngsgpu_{galaxy.tool_of(stage)}.xml").read_text(),
    }
    left = {
        "wrapper": set(RESOURCES),
        "module": {*RESOURCES, *stage.entry.get("not_in_nextflow", ())},
        "tool": {*galaxy.left_out(), *stage.entry.get("not_in_galaxy", ())},
    }
    files = {own.parameter.name: own for own in stage.files}
    for parameter in shown(stage):
        if names_files(parameter):
            assert parameter.name in files, f"{parameter.flag}: name the file in commands.toml"
        for product, text in texts.items():
            if parameter.name in left[product]:
                continue
            names = {parameter.flag, *parameter.option.names}
            if parameter.option.is_argument:
                names = {files[parameter.name].name}
            assert any(name in text for name in names), (product, parameter.flag)


def test_what_is_left_out_exists() -> None:
    every = {own.name for command in commands().values() for own in command.parameters}
    assert every >= {*table()["left_out"]["*"], *galaxy.left_out()}
    for stage in STAGES:
        left = {*table()["left_out"].get(stage.name, {}), *stage.entry.get("leaves", ())}
        left |= {*stage.entry.get("not_in_nextflow", ()), *stage.entry.get("not_in_galaxy", ())}
        entry = {*stage.entry.get("inputs", {}), *stage.entry["outputs"]}
        assert stage.options >= left | entry | {*stage.entry.get("required", ())}


@stages
def test_fields_of_galaxy(stage: Stage) -> None:
    """Types, ranges, choices and defaults are those of the options."""
    tool = ElementTree.parse(galaxy.FOLDER / f"ngsgpu_{galaxy.tool_of(stage)}.xml").getroot()
    fields = {own.get("argument"): own for own in tool.findall("inputs/section/param")}
    for parameter in galaxy.options(stage):
        field, option = fields.pop(parameter.flag), parameter.option
        kind = field.get("type")
        if parameter.kind is bool:
            assert kind == "boolean" and field.get("truevalue") == parameter.flag
            continue
        value = field.get("value")
        if option.choices:
            assert kind == "select"
            assert [own.get("value") for own in field] == list(map(str, option.choices))
            selected = [str(own.get("value")) for own in field if own.get("selected")]
            value = ",".join(selected) or None
        elif kind != "text":
            assert kind == {int: "integer", float: "float"}[parameter.kind]
            for name, limit in (("min", option.least), ("max", option.most)):
                assert limit is None or float(field.attrib[name]) == limit
        if value is None:
            assert field.get("optional") == "true"
            assert parameter.default in (None, ..., "") or option.shown_default
        elif parameter.is_tuple:
            assert value == ",".join(parameter.default)
        else:
            assert value == str(parameter.default)
    assert not fields


def config() -> dict[str, Any]:
    content = yaml.safe_load(schema.SCHEMA.read_text())["properties"]
    assert isinstance(content, dict)
    return content


def test_options_in_the_schema_are_derived() -> None:
    """A property that has the name of an option of its command."""
    derived = set(schema.derived())
    # SPAdes's, too: its lengths have no range here.
    assert len(derived) >= 10
    for section, content in config().items():
        command = commands().get(section)
        if command is None or section == "assemble":
            continue
        options = {own.name: own for own in command.parameters if own.name not in RESOURCES}
        # These two say what the workflow does: which reads it hands on, whether it starts a server.
        for name in {*content["properties"]} & {*options} - {"reads", "server"}:
            assert (section, options[name].flag) in derived, f"{section}: {name}"


def test_schema_takes_what_the_command_takes() -> None:
    correct = config()["correct"]["properties"]
    assert correct["method"]["enum"] == ["msa", "spectrum"]
    number = correct["keep_variants"]["oneOf"][1]
    assert (number["minimum"], number["maximum"]) == (2, 16)
    assert correct["mask"]["type"] == "boolean" and correct["mask"]["default"] is False
