"""Settings of all experiments."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.accuracy.classification.genomes import Library, read_library
from benchmarks.accuracy.classification.programs import KRAKEN, Ngsgpu

CHOOSE, CHECK = (0, 1, 2), (100, 101)
"""Seeds of draws that rules may be chosen on, and of those that they are checked on."""


@dataclass(frozen=True)
class Settings:
    """See the options of the command, and its help."""

    given: argparse.Namespace

    @cached_property
    def library(self) -> Library:
        """The genomes that are drawn from."""
        return read_library(self.given.references, self.given.taxonomy, self.given.map)

    @property
    def work(self) -> Path:
        """Folder of databases and reads, which stay for the next run."""
        return Path(self.given.work)

    @property
    def checks(self) -> bool:
        """Whether the sets are those to check on."""
        return bool(self.given.check)

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of the draws."""
        return tuple(self.given.seeds or (CHECK if self.checks else CHOOSE))

    @property
    def versions(self) -> list[Ngsgpu]:
        """The versions of ``ngsgpu``."""
        return [Ngsgpu.parse(text) for text in self.given.version or []] or [Ngsgpu()]

    @property
    def kraken(self) -> bool:
        """Whether Kraken 2 is run."""
        return not self.given.alone and shutil.which(KRAKEN) is not None

    @property
    def confidences(self) -> list[float]:
        """Of Kraken 2."""
        return list(self.given.confidence)

    @property
    def coverages(self) -> list[float] | None:
        """Of the samples; None: those of the experiment."""
        return self.given.coverage or None

    @property
    def kinds(self) -> list[str] | None:
        """Of reads; None: all."""
        return self.given.reads or None

    @property
    def strains(self) -> Path | None:
        """Folder of strains that are not in the library."""
        return self.given.strains if self.checks else None

    @property
    def step(self) -> int | None:
        """Bases between phases of the plasmids' records."""
        return int(self.given.step) if self.given.step else None

    @property
    def genome_bases(self) -> int:
        """Bases of a synthetic genome."""
        return int(self.given.genome_bases)

    def takes(self, name: str) -> bool:
        """Whether a genome's file is among those to be measured."""
        return not self.given.only or any(name.startswith(only) for only in self.given.only)
