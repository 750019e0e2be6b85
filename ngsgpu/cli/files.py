"""The files of a run by the roles of its parameters; no input is overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ngsgpu.declared.outputs import PLACEHOLDER, only_declared
from ngsgpu.declared.parameters import Parameter
from ngsgpu.declared.roles import Role
from ngsgpu.errors import UsageError


@dataclass
class Files:
    """All files of a run.

    Attributes:
        reads: input files that may be given only once.
        databases: input directories in which no output may lie.
        also_read: other input files or directories.
        lists: those of each option that names several, each of them once.
        written: output files.
        patterns: the same, before samples have their names.
        prefixes: how other outputs begin, which the command checks.
    """

    reads: list[str] = field(default_factory=list)
    databases: list[str] = field(default_factory=list)
    also_read: list[str] = field(default_factory=list)
    lists: list[list[str]] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)


def reads_cram(parameters: Sequence[Parameter]) -> bool:
    """Whether reads that a command takes may be CRAM files."""
    return any(own.role is Role.READS and own.name in ("in1", "in2") for own in parameters)


@contextmanager
def checked_files(
    command: str, parameters: Sequence[Parameter], values: Mapping[str, Any]
) -> Iterator[None]:
    """Check the files of a run; within the block it can write its outputs and nothing else.

    Refused are to overwrite an input, to write into a database, to write two outputs to one file,
    and to read an input twice, since it would count twice.

    Args:
        command: its name, such as ``evaluate merging``.
        parameters: of the command.
        values: by the names of parameters.

    Raises:
        UsageError: names the file.
        InputError: a sample sheet cannot be read, or the reference of CRAM input is missing.
    """
    from ngsgpu.io.paths import check_apart, check_distinct, refuse_unwritten
    from ngsgpu.io.pipes import opened_together

    files = files_of(command, parameters, values)
    _check_defaults(parameters, values)
    for paths in files.lists:
        check_distinct(paths)
    for path in files.written:
        refuse_unwritten(path)
    also_read = [*files.also_read, *files.databases]
    check_distinct(files.reads, files.written, also_read=also_read, databases=files.databases)
    check_apart(files.prefixes, files.databases)
    with (
        only_declared(files.patterns, files.prefixes),
        _reference(values.get("cram_reference")),
        opened_together(files.reads),
    ):
        yield


def _check_defaults(parameters: Sequence[Parameter], values: Mapping[str, Any]) -> None:
    """Refuse an output that names the file of the option where it would go without it."""
    by_option = {own.shown: own.name for own in parameters}
    for own in parameters:
        other = by_option.get(own.option.shown_default or "")
        path = values.get(own.name)
        if own.role is Role.WRITTEN and other and path and path == values.get(other):
            raise UsageError(
                f"`{own.name}` and `{other}` are both {path}; leave out `{own.name}`, whose reads "
                f"go to `{other}` then"
            )


def files_of(command: str, parameters: Sequence[Parameter], values: Mapping[str, Any]) -> Files:
    """List the inputs and outputs of a run.

    Args:
        command: its name.
        parameters: of the command.
        values: by the names of parameters.

    Raises:
        InputError: a sample sheet cannot be read.
    """
    files = Files()
    samples: list[str] = []
    for parameter in parameters:
        role, paths = parameter.role, list(_paths(values.get(parameter.name)))
        if role in (Role.READ, Role.DATABASE) and len(paths) > 1:
            files.lists.append(paths)
        if role is Role.READS:
            files.reads += paths
        elif role is Role.READ:
            files.also_read += paths
        elif role is Role.DATABASE:
            files.databases += paths
        elif role is Role.WRITTEN:
            files.patterns += paths
        elif role is Role.PREFIX:
            files.prefixes += paths
        elif role is Role.MULTIQC:
            from ngsgpu.report.exports.multiqc import CORRECTION, paths_of

            files.patterns += [str(own) for path in paths for own in paths_of(path, CORRECTION)]
        elif role is Role.SHEET:
            for path in paths:
                samples += _add_sheet(path, files)
    for pattern in files.patterns:
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

        return sample_of(values["candidate_files"][0])
    from ngsgpu.io.names import sample_of

    return sample_of(values["in1"][0]) if values.get("in1") else ""


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


def _reference(path: str | None) -> Any:
    """A block in which CRAM files are read by a reference.

    Raises:
        InputError: it cannot be read.
    """
    if path is None:
        return nullcontext()
    from ngsgpu.io.alignments.cram import reference
    from ngsgpu.io.compress.source import is_compressed

    is_compressed(path)  # opens it
    return _indexed(path, reference)


@contextmanager
def _indexed(path: str, reference: Any) -> Iterator[None]:
    """The block of ``reference``; htslib writes the index of a file that has none beside a link."""
    from ngsgpu.errors import output_error
    from ngsgpu.io.output.temporary import temporary_folder
    from ngsgpu.io.paths import temporary_place

    if Path(f"{path}.fai").is_file():
        with reference(path):
            yield
        return
    place = temporary_place()
    with ExitStack() as opened:
        try:
            folder = opened.enter_context(temporary_folder(place / "ngsgpu-reference"))
            folder.chmod(0o700)
            link = folder / Path(path).name
            link.symlink_to(Path(path).absolute())
        except OSError as error:
            raise output_error(place, error) from error
        opened.enter_context(reference(str(link), path))
        yield
