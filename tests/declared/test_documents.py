"""What users write is read as it looks, in bounds; what is none of ours is refused in one line."""

from __future__ import annotations

import json
import os
import time
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from ngsgpu.declared.documents import checked, read_document
from ngsgpu.errors import InputError
from tests.support.io.records import write

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def read(folder: Path, name: str, text: str | bytes) -> Any:
    return read_document(write(folder / name, text.encode() if isinstance(text, str) else text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8), ("-3", -3), ("0.5", 0.5), ("1e-05", 1e-05), ("true", True), ("false", False),
        ("null", None), ("", None), ("~", None), ("2026-05-01", "2026-05-01"), ("1.10", "1.10"),
        ("007", "007"), ("1_000", "1_000"), ("0x1f", "0x1f"), ("0o17", "0o17"), ("1e3", "1e3"),
        ("yes", "yes"), ("No", "No"), ("on", "on"), ("True", "True"), (".inf", ".inf"),
        (".nan", ".nan"), ("12:30:45", "12:30:45"), ("'8'", "8"), ('"true"', "true"),
        ("'null'", "null"), ("9" * 30, "9" * 30), ("=", "="), ("<<", "<<"), ("٣", "٣"),
    ],
)  # fmt: skip
def test_words_are_what_they_look_like(tmp_path: Path, text: str, value: Any) -> None:
    found = read(tmp_path, "a.yaml", f"a: {text}\n")["a"]
    assert (found, type(found)) == (value, type(value))


def test_names_are_texts(tmp_path: Path) -> None:
    text = "no: 1\n8: 2\n2026-05-01: 3\n<<: {a: 4}\n"
    assert read(tmp_path, "a.yml", text) == {"no": 1, "8": 2, "2026-05-01": 3, "<<": {"a": 4}}


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.toml"])
def test_the_same_in_each_form(tmp_path: Path, name: str) -> None:
    value = {"steps": ["trim", "correct"], "trim": {"a": 1, "b": 0.5, "c": True, "d": "x"}}
    texts = {
        "a.json": json.dumps(value),
        "a.yaml": "steps: [trim, correct]\r\ntrim:\r\n  {a: 1, b: 0.5, c: true, d: x}\r\n",
        "a.toml": "steps = ['trim', 'correct']\n[trim]\na = 1\nb = 0.5\nc = true\nd = 'x'\n",
    }
    assert read(tmp_path, name, "\ufeff" + texts[name]) == value


def test_dates_and_times_of_toml_are_texts(tmp_path: Path) -> None:
    text = "a = 2026-05-01\nb = 07:30:00\nc = 2026-05-01T07:30:00Z\nd = inf\ne = nan\n"
    assert read(tmp_path, "a", text) == {
        "a": "2026-05-01", "b": "07:30:00", "c": "2026-05-01T07:30:00+00:00", "d": "inf",
        "e": "nan",
    }  # fmt: skip


WRONG: dict[str, str | bytes] = {
    "alias bomb.yaml": BOMB,
    "alias.yaml": "a: &a 1\nb: *a\n",
    "recursive.yaml": "a: &a [*a]\n",
    "recursive table.yaml": "&a a: *a\n",
    "merged.yaml": "a: &a {b: 1}\nc:\n  <<: *a\n",
    "tag.yaml": "a: !!bool abc\n",
    "empty number.yaml": 'a: !!int ""\n',
    "object.yaml": "!!python/object:os.system {}\n",
    "tag of a list.yaml": "a: !!set [b]\n",
    "tag of a name.yaml": "!!int a: b\n",
    "plain tag.yaml": "a: ! b\n",
    "twice.yaml": "a: 1\na: 2\n",
    "twice.json": '{"a": 1, "a": 2}',
    "twice.toml": "a = 1\na = 2\n",
    "list as a name.yaml": "? [a]\n: b\n",
    "two documents.yaml": "a: 1\n---\nb: 2\n",
    "NUL.yaml": 'a: "x\\0y"\n',
    "NUL in a name.yaml": '"x\\0y": a\n',
    "NUL.toml": 'a = "x\\u0000y"\n',
    "surrogate.yaml": 'a: "\\ud800"\n',
    "surrogate.json": '{"a": "\\ud83d"}',
    "tabs.yaml": "a:\n\tb: 1\n",
    "deep.yaml": "[" * 100_000,
    "deep.json": '{"a":' * 40_000,
    "deep.toml": "a = " + "[" * 100_000,
    "dotted.toml": "a" + ".a" * 100_000 + " = 1",
    "deep block.yaml": "".join("- " * n + "\n" for n in (600,)),
    "many.yaml": "[" + "a, " * 50_000 + "a]",
    "large number.toml": "a = 0x" + "f" * 5000,
    "long number.yaml": "a: 0x" + "f" * 5000,
    "long text.json": json.dumps({"a": "x" * 5000}),
    "large.yaml": "# " + "x" * 300_000,
    "binary.yaml": b"\xff\xfe\x00",
    "control.yaml": "a: \x07\n",
    "none.toml": "a = \n",
    "open.yaml": "a: [b",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(tmp_path: Path, name: str) -> None:
    """At once, in one line."""
    begin = time.process_time()
    with pytest.raises(InputError) as caught:
        read(tmp_path, name, WRONG[name])
    assert time.process_time() - begin < 5
    assert len(str(caught.value)) < 1000 and str(caught.value).isprintable()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/zero"), tmp_path / "x" / "y"):
        with pytest.raises(InputError):
            read_document(path)


def test_a_pipe(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"a = 1")
    os.close(writer)
    assert read_document(f"/dev/fd/{reader}") == {"a": 1}
    os.close(reader)


def test_values_of_python() -> None:
    given = {"a": date(2026, 5, 1), "b": PurePosixPath("x/y"), "c": np.int64(3), "d": (True, None)}
    own = {"a": "2026-05-01", "b": "x/y", "c": 3, "d": [True, None]}
    assert checked(given | {"e": np.float32(0.5)}) == own | {"e": 0.5}
    endless: list[Any] = []
    endless.append(endless)
    for value in (endless, {1, 2}, b"x", object(), float("nan"), 10**40, "\0", print):
        with pytest.raises(ValueError, match=r".+"):
            checked(value)
