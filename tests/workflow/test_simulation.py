"""The scripts behind the simulation: synthetic genomes, chunks of a reference, and ART on both."""

from __future__ import annotations

import gzip
import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def load(name: str) -> ModuleType:
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


genome = load("synthetic_genome")
chunks = load("simulation_chunks")


def sequence_of(path: Path) -> str:
    return "".join(path.read_text().splitlines()[1:])


GENOME = shlex.split("--length 20000 --seed 3 --repeat 500,4,0 --repeat 300,5,0.05")


def make_genome(folder: Path, *more: str) -> Path:
    fasta = folder / "g.fa"
    assert genome.main([*GENOME, *more, str(fasta)]) == 0
    return fasta


def test_genome_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    first = make_genome(tmp_path).read_bytes()
    assert make_genome(tmp_path).read_bytes() == first
    assert make_genome(tmp_path, "--seed", "4").read_bytes() != first


def test_copies_lie_where_the_table_says(tmp_path: Path) -> None:
    bases = sequence_of(make_genome(tmp_path, "--bed", str(tmp_path / "g.bed")))
    assert len(bases) == 20000 and set(bases) == set("ACGT")
    families: dict[str, list[str]] = {}
    taken = [False] * len(bases)
    strands = set()
    for line in (tmp_path / "g.bed").read_text().splitlines():
        name, start, end, label, _, strand = line.split("\t")
        assert name == "synthetic" and not any(taken[int(start) : int(end)])
        taken[int(start) : int(end)] = [True] * (int(end) - int(start))
        copy = bases[int(start) : int(end)]
        forward = copy if strand == "+" else copy.translate(COMPLEMENT)[::-1]
        families.setdefault(label.split(".")[0], []).append(forward)
        strands.add(strand)
    assert strands == {"+", "-"}
    assert len(families["repeat1"]) == 4 and len(set(families["repeat1"])) == 1
    first, *others = families["repeat2"]
    assert len(others) == 4
    for other in others:
        # Each copy differs from the ancestor at 15 places, so two differ at 30 at most.
        assert 0 < sum(a != b for a, b in zip(first, other, strict=True)) <= 30


def test_repeats_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leaving:
        genome.main(["--length", "100", "--seed", "1", "--repeat", "60,2,0", str(tmp_path / "g")])
    assert leaving.value.code == 2
    assert "the repeats take 120 bases" in capsys.readouterr().err


@given(
    lengths=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    count=st.integers(1, 7),
    fragment=st.integers(1, 20),
)
def test_every_fragment_belongs_to_exactly_one_interval(
    lengths: list[int], count: int, fragment: int
) -> None:
    named = {f"s{i}": length for i, length in enumerate(lengths)}
    plan = chunks.plan(named, count, fragment)
    assert len(plan) == count
    starts = [
        (piece.name, start)
        for pieces in plan
        for piece in pieces
        for start in range(piece.start, piece.end - fragment + 1)
    ]
    assert starts == [
        (name, start)
        for name, length in named.items()
        for start in range(max(0, length - fragment + 1))
    ]
    labels = [piece.label for pieces in plan for piece in pieces]
    assert len(set(labels)) == len(labels)
    sizes = [sum(p.end - p.start - fragment + 1 for p in pieces) for pieces in plan]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ACGT\n", "no '>' header"),
        (">a\nACGT\n>a\nACGT\n", "line 3: sequence name 'a' is there twice"),
        (">\nACGT\n", "line 2: no name"),
        (">a\nACGT\n", "too short for 2 chunk(s)"),
    ],
)
def test_references_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "r.fa").write_text(text if not text.startswith(">\n") else "\n" + text)
    arguments = ["cut", "--chunks", "2", "--fragment", "5"]
    assert chunks.main([*arguments, str(tmp_path / "r.fa"), str(tmp_path / "c")]) == 2
    assert said in capsys.readouterr().err


def test_other_letters_become_n_and_gzip_is_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "r.fa.gz", "wt") as out:
        out.write(">chr1 described\nacgtRYKn\nACGT\n")
    arguments = ["cut", "--chunks", "1", "--fragment", "5", str(tmp_path / "r.fa.gz")]
    assert chunks.main([*arguments, str(tmp_path / "c")]) == 0
    assert (tmp_path / "c" / "0.fasta").read_text() == ">chr1:1-12\nACGTNNNNACGT\n"


def test_truncated_gzip_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = gzip.compress(b">chr1\n" + b"ACGGTTAC\n" * 500)
    (tmp_path / "r.fa.gz").write_bytes(packed[: len(packed) // 2])
    arguments = ["cut", "--chunks", "1", "--fragment", "5", str(tmp_path / "r.fa.gz")]
    assert chunks.main([*arguments, str(tmp_path / "c")]) == 2
    assert "r.fa.gz: Compressed file ended" in capsys.readouterr().err


def test_foreign_sam_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r.fa").write_text(">chr1\nACGT\n")
    (tmp_path / "x.sam").write_text("@HD\tVN:1.4\nr\t0\tchr1\t1\t99\t4=\t*\t0\t0\tACGT\t~~~~\n")
    output = tmp_path / "o.sam"
    arguments = ["join", "--output", str(output), str(tmp_path / "r.fa"), str(tmp_path / "x.sam")]
    assert chunks.main(arguments) == 2
    assert "x.sam, line 2: not a record of a chunk" in capsys.readouterr().err


@pytest.fixture
def art() -> str:
    program = shutil.which("art_illumina")
    if program is None:
        pytest.fail("art_illumina is not on the PATH: run scripts/setup.sh test")
    return program


def test_joined_truth_fits_the_reference(tmp_path: Path, art: str) -> None:
    """Every error-free read of every chunk is what the reference has at the joined position."""
    fasta = make_genome(tmp_path)
    folder = tmp_path / "chunks"
    cut = ["cut", "--chunks", "3", "--fragment", "300", str(fasta), str(folder)]
    assert chunks.main(cut) == 0
    options = shlex.split("-q -na -ef -p -ss HS20 -l 100 -f 8 -m 300 -s 10")
    for i in range(3):
        files = ["-i", str(folder / f"{i}.fasta"), "-o", str(folder / f"{i}_R")]
        subprocess.run([art, *options, "-rs", str(i + 1), *files], check=True, capture_output=True)
    sams = [str(folder / f"{i}_R_errFree.sam") for i in range(3)]
    joined = tmp_path / "truth.sam.gz"
    assert chunks.main(["join", "--output", str(joined), str(fasta), *sams]) == 0

    bases = sequence_of(fasta)
    names = []
    covered = [0] * len(bases)
    with pysam.AlignmentFile(str(joined)) as sam:
        assert sam.references == ("synthetic",) and sam.lengths == (20000,)
        for read in sam:
            start = read.reference_start
            if read.cigarstring == "100=":
                assert read.query_sequence == bases[start : start + 100]
                assert abs(read.next_reference_start - start) <= 300
            names.append((read.query_name, read.is_read1))
            for place in range(start, start + 100):
                covered[place] += 1
    assert len(set(names)) == len(names) > 1500
    # No gap at the cuts: the windows around them are as covered as the rest.
    for middle in (6567, 6867, 13134, 13434):
        assert sum(covered[middle - 150 : middle + 150]) / 300 > 4
