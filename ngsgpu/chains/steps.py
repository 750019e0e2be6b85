"""The steps of a chain, as a file describes them.

A file is TOML or YAML. ``steps`` lists them in order, by name or as a name with options; a table of
a step's name has its options, too:

    steps = ["trim", "deplete", "correct"]
    [deplete]
    index = "human.idx"
    [correct]
    keep = true
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Final

from ngsgpu.declared.documents import checked, read_document
from ngsgpu.errors import InputError, UsageError

PRESETS: Final = Path(__file__).with_name("presets")
"""Chains that come with the program, by their names."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True)
class Step:
    """A step of a chain.

    Attributes:
        name: of the step, which is unlike those of others.
        command: what runs, such as ``kmers count``.
        options: values by the names of parameters, with ``_`` for ``-``.
        keep: whether the reads that it writes are an output of the chain; None: those of the last
            step that writes reads are.
        arguments: options as they are typed after the command, which come after ``options``;
            paths in them are relative to the working directory.
    """

    name: str
    command: str
    options: Mapping[str, Any] = field(default_factory=dict)
    keep: bool | None = None
    arguments: tuple[str, ...] = ()


def presets() -> list[str]:
    """Names of the chains that come with the program."""
    return sorted(path.stem for path in PRESETS.glob("*.toml"))


def read_steps(source: str) -> list[Step]:
    """The steps of a file, or of a chain that comes with the program.

    Args:
        source: path of the file, or name of the chain.

    Raises:
        InputError: the file cannot be read, or describes no chain.
    """
    if source in presets():
        return _from_document(source, read_document(PRESETS / f"{source}.toml"))
    if not os.path.lexists(source):
        known = ", ".join(presets())
        raise InputError(source, "no such file", f"name a file of steps, or one of: {known}")
    return _from_document(source, read_document(source))


def steps_of(entries: Iterable[str | Mapping[str, Any]]) -> list[Step]:
    """Steps by their names, or by a name with options, as a file lists them.

    Raises:
        InputError: an entry is none.
    """
    try:
        return _from_document("steps", {"steps": checked(list(entries))})
    except ValueError as error:
        raise InputError("steps", f"cannot be used ({error})", "correct them") from error


def with_settings(steps: Iterable[Step], settings: Iterable[str]) -> list[Step]:
    """Steps with some options changed; of an option that is named several times, all values.

    Raises:
        UsageError: a setting is of no step, or has another form.
    """
    found = {step.name: step for step in steps}
    given: dict[str, dict[str, list[str]]] = {}
    for setting in settings:
        place, equals, text = setting.partition("=")
        name, dot, option = place.partition(".")
        if not equals or not dot:
            raise UsageError(f"{setting!r}: write a setting as STEP.OPTION=VALUE")
        if name not in found:
            raise UsageError(f"{setting!r}: there is no step {name!r}; {_listed(found)}")
        given.setdefault(name, {}).setdefault(option.replace("-", "_"), []).append(text)
    for name, own in given.items():
        step = found[name]
        options: dict[str, Any] = {"command": step.command, **step.options}
        options["arguments"] = [shlex.quote(word) for word in step.arguments]
        options |= {key: texts if len(texts) > 1 else texts[0] for key, texts in own.items()}
        found[name] = _step("--set", name, options.items(), step.keep)
    return list(found.values())


def _from_document(source: str, document: Any) -> list[Step]:
    if not isinstance(document, Mapping) or not isinstance(document.get("steps"), list):
        raise InputError(source, "lists no steps", "begin it with steps: [trim, correct]")
    if not document["steps"]:
        raise InputError(source, "the list of steps is empty", "name at least one")
    found: dict[str, Step] = {}
    for entry in document["steps"]:
        name, options = _entry(source, entry)
        if name in found:
            raise InputError(
                source, f"two steps are called {name!r}",
                "give one another name, and its command as 'command'",
            )  # fmt: skip
        more = document.get(name) or {}
        if not isinstance(more, Mapping):
            raise InputError(source, f"{name!r} has no table of options", "write one, or none")
        found[name] = _step(source, name, [*options.items(), *more.items()])
    for name in document.keys() - found.keys() - {"steps"}:
        raise InputError(source, f"there is no step {name!r}", _listed(found))
    return list(found.values())


def _entry(source: str, entry: Any) -> tuple[str, Mapping[str, Any]]:
    """Name and options of a step in the list."""
    if isinstance(entry, str):
        return entry, {}
    if isinstance(entry, Mapping) and len(entry) == 1:
        ((name, options),) = entry.items()
        if isinstance(name, str) and isinstance(options, Mapping | None):
            return name, options or {}
    raise InputError(
        source, f"{shortened(entry)} is no step", "write its name, or its name: {option: value}"
    )


def _step(
    source: str, name: str, options: Iterable[tuple[str, Any]], keep: bool | None = None
) -> Step:
    if not _NAME.fullmatch(name):
        raise InputError(
            source, f"{shortened(name)} cannot be the name of a step",
            "use small letters, digits, _ and -",
        )  # fmt: skip
    own: dict[str, Any] = {}
    for option, value in options:
        if own.setdefault(key := option.replace("-", "_"), value) is not value:
            raise InputError(source, f"{name}: {key!r} is there twice", "leave one out")
    command, keep = own.pop("command", name), own.pop("keep", keep)
    arguments = own.pop("arguments", [])
    if isinstance(keep, str) and keep in ("true", "false"):
        keep = keep == "true"
    if not isinstance(command, str) or not isinstance(keep, bool | None):
        raise InputError(source, f"{name}: 'command' is a name, 'keep' true or false", "correct it")
    return Step(name, command, own, keep, _typed(source, name, arguments))


def _typed(source: str, name: str, arguments: Any) -> tuple[str, ...]:
    """The words of a text, or of several, as a shell takes them apart."""
    texts = [arguments] if isinstance(arguments, str) else arguments
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(source, f"{name}: 'arguments' is text", "write it as on the command line")
    try:
        return tuple(word for text in texts for word in shlex.split(text))
    except ValueError as error:
        raise InputError(
            source, f"{name}: 'arguments' cannot be read ({error})", "close all quotes"
        ) from error


def _listed(found: Mapping[str, Step]) -> str:
    return f"the steps are {', '.join(found)}"
