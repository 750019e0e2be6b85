"""MultiQC custom content: a bar graph and columns of the general statistics for each sample.

MultiQC picks up ``*_mqc.json`` files without any configuration and merges those of different
samples that have the same ``id``. One file holds one section, so each sample has two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ngsgpu.errors import UsageError
from ngsgpu.io.output.atomic import write_texts
from ngsgpu.report.palette import AFTER, BEFORE, BLUE, GREY, SKY

Document = Mapping[str, Any]

CORRECTION: Final = "ngsgpu_correction"
"""Kind of the content of ``ngsgpu evaluate correction``."""


def paths_of(prefix: str, kind: str) -> list[Path]:
    """The two files of a kind of content: a bar graph, and columns of the general statistics."""
    return [Path(f"{prefix}.{kind}_mqc.json"), Path(f"{prefix}.{kind}_generalstats_mqc.json")]


def evaluation_content(document: Document, sample: str) -> tuple[str, str]:
    """MultiQC content of one evaluation, for the files of ``CORRECTION``.

    Args:
        document: JSON object of ``ngsgpu evaluate correction``.
        sample: name of the sample.
    """
    totals, rates = document["totals"], document["rates"]
    return _content(
        CORRECTION,
        sample,
        "Correction against the truth",
        "Bases that were wrong before or after correction, by outcome "
        "(reads without insertions and deletions).",
        "bases",
        {
            "tp": ("Errors corrected (TP)", AFTER, totals["tp"]),
            "fn": ("Errors left (FN)", GREY, totals["fn"]),
            "fp": ("Errors introduced (FP)", BEFORE, totals["fp"]),
        },
        {
            "sensitivity": (
                _percent(rates["sensitivity"]),
                {"title": "Sensitivity", "description": "TP / (TP + FN)", "suffix": "%",
                 "min": 0, "max": 100, "format": "{:,.2f}", "scale": "Greens"},
            ),
            "fp_per_million": (
                rates["fp_per_million_corrections"],
                {"title": "FP/M", "description": "False positives per million corrections",
                 "min": 0, "format": "{:,.1f}", "scale": "Oranges"},
            ),
        },
    )  # fmt: skip


def write_content(document: Document, prefix: str, sample: str) -> tuple[Path, Path]:
    """Write MultiQC content of one run of ``ngsgpu correct``, ``merge`` or ``extend``.

    Args:
        document: JSON object of ``--stats``.
        prefix: the files are ``{prefix}.ngsgpu_correct_mqc.json`` and
            ``{prefix}.ngsgpu_correct_generalstats_mqc.json``, or the same of another command.
        sample: name of the sample.

    Returns:
        The two files.

    Raises:
        UsageError: the statistics are of another command.
        OutputError: when they cannot be written.
    """
    made = _CONTENT.get(str(document.get("schema")))
    if made is None:
        raise UsageError(
            f"no MultiQC content for statistics of {document.get('schema')}; there is for "
            f"{', '.join(_CONTENT)}"
        )
    kind = str(document["schema"]).replace(".", "_").replace("spectrum", "correct")
    bar_path, column_path = paths_of(prefix, kind)
    texts = made(document, sample)
    write_texts(dict(zip((bar_path, column_path), texts, strict=True)))
    return bar_path, column_path


def _correct_content(document: Document, sample: str) -> tuple[str, str]:
    reads, corrected = document["reads"], document["corrected"]
    kmers = document.get("kmers")
    coverage: dict[str, tuple[Any, dict[str, Any]]] = {
        "coverage": (
            # The coverage by no reads is unknown, whatever correction started from.
            document["coverage"]["value"] if reads["total"] else None,
            {"title": "Coverage", "description": "Coverage used for correction",
             "suffix": "x", "min": 0, "format": "{:,.1f}", "scale": "Blues"},
        )
    } if kmers is None else {
        "depth": (
            kmers["depth"] if reads["total"] else None,
            {"title": "Depth", "description": "Depth of the main peak of the k-mers",
             "suffix": "x", "min": 0, "format": "{:,.0f}", "scale": "Blues"},
        )
    }  # fmt: skip
    return _content(
        "ngsgpu_correct",
        sample,
        "Corrected reads",
        "Reads with at least one replaced base, and the others.",
        "reads",
        {
            "corrected": ("Corrected", BLUE, corrected["reads"]),
            "left": ("Unchanged", SKY, reads["total"] - corrected["reads"]),
        },
        {
            **coverage,
            "corrected_bases": (
                _share(corrected["bases"], reads["bases"]),
                {"title": "Corrected bases", "description": "Fraction of bases replaced",
                 "suffix": "%", "min": 0, "format": "{:,.3f}", "scale": "Purples"},
            ),
        },
    )  # fmt: skip


def _merge_content(document: Document, sample: str) -> tuple[str, str]:
    pairs, inserts = document["pairs"], document["insert_size"]
    return _content(
        "ngsgpu_merge",
        sample,
        "Merged pairs",
        "Overlapping pairs that were merged into one read each, and the others.",
        "pairs",
        {
            "merged": ("Merged", BLUE, pairs["merged"]),
            "left": ("Not merged", SKY, pairs["total"] - pairs["merged"]),
        },
        {
            "merged": (
                _share(pairs["merged"], pairs["total"]),
                {"title": "Merged", "description": "Fraction of pairs merged", "suffix": "%",
                 "min": 0, "max": 100, "format": "{:,.1f}", "scale": "Greens"},
            ),
            "insert_size": (
                inserts["mean"] if pairs["merged"] else None,
                {"title": "Merged insert", "description": "Mean insert size of merged pairs",
                 "suffix": " bp", "min": 0, "format": "{:,.0f}", "scale": "Blues"},
            ),
        },
    )  # fmt: skip


def _extend_content(document: Document, sample: str) -> tuple[str, str]:
    pairs, insert = document["pairs"], document["insert"]
    return _content(
        "ngsgpu_extend",
        sample,
        "Extended pairs",
        "Pairs whose gap was filled from other reads, and the others.",
        "pairs",
        {
            "connected": ("Connected", BLUE, pairs["connected"]),
            "remaining": ("Not connected", SKY, pairs["remaining"]),
        },
        {
            "connected": (
                _share(pairs["connected"], pairs["total"]),
                {"title": "Extended", "description": "Fraction of pairs connected to one read",
                 "suffix": "%", "min": 0, "max": 100, "format": "{:,.1f}", "scale": "Greens"},
            ),
            "insert": (
                insert["mean"] if pairs["total"] else None,
                {"title": "Insert", "description": "Mean insert size used for extension",
                 "suffix": " bp", "min": 0, "format": "{:,.0f}", "scale": "Blues"},
            ),
        },
    )  # fmt: skip


_CONTENT: Final = {
    "ngsgpu.correct": _correct_content,
    "ngsgpu.spectrum": _correct_content,
    "ngsgpu.merge": _merge_content,
    "ngsgpu.extend": _extend_content,
}


def _content(
    kind: str,
    sample: str,
    section: str,
    description: str,
    unit: str,
    bars: Mapping[str, tuple[str, str, int]],
    columns: Mapping[str, tuple[float | None, dict[str, Any]]],
) -> tuple[str, str]:
    """A graph of bars (name, colour, number), and columns (value, settings) of the statistics."""
    graph = {
        "parent_id": "ngsgpu",
        "parent_name": "ngsgpu",
        "parent_description": "Correction, merging and extension of Illumina reads.",
        "id": kind,
        "section_name": section,
        "description": description,
        "plot_type": "bargraph",
        "pconfig": {
            "id": f"{kind}_plot",
            "title": f"ngsgpu: {section[0].lower()}{section[1:]}",
            "ylab": unit,
        },
        "categories": {key: {"name": name, "color": c} for key, (name, c, _) in bars.items()},
        "data": {sample: {key: number for key, (_, _, number) in bars.items()}},
    }
    values = {name: value for name, (value, _) in columns.items() if value is not None}
    general = {
        "id": f"{kind}_generalstats",
        "plot_type": "generalstats",
        "pconfig": [{name: {"namespace": "ngsgpu", **columns[name][1]}} for name in values],
        "data": {sample: values},
    }
    return json.dumps(graph, indent=2) + "\n", json.dumps(general, indent=2) + "\n"


def _share(part: float, whole: float) -> float | None:
    return _percent(part / whole if whole else None)


def _percent(value: float | None) -> float | None:
    return None if value is None else value * 100
