"""A small finished workflow: one simulated sample with everything, one real sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.evaluate import evaluate_arrays


def statistics(**changes: Any) -> dict[str, Any]:
    """What ``ngsgpu correct --stats`` writes."""
    document = {
        "schema": "ngsgpu.correct",
        "schema_version": 1,
        "version": "0.1.0",
        "backend": "cpu",
        "command": ["ngsgpu", "correct", "-i", "a b.fq"],
        "parameters": {"coverage": None, "minhash": {"kmer": 20, "hashes": 48}},
        "coverage": {"value": 29.9, "estimated": True},
        "reads": {"total": 2000, "bases": 200_000, "min_length": 100, "max_length": 100},
        "anchors": {"total": 2000, "without_candidates": 3, "high_quality": 1800,
                    "low_quality": 197},
        "candidates": {"found": 60_000, "aligned": 58_000, "kept": 55_000,
                       "removed_by_refinement": 120},
        "corrected": {"reads": 1200, "bases": 1890, "unknown_decided": 4, "unknown_left": 1},
        "corrected_bases_by_position": [list(range(100)), list(range(0, 200, 2))],
        "time_s": {"read": 0.1, "correct": 3.5, "total": 4.0},
        "memory": {"peak_rss_bytes": 300 << 20, "planned_bytes": 500 << 20},
    }  # fmt: skip
    return document | changes


QUAST = """Assembly\traw\tcorrected
# contigs\t31\t29
Largest contig\t40640\t40639
Total length\t280542\t280709
Reference length\t300000\t300000
N50\t20110\t16522
NGA50\t16522\t18000
# misassemblies\t0\t0
# mismatches per 100 kbp\t8.55\t6.77
# unaligned contigs\t0 + 0 part\t0 + 1 part
LA90\t-\t12
"""


def write_json(path: Path, document: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def write_text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def evaluation() -> dict[str, Any]:
    reads = [b"ACGTACGTAC", b"ACGTACGTAA", b"CCGTACGTAC"]
    after = [b"ACGTACGTAC", b"ACGTACGTAC", b"CCGTACGTAG"]
    truth = [b"ACGTACGTAC"] * 3
    return evaluate_arrays(reads, after, truth).document()


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
