"""The report's section on unitigs: the graphs of uncorrected and corrected reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ngsgpu.report import words
from ngsgpu.report.drawing import VARIANT_LABELS
from ngsgpu.report.files import Json, json_if_named
from ngsgpu.report.model import VARIANTS, FileSpec, Sample, SampleResults
from ngsgpu.report.page import Column, SampleSection, Table
from ngsgpu.report.stage import Stage

_ROWS: Final = {
    "kmers": "k-mers",
    "unitigs": "unitigs",
    "links": "links between them",
    "bases": "bases",
    "longest": "longest unitig",
    "n50": "N50",
}


@dataclass(eq=False)
class UnitigGraphs:
    """Statistics of a sample's graphs by variant."""

    stats: dict[str, Json] = field(default_factory=dict)


class UnitigsStage(Stage):
    """Compacted de Bruijn graphs of the uncorrected and of the corrected reads."""

    name = "unitigs"
    title = "Unitig graphs"
    files = (FileSpec("unitigs", ("unitigs/{}/stats.json",), VARIANTS),)
    intro = (
        "<p>The compacted de Bruijn graph of the reads. Errors that are frequent enough are k-mers "
        "of the graph,\n  and cut its unitigs: the fewer and longer these are for the same genome, "
        "the easier it is to assemble.</p>"
    )

    def read(self, sample: Sample, missing: list[str]) -> UnitigGraphs:
        """Read the statistics; not every study has them."""
        found = UnitigGraphs()
        for variant, path in sample.files.group("unitigs").items():
            what = f"graph of the {VARIANT_LABELS.get(variant, variant)} reads"
            stats = json_if_named(path, what, "ngsgpu.unitigs", missing)
            if stats is not None:
                found.stats[variant] = stats
        return found

    def fill(self, section: SampleSection, results: SampleResults, *, is_brief: bool) -> None:
        """A table of the graphs."""
        stats = results.of(UnitigGraphs).stats
        if stats:
            own = next(iter(stats.values()))
            rows = [
                (label, *(words.count(each.number(key)) for each in stats.values()))
                for key, label in _ROWS.items()
            ]
            least = ("least count of a k-mer", *(
                words.count(each.number("min_abundance")) for each in stats.values()
            ))  # fmt: skip
            headings = ("", *(VARIANT_LABELS.get(name, name) for name in stats))
            title = f"Unitigs, k = {words.count(own.number('kmer'))}"
            section.tables.append((title, Table(headings, [*rows, least])))

    def columns(self, samples: Sequence[SampleResults]) -> list[Column]:
        """N50 of the unitigs, before and after."""
        found = [results.of(UnitigGraphs).stats for results in samples]
        cells = []
        for own in found:
            before, after = (own[name].number("n50") if name in own else None for name in VARIANTS)
            cells.append(words.change(words.count(before), words.count(after)))
        return [Column("N50 of unitigs", cells)]
