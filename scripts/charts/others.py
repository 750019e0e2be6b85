"""Run time of other programs relative to ngsgpu, in turn on the same machine: our losses first."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, Final, NamedTuple

from scripts.charts.svg import Bar, Row, log_chart

Found = tuple[float, float]
"""Seconds of the product, and of the other program."""


class _Work(NamedTuple):
    title: str
    other: str
    where: str
    result: str
    find: Callable[[dict[str, Any]], Found]


def _wall(own: dict[str, Any]) -> float:
    return float(median(run["wall_s"] for run in own["runs"]))


def _suite(data: str, other: str) -> Callable[[dict[str, Any]], Found]:
    def find(result: dict[str, Any]) -> Found:
        (own,) = (own for own in result["datasets"] if own["name"] == data)
        walls = {program["program"]: _wall(program) for program in own["programs"]}
        return walls["ngsgpu"], walls[other]

    return find


def _kmers(task: str, other: str, backend: str) -> Callable[[dict[str, Any]], Found]:
    def find(result: dict[str, Any]) -> Found:
        walls = {own["program"]: _wall(own) for own in result["programs"] if own["task"] == task}
        return walls[f"ngsgpu, {backend}"], walls[other]

    return find


def _trimming(backend: str) -> Callable[[dict[str, Any]], Found]:
    def find(result: dict[str, Any]) -> Found:
        walls = {own["program"]: _wall(own) for own in result["runs"] if own["form"] == "gz"}
        return walls[backend], walls["fastp"]

    return find


def _isolate(result: dict[str, Any]) -> Found:
    """CPU time: the programs ran beside others."""
    times = {own["name"]: own["cpu_s"] for own in result["programs"]}
    return times["ngsgpu"], times["shovill"]


def _classification(result: dict[str, Any]) -> Found:
    walls = {name: own["classify"]["wall_s"]["median"] for name, own in result["programs"].items()}
    return walls["ngsgpu"], walls["kraken2"]


_BEFORE: Final = "21 Nov, as --classic today"
_WORK: Final = (
    _Work("trim", "fastp", "H100 and 16 cores", "2026-11-26_trimming_h100", _trimming("cuda")),
    _Work("trim", "fastp", "16 cores", "2026-11-26_trimming_h100", _trimming("cpu")),
    _Work("correct", "CARE on the GPU", f"H200, {_BEFORE}", "2026-11-21_suite_S_L_h200",
          _suite("L", "care-gpu")),
    _Work("correct", "Lighter", f"2 cores, {_BEFORE}", "2026-11-21_correctors_ecoli_2cores",
          _suite("escherichia_coli__DSM_30083", "lighter")),
    _Work("merge", "FLASH", "H200 and 16 cores", "2026-11-21_suite_M20_h200",
          _suite("M20", "flash")),
    _Work("kmers count", "KMC", "H100 and 16 cores", "2026-11-26_kmers_L_h100",
          _kmers("database", "KMC", "cuda")),
    _Work("kmers count", "KMC", "16 cores", "2026-11-26_kmers_L_h100",
          _kmers("database", "KMC", "cpu")),
    _Work("unitigs", "BCALM", "H200 and 16 cores, one run", "2026-11-22_kmers_L_h200",
          _kmers("unitigs", "BCALM", "cuda")),
    _Work("classify", "Kraken 2", "2 cores", "2026-11-21_classification_2cores", _classification),
    _Work("run isolate", "Shovill", "CPU time, one run", "2026-11-25_isolate_2cores", _isolate),
)  # fmt: skip

RESULTS: Final = tuple(dict.fromkeys(work.result for work in _WORK))


def draw(results: dict[str, dict[str, Any]]) -> str:
    """The picture."""
    found = [(work, *work.find(results[work.result])) for work in _WORK]
    rows = []
    for work, own, other in sorted(found, key=lambda times: times[2] / times[1]):
        text = f"{other / own:.2g} x ({_seconds(other)} / {_seconds(own)})"
        rows.append(Row(f"{work.other} ({work.title})", [Bar("", other / own, text)], work.where))
    about = "Run time of other programs relative to ngsgpu; left of 1 x, they are faster"
    return log_chart(rows, "x", about, low=0.5, base=1.0)


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 100 else f"{value:,.0f} s"
