"""Records, files of them, counts, and sequences by name."""

from __future__ import annotations

import gzip
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ngsgpu as package
import ngsgpu.api
from ngsgpu.correct import CorrectionParameters, correct_files, correct_reads
from ngsgpu.errors import InputError, OutputError, UsageError
from ngsgpu.kmers import CountParameters, count_files
from ngsgpu.readset import ReadSet
from ngsgpu.spectrum import SpectrumParameters
from ngsgpu.spectrum import correct_reads as correct_by_kmers

Record = package.Record
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def test_records() -> None:
    read = Record("name and more", "ACGTN", "IIII#")
    assert len(read) == 5 and read.id == "name"
    assert read[1:3] == Record("name and more", "CG", "II")
    assert read[-1] == Record("name and more", "N", "#")
    assert read.reverse_complement() == Record("name and more", "NACGT", "#IIII")
    assert read.fastq_bytes() == b"@name and more\nACGTN\n+\nIIII#\n"
    assert Record("a", "AC").fasta_bytes() == b">a\nAC\n"
    assert Record("a", "AC")[:1].qualities is None
    with pytest.raises(UsageError, match="has no qualities"):
        Record("a", "AC").fastq_bytes()
    with pytest.raises(UsageError, match="2 bases, but 3 qualities"):
        Record("a", "AC", "III")


@pytest.mark.parametrize("ending", [".fq", ".fq.gz", ".fastq.zst"])
def test_what_is_written_is_read(tmp_path: Path, ending: str) -> None:
    reads = [Record(f"r\u00e4d {n}", "ACGTN"[: n % 5 + 1], "IIIII"[: n % 5 + 1]) for n in range(9)]
    path = tmp_path / f"reads{ending}"
    with package.open(path, mode="w") as out:
        for read in reads:
            out.write(read)
        assert not path.exists()
    again = package.open(path)
    assert list(again) == list(again) == reads


def test_pairs_in_two_files_or_one(tmp_path: Path) -> None:
    pairs = [(Record(f"p{n}/1", "AC", "II"), Record(f"p{n}/2", "GT", "##")) for n in range(3)]
    one, two, both = (tmp_path / name for name in ("1.fq", "2.fq", "both.fq"))
    with package.open(one, two, mode="w") as out, package.open(both, mode="w") as alternating:
        for pair in pairs:
            out.write(*pair)
            alternating.write(*pair)
    assert list(package.open(one, two)) == list(package.open(both, interleaved=True)) == pairs
    assert [read.id for read in package.open(both)] == [f"p{n}/{m}" for n in range(3) for m in "12"]
    with pytest.raises(UsageError, match="for pairs"), package.open(one, two, mode="w") as out:
        out.write(pairs[0][0])
    with pytest.raises(UsageError, match="in one file"):
        package.open(one, two, interleaved=True)  # type: ignore[call-overload]


def test_fasta(tmp_path: Path) -> None:
    path = tmp_path / "a.fa"
    path.write_text(">a b\nACG\r\nT\n\n>c\nGG\n")
    assert list(package.open(path)) == [Record("a b", "ACGT"), Record("c", "GG")]
    with package.open(tmp_path / "x.1.fasta.gz", mode="w") as out:
        out.write(Record("a", "AC", "II"))
    assert gzip.decompress((tmp_path / "x.1.fasta.gz").read_bytes()) == b">a\nAC\n"


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        package.open(tmp_path / "missing.fq")
    with pytest.raises(OutputError), package.open(tmp_path / "no" / "a.fq", mode="w"):
        pass
    with pytest.raises(UsageError, match="`mode` must be r or w"):
        package.open(tmp_path, mode="a")  # type: ignore[call-overload]
    (tmp_path / "bad.fq").write_text("@a\nAC\n+\nI\n")
    with pytest.raises(InputError, match="record 1"):
        list(package.open(tmp_path / "bad.fq"))
    with pytest.raises(ValueError, match="mine"), package.open(tmp_path / "o.fq", mode="w") as out:
        out.write(Record("a", "AC", "II"))
        raise ValueError("mine")
    assert not (tmp_path / "o.fq").exists()


