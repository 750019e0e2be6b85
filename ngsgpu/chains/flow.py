"""How commands take reads and pass them on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ngsgpu.errors import UsageError


@dataclass(frozen=True)
class Flow:
    """Reads between two steps.

    Attributes:
        first: files of single reads, of first mates, or of pairs.
        second: files of second mates.
        interleaved: whether those of ``first`` hold pairs.
        single: files of single reads beside pairs: merged or extended ones.
        ending: of names of files of reads: ``fastq`` or ``fasta``.
    """

    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    interleaved: bool = False
    single: tuple[str, ...] = ()
    ending: str = "fastq"

    @property
    def paired(self) -> bool:
        """Whether ``first`` and ``second`` are pairs."""
        return self.interleaved or bool(self.second)

    @property
    def files(self) -> tuple[str, ...]:
        """All files."""
        return (*self.first, *self.second, *self.single)

    def below(self, folder: Path) -> Flow:
        """The files of these names in a folder."""
        first, second, single = (
            tuple(str(folder / name) for name in names)
            for names in (self.first, self.second, self.single)
        )
        return replace(self, first=first, second=second, single=single)


@dataclass(frozen=True)
class Wiring:
    """How a command takes reads, and what it makes of them.

    Attributes:
        mates: parameters of its outputs of first and second mates, or none.
        word: how their files are called.
        joined: parameter of its output of reads made of pairs, and how the file is called; or none.
        interleaved: parameter that says that a file holds pairs; none: the command counts both
            mates as reads.
        separates: whether mates of pairs in one file are written to two.
        beside: how it takes single reads beside pairs: ``refused``, ``single`` (by the parameter of
            that name), ``sheet`` (as further lanes of a sample) or ``reads`` (as all others).
        files: names of its other outputs, by their parameters; ``{name}`` stands for the step,
            ``{sample}`` for the sample.
        alone: parameter of an output beside which it has none of reads and calls.
    """

    mates: tuple[str, str] | None = None
    word: str = ""
    joined: tuple[str, str] | None = None
    interleaved: str = "interleaved"
    separates: bool = False
    beside: str = "refused"
    files: Mapping[str, str] = field(default_factory=dict)
    alone: str = ""

    @property
    def passes_on(self) -> bool:
        """Whether it writes reads for the next steps."""
        return self.mates is not None


_MATES = ("out1", "out2")
_STATS = {"stats": "{name}.stats.json"}

WIRINGS: Final = {
    "trim": Wiring(
        _MATES, "trimmed", separates=True, files={"json": "{sample}.fastp.json", **_STATS}
    ),
    "deplete": Wiring(_MATES, "depleted", files=_STATS),
    "correct": Wiring(_MATES, "corrected", files=_STATS),
    "extend": Wiring(
        ("remaining1", "remaining2"), "remaining", ("out", "extended"), separates=True, files=_STATS
    ),
    "merge": Wiring(
        ("unmerged1", "unmerged2"), "unmerged", ("out", "merged"), "interleaved_in",
        separates=True, files=_STATS,
    ),
    "classify": Wiring(
        beside="sheet",
        alone="candidate_file",
        files={
            "reads": "{sample}.reads.tsv.gz", "report": "{sample}.kraken2.report.txt", **_STATS,
        },
    ),
    "kmers count": Wiring(interleaved="", beside="reads", files={"histo_file": "{name}.histo"}),
    "unitigs": Wiring(interleaved="", beside="reads", files={"out": "{name}.fa.gz", **_STATS}),
    "assemble": Wiring(
        beside="single", files={"out": "contigs.fa", "gfa": "contigs.gfa", **_STATS}
    ),
    "adapters": Wiring(files=_STATS),
}  # fmt: skip
"""By the commands that can be steps."""

SHORT: Final = {"kmers": "kmers count"}
"""Commands of groups by what steps may call them."""


def wiring_of(command: str) -> tuple[str, Wiring]:
    """A command's full name, and how it is a step.

    Raises:
        UsageError: it cannot be one.
    """
    full = SHORT.get(command, command)
    if full not in WIRINGS:
        known = ", ".join(WIRINGS)
        raise UsageError(f"{command!r} cannot be a step; choose from: {known}")
    return full, WIRINGS[full]
