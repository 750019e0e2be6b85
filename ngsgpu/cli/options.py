"""Options shared by several commands."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer

Paths = list[str]


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


BackendOption = Annotated[
    BackendChoice,
    typer.Option(
        metavar="auto|cpu|cuda",
        envvar="NGSGPU_BACKEND",
        help="Compute backend; the output is identical.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Read the input and print the plan; write nothing.")
]
FirstMates = Annotated[
    Paths | None,
    typer.Option("-i", "--in1", metavar="FILE", help="First mates; repeat for each lane."),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory budget per GPU; data that do not fit stay on the host.",
        show_default="free memory",
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(metavar="N", help="GPUs to use; 0: none.", show_default="1 if available"),
]
InterleavedInput = Annotated[
    bool, typer.Option("--interleaved", help="-i holds interleaved pairs.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory budget, for example 16G.", show_default="free memory"
    ),
]
PhredOffsetOption = Annotated[
    PhredChoice,
    typer.Option(
        metavar="auto|33|64",
        help="Offset of the quality characters; auto assumes 33 and rejects input that looks "
        "like 64.",
    ),
]
QualityBits = Annotated[
    int,
    typer.Option(
        metavar="8|2|1|0",
        help="Bits stored per quality; fewer need less memory, 0 ignores qualities.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print only errors.")]
SecondMates = Annotated[
    Paths | None,
    typer.Option("-I", "--in2", metavar="FILE", help="Second mates, one file for each -i."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the hash functions.")]
StatsFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write run statistics here (JSON).")
]
Threads = Annotated[
    int, typer.Option("-t", "--threads", metavar="N", help="Worker threads; 0: all CPUs.")
]


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
            shown.append(parameter.replace(annotation=hints[name]))
            continue
        groups[name] = hints[name]
        types = get_type_hints(hints[name], include_extras=True)
        shown += [
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=types[field.name],
            )
            for field in dataclasses.fields(hints[name])
        ]

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