def test_what_writers_refuse(tmp_path: Path) -> None:
    read = Record("a", "AC", "II")
    wrong: dict[str, Any] = {
        "is no record": "hello",
        "has a line end": Record("a", "AC\n", "II\n"),
        "'b' has no qualities": Record("b", "AC"),
    }
    for message, item in wrong.items():
        with (
            pytest.raises(UsageError, match=message),
            package.open(tmp_path / "o.fq", mode="w") as out,
        ):
            out.write(read)
            out.write(item)
        assert not (tmp_path / "o.fq").exists()
    with package.open(tmp_path / "o.fq", mode="w") as out:
        out.write(read)
    with pytest.raises(UsageError, match="closed"):
        out.write(read)
    assert list(package.open(tmp_path / "o.fq")) == [read]
    with pytest.raises(UsageError, match="write mode='w'"):
        package.open(tmp_path / "o.fq", "w")
    with pytest.raises(UsageError, match="must be paths, not list"):
        package.open([tmp_path / "o.fq"])  # type: ignore[call-overload]


class _Bytes:
    name, sequence, qualities = b"a", b"ACGT", b"IIII"


class _Short:
    name, sequence, qualities = "a", "ACGT", "II"


BROKEN = [
    _Bytes(), _Short(), package.Record("a", "A\0", "II"), package.Record("a", "\u00e9", "I"),
    package.Record("a\rb", "A", "I"), package.Record("a\0", "A", "I"),
    package.Record("\ud800", "A", "I"), package.Record("a", "A", " "),
    package.Record("a", "A", "\u00e9"), package.Record("a", "\u0661", "I"),
    package.Record("a", "X", "I"), package.Record("a" * ((1 << 20) + 1), "A", "I"), None,
]  # fmt: skip


@pytest.mark.parametrize("record", BROKEN, ids=range(len(BROKEN)))
def test_records_that_no_reader_takes_are_not_written(tmp_path: Path, record: Any) -> None:
    with pytest.raises(UsageError), package.open(tmp_path / "o.fq", mode="w") as out:
        out.write(record)
    assert list(tmp_path.iterdir()) == []


def test_odd_records_that_readers_take(tmp_path: Path) -> None:
    records = [
        package.Record("\u00e9 \udcff x", "ACGUN.ry", "!~IIIIII"),
        package.Record("", "", ""),
    ]
    with package.open(tmp_path / "o.fq.xz", mode="w") as out:
        for record in records:
            out.write(record)
    assert list(package.open(tmp_path / "o.fq.xz")) == records
    with package.open(tmp_path / "o.fsa.bz2", mode="w") as out:
        out.write(package.Record("masked", "ACxxX"))
    assert list(package.open(tmp_path / "o.fsa.bz2")) == [package.Record("masked", "ACxxX")]


def test_corrections_are_applied(library: Path, tmp_path: Path) -> None:
    path = library / "1.fq"
    reads = list(package.open(path))
    sequences = [read.sequence for read in reads]
    read_set = ReadSet.from_sequences(sequences, [read.qualities or "" for read in reads])
    corrections, _ = correct_reads(read_set, CorrectionParameters())
    correct_files(path, tmp_path / "c.fq")
    assert corrections.apply(sequences) == [r.sequence for r in package.open(tmp_path / "c.fq")]
    by_kmers = correct_by_kmers(read_set, SpectrumParameters()).apply(sequences)
    corrected = package.correct(path, parameters=SpectrumParameters(), backend="cpu")
    assert by_kmers == [read.sequence for read in corrected] != sequences
    with pytest.raises(UsageError, match="edits of 600 reads"):
        corrections.apply(sequences[1:])


