"""Errors of long reads by their qualities: how many wrong bases the model has to allow for.

The first reads of a sample tell, since their records alone decide which these are: not threads,
chunks or the backend, nor whether they come from a pipe. Of pairs these are first mates.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.params import MOST_ERRORS, EvidenceParameters
from ngsgpu.classify.params.outputs import SHORT_READ_ERRORS
from ngsgpu.io.text.batch import RecordBatch

logger = logging.getLogger("ngsgpu")

MOST_READS: Final = 1000
MOST_BASES: Final = 5_000_000
"""Reads that are looked at: as many, or as have that many bases, whichever are fewer."""

LEAST_LENGTH: Final = 700
"""Mean bases from which on reads count as long: two of 300 bases that are merged have 600 at most,
and nanopore reads of cDNA 838."""

_OFFSET: Final = 33
_PER_BILLION: Final = 1_000_000_000
_WRONG: Final[NDArray[np.int64]] = np.array(
    [round(_PER_BILLION * 10 ** (-max(byte - _OFFSET, 0) / 10)) for byte in range(256)],
    dtype=np.int64,
)
"""How often, in a billion, a base is wrong that has this letter as its quality."""


class Estimate(NamedTuple):
    """What the first reads say.

    Attributes:
        length: bases, in the mean.
        errors: per base; None if reads are short, or their qualities do not say.
        is_unknown: whether reads are long and all qualities are the same.
    """

    length: int
    errors: float | None
    is_unknown: bool = False


class ReadErrors:
    """Takes the first reads of a sample.

    Attributes:
        is_full: whether no more are needed.
    """

    def __init__(self) -> None:
        self._reads = self._bases = 0
        self._has_qualities = True
        self._parts: list[tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]] = []

    @property
    def is_full(self) -> bool:
        """Whether no more reads are needed."""
        return self._reads >= MOST_READS or self._bases >= MOST_BASES

    def wanted(self, lengths: NDArray[np.int32]) -> int:
        """How many of the next reads are needed, by their bases; they are counted."""
        most = lengths[: MOST_READS - self._reads]
        ends = self._bases + np.cumsum(most, dtype=np.int64)
        wanted = min(len(most), int(np.searchsorted(ends, MOST_BASES)) + 1)
        if self.is_full or wanted == 0:
            return 0
        self._reads += wanted
        self._bases = int(ends[wanted - 1])
        return wanted

    def add(
        self, text: NDArray[np.uint8], start: NDArray[np.int64], lengths: NDArray[np.int32]
    ) -> None:
        """Take the qualities of reads that were wanted.

        Args:
            text: uint8, contains them; is kept.
            start: int64[n], first quality of each.
            lengths: int32[n], how many.
        """
        self._parts.append((text, start, start + lengths))

    def take(self, batch: RecordBatch, step: int = 1) -> None:
        """Take what is needed of the next records, of which every ``step``-th counts."""
        lengths = batch.seq_len[::step]
        wanted = self.wanted(lengths)
        if wanted == 0:
            return
        if batch.qual_start is None:
            self._has_qualities = False
            return
        start, lengths = batch.qual_start[::step][:wanted], lengths[:wanted]
        first, end = int(start[0]), int(start[-1] + lengths[-1])
        self.add(batch.data[first:end].copy(), start - first, lengths)

    def estimate(self) -> Estimate:
        """What they say, with integers up to one division."""
        length = self._bases // max(1, self._reads)
        if length < LEAST_LENGTH or not self._has_qualities:
            return Estimate(length, None)
        errors = self._by_qualities()
        return Estimate(length, errors, errors is None)

    def _by_qualities(self) -> float | None:
        """Mean over reads of their errors per base; None if all qualities are the same."""
        wrong = reads = 0
        seen = np.zeros(len(_WRONG), dtype=np.bool_)
        for text, start, end in self._parts:
            for begin, stop in zip(start.tolist(), end.tolist(), strict=True):
                if begin == stop:
                    continue
                counts = np.bincount(text[begin:stop], minlength=len(_WRONG))
                seen |= counts > 0
                wrong += int(counts @ _WRONG) // (stop - begin)
                reads += 1
        if int(seen.sum()) < 2:
            return None
        return round(wrong / (reads * _PER_BILLION), 4)


def with_errors(
    evidence: EvidenceParameters, estimate: Estimate, sample: str
) -> EvidenceParameters:
    """Parameters that allow for the errors of long reads, if the user states none; says so.

    Args:
        evidence: parameters.
        estimate: what the first reads say.
        sample: its name.
    """
    if not evidence.by_model or evidence.read_errors is not None:
        return evidence
    if estimate.is_unknown:
        logger.info(
            "%s: reads of %s bases on average, whose qualities are all the same; if more than "
            "%.2g %% of the bases are wrong, state it by `read_errors`",
            sample,
            f"{estimate.length:,}",
            100 * SHORT_READ_ERRORS,
        )
    errors = min(estimate.errors or 0.0, MOST_ERRORS)
    if errors <= SHORT_READ_ERRORS:
        return evidence
    logger.info(
        "%s: %.3g %% of the bases of long reads are wrong by the qualities of the first ones, for "
        "which calls allow (`read_errors=%.4g`)",
        sample,
        100 * errors,
        errors,
    )
    return replace(evidence, read_errors=errors)
