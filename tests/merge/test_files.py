"""The command: which files it reads and writes, what it says, and what it refuses."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tests.support import copies
from tests.support.commands import Commands
from tests.support.io.records import Record, fastq, write
from tests.support.merge.data import simulated_pairs, write_pairs


@pytest.fixture
def inputs(tmp_path: Path) -> list[str]:
    """Options for two files of pairs of which most overlap."""
    first, second = write_pairs(tmp_path, simulated_pairs(1, 200, ambiguous=0.005))
    return ["-i", str(first), "-I", str(second)]


def merge(ngsgpu: Commands, *arguments: object) -> str:
    """Merge; what was said to standard error."""
    done = ngsgpu("merge", "--backend", "cpu", "--threads", 2, *arguments)
    assert done.status == 0, done.err
    return done.err


def refused(ngsgpu: Commands, *arguments: object) -> str:
    done = ngsgpu("merge", "--backend", "cpu", *arguments)
    assert done.status == 2, done.err
    return done.error


def fields(path: Path) -> list[bytes]:
    """Lines of a file that may be compressed."""
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")


def test_all_outputs(tmp_path: Path, ngsgpu: Commands, inputs: list[str]) -> None:
    merged, one, two = (tmp_path / f"{name}.fq.gz" for name in ("m", "u1", "u2"))
    numbers, bars, sizes, stats = (tmp_path / name for name in ("n", "b", "s", "j"))
    said = merge(
        ngsgpu, *inputs, "-o", merged, "--unmerged1", one, "--unmerged2", two, "--hist", numbers,
        "--histogram", bars, "--ihist", sizes, "--stats", stats,
    )  # fmt: skip
    document = json.loads(stats.read_text())
    pairs = document["pairs"]
    assert pairs["total"] == 200
    assert pairs["merged"] == len(fields(merged)) // 4 > 80
    assert pairs["not_merged"] == len(fields(one)) // 4 == len(fields(two)) // 4 > 20
    assert pairs["not_merged"] == sum(
        pairs[why] for why in ("dissimilar", "undecided", "too_short")
    )
    counted = dict(document["histograms"]["merged_lengths"])
    assert sum(counted.values()) == pairs["merged"]
    assert [f"{length}\t{n}" for length, n in counted.items()] == numbers.read_text().splitlines()
    assert bars.read_text().count("\n") == max(counted) - min(counted) + 1
    assert document["max_overlap"] == {"value": 100, "automatic": True}
    assert document["learned"]["overlapping"] > 80
    assert document["schema"] == "ngsgpu.merge"
    lines = sizes.read_text().splitlines()
    assert lines[0] == f"#Mean\t{document['insert_size']['mean']:.3f}"
    assert [line.split("\t")[0] for line in lines[:6]] == [
        "#Mean", "#Median", "#Mode", "#STDev", "#PercentOfPairs", "#InsertSize",
    ]  # fmt: skip
    assert f"200 pairs, {pairs['merged']} merged" in said


def test_merged_reads_alone_to_standard_output(inputs: list[str], tmp_path: Path) -> None:
    command = [copies.ngsgpu(), "merge", "-q", "--backend", "cpu", "-t", "1"]
    printed = subprocess.run([*command, *inputs, "-c"], check=True, capture_output=True).stdout
    subprocess.run([*command, *inputs, "-o", str(tmp_path / "m.fq")], check=True)
    assert printed == (tmp_path / "m.fq").read_bytes()


def test_interleaved_out(tmp_path: Path, ngsgpu: Commands, inputs: list[str]) -> None:
    files = ["-o", tmp_path / "m.fq", "--unmerged1", tmp_path / "u1.fq"]
    merge(ngsgpu, *inputs, *files, "--unmerged2", tmp_path / "u2.fq")
    merge(ngsgpu, *inputs, "-o", tmp_path / "n.fq", "--unmerged1", tmp_path / "u.fq",
          "--interleaved-out")  # fmt: skip
    one, two, both = (fields(tmp_path / name) for name in ("u1.fq", "u2.fq", "u.fq"))
    for i in range(0, len(one) - 1, 4):
        assert both[2 * i : 2 * i + 8] == one[i : i + 4] + two[i : i + 4]


def test_automatic_overlap(tmp_path: Path, ngsgpu: Commands, inputs: list[str]) -> None:
    def used(*options: object) -> int:
        path = tmp_path / "stats.json"
        merge(ngsgpu, *inputs, "-o", tmp_path / "m.fq", "--overlap", "flash", *options,
              "--stats", path)  # fmt: skip
        found = json.loads(path.read_text())["max_overlap"]
        assert found["automatic"]
        return int(found["value"])

    assert used() == 100
    assert used("--fragment-length", 180) == 65
    assert used("--fragment-length", 180, "--fragment-deviation", 17) == 62
    assert used("--fragment-length", 250, "--read-length", 150, "--fragment-deviation", 19) == 97


def test_many_long_overlaps_are_told(tmp_path: Path, ngsgpu: Commands) -> None:
    files = write_pairs(tmp_path, simulated_pairs(1, 50, inserts=(100, 110)))
    said = merge(ngsgpu, "--flash", "-i", files[0], "-I", files[1], "-o", tmp_path / "m.fq")
    assert "give --max-overlap auto" in said


def test_adapters_are_trimmed(tmp_path: Path, ngsgpu: Commands) -> None:
    """Fragments shorter than the reads come out whole, and nothing else."""
    pairs = simulated_pairs(2, 100, inserts=(50, 95), errors=0)
    files = write_pairs(tmp_path, pairs)
    arguments = ["-i", files[0], "-I", files[1], "--trim-adapters"]
    stats = tmp_path / "s.json"
    merge(ngsgpu, *arguments, "-o", tmp_path / "m.fq", "--stats", stats)
    document = json.loads(stats.read_text())
    assert document["pairs"]["outward"] > 60
    lengths = [length for length, _ in document["histograms"]["merged_lengths"]]
    assert max(lengths) <= 95
    assert document["trimmed"]["bases"] > 60 * 10
    # The same without merging: both mates have the length of the fragment.
    merge(ngsgpu, *arguments, "--correct-only", "--unmerged1", tmp_path / "1.trimmed",
          "--unmerged2", tmp_path / "2.trimmed")  # fmt: skip
    first, second = (fields(tmp_path / f"{mate}.trimmed") for mate in (1, 2))
    trimmed = [
        (len(one), len(two))
        for one, two in zip(first[1::4], second[1::4], strict=True)
        if len(one) < 100
    ]
    assert len(trimmed) > 60
    assert all(one == two for one, two in trimmed)


def test_only_corrected(tmp_path: Path, ngsgpu: Commands) -> None:
    pairs = simulated_pairs(3, 200, inserts=(110, 150), errors=0.01)
    files = write_pairs(tmp_path, pairs)
    outputs = [tmp_path / "1.out", tmp_path / "2.out"]
    stats = tmp_path / "s.json"
    merge(ngsgpu, "--overlap", "flash", "-i", files[0], "-I", files[1], "--correct-only",
          "--unmerged1", outputs[0], "--unmerged2", outputs[1], "--stats", stats)  # fmt: skip
    corrected = json.loads(stats.read_text())["corrected"]
    for mate, name in enumerate(("first_bases", "second_bases")):
        before = [pair[mate].bases.upper() for pair in pairs]
        after = fields(outputs[mate])[1::4]
        assert [len(read) for read in after] == [len(read) for read in before]
        changed = sum(
            a != b
            for one, two in zip(before, after, strict=True)
            for a, b in zip(one, two, strict=True)
        )
        assert changed == corrected[name] > 20


def test_fasta_is_refused(tmp_path: Path, ngsgpu: Commands) -> None:
    path = write(tmp_path / "r.fa", b">a\nACGT\n>a\nACGT\n")
    said = refused(ngsgpu, "-i", path, "--interleaved-in", "-o", tmp_path / "m.fq")
    assert said.endswith("this is FASTA, but merging needs qualities; give FASTQ files")


def test_phred64_is_noticed(tmp_path: Path, ngsgpu: Commands) -> None:
    pairs = simulated_pairs(1, 100, offset=64)
    files = write_pairs(tmp_path, pairs)
    arguments = ["-i", files[0], "-I", files[1], "-o", tmp_path / "m.fq"]
    assert "give --phred-offset 64" in refused(ngsgpu, *arguments)
    merge(ngsgpu, *arguments, "--phred-offset", 64)
    assert min(b"".join(fields(tmp_path / "m.fq")[3::4])) >= 64


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-o", "m"], "no reads given"),
        (["-i", "1.fq", "-o", "m"], "give second mates with -I, or --interleaved-in"),
        (["-i", "1.fq", "-I", "2.fq", "--interleaved-in", "-o", "m"], "omit -I"),
        (["-i", "1.fq", "-i", "3.fq", "-I", "2.fq", "-o", "m"], "one -I for each -i"),
        (["-i", "-", "-I", "-", "-o", "m"], "is named as input twice"),
        (["-i", "1.fq", "-I", "2.fq"], "no output given"),
        (["-o", "m", "-c"], "give only one of them"),
        (["-o", "m", "--unmerged1", "u"], "--unmerged1 and --unmerged2 or, with"),
        (["-o", "m", "--unmerged2", "u"], "--unmerged2 needs --unmerged1"),
        (["-o", "m", "--flash-prefix", "p"], "--flash-prefix names all outputs"),
        (["-o", "m", "-z"], "--compress needs --flash-prefix"),
        (["-o", "m", "--correct-only"], "merges nothing; omit -o"),
        (["--correct-only"], "needs an output for the reads"),
        (["-o", "m", "-m", "0"], "--min-overlap must be 1 or more"),
        (["-o", "m", "--flash", "-m", "70"], "--max-overlap 65 is below --min-overlap 70"),
        (["-o", "m", "-M", "much"], "--max-overlap must be auto or a number, not 'much'"),
        (["-o", "m", "-x", "1.5"], "--max-mismatch-density must be from 0 to 1"),
        (["-o", "m", "--max-quality", "1"], "--max-quality must be from 2 to 93"),
        (["-o", "m", "--cap-mismatch-quals"], "requires --quality flash"),
        (["-o", "m", "--allow-outies", "--trim-adapters"], "give one of them"),
        (["-o", "m", "--fragment-length", "200"], "requires --overlap flash"),
        (["-o", "m", "-M", "65"], "--max-overlap requires --overlap flash"),
        (["-o", "m", "--overlap", "flash", "--quality", "calibrated"], "give --quality edgar"),
        (["-o", "m", "--flash", "--mask-ties"], "requires --quality calibrated or edgar"),
        (
            ["-o", "m", "--flash", "-M", "65", "--fragment-length", "200"],
            "requires --max-overlap auto",
        ),
        (["-o", "m", "--overlap", "flash", "--read-length", "100"], "need --fragment-length"),
        (["-o", "m", "--overlap", "flash", "--fragment-length", "0"], "must be 1 or more"),
        (["-o", "m", "-t", "-1"], "--threads must be 0 or more"),
    ],
)
def test_refusals(tmp_path: Path, ngsgpu: Commands, arguments: list[str], told: str) -> None:
    write_pairs(tmp_path, simulated_pairs(1, 5))
    full = [str(tmp_path / word) if word.endswith(".fq") else word for word in arguments]
    assert told in refused(ngsgpu, *full)


def test_fragments_too_long_to_overlap(tmp_path: Path, ngsgpu: Commands, inputs: list[str]) -> None:
    said = refused(ngsgpu, *inputs, "-o", tmp_path / "m", "--flash", "--fragment-length", 400)
    assert "overlap by at most" in said


def test_empty_files(tmp_path: Path, ngsgpu: Commands) -> None:
    files = [write(tmp_path / name, b"") for name in ("1.fq", "2.fq")]
    merge(ngsgpu, "-i", files[0], "-I", files[1], "-o", tmp_path / "m.fq", "-M", "auto",
          "--ihist", tmp_path / "i")  # fmt: skip
    assert (tmp_path / "m.fq").read_bytes() == b""
    assert "#Mean\t0.000" in (tmp_path / "i").read_text()


def test_ties_and_unknown_bases(tmp_path: Path, ngsgpu: Commands) -> None:
    """Of two bases with the same quality the first read's, and never an N if one is known."""
    first = Record(b"r", b"ACGTACGTTGCATTGACCAGTCATN", b"I" * 18 + b"IIIIII#")
    second = Record(b"r", b"CATGACTGGTCAATGCAACG", b"I" * 20)
    one, two = write(tmp_path / "1.fq", fastq([first])), write(tmp_path / "2.fq", fastq([second]))
    merge(ngsgpu, "--overlap", "flash", "-i", one, "-I", two, "-o", tmp_path / "m.fq")
    _, bases, _, qualities, _ = fields(tmp_path / "m.fq")
    assert bases == b"ACGTACGTTGCATTGACCAGTCATG"
    assert qualities[24:] == b"I"
    merge(ngsgpu, "--overlap", "flash", "--max-quality", 20, "-i", one, "-I", two,
          "-o", tmp_path / "m.fq")  # fmt: skip
    assert fields(tmp_path / "m.fq")[3] == b"IIIII" + b"5" * 20
    changed = first._replace(bases=first.bases.replace(b"AGTCAT", b"AGTTAT"))
    write(one, fastq([changed]))
    merge(ngsgpu, "--overlap", "flash", "-i", one, "-I", two, "-o", tmp_path / "m.fq")
    assert fields(tmp_path / "m.fq")[1] == b"ACGTACGTTGCATTGACCAGTTATG"
    merge(
        ngsgpu, "--overlap", "flash", "--mask-ties", "-i", one, "-I", two, "-o", tmp_path / "m.fq"
    )
    _, bases, _, qualities, _ = fields(tmp_path / "m.fq")
    assert bases == b"ACGTACGTTGCATTGACCAGTNATG"
    assert qualities[21:22] == b"#"
