"""What reports are made from, and a page as a browser would see it."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

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


def fastp(adapters: int = 2) -> dict[str, Any]:
    """What the report takes from fastp's JSON."""
    curves = {
        "quality_curves": {"mean": [30.5, 36.0, 35.0]},
        "content_curves": {"GC": [0.5, 0.4, 0.45]},
    }
    counted = {
        "total_reads": 200, "total_bases": 600, "q20_rate": 0.98, "q30_rate": 0.94,
        "read1_mean_length": 3, "gc_content": 0.45,
    }  # fmt: skip
    return {
        "summary": {"fastp_version": "0.23.2", "before_filtering": counted},
        "duplication": {"rate": 0.05},
        "adapter_cutting": {"adapter_trimmed_reads": adapters},
        "read1_before_filtering": {"total_reads": 200, **curves},
        "command": "fastp --in1 x",
    }


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


VOID = {"meta", "br", "hr", "img", "link", "input"}


class Page(HTMLParser):
    """Collects ids, references and text, and checks that elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.tags: Counter[str] = Counter()
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in VOID:
            self._open.append(tag)
        self._note(attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self._note(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    def _note(self, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "data", "action", "srcset"):
                self.references.append(value or "")

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())
