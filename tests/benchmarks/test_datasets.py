import gzip
import random

import pytest

from benchmarks.harness import datasets
from benchmarks.harness.datasets import data_set, main, make
from benchmarks.harness.measuring import BenchmarkError


def fasta(*sequences):
    rng = random.Random(1)
    return "".join(f">{name} of x\n{''.join(rng.choices('ACGT', k=n))}\n" for name, n in sequences)


@pytest.fixture
def genomes(tmp_path, monkeypatch):
    """A folder of genomes that are small enough to be cut by hand."""
    monkeypatch.setattr(datasets, "PIECE_BASES", 1000)
    folder = tmp_path / "genomes"
    for path, content in {
        "bacteria/a.fna.gz": fasta(("a", 2000)),
        "bacteria/b.fna.gz": fasta(("b1", 900), ("b2", 100)),
        "bacteria/c.fna.gz": fasta(("c", 5000)),
        "bacteria/escherichia_coli__K_12_MG1655.fna.gz": fasta(("k12", 3000)),
        "eukaryote/human_chr20_first_5Mb.fa.gz": fasta(("chr20", 2000)),
        "eukaryote/saccharomyces_cerevisiae_R64.fa.gz": fasta(("chrI", 1500)),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(gzip.compress(content.encode()))
    return folder


def test_named_data_sets(genomes, monkeypatch):
    monkeypatch.setattr(datasets, "L_BASES", 7999)
    assert [path.name for path in data_set("L", genomes).genomes] == ["a.fna.gz", "b.fna.gz"]
    monkeypatch.setattr(datasets, "L_BASES", 8000)
    assert len(data_set("L", genomes).genomes) == 3
    assert [path.name[:5] for path in data_set("S", genomes).genomes] == ["human", "sacch"]
    m = data_set("M", genomes, coverage=7)
    assert (m.stage, m.pairs, m.coverage, m.read_length) == ("merge", 834_552, 0, 150)


def test_data_set_of_a_file(genomes):
    made = data_set(str(genomes / "bacteria" / "b.fna.gz"), None, coverage=7, seed=3)
    assert (made.name, made.coverage, made.seed, made.stage) == ("b", 7, 3, "correct")


def test_genomes_that_are_not_there(tmp_path):
    with pytest.raises(BenchmarkError, match="--genomes"):
        data_set("S", None)
    with pytest.raises(BenchmarkError, match=r"human_chr20.* is not there"):
        data_set("S", tmp_path)
    with pytest.raises(BenchmarkError, match="has no genomes"):
        data_set("L", tmp_path)
    with pytest.raises(BenchmarkError, match=r"x\.fa is not there"):
        data_set(str(tmp_path / "x.fa"), None)


@pytest.mark.parametrize("processes", [1, 3])
def test_pieces_are_simulated_and_joined_in_order(genomes, programs, tmp_path, processes):
    data = data_set("S", genomes)
    folder = tmp_path / "S"
    made = make(data, folder, processes=processes, truth=True)
    assert (made["genome_bases"], made["pieces"], made["reads"]) == (3500, 4, 8)
    names = (folder / "r_errFree.sam").read_text().split()
    assert names[0] == "chr20:1-1024"
    assert names[-1].startswith("chrI:")
    for mate in (1, 2):
        headers = (folder / f"r{mate}.fq").read_text().splitlines()[::4]
        assert headers == [f"@{name}/{mate}" for name in names]
    assert sorted(path.name for path in folder.iterdir()) == [
        "art.txt", "dataset.json", "r1.fq", "r2.fq", "r_errFree.sam",
    ]  # fmt: skip
    commands = (folder / "art.txt").read_text().splitlines()
    assert sorted(command.split()[0] for command in commands) == sorted(names)
    seeds = sorted(command.split("-rs ")[1] for command in commands)
    assert seeds == ["1 -ef", "2 -ef", "3 -ef", "4 -ef"]


def test_what_is_there_is_left_alone(genomes, programs, tmp_path):
    folder = tmp_path / "S"
    data = data_set("S", genomes)
    first = make(data, folder, processes=2, truth=False)
    assert not (folder / "r_errFree.sam").exists()
    (programs / "art_illumina").write_text("#!/bin/sh\nexit 1\n")
    assert make(data, folder, processes=2, truth=False) == first
    # The truth is wanted now, or another insert: ART has to run.
    with pytest.raises(BenchmarkError, match="status 1"):
        make(data, folder, processes=2, truth=True)
    with pytest.raises(BenchmarkError, match="status 1"):
        make(data, folder, processes=2, truth=False)


def test_pairs_are_shared_out_over_the_pieces(genomes, programs, tmp_path):
    make(data_set("M", genomes), tmp_path / "M", processes=2, truth=False)
    commands = (tmp_path / "M" / "art.txt").read_text().splitlines()
    assert sum(int(command.split("-c ")[1].split()[0]) for command in commands) == 834_552


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (fasta(("a", 200)), "too short"),
        ("ACGT\n", "no '>' header"),
        ("", "too short"),
    ],
)
def test_genomes_that_cannot_be_used(tmp_path, programs, content, message):
    path = tmp_path / "x.fa"
    path.write_text(content)
    with pytest.raises(BenchmarkError, match=message):
        make(data_set(str(path), None), tmp_path / "x", processes=1, truth=False)


def test_two_sequences_of_a_name(genomes, programs, tmp_path):
    same = genomes / "eukaryote" / "saccharomyces_cerevisiae_R64.fa.gz"
    same.write_bytes(gzip.compress(fasta(("chr20", 1000)).encode()))
    with pytest.raises(BenchmarkError, match="named chr20"):
        make(data_set("S", genomes), tmp_path / "S", processes=1, truth=False)


def test_command(genomes, programs, tmp_path, capsys):
    arguments = ["S", "--genomes", str(genomes), "--folder", str(tmp_path / "d"), "-t", "2"]
    assert main(arguments) == 0
    assert "8 reads of 3,500 bases" in capsys.readouterr().out
    assert main(["S", "--folder", str(tmp_path)]) == 1
    assert "--genomes" in capsys.readouterr().err


def test_a_data_set_several_times(genomes, programs, tmp_path):
    data = data_set("M3", genomes)
    assert (data.name, data.copies, data.stage) == ("M3", 3, "merge")
    once = make(data_set("M", genomes), tmp_path / "M", processes=1, truth=False)
    made = make(data, tmp_path / "M3", processes=1, truth=False)
    assert made["reads"] == 3 * once["reads"] > 0
    for mate in ("r1.fq", "r2.fq"):
        assert (tmp_path / "M3" / mate).read_bytes() == 3 * (tmp_path / "M" / mate).read_bytes()
    with pytest.raises(BenchmarkError, match="have no truth"):
        make(data, tmp_path / "M3", processes=1, truth=True)
