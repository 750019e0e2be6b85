"""From the files of a study to one object a sample, with a list of what is not there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.report import sources
from ngsgpu.report.absent import Note, is_present, read_note
from ngsgpu.report.sources import Benchmark, Quast, Spectrum
from ngsgpu.report.study import VARIANTS, Sample, read_json
from ngsgpu.report.taxa import Classification, collect_classification

_LARGEST_VALUE: Final = 10_000_000
"""Of a histogram, which is drawn value by value: no fragment is longer."""


class Json:
    """A JSON object with access by path and checks that name the file and the entry.

    Args:
        path: the file it was read from.
        document: its content.
    """

    def __init__(self, path: Path, document: dict[str, Any]) -> None:
        self.path = path
        self.document = document

    def get(self, key: str) -> Any:
        """The entry at a dotted path, ``None`` if there is none."""
        value: Any = self.document
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def number(self, key: str) -> float | None:
        """A number; ``None`` if there is none.

        Raises:
            InputError: something else is there.
        """
        value = self.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "is not a number")
        return value

    def array(self, key: str) -> NDArray[np.float64]:
        """A list of numbers; empty if there is none.

        Raises:
            InputError: something else is there.
        """
        return self.as_array(self.get(key), key)

    def as_array(self, value: Any, key: str) -> NDArray[np.float64]:
        """Check that a value is a list of numbers, and turn it into an array."""
        numbers = value if value is not None else []
        if not isinstance(numbers, list) or not all(
            isinstance(n, int | float) and not isinstance(n, bool) for n in numbers
        ):
            raise self._wrong(key, "is not a list of numbers")
        return np.array(numbers, dtype=np.float64)

    def histogram(self, key: str) -> list[tuple[int, int]]:
        """A list of values, ascending, each with its count; empty if there is none.

        Raises:
            InputError: something else is there.
        """
        rows = [self.as_array(row, key) for row in self.entries(key)]
        last = -1.0
        for row in rows:
            if len(row) != 2 or not (last < row[0] <= _LARGEST_VALUE and 0 <= row[1] < np.inf):
                raise self._wrong(key, "is not a list of ascending values and their counts")
            last = row[0]
        return [(int(value), int(count)) for value, count in rows]

    def entries(self, key: str) -> list[Any]:
        """A list; empty if there is none.

        Raises:
            InputError: something else is there.
        """
        value = self.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(key, "is not a list")
        return value

    def _wrong(self, key: str, what: str) -> InputError:
        return InputError(self.path, f"{key} {what}", "make the file again")


@dataclass(frozen=True, eq=False)
class PositionCounts:
    """Errors by position of one mate's reads, all int64 [positions].

    Attributes:
        mate: 1 or 2.
        bases: reads that reach the position.
        before: errors in the input.
        after: errors in the output.
    """

    mate: int
    bases: NDArray[np.float64]
    before: NDArray[np.float64]
    after: NDArray[np.float64]


@dataclass(eq=False)
class SampleResults:
    """Everything there is about a sample.

    Attributes:
        sample: its entry in the study.
        correct: statistics of the correction.
        evaluation: comparison with the truth.
        merge: statistics of the merging of pairs.
        merging: comparison of merged reads with the truth.
        extend: statistics of the extension of pairs.
        extension: comparison of extended reads with the truth, by program.
        kmers: histograms by variant.
        contigs: lengths by variant, longest first.
        quast: QUAST's metrics.
        quast_extended: those of the assemblies of extended reads, beside the others.
        classification: what reads were classified as, by database.
        benchmarks: time and memory by rule.
        missing: what there is not, in words.
        notes: why results are not there that the workflow should have made.
    """

    sample: Sample
    correct: Json | None = None
    evaluation: Json | None = None
    merge: Json | None = None
    merging: Json | None = None
    extend: Json | None = None
    extension: dict[str, Json] = field(default_factory=dict)
    kmers: dict[str, Spectrum] = field(default_factory=dict)
    contigs: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    quast: Quast | None = None
    quast_extended: Quast | None = None
    classification: dict[str, Classification] = field(default_factory=dict)
    benchmarks: dict[str, Benchmark] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def positions(self) -> list[PositionCounts]:
        """Errors by position for each mate; empty without an evaluation."""
        if self.evaluation is None:
            return []
        found = []
        for number, entry in enumerate(self.evaluation.entries("by_position")):
            part = Json(self.evaluation.path, entry if isinstance(entry, dict) else {})
            arrays = [part.array(k) for k in ("bases", "errors_before", "errors_after")]
            if len({len(array) for array in arrays}) != 1:
                cause = f"the lists of by_position[{number}] differ in length"
                raise InputError(self.evaluation.path, cause, "make the file again")
            found.append(PositionCounts(number + 1, *arrays))
        return found

    def corrected_by_position(self) -> list[NDArray[np.float64]]:
        """Bases replaced at each position for each mate; empty without statistics."""
        if self.correct is None:
            return []
        key = "corrected_bases_by_position"
        return [self.correct.as_array(entry, key) for entry in self.correct.entries(key)]


def collect(sample: Sample) -> SampleResults:
    """Read all files of a sample.

    Raises:
        InputError: a file that is there is damaged.
    """
    results = SampleResults(sample)
    files = sample.files
    noted = (read_note(path) for path in files.results())
    results.notes = list(dict.fromkeys(note for note in noted if note is not None))
    # Where reads were only classified, it is no lack that nothing corrected them.
    is_only_classified = files.correct is None and bool(files.classification)
    _collect_correction(results, [] if is_only_classified else results.missing)
    _collect_pairs(results)
    for database, paths_by_name in files.classification.items():
        results.classification[database] = collect_classification(
            database, paths_by_name, results.missing
        )
    for rule, paths in files.benchmarks.items():
        found = tuple(path for path in paths if path.is_file())
        if found:
            results.benchmarks[rule] = sources.read_benchmarks(found)
    if not results.benchmarks:
        results.missing.append("run times and memory")
    return results


def _collect_correction(results: SampleResults, missing: list[str]) -> None:
    """Read what there is of the correction, its truth, k-mers and assemblies."""
    sample, files = results.sample, results.sample.files
    if is_present(files.correct, "statistics of the correction", missing):
        assert files.correct is not None
        results.correct = Json(files.correct, read_json(files.correct, "ngsgpu.correct", 1))
    if sample.kind == "simulated" or files.evaluation is not None:
        if is_present(files.evaluation, "comparison with the truth", missing):
            assert files.evaluation is not None
            document = read_json(files.evaluation, "ngsgpu.evaluate.correction", 1)
            results.evaluation = Json(files.evaluation, document)
    else:
        missing.append("comparison with the truth (the truth of real reads is not known)")
    for variant, path in _each(files.kmers, "k-mer spectrum of the {} reads", missing):
        results.kmers[variant] = sources.read_spectrum(path)
    for variant, path in _each(files.contigs, "contigs of the {} reads", missing):
        results.contigs[variant] = sources.read_contig_lengths(path)
    results.quast = _quast(sample, missing)


def _collect_pairs(results: SampleResults) -> None:
    """Read what there is of merging and extension."""
    files, missing = results.sample.files, results.missing
    # Not every study merges, so that is no lack.
    if files.merge is not None and is_present(files.merge, "statistics of merging", missing):
        results.merge = Json(files.merge, read_json(files.merge, "ngsgpu.merge", 1))
    if files.merging is not None and is_present(files.merging, "truth of merged reads", missing):
        document = read_json(files.merging, "ngsgpu.evaluate.merging", 1)
        results.merging = Json(files.merging, document)
    if files.extend is not None and is_present(files.extend, "statistics of extension", missing):
        results.extend = Json(files.extend, read_json(files.extend, "ngsgpu.extend", 1))
    for program, path in files.extension.items():
        if is_present(path, f"truth of the reads that {program} extended", missing):
            document = read_json(path, "ngsgpu.evaluate.extension", 1)
            results.extension[program] = Json(path, document)
    if files.quast_extended is not None and is_present(
        files.quast_extended, "QUAST's table on extended reads", missing
    ):
        results.quast_extended = sources.read_quast(files.quast_extended)


_WORDS = {"raw": "uncorrected", "corrected": "corrected"}


def _each(paths: Any, what: str, missing: list[str]) -> Iterator[tuple[str, Path]]:
    for variant in VARIANTS:
        path = paths.get(variant)
        if is_present(path, what.format(_WORDS[variant]), missing):
            yield variant, path


def _quast(sample: Sample, missing: list[str]) -> Quast | None:
    what = "QUAST's table"
    if not sample.files.quast:
        missing.append(what)
        return None
    reports = {
        name: sources.read_quast(path)
        for name, path in sample.files.quast.items()
        if is_present(path, what, missing)
    }
    return reports.get("all") or (sources.join_quast(reports) if reports else None)
