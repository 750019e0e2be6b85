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
      "jobs": {"build_partition": {"bacteria 0": "databases/bacteria/partitions/0.stats.json"}},
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
                           "evidence": "ecoli/classify/bacteria/evidence.tsv",
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

from pathlib import Path
from typing import Any

from ngsgpu.errors import InputError, unreadable
from ngsgpu.report.files import read_json
from ngsgpu.report.model import SCHEMA, SCHEMA_VERSION, FileSpec, Sample, SampleFiles, Study
from ngsgpu.report.sections import STAGES

_REMEDY = "see the schema in the documentation of ngsgpu report"


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

    def files(self, value: Any, key: str, allowed: set[str] | None = None) -> dict[str, Path]:
        entries = self.mapping(value, key)
        if allowed is not None:
            self.known(entries, allowed, key)
        return {
            name: self.place(path, f"{key}.{name}")
            for name, path in entries.items()
            if path is not None
        }

    def place(self, value: Any, key: str) -> Path:
        """A path; the file may be missing, but nothing else may be wrong with it."""
        text = self.text(value, key)
        path = self.folder / text
        if not text or "\0" in text or not path.name:
            raise self.fail(f"{key} is not the path of a file")
        try:
            path.is_file()
        except OSError as error:
            raise unreadable(path, error) from error
        return path

    def paths(self, spec: FileSpec, value: Any, key: str) -> dict[tuple[str, ...], Path]:
        """The files of one name; ``value`` is a path, or an object of them."""
        if value is None:
            return {}
        if not spec.keys:
            return {(spec.name,): self.place(value, key)}
        is_alone = spec.alone and isinstance(value, str)
        entries = self.mapping({spec.alone: value} if is_alone else value, key)
        allowed = set(spec.keys)
        if not spec.by_database:
            return {(spec.name, n): p for n, p in self.files(entries, key, allowed).items()}
        if entries and all(isinstance(entry, str) for entry in entries.values()):
            # Version 1: the files of a database without a name.
            entries = {"": entries}
        return {
            (spec.name, database, n): path
            for database, entry in entries.items()
            for n, path in self.files(
                entry, f"{key}.{database}" if database else key, allowed
            ).items()
        }

    def file_lists(self, value: Any, key: str) -> dict[str, tuple[Path, ...]]:
        found = {}
        for name, paths in self.mapping(value, key).items():
            listed = paths if isinstance(paths, list) else [paths]
            found[name] = tuple(self.place(path, f"{key}.{name}") for path in listed)
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
        specs = [spec for stage in STAGES for spec in stage.files]
        self.known(files, {*(spec.name for spec in specs), "benchmarks"}, f"{key}.files")
        paths: dict[tuple[str, ...], Path] = {}
        for spec in specs:
            paths |= self.paths(spec, files.get(spec.name), f"{key}.files.{spec.name}")
        return Sample(
            name=name,
            label=self.text(entry.get("label"), f"{key}.label", name),
            kind=kind,
            description=self.text(entry.get("description"), f"{key}.description", ""),
            parameters=self.mapping(entry.get("parameters"), f"{key}.parameters"),
            files=SampleFiles(
                paths, self.file_lists(files.get("benchmarks"), f"{key}.files.benchmarks")
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
            "versions", "machine", "databases", "jobs", "samples",
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
        jobs={
            rule: reader.files(jobs, f"jobs.{rule}")
            for rule, jobs in reader.mapping(document.get("jobs"), "jobs").items()
        },
    )
