"""The report's section on run time and memory, as measured by Snakemake."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ngsgpu.declared.numbers import decimal_number
from ngsgpu.errors import InputError
from ngsgpu.report import words
from ngsgpu.report.absent import read_note
from ngsgpu.report.drawing import drawn, thousands
from ngsgpu.report.files import Json, load_json, numbered_lines
from ngsgpu.report.model import Sample, SampleResults, Study
from ngsgpu.report.page import Plot, Table
from ngsgpu.report.palette import AFTER, SAMPLES
from ngsgpu.report.spread import MANY_SAMPLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Benchmark:
    """Resources of a rule, over all its jobs for a sample.

    Attributes:
        jobs: number of jobs.
        seconds: wall time, summed over jobs; ``None`` if no file has it.
        cpu_seconds: CPU time, summed.
        max_rss_mib: peak resident memory of any job, in MiB.
    """

    jobs: int
    seconds: float | None
    cpu_seconds: float | None
    max_rss_mib: float | None


RuleCost = tuple[str, str, Benchmark]
"""A rule, the label of a sample or the name of a job, and what it took."""


@dataclass(eq=False)
class Cost:
    """Time and memory of the jobs for a sample, by rule."""

    rules: dict[str, Benchmark] = field(default_factory=dict)


def read_cost(sample: Sample, missing: list[str]) -> Cost:
    """Read the benchmark files of a sample that are there.

    Raises:
        InputError: one is damaged.
    """
    found = Cost()
    for rule, paths in sample.files.benchmarks.items():
        there = tuple(path for path in paths if path.is_file())
        if there:
            found.rules[rule] = read_benchmarks(there)
    if not found.rules:
        missing.append("run times and memory")
    return found


def read_benchmarks(paths: tuple[Path, ...]) -> Benchmark:
    """Read and sum Snakemake's benchmark files of the jobs of one rule.

    Of repeated measurements (``repeat``) the first is used. Values that Snakemake could not measure
    (``-``, ``NA``) count as missing.

    Raises:
        InputError: a file cannot be read or is not such a table.
    """
    rows = [_read_benchmark(path) for path in paths]

    def values(name: str) -> list[float]:
        return [row[name] for row in rows if name in row]

    seconds, cpu, rss = values("s"), values("cpu_time"), values("max_rss")
    return Benchmark(
        jobs=len(rows),
        seconds=sum(seconds) if seconds else None,
        cpu_seconds=sum(cpu) if cpu else None,
        max_rss_mib=max(rss) if rss else None,
    )


def _read_benchmark(path: Path) -> dict[str, float]:
    remedy = "run the rule again"
    rows = [line.split("\t") for _, line in numbered_lines(path, remedy) if line]
    if len(rows) < 2 or rows[0][0] != "s" or len(rows[0]) != len(rows[1]):
        raise InputError(path, "it is not a Snakemake benchmark file", remedy, line=1)
    found = {}
    for name, cell in zip(rows[0], rows[1], strict=True):
        if name not in ("s", "max_rss", "cpu_time") or cell in ("-", "NA", ""):
            continue
        try:
            found[name] = decimal_number(cell)
        except ValueError as error:
            raise InputError(path, f"{name} is not a number: {cell}", remedy, line=2) from error
    return found


def _by_time(samples: Sequence[SampleResults]) -> list[str]:
    """All rules with a benchmark, those that took longest over all samples first."""
    total: dict[str, float] = {}
    for results in samples:
        for rule, cost in results.of(Cost).rules.items():
            total[rule] = total.get(rule, 0.0) + (cost.seconds or 0.0)
    return sorted(total, key=lambda rule: (-total[rule], rule))


def cost_table(samples: Sequence[SampleResults]) -> Table:
    """Time and memory of every rule for every sample."""
    rows = []
    for rule in _by_time(samples):
        for results in samples:
            cost = results.of(Cost).rules.get(rule)
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


def all_costs(study: Study, samples: Sequence[SampleResults]) -> list[RuleCost]:
    """Every rule's jobs, for each sample and for the parts of databases.

    Raises:
        InputError: a file of statistics is damaged.
    """
    found = [
        (rule, results.sample.label, cost)
        for rule in _by_time(samples)
        for results in samples
        if (cost := results.of(Cost).rules.get(rule)) is not None
    ]
    for rule, jobs in study.jobs.items():
        # A job that takes several samples has statistics of each, "JOB/SAMPLE".
        files: dict[str, list[Path]] = {}
        for name, path in jobs.items():
            if path.is_file() and read_note(path) is None:
                files.setdefault(name.rpartition("/")[0] or name, []).append(path)
        found += [(rule, job, _job_cost(paths)) for job, paths in files.items()]
    return found


def _job_cost(paths: Sequence[Path]) -> Benchmark:
    """Time and memory of one job, from its statistics: one after the other, in one process."""
    seconds, peaks = [], []
    for path in paths:
        document = load_json(path, "make the file again")
        own = Json(path, document if isinstance(document, dict) else {})
        if (time := own.number("time_s.total")) is not None:
            seconds.append(time)
        if (peak := own.number("memory.peak_rss_bytes")) is not None:
            peaks.append(peak / 2**20)
    return Benchmark(1, sum(seconds) if seconds else None, None, max(peaks, default=None))


def rule_table(costs: Sequence[RuleCost]) -> Table:
    """Time and memory by rule, over all samples."""
    rows = []
    for rule in dict.fromkeys(rule for rule, _, _ in costs):
        own = [(name, cost) for other, name, cost in costs if other == rule]
        times = [(cost.seconds, name) for name, cost in own if cost.seconds is not None]
        longest = max(times, default=None)
        rows.append(
            (
                rule,
                words.count(sum(cost.jobs for _, cost in own)),
                words.duration(sum(seconds for seconds, _ in times) if times else None),
                words.duration(statistics.median(s for s, _ in times) if times else None),
                words.duration(longest[0] if longest else None),
                longest[1] if longest and len(own) > 1 else words.NOTHING,
                words.mebibytes(
                    max((c.max_rss_mib for _, c in own if c.max_rss_mib), default=None)
                ),
            )
        )
    headings = ("rule", "jobs", "wall time", "median", "longest", "of", "peak memory")
    return Table(headings, rows, text_columns=frozenset({5})).without_empty_columns()


def said(costs: Sequence[RuleCost]) -> str:
    """How many jobs there were, and how long they took; empty if nothing was measured."""
    times = [(cost.seconds, rule, name) for rule, name, cost in costs if cost.seconds is not None]
    if not times:
        return ""
    seconds, rule, name = max(times)
    jobs = sum(cost.jobs for _, _, cost in costs)
    return (
        f"{words.number_words(jobs, 'job').capitalize()} took "
        f"{words.duration(sum(s for s, _, _ in times))} in all; the longest was {rule} for {name} "
        f"({words.duration(seconds)})."
    )


def cost_figure(samples: Sequence[SampleResults]) -> Plot | None:
    """Time and memory of all rules and samples; None where nothing was measured."""
    having = [results for results in samples if results.of(Cost).rules]
    rules = _by_time(having)
    if not rules:
        return None
    values = {
        results.sample.label: {
            rule: (cost.seconds or 0.0, cost.max_rss_mib or 0.0)
            for rule, cost in results.of(Cost).rules.items()
        }
        for results in having
    }
    return Plot(
        _draw("costs", rules, values),
        "Wall time (summed if a rule runs in parts) and the peak resident memory of any job, "
        "as Snakemake measured them.",
        is_wide=True,
    )


@drawn()
def _draw(
    figure: Figure, rules: Sequence[str], samples: Mapping[str, Mapping[str, tuple[float, float]]]
) -> None:
    """Run time and peak memory by rule, one bar a sample; a dot if there are many."""
    panels = figure.subplots(1, 2, sharey=True)
    are_many = len(samples) > MANY_SAMPLES
    height = 0.8 / len(samples)
    for panel, (axes, title) in enumerate(
        zip(panels, ("wall time (s)", "peak memory (MiB)"), strict=True)
    ):
        for number, (label, values) in enumerate(samples.items()):
            at = np.arange(len(rules)) + (number - (len(samples) - 1) / 2) * height
            widths = [values.get(rule, (0.0, 0.0))[panel] for rule in rules]
            if are_many:
                axes.plot(widths, at, ".", color=AFTER, markersize=2.5, alpha=0.6)
            else:
                axes.barh(at, widths, height=height * 0.9, color=SAMPLES[number % len(SAMPLES)],
                          label=label)  # fmt: skip
        axes.set_xlim(left=0)
        axes.set_xlabel(title)
        axes.grid(axis="y", visible=False)
        thousands(axes.xaxis)
    panels[0].set_yticks(range(len(rules)), rules)
    for axes in panels:
        axes.tick_params(axis="y", length=0)
    panels[0].set_ylim(len(rules) - 0.4, -0.6)
    if 1 < len(samples) <= MANY_SAMPLES:
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper left",
                      ncols=min(len(samples), 4))  # fmt: skip
    bars = len(rules) * (2.5 if are_many else max(len(samples), 1.6))
    figure.set_size_inches(8.6, 1.1 + 0.17 * bars)