def test_counts(library: Path, tmp_path: Path) -> None:
    reads = [read.sequence for read in package.open(library / "1.fq")]
    counts = package.count(library / "1.fq", k=21)
    expected: dict[str, int] = {}
    for sequence in reads:
        for at in range(len(sequence) - 20):
            kmer = sequence[at : at + 21]
            if set(kmer) <= set("ACGT"):
                kmer = min(kmer, kmer[::-1].translate(COMPLEMENT))
                expected[kmer] = expected.get(kmer, 0) + 1
    assert dict(counts.items()) == expected and list(counts) == sorted(expected)
    assert len(counts) == len(expected) and counts.k == 21
    kmer = next(iter(expected))
    assert counts[kmer] == counts[kmer[::-1].translate(COMPLEMENT)] == expected[kmer]
    assert kmer in counts and "A" * 21 not in counts and counts["A" * 21] == 0
    assert counts.histogram()[1] == sum(count == 1 for count in expected.values())
    assert counts.of_sequence("A" * 20 + kmer).tolist()[-1] == expected[kmer]
    assert counts.source.sequences == 600
    wrong: tuple[Any, ...] = (kmer[1:], kmer[:-1] + "N", "", 5)
    for other in wrong:
        with pytest.raises(UsageError, match="no k-mer of 21 letters"):
            counts[other]
    assert counts.of_sequence(Record("a", kmer)).tolist() == [expected[kmer]]
    counts.save(tmp_path / "saved")
    count_files(library / "1.fq", tmp_path / "counted", CountParameters(21))
    for name in ("kmers.npy", "counts.npy", "manifest.json"):
        ours, theirs = (tmp_path / own / name for own in ("saved", "counted"))
        assert ours.read_bytes() == theirs.read_bytes()
    again = package.KmerCounts.load(tmp_path / "saved")
    assert np.array_equal(again.database.kmers, counts.database.kmers)


@pytest.mark.parametrize("compressed", [False, True])
def test_sequences_by_name(tmp_path: Path, compressed: bool) -> None:
    text = ">one x\nACGTac\nNN\n>two\nGG\n"
    path = tmp_path / ("a.fa.gz" if compressed else "a.fa")
    path.write_bytes(gzip.compress(text.encode()) if compressed else text.encode())
    with package.NamedSequences(path) as sequences:
        assert list(sequences) == ["one", "two"] and len(sequences) == 2
        assert sequences["one"].sequence == "ACGTacNN" and "two" in sequences
        assert (
            sequences.get("three") is None and [own.name for own in sequences.values()][1] == "two"
        )
        assert sequences.fetch("one", 2, 7) == "GTacN" and sequences.fetch("one", 8, 8) == ""
        with pytest.raises(IndexError, match="which has 8 bases"):
            sequences.fetch("one", 2, 9)
        with pytest.raises(KeyError):
            sequences["three"]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_reads_by_name(library: Path, tmp_path: Path) -> None:
    with package.NamedSequences(library / "1.fq") as reads:
        expected = list(package.open(library / "1.fq"))[7]
        assert reads["read7"].sequence == expected.sequence == reads.fetch("read7", 0, 100)
        assert reads["read7"].qualities == expected.qualities
    (tmp_path / "twice.fa").write_text(">a\nAC\n>a\nGT\n")
    with pytest.raises(InputError, match="same name"):
        package.NamedSequences(tmp_path / "twice.fa")
    whole = gzip.compress((library / "1.fq").read_bytes())
    (tmp_path / "cut.fq.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError):
        package.NamedSequences(tmp_path / "cut.fq.gz")


def test_packages_are_functions_and_packages() -> None:
    assert {*package.__all__} == {*ngsgpu.api.__all__, "__version__"}
    for name in package.__all__:
        assert name in dir(package) and callable(getattr(package, name)) == (name[:2] != "__")
    import ngsgpu.merge.cpu as module

    assert module.__name__ == "ngsgpu.merge.cpu"
    assert package.correct.correct_files is correct_files  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        package.nothing()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    ["open", "correct", "merge", "trim", "deplete", "classify", "assemble", "count", "chain"],
)
def test_help_describes_the_function_and_all_parameters(name: str) -> None:
    function = getattr(package, name)
    text, own = inspect.getdoc(function), getattr(ngsgpu.api, name)
    assert text is not None and text.splitlines()[0] == (own.__doc__ or "").splitlines()[0]
    assert inspect.signature(function) == inspect.signature(own)
    head, _, entries = text.partition("\nArgs:\n")
    entries = entries.partition("\n\n")[0]
    assert re.findall(r"^    (\w+): \S", entries, re.M) == list(inspect.signature(own).parameters)
    assert "Raises:" in text and ("The package:" in text) == inspect.ismodule(function), head


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import ngsgpu; dir(ngsgpu); "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-Sc", code], capture_output=True, text=True,
                          cwd=Path(package.__file__).parents[1], check=True)  # fmt: skip
    assert done.stdout.split() == ["ngsgpu", "ngsgpu._version"]
    code = "import sys; sys.modules['cupy'] = None; import ngsgpu.api"
    subprocess.run([sys.executable, "-c", code], check=True,
                   cwd=Path(package.__file__).parents[1])  # fmt: skip
