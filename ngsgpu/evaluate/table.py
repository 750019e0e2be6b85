"""The evaluation as a table for people: drawn on a terminal, plain elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ngsgpu.evaluate.outcomes import ClassificationEvaluation, Run
from ngsgpu.evaluate.result import CorrectionEvaluation

_HEADINGS = ("", "reads without indels", "reads with indels")


def rows(evaluation: CorrectionEvaluation) -> list[tuple[str, str, str]]:
    """Lines of the table: what, for reads without indels, for reads with indels."""
    counts = (evaluation.counts, evaluation.indel_counts)
    reads = (evaluation.read_counts, evaluation.indel_read_counts)

    def number(what: str, *values: int) -> tuple[str, str, str]:
        return what, f"{values[0]:,}", f"{values[1]:,}"

    def share(what: str, *values: float | None, digits: int = 5) -> tuple[str, str, str]:
        first, second = ("-" if value is None else f"{value:,.{digits}f}" for value in values)
        return what, first, second

    def of_indels(what: str, value: int) -> tuple[str, str, str]:
        return what, "-", f"{value:,}"

    aligned = evaluation.indel_aligned
    return [
        number("reads", *(r.total for r in reads)),
        number("bases", *(c.bases for c in counts)),
        number("TP  errors corrected", *(c.tp for c in counts)),
        number("FP  right bases made wrong", *(c.fp for c in counts)),
        number("FN  errors left", *(c.fn for c in counts)),
        number("    of these, changed to another wrong base", *(c.wrong_to_wrong for c in counts)),
        number("TN  right bases left alone", *(c.tn for c in counts)),
        share("sensitivity", *(c.sensitivity for c in counts)),
        share("specificity", *(c.specificity for c in counts), digits=7),
        share("precision", *(c.precision for c in counts), digits=7),
        share("FP per million corrections", *(c.fp_per_million for c in counts), digits=1),
        share("error rate before", *(c.error_rate_before for c in counts), digits=6),
        share("error rate after", *(c.error_rate_after for c in counts), digits=6),
        number("reads without an error before and after", *(r.kept_perfect for r in reads)),
        number("reads made perfect", *(r.made_perfect for r in reads)),
        number("reads improved", *(r.improved for r in reads)),
        number("reads left with as many errors", *(r.unchanged for r in reads)),
        number("reads made worse", *(r.made_worse for r in reads)),
        number("reads that overlap an N of the reference", *(r.with_unknown_truth for r in reads)),
        of_indels("aligned with the truth: cost before", aligned.cost_before),
        of_indels("    cost after", aligned.cost_after),
        of_indels("    reads nearer to it than before", aligned.nearer),
        of_indels("    reads farther from it", aligned.farther),
    ]


def plain_table(evaluation: CorrectionEvaluation) -> str:
    """The table as aligned text, for logs and files."""
    return aligned([_HEADINGS, *rows(evaluation)])


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text in columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = ""
    for first, *others in lines:
        cells = [f"{first:<{widths[0]}}"]
        cells += [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        text += "  ".join(cells) + "\n"
    return text


def print_table(evaluation: CorrectionEvaluation) -> None:
    """Write the table to standard output."""
    print_rows("Correction against the truth", _HEADINGS, rows(evaluation))


def print_rows(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Write a table to standard output.

    Args:
        title: shown on a terminal.
        headings: of the columns; a line of empty ones is left out elsewhere.
        lines: the cells.
    """
    if not sys.stdout.isatty():
        sys.stdout.write(aligned([headings, *lines] if any(headings) else lines))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=any(headings))
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right")
    for row in lines:
        table.add_row(*row)
    Console().print(table)


_RANK_HEADINGS = ("rank", "precision", "sensitivity", "F1", "TP", "FP", "FN", "TN")


def rank_rows(run: Run) -> list[tuple[str, ...]]:
    """Lines of the table of a classification: outcomes at each rank."""

    def rate(value: float | None) -> str:
        return "-" if value is None else f"{value:.4f}"

    return [
        (
            rank,
            *(rate(value) for value in (counts.precision, counts.sensitivity, counts.f1)),
            *(f"{number:,}" for number in (counts.tp, counts.fp, counts.fn, counts.tn)),
        )
        for rank, counts in run.ranks.items()
    ]


def _title(run: Run) -> str:
    text = f"{run.name} ({run.program}): {run.reads:,} reads, {run.unclassified:,} unclassified"
    return text + (f", {run.without_truth:,} without truth" if run.without_truth else "")


def _abundance_line(run: Run) -> str:
    if run.abundance is None:
        return ""
    found = run.abundance
    return (
        f"abundances at {found.rank}: false positives {100 * found.false_positives:.2f} %, "
        f"sum of deviations {100 * found.deviation:.2f} %\n"
    )


def plain_ranks(evaluation: ClassificationEvaluation) -> str:
    """The tables of all runs as aligned text."""
    text = ""
    for run in evaluation.runs:
        lines = [_RANK_HEADINGS, *rank_rows(run)] if run.ranks else []
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text += f"{_title(run)}\n"
        for line in lines:
            cells = zip(line, widths, strict=True)
            text += "  ".join(
                f"{cell:<{width}}" if at == 0 else f"{cell:>{width}}"
                for at, (cell, width) in enumerate(cells)
            )
            text += "\n"
        text += _abundance_line(run)
    return text


def print_ranks(evaluation: ClassificationEvaluation) -> None:
    """Write the tables of a classification to standard output."""
    if not sys.stdout.isatty():
        sys.stdout.write(plain_ranks(evaluation))
        return
    from rich.console import Console
    from rich.table import Table

    console = Console()
    for run in evaluation.runs:
        table = Table(title=_title(run))
        for number, heading in enumerate(_RANK_HEADINGS):
            table.add_column(heading, justify="left" if number == 0 else "right")
        for row in rank_rows(run):
            table.add_row(*row)
        console.print(table)
        console.print(_abundance_line(run), end="")
