"""The study manifest: what ran on what, and where each sample's results lie.

A study is one JSON file. Only ``samples`` with their ``name`` are required; every file may be
missing, and the report then says what is absent::

    {
      "schema": "ngsgpu.study",
      "schema_version": 2,
      "title": "E. coli, real and simulated",         shown as the report's title
      "description": "A paragraph for the reader.",
      "date": "2026-11-21",                            shown as it is; nothing else is dated
      "command": "snakemake --use-conda",              how to make the study again
      "config": {"correct": {"kmer": 20}},             the configuration, any JSON object
      "versions": {"ngsgpu": "0.1.0", "spades": "4.0.0"},
      "machine": {"cores": "2", "cpu": "AMD EPYC"},    any names and values
      "databases": {"bacteria": "databases/bacteria/plan.json"},   of ngsgpu db info --json
      "samples": [
        {
          "name": "ecoli",                             also the name in the layout below
          "label": "E. coli K-12, real reads",
          "kind": "real",                              "real" or "simulated"
          "description": "28,160 pairs that ship with QUAST",
          "parameters": {"coverage": 30},              any names and values
          "files": {
            "correct": "ecoli/correct/stats.json",
            "evaluation": "ecoli/evaluate/correction.json",
            "kmers": {"raw": "ecoli/kmers/raw.tsv", "corrected": "ecoli/kmers/corrected.tsv"},
            "contigs": {"raw": "ecoli/assembly/raw/contigs.fasta",
                        "corrected": "ecoli/assembly/corrected/contigs.fasta"},
            "quast": "ecoli/quast/report.tsv",         or one report per assembly, as for contigs
            "quast_extended": "ecoli/quast_extended/report.tsv",
            "classification": {                        by the database's name
              "bacteria": {"report": "ecoli/classify/bacteria/ecoli.kraken2.report.txt",
                           "abundance": "ecoli/classify/bacteria/abundance.tsv",
                           "coverage": "ecoli/classify/bacteria/coverage.tsv",
                           "stats": "ecoli/classify/bacteria/stats.json",
                           "evaluation": "ecoli/classify/bacteria/evaluation.json"}},
            "benchmarks": {"correct_reads": ["../benchmarks/correct_reads/ecoli.tsv"]}
          }
        }
      ]
    }

Relative paths start at the manifest's folder. Version 1 of the schema had one database without a
name; such manifests are still read. ``layout.fill_from_layout`` adds the files that a results
directory holds to samples that do not name theirs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from ngsgpu.errors import InputError
from ngsgpu.io.output.atomic import write_text_atomically

SCHEMA = "ngsgpu.study"
SCHEMA_VERSION = 2

Kind = Literal["real", "simulated"]
Variant = Literal["raw", "corrected"]
VARIANTS: tuple[Variant, ...] = ("raw", "corrected")
CLASSIFICATION_FILES = ("report", "abundance", "coverage", "stats", "evaluation")
"""Kraken's report, tables of abundances and coverage, statistics, comparison with the truth."""

EXTENDERS = ("ngsgpu", "konnector")
"""Programs whose extended reads may be compared with the truth."""

_SINGLE_FILES = ("correct", "evaluation", "merge", "merging", "extend", "quast_extended")
"""Names of the files of which a sample has one."""

_FILES_BY_NAME = ("extension", "kmers", "contigs", "quast")
"""Names of the groups of files, each with a name in its group."""

_REMEDY = "see the schema in the documentation of ngsgpu report"


@dataclass(frozen=True)
class SampleFiles:
    """Where the results of one sample lie; ``None`` or no entry for what there is not.

    Attributes:
        correct: statistics of ``ngsgpu correct`` (JSON).
        evaluation: result of ``ngsgpu evaluate correction`` (JSON).
        merge: statistics of ``ngsgpu merge`` (JSON).
        merging: result of ``ngsgpu evaluate merging`` (JSON).
        extend: statistics of ``ngsgpu extend`` (JSON).
        extension: results of ``ngsgpu evaluate extension`` (JSON) by program (``EXTENDERS``).
        kmers: k-mer histograms (TSV) of the ``raw`` and ``corrected`` reads.
        contigs: assemblies (FASTA) of the ``raw`` and ``corrected`` reads.
        quast: QUAST's ``report.tsv`` with both assemblies under the key ``all``, or one report
            an assembly under ``raw`` and ``corrected``.
        quast_extended: QUAST's ``report.tsv`` on assemblies of extended reads and of others.
        classification: what ``ngsgpu classify`` wrote, by the database's name (empty if it has
            none) and then by ``CLASSIFICATION_FILES``.
        benchmarks: Snakemake's benchmark files by rule, ``rule (raw)`` and ``rule (corrected)``
            where the rule runs for each; several files where it runs for parts of the sample.
    """

    correct: Path | None = None
    evaluation: Path | None = None
    merge: Path | None = None
    merging: Path | None = None
    extend: Path | None = None
    quast_extended: Path | None = None
    extension: Mapping[str, Path] = field(default_factory=dict)
    kmers: Mapping[str, Path] = field(default_factory=dict)
    contigs: Mapping[str, Path] = field(default_factory=dict)
    quast: Mapping[str, Path] = field(default_factory=dict)
    classification: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)
    benchmarks: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)

    def results(self) -> Iterator[Path]:
        """All files but the benchmarks."""
        for name in _SINGLE_FILES:
            path: Path | None = getattr(self, name)
            if path is not None:
                yield path
        for name in _FILES_BY_NAME:
            yield from getattr(self, name).values()
        for files in self.classification.values():
            yield from files.values()


