"""What reports are made from, and a page as a browser would see it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
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


def fastp(
    adapters: int = 2,
    qualities: Sequence[float] = (30.5, 36.0, 35.0),
    content: Sequence[float] = (0.5, 0.4, 0.45),
) -> dict[str, Any]:
    """What the report takes from fastp's JSON."""
    curves = {"quality_curves": {"mean": list(qualities)}, "content_curves": {"GC": list(content)}}
    counted = {
        "total_reads": 200, "total_bases": 600, "q20_rate": 0.98, "q30_rate": 0.94,
        "read1_mean_length": 3, "gc_content": 0.45,
    }  # fmt: skip
    return {
        "summary": {"fastp_version": "0.23.2", "before_filtering": counted},
        "duplication": {"rate": 0.05},
        "insert_size": {"peak": 3, "unknown": 40, "histogram": [0, 0, 10, 50]},
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


def write_note(path: Path, log: str, message: str, kind: str = "failed") -> None:
    """What a job of the workflow leaves that failed: an empty result, and the reason beside it."""
    write_text(path, "{}\n" if path.suffix == ".json" else "")
    write_text(path.with_name(f"{path.name}.{kind}"), f"{log}\n{message}\n")


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


def write_many(results: Path, number: int) -> Path:
    """A results directory in the workflow's layout with real samples, each with every stage.

    Coverage, base qualities and the shares of merged pairs and classified reads differ.
    """
    for n in range(number):
        name, reads = f"s{n + 1:02d}", 2_000_000 + 10_000 * n
        home, low = results / name, n % 7 == 3
        counts = {"total": reads, "bases": 150 * reads, "min_length": 150, "max_length": 150}
        by_position = [list(range(150)), list(range(0, 300, 2))]
        coverage = {"value": 8.0 + n % 3 if low else 30.0 + n % 9, "estimated": True}
        corrected = {"reads": reads // 3, "bases": reads // 2 - 999 * n}
        document = statistics(
            reads=counts, coverage=coverage, corrected=corrected,
            corrected_bases_by_position=by_position,
        )  # fmt: skip
        write_json(home / "correct/stats.json", document)
        for variant, once in (("raw", 90_000), ("corrected", 300 + n)):
            peak = coverage["value"]
            rows = "".join(
                f"{m}\t{20 + round(3000 * 2 ** (-(((m - peak) / (1 + peak / 6)) ** 2)))}\n"
                for m in range(2, 60)
            )
            head = "# k=21 sampled=1/4 coverage=29.7\nmultiplicity\tcount\n"
            write_text(home / f"kmers/{variant}.tsv", f"{head}1\t{once}\n{rows}")
            qualities = [36.0 - n % 5 / 2 - (1 + n % 3) * (i / 60) ** 2 for i in range(150)]
            content = [0.38 + n % 9 / 50 + 0.03 / (1 + i) for i in range(150)]
            adapters = 8 if n % 11 == 5 else 0
            write_json(home / f"qc/{variant}.fastp.json", fastp(adapters, qualities, content))
        pairs, bell = (
            reads // 2,
            [[200 + 3 * (n % 20) + i, 500 - (i - 60) ** 2 // 8] for i in range(120)],
        )
        merged = round(pairs * (0.12 if n % 13 == 7 else 0.7 + n % 5 / 50))
        lengths = {"mean": 280.0, "deviation": 20.0, "sd": 20.0, "estimated": True, "pairs": pairs}
        document = {"schema": "ngsgpu.merge", "schema_version": 1, "insert_size": lengths,
                    "pairs": {"total": pairs, "merged": merged},
                    "histograms": {"insert_sizes": bell}}  # fmt: skip
        write_json(home / "merge/stats.json", document)
        document = {"schema": "ngsgpu.extend", "schema_version": 1, "insert": lengths,
                    "pairs": {"total": pairs, "connected": pairs * 4 // 5, "both": pairs // 2},
                    "length_histogram": bell}  # fmt: skip
        write_json(home / "extend/stats.json", document)
        _write_calls(home / "classify/bacteria", name, reads, 0.3 if n % 10 == 9 else 0.85)
        rules = ("correct_reads", "merge_pairs", "extend_pairs")
        for seconds, rule in zip((40 + n % 17, 9 + n % 4, 21 + n % 6), rules, strict=True):
            row = f"{seconds}\t-\t{300 + seconds * 3}\t80\t{2 * seconds}\n"
            bench = f"s\th:m:s\tmax_rss\tmean_load\tcpu_time\n{row}"
            write_text(results / f"benchmarks/{rule}/{name}.tsv", bench)
    return results


def _write_calls(folder: Path, sample: str, reads: int, share: float) -> None:
    """Twelve species of two genera, their abundances, and the coverage of their sequences."""
    called = round(share * reads)
    each = [called // (2 + i) // 3 for i in range(12)]
    genera = [sum(each[:6]), sum(each[6:])]
    total = sum(each)
    lines = [(reads - total, reads - total, "U", 0, "unclassified"), (total, 0, "R", 1, "root")]
    lines.append((total, 0, "D", 2, "  Bacteria"))
    table = "taxid\trank\tname\treads\tpercent_of_reads\tpercent_of_classified\n"
    spots = "target\ttaxid\tname\tlength\twindows\tcovered\tmean_reads\tbin_bases\tbins\n"
    for i, own in enumerate(each):
        if i % 6 == 0:
            lines.append((genera[i // 6], 0, "G", 10 + i, f"    Genus{i // 6}"))
        name = f"Genus{i // 6} species{i}"
        lines.append((own, own, "S", 100 + i, f"      {name}"))
        table += f"{100 + i}\tspecies\t{name}\t{own}\t{100 * own / reads:.4f}\t0.1\n"
        bins = ",".join(str((7 * i + j * j) % 23) for j in range(100))
        spots += f"t{i}.1\t{100 + i}\t{name}\t100000\t900\t{800 - 50 * i}\t9.5\t1000\t{bins}\n"
    table += f"0\tno rank\tunclassified\t{reads - total}\t{100 - 100 * total / reads:.4f}\t\n"
    text = "".join(
        f"{100 * clade / reads:6.2f}\t{clade}\t{own}\t{code}\t{taxid}\t{name}\n"
        for clade, own, code, taxid, name in lines
    )
    write_text(folder / f"{sample}.kraken2.report.txt", text)
    write_text(folder / "abundance.tsv", table)
    write_text(folder / "coverage.tsv", spots)
