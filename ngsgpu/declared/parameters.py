"""All parameters of a command, from the signature of its function.

A parameter whose type is a dataclass, or `Options` of one, stands for the fields of it that are
declared by ``option`` and its like; the function gets the dataclass, or what was given of it.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ngsgpu.declared.options import Option, option_of
from ngsgpu.declared.roles import Role

T = TypeVar("T")

_FAMILIAR: Final = ("-i", "-I", "-o", "-O", "-d")


class Options(Generic[T]):
    """What the user gave of the fields of a dataclass, for commands that decide what comes of it.

    Args:
        kind: the dataclass.
        given: values by the names of fields, also of those of dataclasses within it.
    """

    def __init__(self, kind: type[T], given: Mapping[str, Any]) -> None:
        self._kind = kind
        self.given = given

    def make(self, **more: Any) -> T:
        """The dataclass with the values that were given, and some more.

        Raises:
            UsageError: it refuses them.
        """
        return _made(self._kind, {**self.given, **more})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a command.

    Attributes:
        name: in Python.
        kind: ``str``, ``int``, ``float``, ``bool`` or ``Path``: of each value.
        is_list: whether it takes several values, each with its option.
        is_tuple: whether it takes several values with commas between.
        role: what is done with the files it names; None: it is no text.
        option: how it is given.
        default: value without it; ``...``: it is required.
    """

    name: str
    kind: type
    is_list: bool
    is_tuple: bool
    role: Role | None
    option: Option
    default: Any

    @property
    def flag(self) -> str:
        """Longest name on the command line, or its placeholder if it is given by its place."""
        if self.option.is_argument:
            return self.option.metavar
        return max(self.option.names, key=len, default=f"--{self.name.replace('_', '-')}")

    @property
    def names(self) -> tuple[str, ...]:
        """Names on the command line; of one that is given by its place none."""
        return () if self.option.is_argument else self.option.names or (self.flag,)

    @property
    def shown(self) -> str:
        """Name in messages: as `flag`, but of the main files of all commands the short option."""
        return next((name for name in self.option.names if name in _FAMILIAR), self.flag)


def parameters_of(function: Callable[..., Any], without: str = "") -> list[Parameter]:
    """The parameters of a command's function, each once.

    Several dataclasses may have a field of the same name, declared by the same option.

    Args:
        function: of the command.
        without: name of a parameter of it that is left out.

    Raises:
        TypeError: one is declared twice, not at all, or may name files without saying so.
    """
    found: dict[str, Parameter] = {}
    for own in _parameters(_signature(function, without)):
        same = found.setdefault(own.name, own)
        if (same.option, same.default) != (own.option, own.default):
            raise TypeError(f"{function.__name__}: {own.name} is declared in two ways")
    return list(found.values())


def declared_options(kind: type) -> dict[str, Option]:
    """How the fields of a class are given, also those that only Python gives, by their names.

    Args:
        kind: a class with annotated fields, a dataclass or one to be.
    """
    found = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        option = _declaration(hint, vars(kind).get(name))
        if option is not None:
            found[name] = _with_values(option, hint)
    return found


def arguments(
    function: Callable[..., Any], values: Mapping[str, Any], given: Collection[str] = ()
) -> dict[str, Any]:
    """Arguments for the function.

    Args:
        function: of the command.
        values: of all parameters, by their names.
        given: names of those that the user gave, whatever their values.

    Raises:
        UsageError: a dataclass refuses its values.
    """
    found: dict[str, Any] = {}
    for name, hint, default in _signature(function):
        kind = _group(hint)
        if kind is None:
            found[name] = values[name]
            continue
        own = [field.name for field in _parameters([(name, hint, default)])]
        if kind is hint:
            found[name] = _made(kind, {field: values[field] for field in own})
        else:
            found[name] = Options(kind, {field: values[field] for field in own if field in given})
    return found


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    """A dataclass, and those within it, with the values that there are."""
    given = {}
    for name, hint, default in _fields(kind):
        if (inner := _group(hint)) is not None:
            # A field in it may have the same name.
            known = isinstance(values.get(name), inner)
            given[name] = values[name] if known else _made(inner, values)
        elif name in values and _declaration(hint, default) is not None:
            given[name] = values[name]
    return kind(**given)


