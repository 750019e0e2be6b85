"""All parameters of a command, from the signature of its function.

A parameter whose type is a dataclass stands for the fields of it that are declared by ``option``
and its like; the function gets the dataclass.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ngsgpu.declared.options import Option, option_of
from ngsgpu.declared.roles import Role


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a command.

    Attributes:
        name: in Python.
        kind: ``str``, ``int``, ``float``, ``bool`` or ``Path``: of each value.
        is_list: whether it takes several values.
        role: what is done with the files it names; None: it is no text.
        option: how it is given.
        default: value without it; ``...``: it is required.
        path: of parameters of the function and fields below it, down to this one.
    """

    name: str
    kind: type
    is_list: bool
    role: Role | None
    option: Option
    default: Any
    path: tuple[str, ...]

    @property
    def flag(self) -> str:
        """Its longest name on the command line, or its placeholder if it is given by its place."""
        if self.option.is_argument:
            return self.option.metavar
        return max(self.option.names, key=len, default=f"--{self.name.replace('_', '-')}")


def parameters_of(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a command's function.

    Raises:
        TypeError: one is declared twice, not at all, or may name files without saying so.
    """
    found = list(_parameters(_signature(function), ()))
    names = [parameter.name for parameter in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise TypeError(f"{function.__name__}: {', '.join(sorted(twice))} declared twice")
    return found


def arguments(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for the function from the values of all parameters, by their names.

    Raises:
        UsageError: a dataclass refuses its values.
    """
    return {
        name: _made(hint, values) if dataclasses.is_dataclass(hint) else values[name]
        for name, hint, _ in _signature(function)
    }


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    given = {}
    for name, hint, default in _fields(kind):
        if dataclasses.is_dataclass(hint):
            given[name] = _made(hint, values)
        elif _declaration(hint, default) is not None:
            given[name] = values[name]
    return kind(**given)


_Declared = tuple[str, Any, Any]
"""Name, type with annotations, default."""


def _signature(function: Callable[..., Any]) -> list[_Declared]:
    hints = get_type_hints(function, include_extras=True)
    shown = inspect.signature(function).parameters.values()
    return [(own.name, hints[own.name], own.default) for own in shown]


def _fields(kind: Any) -> list[_Declared]:
    hints = get_type_hints(kind, include_extras=True)
    return [(field.name, hints[field.name], field) for field in dataclasses.fields(kind)]


def _parameters(declared: list[_Declared], path: tuple[str, ...]) -> Iterator[Parameter]:
    for name, hint, default in declared:
        if dataclasses.is_dataclass(hint):
            yield from _parameters(_fields(hint), (*path, name))
            continue
        option = _declaration(hint, default)
        if option is not None:
            yield _parameter(name, hint, option, _value(default), path)
        elif not path:
            raise TypeError(f"{name} is no option, argument or dataclass")


def _declaration(hint: Any, default: Any) -> Option | None:
    """The option of a parameter: where its default would stand, else in its annotation."""
    own = option_of(default)
    return own or next(filter(None, map(option_of, _annotations(hint))), None)


def _value(default: Any) -> Any:
    value = default.default if isinstance(default, dataclasses.Field) else default
    return ... if value in (dataclasses.MISSING, inspect.Parameter.empty) else value


def _parameter(
    name: str, hint: Any, option: Option, default: Any, path: tuple[str, ...]
) -> Parameter:
    plain = list(_plain(hint))
    choices = tuple(own for kind in plain if get_origin(kind) is Literal for own in get_args(kind))
    kinds = {type(choices[0])} if choices else {k for k in plain if k not in (list, type(None))}
    if len(kinds) != 1:
        raise TypeError(f"{name}: type {hint} is not one that the command line knows")
    kind = kinds.pop()
    role = next((own for own in _annotations(hint) if isinstance(own, Role)), None)
    if kind in (str, Path) and role is None:
        if not choices:
            raise TypeError(f"{name} may name files; give its type a role, or make it Text")
        role = Role.NONE
    if choices and option.choices is None:
        option = dataclasses.replace(option, choices=choices)
    return Parameter(name, kind, list in plain, role, option, default, (*path, name))


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
    elif origin is list:
        yield list
        yield from _plain(get_args(hint)[0])
    else:
        yield hint
