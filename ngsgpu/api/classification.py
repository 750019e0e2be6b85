"""Classification: a database that stays open, and a call for each read or pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from ngsgpu.api.files import Closing
from ngsgpu.api.results import save_files
from ngsgpu.api.runs import Folder, How, Source, check_kind, inputs_of, run_options
from ngsgpu.classify.database.database import open_database
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    EvidenceParameters,
    OutputRules,
    QueryParameters,
)
from ngsgpu.classify.run.pipeline import Classifier as FileClassifier
from ngsgpu.classify.run.samples import SampleOutputs, one_sample
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL
from ngsgpu.io.text.diagnose import PhredOffset


@dataclass(frozen=True, slots=True)
class Call:
    """What a read, or a pair, was called.

    Attributes:
        read: first word of its name, without ``/1`` or ``/2``.
        taxid: of the taxon; 0 if it is unclassified.
        rank: ``sequence``, ``species``, ..., ``domain``, or ``no rank``.
        name: of the taxon, or of the reference sequence; ``unclassified``.
        score: features that the read shares with its best candidate.
        target: the best candidate, a reference sequence; None without one.
        begin: first position in the target with hits, from 1; 0 without a target.
        end: last position.
    """

    read: str
    taxid: int
    rank: str
    name: str
    score: int
    target: str | None
    begin: int
    end: int

    @property
    def classified(self) -> bool:
        """Whether there is a taxon, or a reference sequence."""
        return self.name != "unclassified" or self.taxid != 0


class Calls(Closing):
    """The calls of a sample, in the order of its reads; iterate as often as needed.

    They are in temporary files, which go when the object does, or the block of a ``with``.

    Attributes:
        statistics: of the run; ``to_json()`` and ``summary()`` show it.
    """

    def __init__(self, folder: Folder, statistics: Any) -> None:
        self.statistics = statistics
        self._folder = folder

    def __iter__(self) -> Iterator[Call]:
        """The call of each read or pair."""
        with (self._folder.path / "calls").open(errors="surrogateescape", newline="\n") as lines:
            next(lines)
            for line in lines:
                read, taxid, rank, name, score, target, begin, end = line[:-1].split("\t")
                known = None if target == "-" else target
                yield Call(read, int(taxid), rank, name, int(score), known, int(begin), int(end))

    @property
    def report(self) -> str:
        """The report of clades in Kraken's format, as of ``ngsgpu classify --report``."""
        return (self._folder.path / "report").read_text()

    def save(
        self,
        path: str | Path,
        report: str | Path | None = None,
        *,
        threads: int = 1,
        compress_level: int = DEFAULT_LEVEL,
    ) -> None:
        """Write the table of calls, and the report, as ``ngsgpu classify`` does.

        Args:
            path: of the table; names ending in ``.gz`` or ``.zst`` are compressed.
            report: of the report.
            threads: that compress.
            compress_level: 1 (fast) to 12 (small).

        Raises:
            OutputError: a file cannot be written; none was.
        """
        files = [self._folder.path / "calls", self._folder.path / "report"]
        paths = [path] if report is None else [path, report]
        save_files(files[: len(paths)], paths, threads, compress_level)

    def close(self) -> None:
        """Remove the temporary files."""
        self._folder.remove()


class Classifier(Closing):
    """Classifies any number of samples with a database that is opened once; a context manager.

    Args:
        database: its folder.
        parameters: what decides the call of a read; as of ``ngsgpu classify`` by default.
        evidence: which species are accepted; likewise.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Raises:
        InputError: the database is missing or damaged.
        UsageError: the parameters are those of something else.
    """

    def __init__(
        self,
        database: str | Path,
        parameters: QueryParameters = CALLS_BY_EVIDENCE,
        evidence: EvidenceParameters | None = None,
        **how: Unpack[How],
    ) -> None:
        check_kind("parameters", parameters, QueryParameters)
        check_kind("evidence", evidence, EvidenceParameters)
        self._classifier = FileClassifier(
            open_database(database, load=None),
            parameters,
            rules=OutputRules(evidence=evidence or EvidenceParameters()),
            options=run_options(how),
        )

    def classify(
        self,
        reads: Source,
        mates: Source | None = None,
        *,
        name: str = "sample",
        interleaved: bool = False,
        phred_offset: PhredOffset = "auto",
    ) -> Calls:
        """Classify the reads of a sample.

        Args:
            reads: single reads, first mates, or pairs.
            mates: second mates.
            name: of the sample, for statistics and messages.
            interleaved: whether files of ``reads`` hold both mates.
            phred_offset: 33, 64, or ``auto``.

        Returns:
            The call of each read or pair.

        Raises:
            InputError: the reads cannot be read.
        """
        with Folder() as folder:
            inputs = inputs_of(reads, mates, interleaved, folder)
            first, second = (_texts(paths) for paths in (inputs.first, inputs.second))
            sample = one_sample(first, second, interleaved=inputs.interleaved, name=name)
            outputs = SampleOutputs(
                reads=str(folder.path / "calls"), report=str(folder.path / "report")
            )
            (statistics,) = self._classifier.classify([sample], outputs, phred_offset=phred_offset)
            return Calls(folder, statistics)

    def close(self) -> None:
        """Close the database."""
        self._classifier.engine.database.close()


def classify(
    reads: Source,
    mates: Source | None = None,
    *,
    database: str | Path,
    name: str = "sample",
    interleaved: bool = False,
    phred_offset: PhredOffset = "auto",
    **how: Unpack[How],
) -> Calls:
    """Classify the reads of one sample, as ``ngsgpu classify``.

    ``Classifier`` keeps its database open for more samples.

    Args:
        reads: single reads, first mates, or pairs.
        mates: second mates.
        database: its folder.
        name: of the sample, for statistics and messages.
        interleaved: whether files of ``reads`` hold both mates.
        phred_offset: 33, 64, or ``auto``.
        how: ``backend``, ``threads``, ``memory`` and others, see ``ngsgpu.api.runs.How``.

    Returns:
        The call of each read or pair.

    Raises:
        InputError: the reads cannot be read, or the database is missing or damaged.
    """
    with Classifier(database, **how) as classifier:
        return classifier.classify(
            reads, mates, name=name, interleaved=interleaved, phred_offset=phred_offset
        )


def _texts(paths: Sequence[str | Path]) -> list[str]:
    return [str(path) for path in paths]