def _group(hint: Any) -> Any:
    """The dataclass that a parameter's type stands for; None if it is one value."""
    if get_origin(hint) is Options:
        return get_args(hint)[0]
    return hint if dataclasses.is_dataclass(hint) else None


_Declared = tuple[str, Any, Any]
"""Name, type with annotations, default."""


@functools.cache
def _signature(function: Callable[..., Any], without: str = "") -> list[_Declared]:
    shown = [own for own in inspect.signature(function).parameters.values() if own.name != without]
    texts = SimpleNamespace(__annotations__={own.name: own.annotation for own in shown})
    hints = get_type_hints(texts, function.__globals__, include_extras=True)
    return [(own.name, hints[own.name], own.default) for own in shown]


@functools.cache
def _fields(kind: Any) -> list[_Declared]:
    hints = get_type_hints(kind, include_extras=True)
    return [(field.name, hints[field.name], field) for field in dataclasses.fields(kind)]


def _parameters(declared: list[_Declared], *, inner: bool = False) -> Iterator[Parameter]:
    for name, hint, default in declared:
        if (kind := _group(hint)) is not None:
            yield from _parameters(_fields(kind), inner=True)
            continue
        option = _declaration(hint, default)
        if option is not None and not option.is_hidden:
            yield _parameter(name, hint, option, _value(default))
        elif not inner:
            raise TypeError(f"{name} is no option, argument or dataclass")


def _declaration(hint: Any, default: Any) -> Option | None:
    """The option of a parameter: where its default would stand, else in its annotation."""
    own = option_of(default)
    return own or next(filter(None, map(option_of, _annotations(hint))), None)


def _value(default: Any) -> Any:
    value = default.default if isinstance(default, dataclasses.Field) else default
    return ... if value in (dataclasses.MISSING, inspect.Parameter.empty) else value


def _parameter(name: str, hint: Any, option: Option, default: Any) -> Parameter:
    option = _with_values(option, hint)
    plain = list(_plain(hint))
    kinds = {
        type(get_args(kind)[0]) if get_origin(kind) is Literal else kind
        for kind in plain
        if kind not in (list, tuple, type(None))
    }
    if len(kinds) != 1:
        raise TypeError(f"{name}: type {hint} is not one that the command line knows")
    kind = kinds.pop()
    role = next((own for own in _annotations(hint) if isinstance(own, Role)), None)
    if kind in (str, Path) and role is None:
        if option.choices is None:
            raise TypeError(f"{name} may name files; give its type a role, or make it Text")
        role = Role.NONE
    return Parameter(name, kind, list in plain, tuple in plain, role, option, default)


def _with_values(option: Option, hint: Any) -> Option:
    """An option whose values are those of its type, if that says which."""
    plain = [kind for kind in _plain(hint) if kind not in (list, tuple, type(None))]
    choices = tuple(own for kind in plain if get_origin(kind) is Literal for own in get_args(kind))
    if choices:
        return dataclasses.replace(option, choices=choices)
    is_number = len(plain) == 1 and plain[0] in (bool, int, float)
    return dataclasses.replace(option, kind=plain[0]) if is_number else option


def _annotations(hint: Any) -> Iterator[Any]:
    """All that `Annotated` adds to a type and its parts."""
    yield from getattr(hint, "__metadata__", ())
    inner = get_args(hint)[:1] if get_origin(hint) is Annotated else get_args(hint)
    for part in inner:
        yield from _annotations(part)


def _plain(hint: Any) -> Iterator[Any]:
    """The types that a type is made of, without annotations."""
    origin = get_origin(hint)
    if origin is Annotated:
        yield from _plain(get_args(hint)[0])
    elif origin in (Union, UnionType):
        for part in get_args(hint):
            yield from _plain(part)
    elif origin in (list, tuple):
        yield origin
        yield from _plain(get_args(hint)[0])
    else:
        yield hint
