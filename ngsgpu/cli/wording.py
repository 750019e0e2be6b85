"""Messages as the shell shows them: options in place of the parameters that the core names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from ngsgpu.declared.parameters import Parameter, parameters_of
from ngsgpu.declared.values import as_options
from ngsgpu.errors import NgsgpuError

_named: Mapping[str, str] = {}
"""Options by the names of parameters, of the command that runs; threads share it."""


@contextlib.contextmanager
def options_named(parameters: Sequence[Parameter]) -> Iterator[None]:
    """Let messages name the options of a command, also those of errors that leave the block.

    Args:
        parameters: of the command.
    """
    global _named
    before, _named = _named, _options(parameters)
    try:
        yield
    except NgsgpuError as error:
        error.reword(as_typed)
        raise
    finally:
        _named = before


def as_typed(message: str) -> str:
    """A message of the core with the options of the command that runs."""
    message = as_options(message, _named)
    return as_options(message, _usual()) if "`" in message else message


def _options(parameters: Sequence[Parameter]) -> dict[str, str]:
    return {own.name: own.shown for own in parameters}


@cache
def _usual() -> dict[str, str]:
    """Options of correction, for messages of commands without them, such as `doctor`."""
    from ngsgpu.cli.stages.correct import correct

    return _options(parameters_of(correct))
