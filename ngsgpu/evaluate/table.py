"""The evaluation as a table for people: drawn on a terminal, plain elsewhere."""

from __future__ import annotations

import sys

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
    ]


def plain_table(evaluation: CorrectionEvaluation) -> str:
    """The table as aligned text, for logs and files."""
    lines = [_HEADINGS, *rows(evaluation)]
    first, second, third = (max(len(line[i]) for line in lines) for i in range(3))
    return "".join(f"{a:<{first}}  {b:>{second}}  {c:>{third}}\n" for a, b, c in lines)


def print_table(evaluation: CorrectionEvaluation) -> None:
    """Write the table to standard output."""
    if not sys.stdout.isatty():
        sys.stdout.write(plain_table(evaluation))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Correction against the truth")
    table.add_column(_HEADINGS[0])
    for heading in _HEADINGS[1:]:
        table.add_column(heading, justify="right")
    for row in rows(evaluation):
        table.add_row(*row)
    Console().print(table)
