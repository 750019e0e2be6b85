"""The formats of classification's outputs: what each is called, holds, and is made by.

From these follow the options of ``ngsgpu classify`` and ``classify-merge``, `SampleOutputs`, and
what a run writes on either backend. Ours are in ``OURS``; other packages register theirs as entry
points of the group ``ngsgpu.classify.outputs``, each a `Format`. Only the standard library is
imported, so that the command line starts at once: makers are imported when they are used.
"""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from keyword import iskeyword
from typing import Any, Final, Literal

from ngsgpu.errors import UsageError
from ngsgpu.lazy import registered

GROUP: Final = "ngsgpu.classify.outputs"
"""Entry points of other packages' formats."""

logger = logging.getLogger("ngsgpu")


@dataclass(frozen=True, slots=True)
class Format:
    """A format.

    Its maker is a function or class that takes what it needs by the names of its parameters: the
    attributes of the class in `ngsgpu.classify.outputs.given` that ``of`` stands for. It returns
    the text of the file; of ``reads`` an object that makes the lines (`LineMaker` there).

    Attributes:
        name: of the option, with underscores for its dashes.
        of: what a file is made of: ``reads``, each as it is called; a ``sample`` when all its reads
            are; or all ``samples`` of the run, unless ``{sample}`` is in the file's name.
        maker: where it is made, ``module:function``.
        help: of the option.
        names: of the option, if others than ``--`` and the name.
        metavar: placeholder of the file's name.
        ending: of the names that wrappers and modules give its files.
    """

    name: str
    of: Literal["reads", "sample", "samples"]
    maker: str
    help: str
    names: tuple[str, ...] = ()
    metavar: str = "FILE"
    ending: str = ""

    def needs(self, kind: type) -> list[str]:
        """What its maker takes.

        Args:
            kind: class of ``ngsgpu.classify.outputs.given`` whose attributes it can take.

        Raises:
            UsageError: the maker cannot be imported, or needs something else.
        """
        found = []
        for parameter in inspect.signature(self._load()).parameters.values():
            if hasattr(kind, parameter.name):
                found.append(parameter.name)
            elif parameter.default is parameter.empty:
                raise UsageError(
                    f"`{self.name}`: {self.maker} takes {parameter.name!r}, which there is not of "
                    f"{self.of}"
                )
        return found

    def make(self, given: Any) -> Any:
        """Call its maker.

        Args:
            given: what it can take.
        """
        return self._load()(**{name: getattr(given, name) for name in self.needs(type(given))})

    def _load(self) -> Callable[..., Any]:
        module, _, function = self.maker.partition(":")
        try:
            found: Callable[..., Any] = getattr(importlib.import_module(module), function)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"`{self.name}` cannot be written: {error}") from error
        return found


OURS: Final = (
    Format(
        "reads",
        "reads",
        "ngsgpu.classify.outputs.reads:ReadTableWriter",
        "Table of calls, one line per read; -: standard output.",
        ("-o", "--out"),
        ending="reads.tsv.gz",
    ),
    Format(
        "kraken_reads",
        "reads",
        "ngsgpu.classify.outputs.reads:KrakenLinesWriter",
        "Calls in Kraken's per-read format.",
        ending="kraken2.classifiedreads.txt",
    ),
    Format(
        "report",
        "sample",
        "ngsgpu.classify.outputs.kraken:kraken_report",
        "Kraken-style report; name it SAMPLE.kraken2.report.txt for MultiQC.",
        ending="kraken2.report.txt",
    ),
    Format(
        "mpa",
        "sample",
        "ngsgpu.classify.outputs.mpa:mpa_report",
        "Reads by lineage in MetaPhlAn's style, as of Kraken's --use-mpa-style.",
        ending="mpa.txt",
    ),
    Format(
        "krona",
        "sample",
        "ngsgpu.classify.outputs.kraken:krona_text",
        "Krona text input (ktImportText).",
        ending="krona.txt",
    ),
    Format(
        "cami",
        "sample",
        "ngsgpu.classify.outputs.cami:cami_profile",
        "CAMI profile.",
        ending="profile",
    ),
    Format(
        "biom",
        "samples",
        "ngsgpu.classify.outputs.biom:biom_table",
        "BIOM table of all samples.",
        ending="biom",
    ),
    Format(
        "abundance",
        "sample",
        "ngsgpu.classify.outputs.tables:abundance_table",
        "Estimated abundances at --abundance-rank, also by genome size.",
        ending="abundance.tsv",
    ),
    Format(
        "coverage",
        "sample",
        "ngsgpu.classify.outputs.tables:coverage_table",
        "Coverage of the reference sequences by mapped reads.",
        ending="coverage.tsv",
    ),
    Format(
        "evidence",
        "sample",
        "ngsgpu.classify.outputs.tables:evidence_table",
        "Table of the species that reads look like: whether each is present, and why.",
        ending="evidence.tsv",
    ),
)


@cache
def formats() -> dict[str, Format]:
    """All formats by their names: ours, then those of other packages.

    One that cannot be used is reported and left out.
    """
    found = {own.name: own for own in OURS}
    for name, place, other in registered(GROUP):
        if isinstance(other, Exception):
            logger.warning("output format %s: %s cannot be loaded (%s)", name, place, other)
        elif not isinstance(other, Format):
            logger.warning("output format %s: %s is no Format", name, place)
        elif not other.name.isidentifier() or iskeyword(other.name):
            logger.warning("output format %s: %r is no name of a parameter", name, other.name)
        elif other.name in found:
            logger.warning("output format %s: there is one of this name", name)
        else:
            found[other.name] = other
    return found
