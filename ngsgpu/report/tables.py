"""The report's tables on correction, assembly, cost, parameters and reference values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ngsgpu.report import words
from ngsgpu.report.collect import Json, SampleResults
from ngsgpu.report.content import Table
from ngsgpu.report.sources import Quast

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


_NEGLIGIBLE = 0.0005
"""Relative difference up to which neither of two values is called better."""


def truth_table(truth: Json) -> Table:
    """Bases and reads by outcome, for reads without and with indels."""
    scopes = ("", "indel_reads.")

    def row(
        label: str, key: str, form: Callable[[float | None], str] = words.count
    ) -> tuple[str, ...]:
        return (label, *(form(truth.number(f"{scope}{key}")) for scope in scopes))

    def digits(number: int) -> Callable[[float | None], str]:
        return lambda value: words.decimal(value, number)

    return Table(
        ("", "reads without indels", "reads with indels"),
        [
            row("reads", "reads.total"),
            row("TP: errors corrected", "totals.tp"),
            row("FP: right bases made wrong", "totals.fp"),
            row("FN: errors left", "totals.fn"),
            row("… of these changed to another wrong base", "totals.wrong_to_wrong"),
            row("TN: right bases left alone", "totals.tn"),
            row("sensitivity, TP / (TP + FN)", "rates.sensitivity", digits(4)),
            row("specificity, TN / (TN + FP)", "rates.specificity", digits(7)),
            row("precision, TP / (TP + FP)", "rates.precision", digits(7)),
            row("FP per million corrections", "rates.fp_per_million_corrections", digits(1)),
            row("error rate before", "rates.error_rate_before", words.rate),
            row("error rate after", "rates.error_rate_after", words.rate),
            row("reads free of errors from the start", "reads.kept_perfect"),
            row("reads made free of errors", "reads.made_perfect"),
            row("reads with fewer errors", "reads.improved"),
            row("reads with as many errors as before", "reads.unchanged"),
            row("reads with more errors", "reads.made_worse"),
            *(
                (label, "", words.count(value))
                for label, key in (
                    ("aligned with the truth: reads nearer to it", "nearer"),
                    ("aligned with the truth: reads farther from it", "farther"),
                )
                if (value := truth.number(f"indel_reads.aligned.{key}")) is not None
            ),
        ],
    )


def process_table(stats: Json) -> Table:
    """What correction saw and did on its way."""

    def line(label: str, key: str, of: str | None = None) -> tuple[str, str, str] | None:
        value = stats.number(key)
        if value is None:
            return None
        whole = stats.number(of) if of else None
        return label, words.count(value), words.share(value, whole) if of else ""

    lines = (
        line("reads", "reads.total"),
        line("reads with a base replaced", "corrected.reads", "reads.total"),
        line("bases replaced", "corrected.bases", "reads.bases"),
        line("ambiguous bases (N) decided", "corrected.unknown_decided"),
        line("ambiguous bases (N) left", "corrected.unknown_left"),
        line("anchors of high quality", "anchors.high_quality", "anchors.total"),
        line("anchors of low quality", "anchors.low_quality", "anchors.total"),
        line("anchors without candidates", "anchors.without_candidates", "anchors.total"),
        line("candidates found", "candidates.found"),
        line("candidates aligned", "candidates.aligned", "candidates.found"),
        line("candidates kept by the filter", "candidates.kept", "candidates.found"),
        line("candidates removed by refinement", "candidates.removed_by_refinement",
             "candidates.found"),
    )  # fmt: skip
    return Table(("", "number", "share"), [row for row in lines if row is not None])


def quast_table(quast: Quast, *, everything: bool = False) -> Table:
    """QUAST's metrics of both assemblies, the better one marked where there is a better one.

    Args:
        quast: the metrics.
        everything: all metrics and not only the telling ones.
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
        quast: the metrics.
        names: the assemblies, a column each.
        everything: all metrics and not only the telling ones.
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
    return f"{int(text):,}" if text.isdecimal() else text


def _change(before: float, after: float) -> str:
    difference = after - before
    if difference == 0:
        return "="
    text = f"{difference:+,.0f}" if difference.is_integer() else f"{difference:+,.2f}"
    if abs(before) >= 1000 and abs(difference) > _NEGLIGIBLE * abs(before):
        text = f"{100 * difference / before:+.1f} %"
    return text.replace("-", "\N{MINUS SIGN}")


def rules_by_time(samples: Sequence[SampleResults]) -> list[str]:
    """All rules with a benchmark, those that took longest over all samples first."""
    total: dict[str, float] = {}
    for results in samples:
        for rule, cost in results.benchmarks.items():
            total[rule] = total.get(rule, 0.0) + (cost.seconds or 0.0)
    return sorted(total, key=lambda rule: (-total[rule], rule))


