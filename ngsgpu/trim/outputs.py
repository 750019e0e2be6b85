"""Where trimmed reads go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ngsgpu.declared.options import OUTPUT, option
from ngsgpu.declared.roles import Text, Written
from ngsgpu.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class TrimOutputs:
    """Output files; names ending in ``.gz`` or ``.zst`` are compressed.

    Attributes:
        out1: reads, or first mates; of pairs without ``out2`` both, interleaved.
        out2: second mates.
        unpaired1: first mates that are kept while their second mates are not.
        unpaired2: the opposite; without it they go to ``unpaired1``.
        failed_out: reads that are not kept, with the reason behind their names.
        json: fastp's report.
        report_title: its title.
    """

    out1: Written | None = option(
        None,
        "FILE",
        "Trimmed reads or first mates; without -O, pairs are interleaved.",
        "-o",
        "--out1",
    )
    out2: Written | None = option(None, "FILE", "Trimmed second mates.", "-O", "--out2")
    unpaired1: Written | None = option(None, "FILE", "First mates whose second mates were dropped.")
    unpaired2: Written | None = option(
        None, "FILE", "Second mates whose first mates were dropped.", shown_default="--unpaired1"
    )
    failed_out: Written | None = option(
        None, "FILE", "Dropped reads, with the reason after their names."
    )
    json: Written | None = option(
        None, "FILE", "Counts in fastp's JSON format, for MultiQC.", "-j", "--json"
    )
    report_title: Text | None = option(
        None,
        "TEXT",
        "Title of the JSON, which MultiQC uses as the sample name.",
        "-R",
        "--report-title",
        group=OUTPUT,
    )

    def check(self, paired: bool) -> None:
        """Refuse outputs that do not fit the reads.

        Raises:
            UsageError: some do not.
        """
        if not paired:
            for name in ("out2", "unpaired1", "unpaired2"):
                if getattr(self, name) is not None:
                    raise UsageError(
                        f"`{name}` is for pairs; give second mates with `in2`, or `interleaved`"
                    )
        if self.out2 is not None and self.out1 is None:
            raise UsageError("`out2` needs `out1`, for the first mates")
        if self.unpaired2 is not None and self.unpaired1 is None:
            raise UsageError("`unpaired2` needs `unpaired1`, for the first mates")

    @property
    def numbers(self) -> dict[int, str]:
        """Paths of the files of reads, by the number of the stage's output."""
        paths = self.out1, self.out2, self.unpaired1, self._second_unpaired, self.failed_out
        return {number: str(path) for number, path in enumerate(paths) if path is not None}

    @property
    def _second_unpaired(self) -> Written | None:
        return None if self.unpaired2 == self.unpaired1 else self.unpaired2

    @property
    def texts(self) -> Sequence[str]:
        """Paths of the small files."""
        return [] if self.json is None else [str(self.json)]

    def titled(self, command: Sequence[str]) -> str:
        """A command line with the title, as MultiQC looks for it."""
        text = " ".join(command)
        if self.report_title is None:
            return text
        title = " ".join(["--report_title", self.report_title])
        return text if title in text else f"{text} {title}"
