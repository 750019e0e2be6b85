"""Manifests of any kind of rubbish are refused in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import (
    FILES,
    fields_of,
    has_shape,
    is_count,
    is_name,
    is_number,
    is_text,
    opened_whole,
    parse_json,
    read_manifest,
    save_manifest,
    sealed,
)

SHAPE = {
    "name": is_name,
    "texts": [is_text],
    "sizes?": {"a": is_number, "b?": bool},
    "files": FILES,
    "more": ({str: is_count}, None),
}
VALUES: dict[str, Any] = {
    "format": "thing",
    "version": 1,
    "name": "x",
    "texts": ["a/b", ""],
    "sizes": {"a": 1.5},
    "files": {"x.npy": {"bytes": 1, "crc32": 2}},
    "more": None,
}


def read(path: Path) -> dict[str, Any]:
    return read_manifest(path, "thing", 1, SHAPE, "make it")


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    for values in (VALUES, {**VALUES, "more": {"any": 1}}, without(VALUES, "sizes")):
        save_manifest(path, values)
        assert without(read(path), "crc32") == values


def without(values: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "a/b"}, {"name": ".."}, {"name": ""}, {"name": "a\0"}, {"name": 1},
        {"texts": "a"}, {"texts": ["\ud800"]}, {"texts": {}}, {"sizes": None},
        {"sizes": {}}, {"sizes": {"a": float("nan")}}, {"sizes": {"a": True}},
        {"sizes": {"a": 1, "b": 1}}, {"sizes": {"a": 1, "c": 1}}, {"files": []},
        {"files": {"x": {"bytes": -1, "crc32": 1}}}, {"files": {"x": {"bytes": 1}}},
        {"files": {"x": None}}, {"more": []}, {"more": {"any": 2**63}}, {"other": 1},
        {"version": True}, {"version": "1"},
    ],
)  # fmt: skip
def test_fields_of_other_types_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(sealed({**VALUES, **changes}))
    with pytest.raises(InputError, match="the manifest is damaged: a field"):
        read(path)


def test_missing_fields_and_other_versions_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    for name in ("name", "texts", "files", "more"):
        path.write_text(sealed(without(VALUES, name)))
        with pytest.raises(InputError, match="a field is missing"):
            read(path)
    path.write_text(sealed({**VALUES, "version": 2}))
    with pytest.raises(InputError, match="is of version 2 and this program reads version 1"):
        read(path)
    path.write_text(sealed({**VALUES, "format": "other"}))
    with pytest.raises(InputError, match="is not the manifest of a thing"):
        read(path)
    path.write_text(sealed(VALUES).replace('"x"', '"y"'))
    with pytest.raises(InputError, match="changed or damaged"):
        read(path)


@pytest.mark.parametrize("deep", [500, 1000, 3000, 100_000])
@pytest.mark.parametrize(("begin", "middle", "end"), [("[", "", "]"), ('{"a":', "1", "}")])
def test_deep_nesting_is_refused(
    tmp_path: Path, deep: int, begin: str, middle: str, end: str
) -> None:
    nest = begin * deep + middle + end * deep
    path = tmp_path / "manifest.json"
    for text in (nest, sealed(VALUES).rstrip()[:-1] + f', "x": {nest}}}', '{"format": ' + nest):
        path.write_text(text)
        with pytest.raises(InputError, match="manifest"):
            read(path)


def _place_link(path: Path, target: str) -> None:
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (lambda path: path.mkdir(), "the manifest is damaged"),
        (os.mkfifo, "the manifest is damaged"),
        (lambda path: _place_link(path, "nowhere"), "there is no thing here"),
        (lambda path: _place_link(path, path.name), "cannot be read"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "the manifest is damaged"),
        (lambda path: path.write_bytes(b""), "the manifest is damaged"),
        (lambda path: path.write_text("[1]"), "is not the manifest of a thing"),
        (lambda path: None, "there is no thing here"),
    ],
)
def test_what_is_no_file_is_refused(
    tmp_path: Path, place: Callable[[Path], object], message: str
) -> None:
    place(tmp_path / "manifest.json")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "manifest.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from("ab"), inner),
    )
)
def test_any_value_has_a_shape_or_not(value: object) -> None:
    shape = {"a": [is_count], "b?": ({str: is_text}, None)}
    if has_shape(value, shape):
        assert isinstance(value, dict)
        assert all(type(one) is int for one in value["a"])
    text = json.dumps(value)
    assert json.dumps(parse_json(text)) == text


def test_values_that_make_no_sense_are_damage(tmp_path: Path) -> None:
    for error in (ValueError, KeyError, TypeError, OverflowError):
        with pytest.raises(InputError, match="the manifest is damaged"), fields_of(tmp_path):
            raise error


def test_what_is_replaced_while_it_is_opened_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    seen = []

    def open_it() -> str:
        seen.append(path.read_text())
        if len(seen) < 3:
            (tmp_path / "y").write_text(f"new {len(seen)}")
            (tmp_path / "y").replace(path)
            if len(seen) == 1:
                raise InputError(path, "is of two versions", "begin again")
        return seen[-1]

    assert opened_whole([path], open_it) == "new 2"
    assert seen == ["old", "new 1", "new 2"]
