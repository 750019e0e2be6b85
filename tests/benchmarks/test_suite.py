import gzip
import json
import random
from dataclasses import replace

import pytest

from benchmarks.harness.datasets import data_set
from benchmarks.harness.tables import table
from benchmarks.peers import suite
from benchmarks.peers.programs import Job
from benchmarks.peers.suite import join_mates, main, split_mates


def test_mates_are_joined_and_split(tmp_path):
    mates = [b"@a/1\nAC\n+\nII\n@b/1\nA\n+\nI\n", b"@a/2\nG\n+\nI\n@b/2\nT\n+\nI\n"]
    for name, content in zip(("r1.fq", "r2.fq"), mates, strict=True):
        (tmp_path / name).write_bytes(content)
    join_mates(tmp_path)
    split_mates(tmp_path, Job("", ("one", "two"), "both.fq"), 2)
    assert [(tmp_path / name).read_bytes() for name in ("one", "two")] == mates


@pytest.fixture
def genomes(tmp_path):
    rng = random.Random(1)
    paths = []
    for name in ("one", "two"):
        paths.append(tmp_path / f"{name}.fa")
        paths[-1].write_text(f">{name}\n{''.join(rng.choices('ACGT', k=400))}\n")
    return paths


@pytest.fixture
def arguments(tmp_path, programs, genomes):
    return [
        *("--data", *map(str, genomes), "--programs", "ngsgpu", "lighter", "bfc", "flash"),
        *("--work", str(tmp_path / "work"), "--repeats", "2", "--threads", "2"),
        *("-o", str(tmp_path / "results" / "out.json")),
    ]


@pytest.mark.parametrize("accuracy_only", [False, True])
def test_from_genomes_to_table(tmp_path, arguments, capsys, accuracy_only):
    assert main(arguments + ["--accuracy-only"] * accuracy_only) == 0
    written = json.loads((tmp_path / "results" / "out.json").read_text())
    assert written["programs"]["bfc"] == "r181"
    assert written["machine"]["gpus"] == ["NVIDIA H200"]
    assert written["settings"]["repeats"] == (1 if accuracy_only else 2)
    assert (written["start"] is None) == accuracy_only
    assert [(data["name"], data["genome_bases"]) for data in written["datasets"]] == [
        ("one", 400),
        ("two", 400),
    ]
    for data in written["datasets"]:
        assert data["reads"] == 2
        assert [entry["program"] for entry in data["programs"]] == ["ngsgpu", "lighter", "bfc"]
        for entry in data["programs"]:
            assert len(entry.get("runs", [])) == (0 if accuracy_only else 2)
            assert "by_position" not in entry["accuracy"]
        if not accuracy_only:
            assert data["programs"][0]["runs"][0]["parts"] == {"read": 1.0}
    assert capsys.readouterr().out == table(written)
    assert list((tmp_path / "work").iterdir()) == []
    assert str(tmp_path) not in json.dumps(written)


def test_compressed_mates_are_joined(tmp_path):
    for name in ("r1.fq", "r2.fq"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(name.encode()))
    join_mates(tmp_path, ".gz")
    assert gzip.decompress((tmp_path / "both.fq.gz").read_bytes()) == b"r1.fqr2.fq"


def test_compressed_reads(tmp_path, arguments, programs):
    (programs / "ngsgpu").write_text(
        (programs / "ngsgpu").read_text().replace("cp r1.fq ", "cp r1.fq.gz ")
    )
    (programs / "lighter").write_text(
        "#!/bin/sh\n"
        "for mate in 1 2; do gzip -dc r$mate.fq.gz | gzip > lighter/r$mate.cor.fq.gz; done\n"
    )
    (programs / "bfc").write_text("#!/bin/sh\ngzip -dc both.fq.gz\n")
    kept = tmp_path / "kept"
    assert main([*arguments, "--compressed", "--folder", str(kept)]) == 0
    written = json.loads((tmp_path / "results" / "out.json").read_text())
    assert written["settings"]["compressed"]
    for data in written["datasets"]:
        assert {entry["program"]: entry["writes_gz"] for entry in data["programs"]} == {
            "ngsgpu": True,
            "lighter": True,
            "bfc": False,
        }
    packed = kept / "one" / "forms" / "gz" / "r1.fq.gz"
    assert gzip.decompress(packed.read_bytes()) == (kept / "one" / "r1.fq").read_bytes()


def test_data_sets_are_kept_in_a_folder(tmp_path, arguments):
    assert main([*arguments, "--folder", str(tmp_path / "kept"), "--evaluate", "two"]) == 0
    written = json.loads((tmp_path / "results" / "out.json").read_text())
    one, two = written["datasets"]
    assert one["programs"][0]["accuracy"] is None
    assert two["programs"][0]["accuracy"]["rates"]["sensitivity"] == 0.5
    assert not (tmp_path / "kept" / "one" / "r_errFree.sam").exists()
    assert (tmp_path / "kept" / "two" / "r_errFree.sam").exists()


@pytest.mark.parametrize("spoiled", ["", "cuda"])
def test_backends_are_compared(tmp_path, arguments, capsys, monkeypatch, spoiled):
    monkeypatch.setenv("SPOILED", spoiled)
    assert main([*arguments, "--parity", "one"]) == (1 if spoiled else 0)
    one, two = json.loads((tmp_path / "results" / "out.json").read_text())["datasets"]
    assert one["parity"]["same"] == (not spoiled)
    assert two["parity"] is None
    told = "DIFFERENT BYTES" if spoiled else "cpu and cuda wrote the same bytes"
    assert told in capsys.readouterr().out


def data_set_to_merge(*given, **drawn):
    return replace(data_set(*given, **drawn), stage="merge")


def test_pairs_are_merged(tmp_path, arguments, monkeypatch):
    monkeypatch.setattr(suite, "data_set", data_set_to_merge)
    assert main(arguments) == 0
    one = json.loads((tmp_path / "results" / "out.json").read_text())["datasets"][0]
    assert [entry["program"] for entry in one["programs"]] == ["ngsgpu", "flash"]
    ours, theirs = (entry["accuracy"] for entry in one["programs"])
    assert ours["rates"]["sensitivity"] == 0.25
    assert ours["sha256"] == theirs["sha256"]


def test_a_program_that_fails_is_named(tmp_path, arguments, programs, capsys):
    (programs / "lighter").write_text("#!/bin/sh\necho out of luck >&2\nexit 1\n")
    assert main(arguments) == 1
    assert "out of luck" in capsys.readouterr().err
    assert not (tmp_path / "results" / "out.json").exists()


def test_a_data_set_that_no_program_is_for(arguments, capsys):
    assert main([*arguments, "--programs", "flash"]) == 1
    assert "no program for one (stage correct)" in capsys.readouterr().err
