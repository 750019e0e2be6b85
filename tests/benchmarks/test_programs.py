import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.harness.measuring import BenchmarkError
from benchmarks.peers import programs
from benchmarks.peers.classifiers import PROGRAMS, Inputs
from benchmarks.peers.programs import STAGES, Work, care_report, ngsgpu_report, programs_of

WORK = Work(genome_bases=5_030_000, coverage=30, threads=7, backend="cuda")


@pytest.mark.parametrize("stage", STAGES)
def test_every_program_gets_the_threads_and_reads_both_mates(stage):
    for name, program in STAGES[stage].items():
        job = program.job(WORK)
        words = job.command.split()
        assert words[0] == name
        assert words[words.index("-t") + 1] == "7"
        assert job.outputs
        assert job.joined == ("both.fq" in words)
        assert job.joined or {"r1.fq", "r2.fq"} <= set(words)


@pytest.mark.parametrize("stage", STAGES)
def test_compressed_reads(stage):
    for name, program in STAGES[stage].items():
        job = program.job(replace(WORK, ending=".gz"))
        words = job.command.split()
        assert job.joined or {"r1.fq.gz", "r2.fq.gz"} <= set(words)
        assert job.joined == ("both.fq.gz" in words)
        writes = {output.endswith(".gz") for output in job.outputs}
        assert writes == {name in ("ngsgpu", "lighter", "flash")}
        assert ("-z" in words) == (stage == "merge")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_kraken_is_told_of_compressed_reads(ending):
    reads = tuple(Path(f"r{mate}.fq{ending}") for mate in (1, 2))
    inputs = Inputs((), Path(), Path(), Path(), reads, 2, "cpu")
    for program in PROGRAMS:
        words = " ".join(program.classify(inputs)).split()
        assert set(map(str, reads)) <= set(words)
        assert ("--gzip-compressed" in words) == (ending == ".gz" and program.name == "kraken2")


def test_ngsgpu_with_options():
    (program,) = programs_of("correct", ["ngsgpu, spectrum=--method spectrum"]).values()
    plain, job = STAGES["correct"]["ngsgpu"].job(WORK), program.job(WORK)
    assert job.command.endswith(" --method spectrum")
    assert not {*plain.outputs} & {*job.outputs}
    assert {*job.outputs} <= {*job.command.split()}
    assert program.report is ngsgpu_report
    with pytest.raises(BenchmarkError, match="lightest: the programs are"):
        programs_of("correct", ["lightest"])


def test_what_programs_know_of_the_genome():
    table = STAGES["correct"]
    assert "-K 23 5030000" in table["lighter"].job(WORK).command
    assert "-c 30 " in table["care-gpu"].job(WORK).command
    assert "--useGpuTables" in table["care-gpu"].job(WORK).command
    assert "--useGpuTables" not in table["care-cpu"].job(WORK).command
    assert "--backend cuda" in table["ngsgpu"].job(WORK).command


def test_times_that_care_prints(tmp_path):
    said = "STEP 1\n# elapsed time (build_readstorage): 5.10049s\n# elapsed time (merging): 4s\n"
    said += "# elapsed time (build_minhasher): 1.95s\n# elapsed time (STEP1): 7.1s\n"
    said += "# elapsed time (STEP2): 8e0s\n# elapsed time (STEP3): 4.2s\n"
    (tmp_path / "output.txt").write_text(said)
    assert care_report(tmp_path) == {
        "parts": {"read": 5.1, "tables": 1.95, "correct": 8.0, "write": 4.2}
    }


def test_times_of_our_statistics(tmp_path):
    stats = {"time_s": {"read": 1.0, "total": 2.0}, "memory": {"planned_bytes": 3}, "reads": {}}
    (tmp_path / "ngsgpu.json").write_text(json.dumps(stats))
    assert ngsgpu_report(tmp_path) == {
        "parts": {"read": 1.0},
        "statistics": {"memory": {"planned_bytes": 3}},
    }


def test_programs_that_are_here(monkeypatch):
    def find(name):
        if name not in ("ngsgpu", "bfc"):
            raise BenchmarkError(f"{name} was not found on the PATH")
        return [name]

    monkeypatch.setattr(programs, "find_program", find)
    assert list(programs_of("correct", None)) == ["ngsgpu", "bfc"]
    assert list(programs_of("correct", ["bfc", "flash"])) == ["bfc"]
    assert list(programs_of("merge", None)) == ["ngsgpu"]
    with pytest.raises(BenchmarkError, match="lighter was not found"):
        programs_of("correct", ["ngsgpu", "lighter"])