@dataclass(frozen=True)
class Sample:
    """One sample of a study: what it is and where its results lie."""

    name: str
    label: str
    kind: Kind = "real"
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    files: SampleFiles = field(default_factory=SampleFiles)


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
        """The manifest as JSON, with paths relative to the folder that it will lie in."""
        document = {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "title": self.title,
            "description": self.description,
            "date": self.date,
            "command": self.command,
            "config": dict(self.config),
            "versions": dict(self.versions),
            "machine": dict(self.machine),
            "databases": {
                name: os.path.relpath(path, folder) for name, path in self.databases.items()
            },
            "samples": [_sample_document(sample, folder) for sample in self.samples],
        }
        return json.dumps(document, indent=2) + "\n"


def _paths_in(value: object) -> Iterator[Path]:
    """The paths in a value and in what it holds."""
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
    def relative(path: Path) -> str:
        return os.path.relpath(path, folder)

    files: dict[str, Any] = {}
    for name in _SINGLE_FILES:
        path: Path | None = getattr(sample.files, name)
        if path is not None:
            files[name] = relative(path)
    for name in _FILES_BY_NAME:
        paths: Mapping[str, Path] = getattr(sample.files, name)
        if paths:
            files[name] = {key: relative(path) for key, path in paths.items()}
    if sample.files.classification:
        files["classification"] = {
            database: {name: relative(path) for name, path in paths.items()}
            for database, paths in sample.files.classification.items()
        }
    if sample.files.benchmarks:
        files["benchmarks"] = {
            rule: [relative(path) for path in paths]
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


class _Reader:
    """Checks the manifest's values one by one; each complaint names the key."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.parent

    def fail(self, cause: str) -> InputError:
        return InputError(self.path, cause, _REMEDY)

    def text(self, value: Any, key: str, default: str | None = None) -> str:
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.fail(f"{key} must be text")
        return value

    def mapping(self, value: Any, key: str) -> dict[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.fail(f"{key} must be an object of names and values")
        return value

    def known(self, value: dict[str, Any], allowed: set[str], key: str) -> None:
        unknown = sorted(set(value) - allowed)
        if unknown:
            raise self.fail(f"{key} has unknown entries: {', '.join(unknown)}")

    def file(self, value: Any, key: str) -> Path | None:
        return None if value is None else self.folder / self.text(value, key)

    def files(self, value: Any, key: str, allowed: set[str] | None = None) -> dict[str, Path]:
        entries = self.mapping(value, key)
        if allowed is not None:
            self.known(entries, allowed, key)
        return {
            name: self.folder / self.text(path, f"{key}.{name}")
            for name, path in entries.items()
            if path is not None
        }

    def files_of_databases(self, value: Any, key: str) -> dict[str, dict[str, Path]]:
        entries = self.mapping(value, key)
        if all(isinstance(entry, str) for entry in entries.values()):
            # Version 1: the files of a database without a name.
            entries = {"": entries} if entries else {}
        names = set(CLASSIFICATION_FILES)
        return {
            database: self.files(paths, f"{key}.{database}" if database else key, names)
            for database, paths in entries.items()
        }

    def file_lists(self, value: Any, key: str) -> dict[str, tuple[Path, ...]]:
        found = {}
        for name, paths in self.mapping(value, key).items():
            listed = paths if isinstance(paths, list) else [paths]
            found[name] = tuple(self.folder / self.text(p, f"{key}.{name}") for p in listed)
        return found

    def sample(self, value: Any, number: int) -> Sample:
        key = f"samples[{number}]"
        entry = self.mapping(value, key)
        self.known(entry, {"name", "label", "kind", "description", "parameters", "files"}, key)
        name = self.text(entry.get("name"), f"{key}.name")
        kind = entry.get("kind", "real")
        if kind not in ("real", "simulated"):
            raise self.fail(f"{key}.kind must be 'real' or 'simulated'")
        files = self.mapping(entry.get("files"), f"{key}.files")
        self.known(
            files,
            {*_SINGLE_FILES, *_FILES_BY_NAME, "classification", "benchmarks"},
            f"{key}.files",
        )
        quast = files.get("quast")
        if isinstance(quast, str):
            quast = {"all": quast}
        extension = files.get("extension")
        if isinstance(extension, str):
            extension = {EXTENDERS[0]: extension}
        both: set[str] = set(VARIANTS)
        return Sample(
            name=name,
            label=self.text(entry.get("label"), f"{key}.label", name),
            kind=kind,
            description=self.text(entry.get("description"), f"{key}.description", ""),
            parameters=self.mapping(entry.get("parameters"), f"{key}.parameters"),
            files=SampleFiles(
                correct=self.file(files.get("correct"), f"{key}.files.correct"),
                evaluation=self.file(files.get("evaluation"), f"{key}.files.evaluation"),
                merge=self.file(files.get("merge"), f"{key}.files.merge"),
                merging=self.file(files.get("merging"), f"{key}.files.merging"),
                extend=self.file(files.get("extend"), f"{key}.files.extend"),
                quast_extended=self.file(
                    files.get("quast_extended"), f"{key}.files.quast_extended"
                ),
                extension=self.files(extension, f"{key}.files.extension", set(EXTENDERS)),
                kmers=self.files(files.get("kmers"), f"{key}.files.kmers", both),
                contigs=self.files(files.get("contigs"), f"{key}.files.contigs", both),
                quast=self.files(quast, f"{key}.files.quast", both | {"all"}),
                classification=self.files_of_databases(
                    files.get("classification"), f"{key}.files.classification"
                ),
                benchmarks=self.file_lists(files.get("benchmarks"), f"{key}.files.benchmarks"),
            ),
        )


def read_study(path: str | Path) -> Study:
    """Read and check a study manifest.

    Raises:
        InputError: when the file cannot be read or does not follow the schema; the message names
            the entry.
    """
    source = Path(path)
    document = read_json(source, SCHEMA, SCHEMA_VERSION)
    reader = _Reader(source)
    reader.known(
        document,
        {
            "schema", "schema_version", "title", "description", "date", "command", "config",
            "versions", "machine", "databases", "samples",
        },
        "the study",
    )  # fmt: skip
    entries = document.get("samples")
    if not isinstance(entries, list) or not entries:
        raise reader.fail("samples must be a list of at least one sample")
    samples = tuple(reader.sample(entry, number) for number, entry in enumerate(entries))
    names = [sample.name for sample in samples]
    if len(set(names)) != len(names):
        raise reader.fail("two samples have the same name")
    versions = reader.mapping(document.get("versions"), "versions")
    return Study(
        title=reader.text(document.get("title"), "title", "Read correction study"),
        samples=samples,
        description=reader.text(document.get("description"), "description", ""),
        date=reader.text(document.get("date"), "date", ""),
        command=reader.text(document.get("command"), "command", ""),
        config=reader.mapping(document.get("config"), "config"),
        versions={name: str(version) for name, version in versions.items()},
        machine=reader.mapping(document.get("machine"), "machine"),
        databases=reader.files(document.get("databases"), "databases"),
    )


def read_json(path: Path, schema: str, version: int) -> dict[str, Any]:
    """Read a JSON object and check its ``schema`` and ``schema_version``.

    Raises:
        InputError: when it cannot be read, is not JSON, or is of another kind or newer version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(path, error.strerror or str(error), "check the path") from error
    except UnicodeDecodeError as error:
        raise InputError(path, "it is not UTF-8 text", "make the file again") from error
    except json.JSONDecodeError as error:
        raise InputError(
            path, f"it is not valid JSON ({error.msg})", "make the file again", line=error.lineno
        ) from error
    if not isinstance(document, dict) or document.get("schema") != schema:
        raise InputError(path, f"it is not of the schema {schema}", "give the right file")
    found = document.get("schema_version")
    if not isinstance(found, int) or not 1 <= found <= version:
        raise InputError(
            path,
            f"its schema_version {found!r} is not known here (at most {version})",
            "make the file with this version of ngsgpu",
        )
    return document