def cost_table(samples: Sequence[SampleResults]) -> Table:
    """Time and memory of every rule for every sample."""
    rows = []
    for rule in rules_by_time(samples):
        for results in samples:
            cost = results.benchmarks.get(rule)
            if cost is None:
                continue
            load = None
            if cost.cpu_seconds is not None and cost.seconds:
                load = cost.cpu_seconds / cost.seconds
            rows.append(
                (
                    rule,
                    results.sample.label,
                    words.count(cost.jobs),
                    words.duration(cost.seconds),
                    words.duration(cost.cpu_seconds),
                    words.decimal(load, 2),
                    words.mebibytes(cost.max_rss_mib),
                )
            )
    headings = ("rule", "sample", "jobs", "wall time", "CPU time", "mean load", "peak memory")
    return Table(headings, rows, text_columns=frozenset({1}))


def stage_table(samples: Sequence[SampleResults]) -> Table | None:
    """Seconds of correction by stage, and its memory, one column a sample."""
    having = [s for s in samples if s.correct is not None and s.correct.get("time_s")]
    if not having:
        return None
    stages = list(dict.fromkeys(k for s in having if s.correct for k in s.correct.get("time_s")))
    rows = [
        (
            f"{stage}",
            *(words.duration(s.correct.number(f"time_s.{stage}")) for s in having if s.correct),
        )
        for stage in stages
    ]
    for key, label in (("peak_rss_bytes", "peak memory"), ("planned_bytes", "memory planned")):
        cells = []
        for s in having:
            value = s.correct.number(f"memory.{key}") if s.correct else None
            cells.append(words.mebibytes(None if value is None else value / 2**20))
        rows.append((label, *cells))
    return Table(("stage", *(s.sample.label for s in having)), rows)


def parameters(samples: Sequence[SampleResults]) -> tuple[dict[str, str], Table | None]:
    """Parameters that all corrections share, and a table of those that differ between samples."""
    having = [s for s in samples if s.correct is not None and s.correct.get("parameters")]
    flats = [words.flat(s.correct.get("parameters")) for s in having if s.correct]
    shared: dict[str, str] = {}
    rows = []
    for name in dict.fromkeys(name for flat in flats for name in flat):
        values = [flat.get(name, words.NOTHING) for flat in flats]
        if len(set(values)) == 1:
            shared[name] = values[0]
        else:
            rows.append((name, *values))
    labels = tuple(s.sample.label for s in having)
    return shared, Table(("parameter", *labels), rows) if rows else None


_RUN = "reference run, other data"
_PUBLISHED = "published [1], other data"
_REFERENCE = (
    ("CARE 2.3, classic", "human chr20 + yeast, 30x HiSeq", _RUN, "0.953", "79"),
    ("BFC r181", "human chr20 + yeast, 30x HiSeq", _RUN, "0.985", "4,370"),
    ("Lighter 1.1.3", "human chr20 + yeast, 30x HiSeq", _RUN, "0.966", "8,546"),
    ("CARE, classic", "C. elegans, 30x HiSeq", _PUBLISHED, "0.95", "253"),
    ("CARE, classic", "D. melanogaster, 30x HiSeq", _PUBLISHED, "0.95", "110"),
    ("CARE, classic", "human chr14, 30x HiSeq", _PUBLISHED, "0.92", "452"),
    ("BFC", "D. melanogaster, 30x HiSeq", _PUBLISHED, "0.99", "1,498"),
    ("Lighter", "D. melanogaster, 30x HiSeq", _PUBLISHED, "0.97", "3,651"),
)
"""Program, data, origin, sensitivity, FP per million corrections; [1] is the dissertation."""


def reference_table(samples: Sequence[SampleResults]) -> Table:
    """Values measured here, then values published for other data."""
    rows: list[tuple[str, ...]] = []
    marks = set()
    for results in samples:
        truth = results.evaluation
        if truth is None:
            continue
        version = str(truth.get("version") or "")
        marks.add((len(rows), 0))
        rows.append(
            (
                f"ngsgpu {version}".strip(),
                results.sample.label,
                "measured here",
                words.decimal(truth.number("rates.sensitivity"), 3),
                words.decimal(truth.number("rates.fp_per_million_corrections"), 1),
            )
        )
    rows += _REFERENCE
    return Table(
        ("program", "data", "origin", "sensitivity", "FP per million corrections"),
        rows,
        frozenset(marks),
        frozenset({1, 2}),
    )
