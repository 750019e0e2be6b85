"""Input and output files of every command, and the check that no input is overwritten.

`FILES` gives the role of every option that names files, `files_of` lists the files of a run, and
`guard` makes every command check them first. A test fails for any option missing from `FILES`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from ngsgpu.cli.options import option
from ngsgpu.errors import UsageError

PLACEHOLDER: Final = "{sample}"

CramReference = Annotated[
    str | None,
    option(
        ..., "FILE", "FASTA by which CRAM input was compressed.", show_default="from its header"
    ),
]


_LARGEST: Final = {"threads": 4096, "seed": 2**63 - 1}
_LARGEST_USUAL: Final = 2**31 - 1


class Role(Enum):
    """How a command uses the files of an option."""

    READS = auto()
    """Read; each file may be given only once."""
    READ = auto()
    """Read; a directory stands for all its files. Other options may name it, too."""
    DATABASE = auto()
    """As ``READ``; a directory in which no output may lie."""
    SHEET = auto()
    """A sample sheet, read together with the files it lists."""
    WRITTEN = auto()
    """Written; ``{sample}`` is replaced by each sample name."""
    MULTIQC = auto()
    """Prefix of MultiQC content files."""
    CHECKED_LATER = auto()
    """Checked by the command itself once it knows the files."""


_CRAM: Final = {"cram_reference": Role.READ}
"""An option that every command has whose reads may be CRAM; ``guard`` adds it."""
_READS = dict.fromkeys(("in1", "in2"), Role.READS) | _CRAM
_REFERENCES = dict.fromkeys(("references", "taxonomy", "maps"), Role.READ)
_CALLS = dict.fromkeys(
    (
        "reads",
        "kraken_reads",
        "report",
        "krona",
        "cami",
        "biom",
        "abundance",
        "coverage",
        "evidence",
        "stats",
    ),
    Role.WRITTEN,
)


def _written(*names: str) -> dict[str, Role]:
    return dict.fromkeys(names, Role.WRITTEN)


def _compared(*names: str) -> dict[str, Role]:
    return dict.fromkeys(names, Role.READ) | _written("json_path")


FILES: Mapping[str, Mapping[str, Role]] = {
    "correct": _READS
    | {"model": Role.READ, "split": Role.CHECKED_LATER}
    | _written("out1", "out2", "stats"),
    "extend": _READS | _written("out", "remaining1", "remaining2", "stats"),
    "merge": _READS
    | _written("out", "unmerged1", "unmerged2", "hist", "histogram", "ihist", "stats")
    | {"flash_prefix": Role.CHECKED_LATER},
    "deplete": _READS | {"index": Role.READ} | _written("out1", "out2", "stats"),
    "deplete-index": dict.fromkeys(("references", "exclude"), Role.READS) | _written("out"),
    "adapters": _READS | _written("fasta", "stats"),
    "kmers count": _READS | _written("out", "histo_file"),
    "kmers histo": {"database": Role.DATABASE} | _written("out"),
    "kmers dump": {"database": Role.DATABASE} | _written("out"),
    "kmers info": {"database": Role.DATABASE},
    "kmers query": {"in1": Role.READS, "database": Role.DATABASE} | _CRAM | _written("out"),
    "kmers intersect": {"databases": Role.DATABASE} | _written("out"),
    "kmers subtract": {"databases": Role.DATABASE} | _written("out"),
    "kmers union": {"databases": Role.DATABASE} | _written("out"),
    "kmers model": {"database": Role.DATABASE},
    "kmers spectrum": _READS | _written("out"),
    "unitigs": _READS
    | dict.fromkeys(("database", "color"), Role.DATABASE)
    | _written("out", "gfa", "colors", "stats"),
    "assemble": _READS
    | {"single": Role.READS}
    | _written("out", "gfa", "scaffolds", "coverage", "stats"),
    "index build": {"reference": Role.READ, "out": Role.CHECKED_LATER},
    "index query": {"in1": Role.READS, "index": Role.CHECKED_LATER} | _CRAM | _written("out"),
    "classify": _READS
    | _REFERENCES
    | {"database": Role.DATABASE, "samples": Role.SHEET, "candidates": Role.WRITTEN}
    | _CALLS,
    "classify-merge": {"candidates": Role.READS, "database": Role.DATABASE} | _CALLS,
    "classify-table": {"reports": Role.READ} | _written("reads", "abundances", "taxpasta", "biom"),
    "db plan": _REFERENCES | {"database": Role.CHECKED_LATER},
    "db build": _REFERENCES | _written("stats") | {"database": Role.CHECKED_LATER},
    "gpu run": _written("stats"),
    "gpu plan": {"check": Role.READ, "topology": Role.CHECKED_LATER} | _written("out"),
    "db add": _REFERENCES | {"database": Role.CHECKED_LATER},
    "db remove": {"listed": Role.READ, "database": Role.CHECKED_LATER},
    "db info": {"database": Role.DATABASE},
    "db stats": {"database": Role.DATABASE},
    "db verify": {"database": Role.DATABASE},
    "evaluate correction": _compared("truth", "in1", "in2", "out1", "out2", "alignments")
    | {"mqc_prefix": Role.MULTIQC},
    "evaluate classification": _compared(
        "classified", "taxonomy", "truth", "references", "composition"
    ),
    "evaluate merging": _compared("truth", "in1", "in2", "merged"),
    "evaluate mapped": _compared(
        "reference", "in1", "in2", "out1", "out2", "merged", "known", "alignments"
    ),
    "evaluate kmers": _compared("in1", "in2", "out1", "out2", "reference", "truth", "minority"),
    "evaluate extension": _compared("reference", "extended", "truth", "alignments"),
    "train extract": _READS | {"truth": Role.READ} | _written("out"),
    "train fit": {"samples": Role.READ} | _written("out"),
    "train export": {"forests": Role.READ} | _written("out"),
    "report": dict.fromkeys(("manifest", "study"), Role.READ)
    | _written("output", "write_study", "methods", "software")
    | dict.fromkeys(("results", "benchmarks", "tables"), Role.CHECKED_LATER),
    "workflow init": dict.fromkeys(("folder", "reads"), Role.CHECKED_LATER),
}
"""File roles by command and parameter."""


@dataclass
class Files:
    """All files of a run.

    Attributes:
        reads: input files that may be given only once.
        databases: input directories in which no output may lie.
        also_read: other input files or directories.
        lists: those of each option that names several, each of them once.
        written: output files.
    """

    reads: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    also_read: list[str] = field(default_factory=list)
    lists: list[list[str]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)


def files_of(command: str, values: Mapping[str, Any]) -> Files:
    """List the inputs and outputs of a command.

    Args:
        command: command name, such as ``evaluate merging``.
        values: parameter values.

    Raises:
        InputError: a sample sheet cannot be read.
    """
    files = Files()
    samples: list[str] = []
    patterns: list[str] = []
    for name, role in FILES.get(command, {}).items():
        paths = list(_paths(values.get(name)))
        if role in (Role.READ, Role.DATABASE) and len(paths) > 1:
            files.lists.append(paths)
        if role is Role.READS:
            files.reads += paths
        elif role is Role.READ:
            files.also_read += paths
        elif role is Role.DATABASE:
            files.databases += paths
        elif role is Role.WRITTEN:
            patterns += paths
        elif role is Role.MULTIQC:
            from ngsgpu.report.exports.multiqc import CORRECTION, paths_of

            files.written += [str(own) for path in paths for own in paths_of(path, CORRECTION)]
        elif role is Role.SHEET:
            for path in paths:
                samples += _add_sheet(path, files)
    for pattern in patterns:
        own = samples
        if PLACEHOLDER in pattern and not samples:
            own = [_sample(command, values)]
        files.written += dict.fromkeys(pattern.replace(PLACEHOLDER, name) for name in own or [""])
    return files


def _sample(command: str, values: Mapping[str, Any]) -> str:
    """Sample name of a single-sample ``classify`` or ``classify-merge`` run."""
    if values.get("sample"):
        return str(values["sample"])
    if command == "classify-merge":
        from ngsgpu.classify.query.candidate_file import sample_of

        return sample_of(values["candidates"][0])
    from ngsgpu.classify.run.samples import sample_name

    return sample_name(values["in1"][0]) if values.get("in1") else ""


def _add_sheet(path: str, files: Files) -> list[str]:
    """Add a sample sheet and its files; return the sample names, of standard input none yet."""
    if path == "-":
        return [PLACEHOLDER]
    from ngsgpu.classify.run.samples import read_samples

    samples = read_samples(path)
    files.also_read.append(path)
    files.also_read += [file for own in samples for lane in own.lanes for file in lane.inputs]
    return [sample.name for sample in samples]


def _paths(value: Any) -> Iterator[str]:
    if value is None:
        return
    for path in value if isinstance(value, list | tuple) else [value]:
        yield str(path)


def check_files(command: str, values: Mapping[str, Any]) -> None:
    """Refuse to overwrite an input, to add to a database or to write two outputs to one file.

    Inputs named twice are refused as well, since they would count twice.

    Raises:
        UsageError: names the file.
        InputError: a sample sheet cannot be read.
    """
    from ngsgpu.io.paths import check_distinct

    files = files_of(command, values)
    for paths in files.lists:
        check_distinct(paths)
    also_read = [*files.also_read, *files.databases]
    check_distinct(files.reads, files.written, also_read=also_read, databases=files.databases)


def check_numbers(values: Mapping[str, Any]) -> None:
    """Refuse numbers too large to be meaningful.

    Raises:
        UsageError: names the option.
    """
    for name, value in values.items():
        if isinstance(value, int | float) and not abs(value) <= _LARGEST.get(name, _LARGEST_USUAL):
            option = f"--{name.replace('_', '-')}"
            largest = _LARGEST.get(name, _LARGEST_USUAL)
            raise UsageError(f"{option} must be at most {largest}, not {value}")


def guard(app: typer.Typer, prefix: str = "") -> None:
    """Make every command of the application check its files first."""
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _checked(f"{prefix}{command.name}", command.callback)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            guard(group.typer_instance, f"{prefix}{group.name} ")


def _checked(name: str, command: Callable[..., Any]) -> Callable[..., Any]:
    if "cram_reference" in FILES.get(name, {}):
        command = _with_cram_reference(command)

    @functools.wraps(command)
    def run(**values: Any) -> Any:
        check_numbers(values)
        check_files(name, values)
        return command(**values)

    # Typer evaluates the annotations four times; evaluating them once saves start-up time.
    return _with_signature(run, inspect.signature(command, eval_str=True))


def _with_cram_reference(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option ``--cram-reference``, which holds for all CRAM files of the command."""

    @functools.wraps(command)
    def run(*, cram_reference: str | None = None, **values: Any) -> Any:
        if cram_reference is None:
            return command(**values)
        from ngsgpu.errors import InputError
        from ngsgpu.io.alignments.cram import reference

        if not Path(cram_reference).is_file():
            raise InputError(cram_reference, "no such file", "check the path")
        with reference(cram_reference):
            return command(**values)

    signature = inspect.signature(command, eval_str=True)
    own = inspect.Parameter(
        "cram_reference", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=CramReference
    )
    parameters = [*signature.parameters.values(), own]
    return _with_signature(run, signature.replace(parameters=parameters))


def _with_signature(
    command: Callable[..., Any], signature: inspect.Signature
) -> Callable[..., Any]:
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {own.name: own.annotation for own in signature.parameters.values()}
    return command
