"""Options shared by ``ngsgpu classify`` and ``ngsgpu classify-merge``: outputs and calling."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, make_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from ngsgpu.classify.formats import formats
from ngsgpu.classify.params import CALLS_BY_EVIDENCE, METACACHE_CALLS, OutputRules, QueryParameters
from ngsgpu.cli.adapter import CRAM_REFERENCE, SETTINGS
from ngsgpu.cli.options import Compute
from ngsgpu.cli.run import open_run
from ngsgpu.declared.options import RESEARCH, RUN, flag, option
from ngsgpu.declared.parameters import Options, parameters_of
from ngsgpu.declared.roles import Written
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.run.options import RunOptions

logger = logging.getLogger("ngsgpu")

Gpus = Annotated[
    int | None,
    option(
        ...,
        "N",
        "GPUs to use; partitions, or else reads, are distributed over them; 0: none.",
        shown_default="1 if available",
        group=RUN,
    ),
]


@dataclass(frozen=True, kw_only=True)
class ClassifyRun(Compute):
    """A run that looks up features."""

    gpus: Gpus = None


NoVerify = Annotated[
    bool, flag("Skip checksum verification of the database.", "--no-verify", default=..., group=RUN)
]


def output_files(*commands: Callable[..., Any]) -> type:
    """Make the dataclass of output files, with a field and an option for each format.

    A format of another package whose name or option is taken is reported and left out.

    Args:
        commands: functions that take the files, as ``files``.
    """
    taken = set(SETTINGS["help_option_names"])
    for command in commands:
        for parameter in (CRAM_REFERENCE, *parameters_of(command, without="files")):
            taken |= {parameter.name, *parameter.names}
    fields = []
    for own in formats().values():
        names = {own.name, *(own.names or (f"--{own.name.replace('_', '-')}",))}
        if names & taken:
            logger.warning(
                "output format %s: %s is taken", own.name, ", ".join(sorted(names & taken))
            )
            continue
        taken |= names
        fields.append((own.name, Written | None, option(None, own.metavar, own.help, *own.names)))
    return make_dataclass("OutputFiles", fields, frozen=True)


@contextmanager
def open_classify_run(
    run: ClassifyRun, database: str | None, only_partition: int | None
) -> Iterator[RunOptions]:
    """Choose the backend, and load kernels; see ``open_run``.

    Args:
        run: the options.
        database: its path; None: it is in memory.
        only_partition: the only one to query; None: all.
    """
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.classify.query.gpu",
        "ngsgpu.classify.outputs.gpu",
        "ngsgpu.classify.call.gpu",
        max_gpus=_max_gpus(database, only_partition) if (run.gpus or 0) > 1 else None,
    ) as options:
        yield options


def _max_gpus(database: str | None, only_partition: int | None) -> int | None:
    """Maximum number of GPUs the run can use; None: no limit."""
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.query.gpu import max_gpus

    if database is None or only_partition is not None:
        return max_gpus(1)
    return max_gpus(len(open_database(database).partitions))


Metacache = Annotated[
    bool,
    flag(
        "Classify with MetaCache's rule and its defaults, in one pass, for a database with "
        "--sketch 16.",
        "--metacache",
        default=...,
        group=RESEARCH,
    ),
]


def calling(
    calls: Options[QueryParameters], rules: OutputRules, *, metacache: bool
) -> tuple[QueryParameters, OutputRules]:
    """How reads are called, and the rules of the outputs; both as MetaCache has them on request.

    Args:
        calls: what the user gave.
        rules: as the user wants them.
        metacache: whether MetaCache's values replace these.

    Raises:
        UsageError: a value for MetaCache's rule is given for calls by the model.
    """
    if metacache:
        evidence = replace(rules.evidence, species_identity=0.0)
        return replace(METACACHE_CALLS, **calls.given), replace(rules, evidence=evidence)
    if not rules.evidence.by_model:
        return replace(QueryParameters(), **calls.given), rules
    if given := [name for name in _OF_METACACHE if name in calls.given]:
        raise UsageError(f"`{given[0]}` needs `metacache`: the model does not use it")
    return replace(CALLS_BY_EVIDENCE, **calls.given), rules


_OF_METACACHE: Final = ("min_hits", "hit_difference", "ties")
"""Parameters of calls that only MetaCache's rule has."""
