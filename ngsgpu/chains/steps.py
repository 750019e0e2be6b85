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

import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ngsgpu.errors import InputError, UsageError

PRESETS: Final = Path(__file__).with_name("presets")
"""Chains that come with the program, by their names."""

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")
_YAML: Final = {".yaml", ".yml"}


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
    path = PRESETS / f"{source}.toml" if source in presets() else Path(source)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        known = ", ".join(presets())
        raise InputError(
            source, f"cannot be read ({reason})", f"name a file of steps, or one of: {known}"
        ) from error
    return _from_document(source, _parsed(source, path, text))


def steps_of(entries: Iterable[str | Mapping[str, Any]]) -> list[Step]:
    """Steps by their names, or by a name with options, as a file lists them.

    Raises:
        InputError: an entry is none.
    """
    return _from_document("steps", {"steps": list(entries)})


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
        found[name] = _step("--set", name, options, step.keep)
    return list(found.values())


def _parsed(source: str, path: Path, text: str) -> Any:
    """The document in a file."""
    try:
        if path.suffix.lower() not in _YAML:
            return tomllib.loads(text)
        try:
            import yaml
        except ImportError as error:
            raise InputError(
                source, "YAML needs PyYAML", "install it (pip install pyyaml), or write TOML"
            ) from error
        return yaml.safe_load(text)
    except (ValueError, RecursionError) as error:
        raise _wrong(source, error) from error
    except Exception as error:
        if type(error).__module__.startswith("yaml"):
            raise _wrong(source, error) from error
        raise


def _wrong(source: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return InputError(source, f"is not what its name says ({reason})", "correct it")


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
        more = document.get(name, {})
        if not isinstance(more, Mapping):
            raise InputError(source, f"{name!r} has no table of options", "write one, or none")
        found[name] = _step(source, name, {**options, **more})
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
        source, f"{entry!r} is no step", "write its name, or its name: {option: value}"
    )


def _step(source: str, name: str, options: Mapping[str, Any], keep: bool | None = None) -> Step:
    if not _NAME.fullmatch(name):
        raise InputError(
            source, f"{name!r} cannot be the name of a step", "use small letters, digits, _ and -"
        )
    own = {str(option).replace("-", "_"): value for option, value in options.items()}
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
