"""QUAST's metrics: reading them, and their tables."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ngsgpu.declared.numbers import decimal_number
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import parse_json
from ngsgpu.report import words
from ngsgpu.report.files import numbered_lines
from ngsgpu.report.page import Table

_HIGHER = (
    "N50", "NG50", "NA50", "NGA50", "N90", "NG90", "NA90", "NGA90", "auN", "auNG", "auNA",
    "auNGA", "Largest contig", "Largest alignment", "Total aligned length",
    "Genome fraction (%)",
)  # fmt: skip
_LOWER = (
    "# contigs", "L50", "LG50", "LA50", "LGA50", "L90", "LG90", "LA90", "LGA90",
    "# misassemblies", "# misassembled contigs", "Misassembled contigs length",
    "# local misassemblies", "Unaligned length", "Duplication ratio",
    "# mismatches per 100 kbp", "# indels per 100 kbp", "# N's per 100 kbp",
)  # fmt: skip
_MAIN = (
    "# contigs", "Largest contig", "Total length", "N50", "NG50", "NGA50",
    "Genome fraction (%)", "Duplication ratio", "# misassemblies", "# local misassemblies",
    "# mismatches per 100 kbp", "# indels per 100 kbp", "Unaligned length",
)  # fmt: skip


Curve = tuple[list[float], list[float]]
"""Percentages of a genome or assembly, ascending, and the lengths that reach them."""

_CURVES = re.compile(
    r"<div id='coord-(?P<kind>nx|ngx|nax|ngax)-json'>\s*(?P<json>\{[^{].*?\})\s*</div>"
)

_NEGLIGIBLE = 0.0005
"""Relative difference up to which neither of two values is called better."""


@dataclass(frozen=True)
class Quast:
    """QUAST's metrics of one or several assemblies.

    Attributes:
        metrics: metric to assembly (``raw``, ``corrected``) to the text in QUAST's table.
    """

    metrics: dict[str, dict[str, str]]

    def number(self, metric: str, assembly: str) -> float | None:
        """A metric as a number; ``None`` where it is missing or not one."""
        return _number(self.metrics.get(metric, {}).get(assembly, "-").split(" ")[0])


def _number(text: str) -> float | None:
    """A finite number; None for any other text."""
    try:
        value = decimal_number(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def read_quast(path: Path, *, are_variants: bool = True) -> Quast:
    """Read QUAST's ``report.tsv``, or the transposed one: one column or one row per assembly.

    Assemblies are identified by ``raw`` and ``corrected`` in their names, or, if they are not
    variants, by their whole names.

    Raises:
        InputError: the file cannot be read or is not such a table.
    """
    remedy = "run QUAST again"
    rows = [line.split("\t") for _, line in numbered_lines(path, remedy) if line]
    if not rows or rows[0][0] != "Assembly":
        raise InputError(path, "it is not a QUAST report.tsv", remedy, line=1)
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InputError(path, f"the line has {len(row)} cells", remedy, line=number)
    if any(name.startswith("# contigs") for name in rows[0]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    names = [_assembly(name) if are_variants else name for name in rows[0][1:]]
    if len(set(names)) != len(names):
        cause = "its assemblies cannot be distinguished by 'raw' and 'corrected' in their names"
        raise InputError(path, cause, "label them so (quast.py --labels raw,corrected)")
    return Quast({row[0]: dict(zip(names, row[1:], strict=True)) for row in rows[1:]})


def _assembly(name: str) -> str:
    lowered = name.lower()
    if "uncorrected" in lowered or "raw" in lowered:
        return "raw"
    return "corrected" if "corrected" in lowered else name


def read_curves(path: Path) -> dict[str, dict[str, Curve]]:
    """The curves of contiguity in QUAST's ``report.html``: by kind (``nx``, ``ngax``) and assembly.

    QUAST has no other file of them. A page without them gives none.

    Raises:
        InputError: the file cannot be read, or its curves are not as QUAST writes them.
    """
    text = "\n".join(line for _, line in numbered_lines(path, "run QUAST again"))
    curves: dict[str, dict[str, Curve]] = {}
    for found in _CURVES.finditer(text):
        try:
            document = parse_json(found["json"])
            columns = (document[key] for key in ("filenames", "coord_x", "coord_y"))
            curves[found["kind"]] = {
                str(name): ([float(value) for value in x], [float(value) for value in y])
                for name, x, y in zip(*columns, strict=True)
                if x
            }
        except (ValueError, KeyError, TypeError) as error:
            cause = f"its curve {found['kind']} cannot be read"
            raise InputError(path, cause, "run QUAST again") from error
    return curves


def join_quast(reports: dict[str, Quast]) -> Quast:
    """One table from reports of one assembly each, whatever QUAST called them."""
    metrics: dict[str, dict[str, str]] = {}
    for assembly, report in reports.items():
        for metric, values in report.metrics.items():
            metrics.setdefault(metric, {})[assembly] = next(iter(values.values()), "-")
    return Quast(metrics)


def quast_table(quast: Quast, *, everything: bool = False) -> Table:
    """QUAST's metrics of both assemblies, the better one marked where there is a better one.

    ``everything`` shows all metrics and not only the telling ones.
    """
    rows: list[tuple[str, ...]] = []
    marks = set()
    for metric in _metrics(quast, everything=everything):
        texts = [quast.metrics[metric].get(v, "-") for v in ("raw", "corrected")]
        before, after = (quast.number(metric, v) for v in ("raw", "corrected"))
        change = ""
        if before is not None and after is not None:
            change = _change(before, after)
            differ = abs(after - before) > _NEGLIGIBLE * abs(before)
            if differ and (metric in _HIGHER or metric in _LOWER):
                is_after_better = (after > before) == (metric in _HIGHER)
                marks.add((len(rows), 2 if is_after_better else 1))
        rows.append((metric, *(_cell(text) for text in texts), change))
    return Table(("", "uncorrected", "corrected", "change"), rows, frozenset(marks))


def quast_rows(
    quast: Quast, names: Sequence[str], *, everything: bool = False
) -> tuple[list[tuple[str, ...]], frozenset[tuple[int, int]]]:
    """QUAST's metrics of any number of assemblies, and the cells of the best values.

    None is marked where all are about equal.

    Args:
        quast: QUAST's report.
        names: the assemblies, a column each.
        everything: all metrics instead of the main ones.
    """
    rows: list[tuple[str, ...]] = []
    marks = set()
    for metric in _metrics(quast, everything=everything):
        values = [quast.number(metric, name) for name in names]
        known = [value for value in values if value is not None]
        if len(known) > 1 and (metric in _HIGHER or metric in _LOWER):
            best, worst = max(known), min(known)
            margin = _NEGLIGIBLE * abs(best)
            if metric in _LOWER:
                best, worst = worst, best
            if abs(best - worst) > margin:
                marks |= {
                    (len(rows), 1 + column)
                    for column, value in enumerate(values)
                    if value is not None and abs(value - best) <= _NEGLIGIBLE * abs(best)
                }
        rows.append((metric, *(_cell(quast.metrics[metric].get(name, "-")) for name in names)))
    return rows, frozenset(marks)


def _metrics(quast: Quast, *, everything: bool) -> list[str]:
    """The metrics to show, in their order."""
    if everything:
        return list(quast.metrics)
    return sorted((name for name in quast.metrics if name in _MAIN), key=_MAIN.index)


def _cell(text: str) -> str:
    if text in ("-", ""):
        return words.NOTHING
    value = _number(text)
    return text if value is None else words.Number(_separated(text), value)


def _separated(text: str) -> str:
    """A number as QUAST writes it, whole ones with separators of thousands."""
    return f"{int(text):,}" if re.fullmatch(r"[0-9]{1,18}", text) else text


def _change(before: float, after: float) -> str:
    difference = after - before
    if difference == 0:
        return words.Number("=", 0.0)
    text = f"{difference:+,.0f}" if difference.is_integer() else f"{difference:+,.2f}"
    if abs(before) >= 1000 and abs(difference) > _NEGLIGIBLE * abs(before):
        text = f"{100 * difference / before:+.1f} %"
    return words.Number(text.replace("-", "\N{MINUS SIGN}"), difference)
