"""A command as wrappers, modules and tools see it: its files by names, and its other options.

The keys of a command in ``commands.toml``:

    command           the command, if the entry has another name: a use of it
    like              an entry whose keys hold here, too, if they are not given again
    wrapper           folder of the Snakemake wrapper, if not the command
    label             Nextflow's label for its resources
    keywords, doi     of its method
    required          files that a job must name though the command can do without
    gpus              most GPUs it uses
    params            options that wrappers take as parameters by name
    leaves            options that this use does not take
    inputs, outputs   files by parameter, see `File`; ``inputs`` may leave out those of ``[files]``
    formats           whether it writes the formats of ngsgpu/classify/formats.py, or leaves them
    not_in_nextflow   files that the Nextflow module leaves out
    not_in_galaxy     files that the Galaxy tool leaves out
    examples          rules of the wrapper's test; see ``wrappers``
    tests             of the Nextflow module; see ``nextflow``
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import jinja2

from ngsgpu import __version__
from ngsgpu.classify.formats import OURS
from ngsgpu.cli import app
from ngsgpu.cli.adapter import Command, commands_below
from ngsgpu.declared.parameters import Parameter
from ngsgpu.declared.roles import Role

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent

RESOURCES = ("threads", "backend", "gpus", "memory", "gpu_memory")
"""Options that every product gives from the resources of the job."""

KINDS = {
    ".fastq.gz": "fastq",
    ".fa": "fasta",
    ".fa.gz": "fasta",
    ".json": "json",
    ".tsv": "tsv",
    ".tsv.gz": "tsv",
    ".gfa": "gfa",
    ".bedgraph": "bedgraph",
    ".biom": "biom",
    ".paf": "paf",
    ".profile": "tsv",
    ".txt": "text",
    "hist": "text",
    "histo": "text",
    "histogram": "text",
    "idx": "data",
    "cand": "data",
    "db": "directory",
    "kmers": "directory",
    "index": "directory",
}
"""Kinds of outputs by the ends of their names."""

# What a help says for the command line alone.
_SPOKEN = re.compile(
    r"; repeat for (each lane|more)|; repeatable|; - is (standard (in|out)put|stdin)"
    r"|; -: standard output|, one file for each -i|; omit with --only-partition"
    r"|^Write (?=.* here\b)| here(?= \()| here(?=\.$)"
)


@dataclass(frozen=True)
class File:
    """A file, or several, that a command reads or writes.

    Attributes:
        parameter: that names it.
        name: in wrappers and modules.
        written: whether it is an output.
        required: whether each job has it.
        kind: ``reads``, ``fasta``, ``directory`` and so on.
        example: its path, or paths, in the wrapper's test; of an output the end of it.
        data: file that Galaxy's test takes.
        suffix: of an output of Nextflow or Galaxy.
        emit: name of the output of the Nextflow module that it is part of.
        inside: a directory is named on the command line by this prefix in it.
        folder: whether Nextflow puts the files into a folder, which the command gets.
        help: instead of the parameter's.
    """

    parameter: Parameter
    name: str
    written: bool
    required: bool
    kind: str
    example: str | list[str]
    data: str = ""
    suffix: str = ""
    emit: str = ""
    inside: str = ""
    folder: bool = False
    help: str = ""

    @property
    def flag(self) -> str:
        """What stands before it on the command line; empty for an argument."""
        return "" if self.parameter.option.is_argument else self.parameter.flag

    @property
    def is_list(self) -> bool:
        """Whether it may be several files; outputs of lanes are one file here."""
        return self.parameter.is_list and not self.written

    @property
    def is_gzipped(self) -> bool:
        """Whether an output is compressed."""
        return self.suffix.endswith(".gz")

    @property
    def meaning(self) -> str:
        """The help."""
        return self.help or meaning(self.parameter)


@dataclass(frozen=True, eq=False)
class Stage:
    """A command, or a use of it, that gets a wrapper, a module and a tool.

    Attributes:
        name: of the entry.
        command: the command.
        entry: what ``commands.toml`` says.
    """

    name: str
    command: Command
    entry: dict[str, Any]

    @cached_property
    def files(self) -> list[File]:
        """Inputs and outputs, in the order of the parameters."""
        return list(_files(self))

    @property
    def call(self) -> str:
        """The command as it is typed, without the program."""
        return self.command.full_name

    @property
    def inputs(self) -> list[File]:
        """Files it reads."""
        return [file for file in self.files if not file.written]

    @property
    def outputs(self) -> list[File]:
        """Files it writes."""
        return [file for file in self.files if file.written]

    @property
    def main(self) -> File:
        """The output that other commands take."""
        return next((own for own in self.outputs if own.required), self.outputs[0])

    @cached_property
    def params(self) -> list[Parameter]:
        """Options that wrappers take by name."""
        return [own for own in self.command.parameters if own.name in self.entry.get("params", ())]

    @cached_property
    def others(self) -> list[Parameter]:
        """Options that a product takes as further options."""
        taken = {*RESOURCES, *(file.parameter.name for file in self.files), *self.left_out}
        taken |= {own.name for own in self.params}
        return [own for own in self.command.parameters if own.name not in taken]

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Why options are in no product."""
        known: dict[str, dict[str, str]] = table()["left_out"]
        like = known.get(self.entry.get("like", ""), {})
        reasons = known["*"] | like | known.get(self.name, {})
        reasons |= dict.fromkeys(self.entry.get("leaves", ()), "of other uses of the command")
        takes = {own for key in ("inputs", "outputs", "params") for own in self.entry.get(key, ())}
        return {name: reason for name, reason in reasons.items() if name not in takes}

    @property
    def most_gpus(self) -> int | None:
        """The most GPUs it uses; 0: none, None: any number."""
        if "backend" not in self.options:
            return 0
        return self.entry.get("gpus")

    @cached_property
    def options(self) -> set[str]:
        """Names of the parameters of the command."""
        return {own.name for own in self.command.parameters}

    @property
    def summary(self) -> str:
        """The first sentence of its help, on one line."""
        return " ".join((self.command.help or "").split("\n\n")[0].split())

    @property
    def pairs_only(self) -> bool:
        """Whether its reads are pairs."""
        return any(own.name == "r2" and own.required for own in self.inputs)

    def file(self, parameter: str) -> File:
        """The file of a parameter."""
        return next(own for own in self.files if own.parameter.name == parameter)


