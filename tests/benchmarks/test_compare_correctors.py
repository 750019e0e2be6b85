import gzip
import io
import json
import os

import pytest

from benchmarks import compare_correctors
from benchmarks.compare_correctors import jobs, main, table, time_cells
from benchmarks.measuring import BenchmarkError
from benchmarks.simulated import join_mates, open_text, plain_fasta, split_mates


def run_of(wall, user=1.0, system=0.5, peak=10**9):
    return {"wall_s": wall, "user_s": user, "system_s": system, "peak_rss_bytes": peak}


def program(name, walls, sensitivity=0.99, false=12.34):
    rates = {"sensitivity": sensitivity, "fp_per_million_corrections": false}
    return {
        "program": name,
        "runs": [run_of(wall) for wall in walls],
        "accuracy": {"totals": {"bases": 2_000_000, "errors_after": 5}, "rates": rates},
    }


def document(*programs, accuracy_only=False):
    datasets = [{"name": "genome", "programs": list(programs)}]
    return {"settings": {"accuracy_only": accuracy_only}, "datasets": datasets}


def test_table():
    lines = table(document(program("ngsgpu", [30, 20, 40]), program("lighter", [10, 8, 20])))
    header, rule, ours, theirs = lines.splitlines()
    assert header.count("|") == rule.count("|") == ours.count("|")
    assert ours == (
        "| genome | ngsgpu | 30.0 (20.0-40.0) | 3.00 | 1.5 | 1.00 | 0.9900 | 12.3 | 2.5 |"
    )
    assert "| 10.0 (8.0-20.0) | 1.00 |" in theirs


def test_table_of_accuracy_alone():
    lines = table(document(program("bfc", [], None, None), accuracy_only=True)).splitlines()
    assert lines[0] == (
        "| genome | program | sensitivity | FP per million | errors left per million bases |"
    )
    assert lines[2] == "| genome | bfc | - | - | 2.5 |"


def test_times_without_lighter():
    cells = time_cells([run_of(2.0, peak=2 * 10**9), run_of(4.0, user=3)], [])
    assert cells == ["3.0 (2.0-4.0)", "-", "2.5", "2.00"]


def test_every_program_gets_the_threads_and_knows_the_genome():
    for name, job in jobs(5_030_000, 30, 7).items():
        words = job.command.split()
        assert words[0] == name
        assert words[words.index("-t") + 1] == "7"
        assert len(job.outputs) == 2
    assert "-K 23 5030000" in jobs(5_030_000, 30, 7)["lighter"].command


def test_plain_fasta():
    target = io.StringIO()
    assert plain_fasta([">a b\n", "acgtnRY\n", "\n", ">c\n", "AC-GT"], target) == 12
    assert target.getvalue() == ">a b\nACGTNNN\n\n>c\nACNGT\n"
    with pytest.raises(BenchmarkError, match="no bases"):
        plain_fasta([">empty\n"], io.StringIO())


@pytest.mark.parametrize("name", ["a.fa", "a.fa.gz"])
def test_open_text(tmp_path, name):
    path = tmp_path / name
    content = b">a\nACGT\n"
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with open_text(path) as lines:
        assert lines.read() == content.decode()


def test_mates_are_joined_and_split(tmp_path):
    mates = [b"@a/1\nAC\n+\nII\n@b/1\nA\n+\nI\n", b"@a/2\nG\n+\nI\n@b/2\nT\n+\nI\n"]
    for name, content in zip(("r1.fq", "r2.fq"), mates, strict=True):
        (tmp_path / name).write_bytes(content)
    join_mates(tmp_path)
    outputs = [tmp_path / "one", tmp_path / "two"]
    split_mates(tmp_path / "both.fq", 2, outputs)
    assert [output.read_bytes() for output in outputs] == mates


DOCTOR = {"cpus": 2, "memory": {"total": 1}, "system": "Linux", "versions": {"ngsgpu": "0.1.0"}}
EVALUATION = {
    "totals": {"bases": 100, "errors_after": 1},
    "rates": {"sensitivity": 0.5, "fp_per_million_corrections": 7.0},
    "reads": {},
    "indel_reads": {},
    "all_reads": {},
    "by_position": [1, 2, 3],
}
PROGRAMS = {
    "art_illumina": """[ "$1" ] || { echo Version 2.5.8; exit; }
        for file in r1.fq r2.fq; do printf '@a\\nACGT\\n+\\nIIII\\n' > $file; done
        touch r.sam r_errFree.sam""",
    "ngsgpu": f"""case $1 in
        --version) echo ngsgpu 0.1.0;;
        doctor) echo '{json.dumps(DOCTOR)}';;
        correct) cp r1.fq ngsgpu_1.fq; cp r2.fq ngsgpu_2.fq;;
        evaluate) echo '{json.dumps(EVALUATION)}' > e.json;;
        esac""",
    "lighter": """[ "$1" = -v ] && { echo Lighter v1.1.2; exit; }
        cp r1.fq lighter/r1.cor.fq; cp r2.fq lighter/r2.cor.fq""",
    "bfc": """[ "$1" = -v ] && { echo r181; exit; }
        cat both.fq""",
}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Stand-ins for all programs but CARE, which is not there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(
        compare_correctors, "found_programs", lambda: [name for name in PROGRAMS if name[0] != "a"]
    )
    return folder


@pytest.mark.parametrize("accuracy_only", [False, True])
def test_from_genomes_to_table(tmp_path, programs, capsys, accuracy_only):
    genomes = [tmp_path / "one.fna.gz", tmp_path / "two.fa"]
    genomes[0].write_bytes(gzip.compress(b">a\nACGTACGT\n"))
    genomes[1].write_text(">a\nACGT\n")
    arguments = [*map(str, genomes), "--work", str(tmp_path / "work"), "--repeats", "2"]
    arguments += ["-o", str(tmp_path / "results" / "out.json")]
    assert main(arguments + ["--accuracy-only"] * accuracy_only) == 0
    written = json.loads((tmp_path / "results" / "out.json").read_text())
    assert written["programs"]["bfc"] == "r181"
    assert written["settings"]["repeats"] == (1 if accuracy_only else 2)
    assert (written["start"] is None) == accuracy_only
    assert [(data["name"], data["genome_bases"]) for data in written["datasets"]] == [
        ("one", 8),
        ("two", 4),
    ]
    for data in written["datasets"]:
        assert data["reads"] == 2
        assert [entry["program"] for entry in data["programs"]] == ["ngsgpu", "lighter", "bfc"]
        for entry in data["programs"]:
            assert len(entry.get("runs", [])) == (0 if accuracy_only else 2)
            assert "by_position" not in entry["accuracy"]
    assert capsys.readouterr().out == table(written)
    assert list((tmp_path / "work").iterdir()) == []
    assert str(tmp_path) not in json.dumps(written)


def test_a_program_that_fails_is_named(tmp_path, programs, capsys):
    (programs / "lighter").write_text("#!/bin/sh\necho out of luck >&2\nexit 1\n")
    (tmp_path / "a.fa").write_text(">a\nACGT\n")
    output = tmp_path / "out.json"
    assert main([str(tmp_path / "a.fa"), "--work", str(tmp_path / "w"), "-o", str(output)]) == 1
    assert "out of luck" in capsys.readouterr().err
    assert not output.exists()
