"""MultiQC custom content: a bar graph and columns of the general statistics for each sample.

MultiQC picks up ``*_mqc.json`` files without any configuration and merges those of different
samples that have the same ``id``. One file holds one section, so each sample has two.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ngsgpu.io.output.atomic import write_texts
from ngsgpu.report.palette import AFTER, BEFORE, BLUE, GREY, SKY

Document = Mapping[str, Any]

_PARENT = {
    "parent_id": "ngsgpu",
    "parent_name": "ngsgpu",
    "parent_description": "Correction of Illumina reads.",
}


CORRECTION: Final = "ngsgpu_correction"
"""Kind of the content of ``ngsgpu evaluate correction``."""


def paths_of(prefix: str, kind: str) -> list[Path]:
    """The two files of a kind of content: a bar graph, and columns of the general statistics."""
    return [Path(f"{prefix}.{kind}_mqc.json"), Path(f"{prefix}.{kind}_generalstats_mqc.json")]


def _text(content: Document) -> str:
    return json.dumps(content, indent=2) + "\n"


def evaluation_content(document: Document, sample: str) -> tuple[str, str]:
    """MultiQC content of one evaluation, for the files of ``CORRECTION``.

    Args:
        document: JSON object of ``ngsgpu evaluate correction``.
        sample: name of the sample.
    """
    totals, rates = document["totals"], document["rates"]
    bars = {
        **_PARENT,
        "id": CORRECTION,
        "section_name": "Correction against the truth",
        "description": "Bases that were wrong before or after correction, by outcome "
        "(reads without insertions and deletions).",
        "plot_type": "bargraph",
        "pconfig": {
            "id": "ngsgpu_correction_plot",
            "title": "ngsgpu: correction against the truth",
            "ylab": "bases",
        },
        "categories": {
            "tp": {"name": "Errors corrected (TP)", "color": AFTER},
            "fn": {"name": "Errors left (FN)", "color": GREY},
            "fp": {"name": "Errors introduced (FP)", "color": BEFORE},
        },
        "data": {sample: {name: totals[name] for name in ("tp", "fn", "fp")}},
    }
    columns = _columns(
        "ngsgpu_correction_generalstats",
        sample,
        {
            "sensitivity": (
                _scaled(rates["sensitivity"], 100),
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
    return _text(bars), _text(columns)


def write_correct_content(document: Document, prefix: str, sample: str) -> tuple[Path, Path]:
    """Write MultiQC content of one run of ``ngsgpu correct``.

    Args:
        document: JSON object of ``ngsgpu correct --stats``.
        prefix: the files are ``{prefix}.ngsgpu_correct_mqc.json`` and
            ``{prefix}.ngsgpu_correct_generalstats_mqc.json``.
        sample: name of the sample.

    Returns:
        The two files.

    Raises:
        OutputError: when they cannot be written.
    """
    reads, corrected = document["reads"], document["corrected"]
    bars = {
        **_PARENT,
        "id": "ngsgpu_correct",
        "section_name": "Corrected reads",
        "description": "Reads with at least one replaced base, and the others.",
        "plot_type": "bargraph",
        "pconfig": {
            "id": "ngsgpu_correct_plot",
            "title": "ngsgpu: corrected reads",
            "ylab": "reads",
        },
        "categories": {
            "corrected": {"name": "Corrected", "color": BLUE},
            "left": {"name": "Unchanged", "color": SKY},
        },
        "data": {
            sample: {
                "corrected": corrected["reads"],
                "left": reads["total"] - corrected["reads"],
            }
        },
    }
    columns = _columns(
        "ngsgpu_correct_generalstats",
        sample,
        {
            "coverage": (
                document["coverage"]["value"],
                {"title": "Coverage", "description": "Coverage used for correction",
                 "suffix": "x", "min": 0, "format": "{:,.1f}", "scale": "Blues"},
            ),
            "corrected_bases": (
                _scaled(corrected["bases"] / reads["bases"] if reads["bases"] else None, 100),
                {"title": "Corrected bases", "description": "Fraction of bases replaced",
                 "suffix": "%", "min": 0, "format": "{:,.3f}", "scale": "Purples"},
            ),
        },
    )  # fmt: skip
    bar_path, column_path = paths_of(prefix, "ngsgpu_correct")
    write_texts({bar_path: _text(bars), column_path: _text(columns)})
    return bar_path, column_path


def _columns(
    identifier: str, sample: str, entries: Mapping[str, tuple[float | None, dict[str, Any]]]
) -> dict[str, Any]:
    values = {name: value for name, (value, _) in entries.items() if value is not None}
    return {
        "id": identifier,
        "plot_type": "generalstats",
        "pconfig": [{name: {"namespace": "ngsgpu", **entries[name][1]}} for name in values],
        "data": {sample: values},
    }


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor
