"""Options shared by several commands."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

Paths = list[str]
T = TypeVar("T")


class BackendChoice(StrEnum):
    """Values of ``--backend``."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class PhredChoice(StrEnum):
    """Values of ``--phred-offset``."""

    auto = "auto"
    phred33 = "33"
    phred64 = "64"


def option(default: object, metavar: str, text: str, *names: str, **more: Any) -> Any:
    """An option with a value; its name is the parameter's if none is given.

    Args:
        default: value without the option; ``...`` if it is required, or in an annotation.
        metavar: placeholder of the value in the help.
        text: help.
        names: of the option.
        more: for ``typer.Option``.
    """
    return typer.Option(default, *names, metavar=metavar, help=text, **more)


def flag(text: str, *names: str, default: object = False) -> Any:
    """An option without a value; ``default`` is ``...`` in an annotation."""
    return typer.Option(default, *names, help=text)


BackendOption = Annotated[
    BackendChoice,
    option(
        ..., "auto|cpu|cuda", "Compute backend; the output is identical.", envvar="NGSGPU_BACKEND"
    ),
]
FirstMates = Annotated[
    Paths | None, option(..., "FILE", "First mates; repeat for each lane.", "-i", "--in1")
]
CompressLevel = Annotated[
    int,
    option(
        ...,
        "N",
        "Level of compressed outputs (names ending in .gz or .zst), from 1 (fast) to 12 (small).",
        "--compress-level",
    ),
]
EachGpuMemory = Annotated[
    str | None, option(..., "SIZE", "Memory budget per GPU.", show_default="free memory")
]
GpuMemory = Annotated[
    str | None,
    option(
        ...,
        "SIZE",
        "Memory budget per GPU; data that do not fit stay on the host.",
        show_default="free memory",
    ),
]
Gpus = Annotated[
    int | None, option(..., "N", "GPUs to use; 0: none.", show_default="1 if available")
]
InterleavedInput = Annotated[
    bool, flag("-i holds interleaved pairs.", "--interleaved", default=...)
]
Memory = Annotated[
    str | None, option(..., "SIZE", "Memory budget, for example 16G.", show_default="free memory")
]
OneGpu = Annotated[
    int | None,
    option(..., "N", "GPUs to use, at most 1; 0: none.", show_default="1 if available"),
]
OneGpuMemory = Annotated[
    str | None, option(..., "SIZE", "Memory budget for the GPU.", show_default="free memory")
]
PhredOffsetOption = Annotated[
    PhredChoice,
    option(
        ...,
        "auto|33|64",
        "Offset of the quality characters; auto assumes 33 and rejects input that looks like 64.",
    ),
]
QualityBits = Annotated[
    int,
    option(..., "8|2|1|0", "Bits stored per quality; fewer need less memory, 0 ignores qualities."),
]
Quiet = Annotated[bool, flag("Print only errors.", "-q", "--quiet", default=...)]
SecondMates = Annotated[
    Paths | None, option(..., "FILE", "Second mates, one file for each -i.", "-I", "--in2")
]
StatsFile = Annotated[str | None, option(..., "FILE", "Write run statistics here (JSON).")]
Threads = Annotated[int, option(..., "N", "Worker threads; 0: all CPUs.", "-t", "--threads")]


def group(options: type[T]) -> type[T]:
    """Prepare a class for ``dataclass``, whose fields are options of a command; see `with_groups`.

    The fields' defaults become those of the options.
    """
    declared = {k: v for k, v in vars(options).items() if isinstance(v, typer.models.OptionInfo)}
    for name, made in declared.items():
        setattr(options, name, made.default)
    options._options = declared  # type: ignore[attr-defined]
    return options


@dataclass(frozen=True)
@group
class StageRun:
    """Options of a run of a stage that builds tables of its reads."""

    phred_offset: PhredOffsetOption = PhredChoice.auto
    threads: Threads = 0
    backend: BackendOption = BackendChoice.auto
    gpus: Gpus = None
    memory: Memory = None
    gpu_memory: GpuMemory = None
    stats: StatsFile = None
    compress_level: CompressLevel = 1
    seed: int = option(0, "N", "Seed of the hash functions.")
    dry_run: bool = flag("Read the input and print the plan; write nothing.", "--dry-run")
    quiet: Quiet = False


@dataclass(frozen=True)
class Compute:
    """Where a command runs: the values of the options of these names."""

    threads: int
    backend: BackendChoice
    gpus: int | None
    gpu_memory: str | None
    quiet: bool
    memory: str | None = None
    compress_level: int = 1


def obey_quiet(quiet: bool) -> None:
    """Log only warnings under ``--quiet``; call this before leasing a GPU."""
    import logging

    if quiet:
        logging.getLogger("ngsgpu").setLevel(logging.WARNING)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Expand dataclass parameters of a command into one option per field.

    Commands share options and their defaults this way. A group must be a keyword-only parameter.
    """
    shown: list[inspect.Parameter] = []
    groups: dict[str, Callable[..., object]] = {}
    hints = get_type_hints(command, include_extras=True)
    for name, parameter in inspect.signature(command).parameters.items():
        if not dataclasses.is_dataclass(hints[name]):
            shown.append(_annotated(parameter, hints[name]))
            continue
        made = groups[name] = hints[name]
        types = get_type_hints(made, include_extras=True)
        for field in dataclasses.fields(made):
            default = made._options.get(field.name, field.default)
            own = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default)
            shown.append(_annotated(own, types[field.name]))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: make(**{field.name: values.pop(field.name) for field in dataclasses.fields(make)})  # type: ignore[arg-type]
            for name, make in groups.items()
        }
        command(**values, **made)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _annotated(parameter: inspect.Parameter, kind: Any) -> inspect.Parameter:
    """A parameter with its type; an option given as default goes into the annotation."""
    default = parameter.default
    if not isinstance(default, typer.models.OptionInfo):
        return parameter.replace(annotation=kind)
    info = copy(default)
    info.default = ...
    value = parameter.empty if default.default is ... else default.default
    return parameter.replace(annotation=Annotated[kind, info], default=value)


def add_commands(app: typer.Typer, *commands: Callable[..., None]) -> None:
    """Add commands, named after their functions, with the options of their groups."""
    for command in commands:
        app.command(name=command.__name__.replace("_", "-"))(with_groups(command))
