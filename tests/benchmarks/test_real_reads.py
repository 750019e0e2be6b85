"""The benchmark on real reads: which programs, which cells, what is kept of an earlier run."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.accuracy.real_reads import add_earlier, job_of, parse, short
from benchmarks.harness.measuring import BenchmarkError
from benchmarks.peers.commands import Work
from scripts.benchmark_tables import real_read_tables

WORK = Work(1000, 30, 2, "cpu")


def test_programs_and_options() -> None:
    settings = parse(["--data", "d", "--correct", "lighter", "-o", "o.json"])
    assert (settings.correct, settings.merge) == (["lighter"], ["ngsgpu"])
    label, job = job_of("correct", "ours, k 16=-k 16", WORK)
    assert label == "ours, k 16"
    assert job.command.endswith("-o ours_1.fq -O ours_2.fq -k 16")
    assert job_of("merge", "ngsgpu", WORK)[1].outputs == ("ours.fq",)
    assert job_of("merge", "adapterremoval", WORK)[1].outputs == ("adapterremoval.fq",)
    with pytest.raises(BenchmarkError, match="flush: the programs are ngsgpu, "):
        job_of("merge", "flush", WORK)


def document(program: str, switched: int) -> dict[str, Any]:
    totals = {
        "introduced": 124, "introduced_in_undone": 115, "made_perfect": 3464,
        "alleles_switched": switched, "allele_bases": 5883,
    }  # fmt: skip
    rates = {"mismatches_per_kb_before": 1.679, "mismatches_per_kb_after": 0.512}
    minority = [{"from": low, "variants": 3, "lost": 1} for low in (0.01, 0.05, 0.1, 0.25)]
    alleles = {"lost": 0, "sites": 119}
    found = {"totals": totals, "rates": rates, "minority": minority, "heterozygous": alleles}
    programs = {program: {"evaluation": {"correction": found}}}
    return {
        "programs": {program: "1.0"},
        "datasets": [{"name": "NA12878", "stage": "correct", "programs": programs}],
    }


def test_earlier_programs_stand_behind() -> None:
    new, old = document("ngsgpu", 2), document("lighter", 30)
    old["datasets"][0]["programs"]["ngsgpu"] = {"evaluation": None}
    add_earlier(new, old)
    assert new["programs"] == {"ngsgpu": "1.0", "lighter": "1.0"}
    table = real_read_tables(new).splitlines()
    assert [row.split(" | ")[1] for row in table[2:4]] == ["ngsgpu", "lighter"]
    assert table[2].endswith(
        "| 124 | 115 | 3,464 | 0 of 119 | 2 of 5,883 | 1 of 3 | 1 of 3 | 1 of 3 |"
    )


def test_lists_by_quality_are_left_out() -> None:
    found = short({"calibration": {"agree": {"seen": 1, "by_quality": [1, 2]}}, "pairs": 3})
    assert found == {"calibration": {"agree": {"seen": 1}}, "pairs": 3}
