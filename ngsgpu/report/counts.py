"""How many reads a sample came with, how many trimming and depletion left; which are empty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ngsgpu.report.model import SampleResults
from ngsgpu.report.sections.classification.section import Classifications
from ngsgpu.report.sections.correction.section import Correction
from ngsgpu.report.sections.depletion import Depletion
from ngsgpu.report.sections.extension import Extension
from ngsgpu.report.sections.merging import Merging
from ngsgpu.report.sections.quality import Quality, number_of, whole_reads
from ngsgpu.report.sections.trimming import BASES, READS, READS_LEFT, Trimming


@dataclass(frozen=True)
class Counts:
    """Numbers of a sample's reads and bases; None if unknown.

    Attributes:
        reads: as they came.
        bases: of these.
        trimmed: reads after trimming; None without.
        left: reads after depletion; None without.
    """

    reads: float | None
    bases: float | None
    trimmed: float | None = None
    left: float | None = None

    @property
    def is_without_reads(self) -> bool:
        """Whether the steps after trimming and depletion had no read."""
        return 0 in (self.reads, self.trimmed, self.left)


def counts_of(results: SampleResults) -> Counts:
    """The numbers of reads of a sample: of the first step that read all of them."""
    trimming, depletion = results.of(Trimming).stats, results.of(Depletion).stats
    reads, bases = next((own for own in _counted(results) if own[0] is not None), (None, None))
    return Counts(
        reads,
        bases,
        trimming.number(READS_LEFT) if trimming is not None else None,
        depletion.number("reads.kept") if depletion is not None else None,
    )


def empty_samples(samples: Sequence[SampleResults]) -> list[tuple[str, str]]:
    """The samples without reads, and why they have none."""
    found = []
    for results in samples:
        counts = counts_of(results)
        if counts.is_without_reads:
            found.append((results.sample.label, _why_empty(counts)))
    return found


def _why_empty(counts: Counts) -> str:
    if not counts.reads:
        return "its files are empty"
    return f"{'trimming' if counts.trimmed == 0 else 'depletion'} left none"


def _counted(results: SampleResults) -> Iterator[tuple[float | None, float | None]]:
    """Reads and bases, as each step counted them that reads all of them, in their order."""
    if (stats := results.of(Trimming).stats) is not None:
        yield stats.number(READS), stats.number(BASES)
    if (stats := results.of(Depletion).stats) is not None:
        yield stats.number("reads.total"), stats.number("bases.total")
    if (stats := results.of(Correction).stats) is not None:
        yield stats.number("reads.total"), stats.number("reads.bases")
    for pairs in (results.of(Merging).stats, results.of(Extension).stats):
        if pairs is not None and (number := pairs.number("pairs.total")) is not None:
            yield 2 * number, None
    for classification in results.of(Classifications).found.values():
        if (composition := classification.composition) is not None:
            yield composition.total * (2 if classification.unit == "pairs" else 1), None
    # Last, since fastp itself takes what is no FASTQ for no reads.
    raw = results.of(Quality).reads.get("raw")
    if raw is not None and (whole_reads(results) is not None or not results.failed_in):
        yield number_of(raw), raw.number("summary.before_filtering.total_bases")
