"""Options that several commands have, with the same meaning and the same words."""

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
        help="What computes; all give the same bytes.",
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Read the input, print the plan, write nothing.")
]
FirstMates = Annotated[
    Paths | None,
    typer.Option("-i", "--in1", metavar="FILE", help="First mates; repeat for each lane."),
]
GpuMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE",
        help="Memory of each GPU that may be used; what does not fit stays on the host.",
        show_default="what is free",
    ),
]
Gpus = Annotated[
    int | None,
    typer.Option(metavar="N", help="GPUs to work on; 0: none.", show_default="1, if there are any"),
]
InterleavedInput = Annotated[
    bool, typer.Option("--interleaved", help="-i holds both mates of pairs, in turn.")
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Memory that may be used, as in 16G.", show_default="what is free"
    ),
]
PhredOffsetOption = Annotated[
    PhredChoice,
    typer.Option(
        metavar="auto|33|64",
        help="What quality characters count from; auto takes 33 and refuses what looks like 64.",
    ),
]
QualityBits = Annotated[
    int,
    typer.Option(
        metavar="8|2|1|0",
        help="Bits of quality kept a base; fewer take less memory, 0 ignores qualities.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")]
SecondMates = Annotated[
    Paths | None,
    typer.Option("-I", "--in2", metavar="FILE", help="Second mates, one file for each -i."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Chooses another family of hash functions.")]
StatsFile = Annotated[
    str | None, typer.Option(metavar="FILE", help="Write what was seen and done here (JSON).")
]
Threads = Annotated[
    int, typer.Option("-t", "--threads", metavar="N", help="Threads that work; 0: all CPUs.")
]


def obey_quiet(quiet: bool) -> None:
    """With ``--quiet`` log nothing but warnings; to be called before a GPU is leased."""
    import logging

    if quiet:
        logging.getLogger("ngsgpu").setLevel(logging.WARNING)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let parameters of a command be groups of options: dataclasses with an option a field.

    So commands share options with their defaults. The options take the place of the group, which
    has to be a keyword-only parameter.
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
