"""A small finished workflow: one simulated sample with everything, one real sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ngsgpu.report.layout import fill_from_layout
from ngsgpu.report.model import Study
from ngsgpu.report.study import read_study
from tests.support.figures import Kept
from tests.support.report import QUAST, evaluation, statistics, write_json, write_text


@pytest.fixture(scope="session", autouse=True)
def kept_figures() -> Iterator[Kept]:
    """Most of a report's time is drawing, and many tests render the same study."""
    with pytest.MonkeyPatch.context() as patch:
        kept = Kept()
        kept.install(patch)
        yield kept


@pytest.fixture
def drawn_anew(kept_figures: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what drawing itself does."""
    monkeypatch.setattr(kept_figures, "is_used", False)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results directory in the workflow's layout, with samples ``sim`` and ``real``."""
    folder = tmp_path / "results"
    for sample in ("sim", "real"):
        home = folder / sample
        write_json(home / "correct/stats.json", statistics())
        for variant, once in (("raw", 9000), ("corrected", 30)):
            text = f"# k=21 sampled=1/4 coverage=29.7\nmultiplicity\tcount\n1\t{once}\n"
            write_text(home / f"kmers/{variant}.tsv", f"{text}2\t40\n30\t1000\n31\t900\n")
            contigs = f">a\n{'ACGT' * 50}\n{'AC' * 10}\n>b\n{'A' * 70}\n"
            write_text(home / f"assembly/{variant}/contigs.fasta", contigs)
            bench = "s\th:m:s\tmax_rss\tmean_load\tcpu_time\n2.5\t0:00:02\t120.5\t80\t2.0\n"
            write_text(folder / f"benchmarks/assemble_reads/{sample}/{variant}.tsv", bench)
        write_text(home / "quast/report.tsv", QUAST)
        short = "s\th:m:s\tmax_rss\tmean_load\tcpu_time\n0.1\t0:00:00\t-\t-\tNA\n"
        write_text(folder / f"benchmarks/correct_reads/{sample}.tsv", short)
    write_json(folder / "sim/evaluate/correction.json", evaluation())
    return folder


@pytest.fixture
def manifest(results: Path) -> Path:
    """A manifest as the workflow writes it: without files."""
    return write_json(
        results / "study.json",
        {
            "schema": "ngsgpu.study",
            "schema_version": 1,
            "title": "A study <of> reads & errors",
            "command": "snakemake --cores 2",
            "config": {"correct": {"gpu": 0}},
            "versions": {"spades": "4.0.0"},
            "machine": {"cores": "2"},
            "samples": [
                {"name": "sim", "label": "Simulated $x$ <b>", "kind": "simulated",
                 "parameters": {"coverage": 30, "art": {"profile": "HS20"}}},
                {"name": "real", "kind": "real", "description": "From a <machine>."},
            ],
        },
    )  # fmt: skip


@pytest.fixture
def study(manifest: Path, results: Path) -> Study:
    """The study of ``results``."""
    return fill_from_layout(read_study(manifest), results, results / "benchmarks")
