"""The study on several GPUs: equal samples, and the judgement of its timeline."""

from __future__ import annotations

import os

import pysam
import pytest

from benchmarks.study.data import Size, write_study
from benchmarks.study.timeline import Job, covered, judge, read_jobs
from ngsgpu.report.files import Json
from ngsgpu.report.sections.devices import Span


def span(gpu, begin, end, path):
    return Span("correction", gpu, "node", begin, begin, end, Json(path, {}))


def test_covered():
    assert covered([(0, 2), (1, 3), (5, 6), (5, 5.5)]) == 4
    assert covered([]) == 0


def test_judgement(tmp_path):
    jobs = [Job("count_kmers", 0, 3), Job("correct_reads", 1, 11), Job("merge_pairs", 1, 9),
            Job("write_report", 11, 13)]  # fmt: skip
    spans = [span("a", 1, 11, tmp_path), span("b", 1, 9, tmp_path)]
    good = judge(jobs, spans, 2, 14)
    assert (good["gpu_jobs_s"], good["cpu_alone_s"], good["idle_s"]) == (18, 3, 1)
    assert good["bound_s"] == round(1.15 * (9 + 3), 2)
    assert (good["within_bound"], good["all_used"], good["held_twice"]) == (False, True, [])
    assert judge(jobs, spans, 2, 13)["within_bound"]
    assert not judge(jobs, spans, 4, 13)["all_used"]
    twice = judge(jobs, [*spans, span("a", 10.5, 12, tmp_path)], 2, 13)
    assert twice["held_twice"] == [{"gpu": "a", "overlap_s": 0.5}]


def test_jobs_are_timed_by_their_benchmark_files(tmp_path):
    path = tmp_path / "correct_reads" / "x.tsv"
    path.parent.mkdir()
    path.write_text("s\th:m:s\n2.5\t0:00:02\n")
    os.utime(path, (100, 100))
    assert read_jobs(tmp_path) == [Job("correct_reads", 97.5, 100)]


@pytest.mark.parametrize("pairs", [70_000])
def test_samples(tmp_path, pairs):
    write_study(tmp_path, Size(samples=2, pairs=pairs, coverage=2000), threads=1)
    genomes = "".join(
        record.sequence
        for path in sorted((tmp_path / "genomes").iterdir())
        for record in pysam.FastxFile(str(path))
    )
    complement = str.maketrans("ACGT", "TGCA")
    reads = {}
    for name in ("sample01_R1", "sample01_R2", "sample02_R1"):
        with pysam.FastxFile(str(tmp_path / f"{name}.fastq")) as file:
            reads[name] = [(record.name, record.sequence, record.quality) for record in file]
        assert len(reads[name]) == pairs
    assert reads["sample01_R1"] != reads["sample02_R1"]
    fine = 0
    for first, second in zip(reads["sample01_R1"][:300], reads["sample01_R2"][:300], strict=True):
        assert first[0][:-2] == second[0][:-2]
        strands = [first[1] in genomes, second[1].translate(complement)[::-1] in genomes]
        others = [second[1] in genomes, first[1].translate(complement)[::-1] in genomes]
        good = ["/" not in read[2] for read in (first, second)]
        fine += all(good)
        assert not all(good) or all(strands) or all(others)
    assert 20 < fine < 150  # 1 - 0.995^300 have an error