def meaning(parameter: Parameter) -> str:
    """The help of a parameter, without what concerns only the command line."""
    help_ = " ".join(parameter.option.help.split())
    text = _SPOKEN.sub("", help_)
    return text if help_.startswith(text[:1]) else text[:1].upper() + text[1:]


@cache
def table() -> dict[str, Any]:
    """``commands.toml``."""
    return tomllib.loads((HERE / "commands.toml").read_text())


@cache
def commands() -> dict[str, Command]:
    """All commands by their names."""
    return {name: own for name, own in commands_below(app) if isinstance(own, Command)}


@cache
def stages() -> tuple[Stage, ...]:
    """All commands that get products, in the order of ``commands.toml``."""
    found = []
    for name, own in table().items():
        if "examples" in own:
            command = commands()[own.get("command", name)]
            found.append(Stage(name, command, _with_formats(_like(own, command) | own)))
    return tuple(found)


def _with_formats(entry: dict[str, Any]) -> dict[str, Any]:
    """The keys with the formats of classification, where these are outputs or left out."""
    files = {own.name: {"suffix": own.ending} for own in OURS}
    if entry.get("formats"):
        given = {name: files.get(name, {}) | own for name, own in entry["outputs"].items()}
        return entry | {"outputs": files | given}
    if "formats" in entry:
        return entry | {"leaves": [*entry["leaves"], *files]}
    return entry


def _like(entry: dict[str, Any], command: Command) -> dict[str, Any]:
    """The keys of the entry that this one is like, without outputs that its command lacks."""
    keys = dict(table().get(entry.get("like", ""), {}))
    known = {own.name for own in command.parameters}
    if "outputs" in keys:
        keys["outputs"] = {name: own for name, own in keys["outputs"].items() if name in known}
    for key in ("not_in_nextflow", "not_in_galaxy"):
        if key in keys:
            keys[key] = [name for name in keys[key] if name in known]
    return keys


def reason_without(name: str) -> str | None:
    """Why a command gets no products; None if nobody said."""
    reasons = table()["without"]
    return next((reasons[own] for own in reasons if fnmatch(name, own)), None)


def names_files(parameter: Parameter) -> bool:
    """Whether a parameter names files."""
    return parameter.role not in (None, Role.NONE)


def _files(stage: Stage) -> Iterator[File]:
    entry, outputs = stage.entry, stage.entry["outputs"]
    inputs = table()["files"] | entry.get("inputs", {})
    for parameter in stage.command.parameters:
        name = parameter.name
        written = name in outputs
        given = outputs.get(name) or inputs.get(name)
        if given is None or name in stage.left_out:
            continue
        settings: dict[str, Any] = {"name": name} | given
        if written:
            suffix = settings["suffix"]
            settings.setdefault("kind", _kind(suffix))
            settings.setdefault("example", f".{suffix.removeprefix(stage.call + '.')}")
            if name not in entry.get("not_in_nextflow", ()):
                settings.setdefault("emit", settings["name"])
        required = parameter.default is ... or name in entry.get("required", ())
        yield File(parameter, written=written, required=required, **settings)


def _kind(suffix: str) -> str:
    return next(kind for end, kind in KINDS.items() if f".{suffix}".endswith(end))


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )


def render(template: str, **values: Any) -> str:
    """A template with its values; it knows the version, too."""
    return _templates().get_template(template).render(version=__version__, **values)
