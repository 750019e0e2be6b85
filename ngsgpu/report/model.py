"""A study and its samples: the files of their results, and their contents."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from ngsgpu.errors import UsageError
from ngsgpu.io.output.atomic import write_text_atomically
from ngsgpu.report.absent import Note

SCHEMA = "ngsgpu.study"
SCHEMA_VERSION = 2

Kind = Literal["real", "simulated"]
Variant = Literal["raw", "corrected"]
VARIANTS: tuple[Variant, ...] = ("raw", "corrected")

T = TypeVar("T")


@dataclass(frozen=True)
class FileSpec:
    """Files of a sample that a stage reads.

    Attributes:
        name: their name in the manifest.
        layout: their paths below the sample's results in the workflow; the first existing one is
            used; ``{}`` stands for a key.
        keys: names of several files; none for one file.
        alone: the key of a path given without one in the manifest.
        by_database: whether there is a set per database.
    """

    name: str
    layout: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    alone: str = ""
    by_database: bool = False


@dataclass(frozen=True)
class SampleFiles:
    """Files of one sample's results; missing ones have no entry.

    Attributes:
        paths: by the name in the manifest, and the database, and the key, if any.
        benchmarks: Snakemake's benchmark files by rule, ``rule (raw)`` and ``rule (corrected)`` if
            the rule runs for each; several files if it runs for parts of the sample.
    """

    paths: Mapping[tuple[str, ...], Path] = field(default_factory=dict)
    benchmarks: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def one(self, name: str) -> Path | None:
        """The file of a name that has one."""
        return self.paths.get((name,))

    def group(self, name: str) -> dict[str, Path]:
        """The files of a name by their keys."""
        return {key[1]: path for key, path in self.paths.items() if key[0] == name}

    def by_database(self, name: str) -> dict[str, dict[str, Path]]:
        """The files of a name by database and key."""
        found: dict[str, dict[str, Path]] = {}
        for key, path in self.paths.items():
            if key[0] == name:
                found.setdefault(key[1], {})[key[2]] = path
        return found

    def results(self) -> Iterator[Path]:
        """All files but the benchmarks, single ones first."""
        return (self.paths[key] for key in sorted(self.paths, key=len))


@dataclass(frozen=True)
class Sample:
    """One sample of a study: its description and its files."""

    name: str
    label: str
    kind: Kind = "real"
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: SampleFiles = field(default_factory=SampleFiles)

    @property
    def is_classified(self) -> bool:
        """Whether there are files of a classification."""
        return any(key[0] == "classification" for key in self.files.paths)


@dataclass(frozen=True)
class Study:
    """A study: samples, how they were processed, and with which versions."""

    title: str
    samples: tuple[Sample, ...]
    description: str = ""
    date: str = ""
    command: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    databases: Mapping[str, Path] = field(default_factory=dict)
    jobs: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)

    def of(self, names: Sequence[str]) -> Study:
        """The study of some of its samples, without jobs of the whole study.

        Raises:
            UsageError: there is no sample of a name.
        """
        unknown = sorted(set(names) - {sample.name for sample in self.samples})
        if unknown:
            raise UsageError(f"the study has no sample {unknown[0]}; check `sample`")
        samples = tuple(sample for sample in self.samples if sample.name in names)
        return replace(self, samples=samples, jobs={})

    def paths(self) -> list[Path]:
        """All files that the report reads."""
        return list(_paths_in(self))

    def write(self, path: str | Path) -> None:
        """Write the manifest.

        Raises:
            OutputError: when the file cannot be written.
        """
        write_text_atomically(path, self.text(Path(path).parent))

    def text(self, folder: Path) -> str:
        """The manifest as JSON, with paths relative to its future directory."""
        document = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            **{name: getattr(self, name) for name in ("title", "description", "date", "command")},
            **{name: dict(getattr(self, name)) for name in ("config", "versions", "machine")},
            "databases": {
                name: os.path.relpath(path, folder) for name, path in self.databases.items()
            },
            "jobs": {
                rule: {name: os.path.relpath(path, folder) for name, path in jobs.items()}
                for rule, jobs in self.jobs.items()
            },
            "samples": [_sample_document(sample, folder) for sample in self.samples],
        }
        return json.dumps(document, indent=2) + "\n"


def _paths_in(value: object) -> Iterator[Path]:
    """The paths in a value and its members."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, Mapping):
        yield from _paths_in(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _paths_in(part)
    elif is_dataclass(value):
        yield from _paths_in(tuple(getattr(value, own.name) for own in fields(value)))


def _sample_document(sample: Sample, folder: Path) -> dict[str, Any]:
    files: dict[str, Any] = {}
    for key in sorted(sample.files.paths, key=len):
        *outer, last = key
        place = files
        for name in outer:
            place = place.setdefault(name, {})
        place[last] = os.path.relpath(sample.files.paths[key], folder)
    if sample.files.benchmarks:
        files["benchmarks"] = {
            rule: [os.path.relpath(path, folder) for path in paths]
            for rule, paths in sample.files.benchmarks.items()
        }
    return {
        "name": sample.name,
        "label": sample.label,
        "kind": sample.kind,
        "description": sample.description,
        "parameters": dict(sample.parameters),
        "files": files,
    }


@dataclass(eq=False)
class SampleResults:
    """All results of a sample.

    Attributes:
        sample: its entry in the study.
        parts: results of each stage, by type; see ``of``.
        missing: descriptions of missing results.
        notes: reasons for missing results that the workflow should have made.
        failed_in: steps in which the sample failed.
        is_read: whether a step read all reads; none may have been asked to.
    """

    sample: Sample
    parts: dict[type, object] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    failed_in: list[str] = field(default_factory=list)
    is_read: bool = True

    def of(self, kind: type[T]) -> T:
        """What the stage whose results are of a type read."""
        return cast(T, self.parts[kind])
