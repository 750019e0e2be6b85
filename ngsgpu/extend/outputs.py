"""Outputs of an extension: files, and text formatted from records and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.records import Format, format_pairs
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.run.again.sections import Section


class ExtensionOutputs(NamedTuple):
    """Output files; None: not written.

    Attributes:
        extended: extended reads; the others are the remaining pairs.
        remaining1: first mates of unconnected pairs.
        remaining2: second mates of these; with only ``remaining1`` mates are interleaved there.
        stats: statistics as JSON.
        fasta: write extended reads as FASTA.
        include_remaining: also write remaining pairs to ``extended``.
        sort: keep the input order.
        gap_quality: Phred score of all bases outside the two reads; None for computed ones.
    """

    extended: str
    remaining1: str | None = None
    remaining2: str | None = None
    stats: str | None = None
    fasta: bool = False
    include_remaining: bool = False
    sort: bool = True
    gap_quality: int | None = None

    @property
    def paths(self) -> list[str]:
        """The files of reads."""
        named = (self.extended, self.remaining1, self.remaining2)
        return [path for path in named if path is not None]

    def check(self) -> None:
        """Refuse contradictory outputs.

        Raises:
            UsageError: names the contradiction.
        """
        if self.remaining2 is not None and self.remaining1 is None:
            raise UsageError("`remaining2` needs `remaining1`; give both, or `remaining1` alone")
        if self.include_remaining and self.fasta:
            raise UsageError("`include_remaining` copies records as they are; omit `fasta`")
        if self.gap_quality is not None and not 0 <= self.gap_quality <= 60:
            raise UsageError(f"`gap_quality` must be from 0 to 60, not {self.gap_quality}")


class Text(NamedTuple):
    """Bytes for the outputs, and what the statistics need.

    Attributes:
        extended: uint8, extended reads.
        remaining1: uint8, first mates of the other pairs, or both.
        remaining2: uint8, second mates.
        lengths: int64, of the extended reads.
        pairs: how many pairs it is of.
    """

    extended: NDArray[np.uint8]
    remaining1: NDArray[np.uint8]
    remaining2: NDArray[np.uint8]
    lengths: NDArray[np.int64]
    pairs: int


@dataclass(frozen=True, slots=True)
class TextMaker:
    """Formats pairs.

    Attributes:
        outputs: the output options.
        phred_offset: offset of the quality characters.
        reverse_complemented_input: 1 if the fragment's ends are the reads' reverse complements.
    """

    outputs: ExtensionOutputs
    phred_offset: int
    reverse_complemented_input: int

    def text(self, section: Section, results: Extensions) -> Text:
        """Format the pairs of a section.

        Args:
            section: records of the pairs.
            results: their results, one row per pair.
        """
        mates1, mates2 = section.load()
        outputs = self.outputs
        how = Format(
            fasta=int(outputs.fasta or len(mates1.qual_start) == 0),
            phred_offset=self.phred_offset,
            gap_quality=-1 if outputs.gap_quality is None else outputs.gap_quality,
            include_remaining=int(outputs.include_remaining),
            interleave_remaining=int(outputs.remaining2 is None),
            reverse_complemented_input=self.reverse_complemented_input,
        )
        texts = format_pairs(mates1, mates2, section.begin, how, results)
        return Text(*texts, section.pairs)

    def write(self, text: Text, files: OutputSet) -> None:
        """Append a text to the files, which are those of ``outputs.paths``."""
        files.write(0, text.extended)
        if self.outputs.remaining1 is not None:
            files.write(1, text.remaining1)
            if self.outputs.remaining2 is not None:
                files.write(2, text.remaining2)
