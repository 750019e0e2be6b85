"""From files to files: the output is the input, but for some bases."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.io.text.reader import read_batches
from tests.support.commands import Commands, read_json
from tests.support.correct.data import simulated_pairs
from tests.support.io.records import Record, fasta, fastq, records_of, write
from tests.support.minhash.oracle import reverse_complement


def records_in(path: Path) -> list[Record]:
    return records_of(read_batches(path))[0]


def without_bases(text: bytes, end: bytes) -> list[bytes]:
    """All lines of a FASTQ file but those with bases."""
    lines = text.split(end)
    del lines[1::4]
    return lines


def differences(before: bytes, after: bytes) -> list[tuple[int, int]]:
    assert len(before) == len(after)
    return [(b, a) for b, a in zip(before, after, strict=True) if b != a]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last_newline", [True, False])
def test_only_bases_change(
    tmp_path: Path, ngsgpu: Commands, end: bytes, last_newline: bool
) -> None:
    records = list(simulated_pairs())
    text = fastq(records, end)
    text = text if last_newline else text.removesuffix(end)
    path = write(tmp_path / "in.fq", text)
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fq")
    after = (tmp_path / "out.fq").read_bytes()
    changes = differences(text, after)
    assert len(changes) > 300
    assert without_bases(after, end) == without_bases(text, end)
    for old, new in changes:
        assert chr(new) in "ACGTacgt"
        assert chr(old).islower() == chr(new).islower()
    new_records = records_in(tmp_path / "out.fq")
    assert [r.header for r in new_records] == [r.header for r in records]
    assert [r.qualities for r in new_records] == [r.qualities for r in records]


@pytest.mark.parametrize("width", [7, 60, None])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_fasta_keeps_its_lines(
    tmp_path: Path, ngsgpu: Commands, width: int | None, end: bytes
) -> None:
    records = [Record(r.header, r.bases, None) for r in simulated_pairs()]
    text = fasta(records, end, width)
    path = write(tmp_path / "in.fa", text)
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fa", "--coverage", 25)
    after = (tmp_path / "out.fa").read_bytes()
    assert len(differences(text, after)) > 300
    lines = zip(text.split(end), after.split(end), strict=True)
    for old, new in lines:
        assert len(old) == len(new)
        assert not old.startswith(b">") or old == new
    # Wrapping decides nothing.
    plain = write(tmp_path / "plain.fa", fasta(records))
    ngsgpu.corrects("-i", plain, "-o", tmp_path / "plain-out.fa", "--coverage", 25)
    assert records_in(tmp_path / "plain-out.fa") == records_in(tmp_path / "out.fa")


def test_what_is_not_known_is_decided_or_stays(tmp_path: Path, ngsgpu: Commands) -> None:
    genome = "ACGTTGCAAGGCTTAACCGGTACGATTAGCCATGCAATCGGATATCCAATTGGTACGTTCGTCCATGAC"
    alone = "GGGTCTCGAGAACCTTTACTCAGTCGATTTGACNTAAACTGCCGTGTATGCGTCTTTGGGCATTCACT"
    letters = "Nn.UrYK"
    reads = [genome] * 8 + [genome[:31] + letter + genome[32:] for letter in letters]
    reads += [reverse_complement(genome.replace("ATTAGCC", "ATTNGCC").replace("N", "A")), alone]
    reads += ["N" * 60, alone.lower()[:40]]
    records = [Record(b"r", text.encode(), b"I" * len(text)) for text in reads]
    path = write(tmp_path / "in.fq", fastq(records))
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fq", "--coverage", 12)
    after = [record.bases.decode() for record in records_in(tmp_path / "out.fq")]
    assert after[:8] == [genome] * 8
    for letter, text in zip(letters, after[8:], strict=False):
        assert text.upper() == genome
        assert text[31].islower() == letter.islower()
    assert after[8 + len(letters)] == reverse_complement(genome)
    assert after[-3:] == reads[-3:]


K40 = b"ACGTTGCAAGGCTTAACCGGTACGATTAGCCATGCAATCG"
HOPELESS = {
    "zero length": [b"", b""],
    "short": [b"ACGT", b"ACNT"] * 30,
    "shorter than k": [K40[:19]] * 50,
    "shorter than the overlap": [K40[:29]] * 50,
    "one": [K40],
    "not known": [b"N" * 80, b"n" * 70, b"." * 60] * 20,
    "equal": [K40] * 100,
    "with a zero length": [b"", K40, b""],
}


@pytest.mark.parametrize("reads", HOPELESS.values(), ids=HOPELESS)
@pytest.mark.parametrize("layout", ["single", "interleaved", "FASTA"])
@pytest.mark.parametrize("coverage", ["auto", "3"])
def test_reads_that_cannot_be_corrected_pass(
    tmp_path: Path, ngsgpu: Commands, reads: list[bytes], layout: str, coverage: str
) -> None:
    reads = reads * 2 if layout == "interleaved" else reads
    records = [Record(b"r%d" % (i // 2), text, b"!" * len(text)) for i, text in enumerate(reads)]
    text = fasta(records) if layout == "FASTA" else fastq(records)
    path = write(tmp_path / "in", text)
    options = ["--interleaved"] if layout == "interleaved" else []
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out", "--coverage", coverage, *options)
    assert (tmp_path / "out").read_bytes() == text


def test_runs_of_unknown_bases_are_no_overlap(tmp_path: Path, ngsgpu: Commands) -> None:
    """Reads whose ends were masked have nothing in common by that."""
    generator = np.random.default_rng(4)
    reads = ["".join(generator.choice(list("ACGT"), 60)) + "N" * 50 for _ in range(50)]
    for text in (
        fasta([Record(b"r", read.encode(), None) for read in reads]),
        fastq([Record(b"r", read.encode(), b"I" * 60 + b"!" * 50) for read in reads]),
    ):
        path = write(tmp_path / "in", text)
        options = ("--coverage", 3, "--stats", tmp_path / "s.json")
        ngsgpu.corrects("-i", path, "-o", tmp_path / "out", *options)
        assert (tmp_path / "out").read_bytes() == text
        assert read_json(tmp_path / "s.json")["candidates"]["aligned"] == 0


@pytest.mark.parametrize("make", [fasta, fastq])
def test_nobody_else_knows(tmp_path: Path, ngsgpu: Commands, make: Callable[..., bytes]) -> None:
    """Two reads overlap, but not where one has an N."""
    generator = np.random.default_rng(5)
    genome = "".join(generator.choice(list("ACGT"), 150))
    for number in range(8):
        reads = [genome[:70] + "N" * (number + 1) + genome[71 + number :], genome[90:]]
        records = [Record(b"r", read.encode(), b"I" * len(read)) for read in reads]
        text = make(records)
        path = write(tmp_path / "in", text)
        ngsgpu.corrects("-i", path, "-o", tmp_path / "out", "--coverage", 1)
        assert (tmp_path / "out").read_bytes() == text


def test_reads_of_all_lengths_together(tmp_path: Path, ngsgpu: Commands) -> None:
    records = [
        Record(r.header, r.bases[: i % 101], (r.qualities or b"")[: i % 101])
        for i, r in enumerate(simulated_pairs(coverage=50))
    ]
    path = write(tmp_path / "in.fq", fastq(records))
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fq")
    after = records_in(tmp_path / "out.fq")
    changed = [i for i, (old, new) in enumerate(zip(records, after, strict=True)) if old != new]
    assert len(changed) > 100
    # Half of the mean length, which is the least overlap of reads as short as these.
    assert min(len(records[i].bases) for i in changed) >= 24
    assert [len(r.bases) for r in after] == [i % 101 for i in range(len(records))]


def test_quiet_and_not(tmp_path: Path, ngsgpu: Commands) -> None:
    path = write(tmp_path / "in.fq", fastq(simulated_pairs()))
    done = ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fq")
    assert done.out == ""
    assert "estimated coverage: " in done.err
    assert re.search(r"^coverage \d+\.\d \(estimated\)$", done.err, re.MULTILINE)
    assert re.search(r"bases corrected in \d+ reads", done.err)
    done = ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fq", "--quiet", "--coverage", 25)
    assert (done.out, done.err) == ("", "")


def changed_bases(before: list[Record], after: list[Record]) -> list[list[int]]:
    return [
        [i for i, (b, a) in enumerate(zip(one.bases, two.bases, strict=True)) if b != a]
        for one, two in zip(before, after, strict=True)
    ]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("offset", [33, 64])
def test_masks_and_sets_qualities(
    tmp_path: Path, ngsgpu: Commands, offset: int, suffix: str
) -> None:
    records = [
        r._replace(qualities=bytes(q - 33 + offset for q in r.qualities or b""))
        for r in simulated_pairs()
    ]
    path = write(tmp_path / "in.fq", fastq(records))
    options = ["-i", path, "--phred-offset", offset, "--stats", tmp_path / "s.json"]

    def run(name: str, *more: str) -> list[Record]:
        ngsgpu.corrects(*options, "-o", tmp_path / f"{name}.fq{suffix}", *more)
        batches = read_batches(tmp_path / f"{name}.fq{suffix}", phred_offset=33)
        return records_of(batches)[0]

    plain = run("plain")
    bases = read_json(tmp_path / "s.json")["corrected"]["bases"]
    masked = run("masked", "--mask")
    counts = read_json(tmp_path / "s.json")["corrected"]
    places = changed_bases(records, plain)
    unknown = 0
    for old, new, changed, dark in zip(records, plain, places, masked, strict=True):
        assert dark.qualities == new.qualities == old.qualities
        letters = bytearray(old.bases)
        for i in changed:
            unknown += letters[i] in b"Nn"
            letters[i] = ord("n" if chr(letters[i]).islower() else "N")
        assert dark.bases == bytes(letters)
    assert unknown > 10
    assert counts["bases"] == bases - unknown > 300
    assert counts["unknown_decided"] == 0
    assert "masked" in ngsgpu.corrects(*options, "-o", tmp_path / "x.fq", "--mask").err

    for more, highest in (([], 20), (["--mask"], 2)):
        for old, new, changed in zip(records, run("q", "--quality", *more), places, strict=True):
            expected = list(old.qualities or b"")
            kept = [i for i in range(len(expected)) if i not in changed]
            for i in changed:
                if more and old.bases[i] in b"Nn":
                    continue
                beside = [j for j in kept if j < i][-1:] + [j for j in kept if j > i][:1]
                old_qualities = old.qualities or b""
                expected[i] = min([offset + highest, *(old_qualities[j] for j in beside)])
            assert new.qualities == bytes(expected)


def test_qualities_of_fasta_cannot_be_set(tmp_path: Path, ngsgpu: Commands) -> None:
    text = fasta([Record(r.header, r.bases, None) for r in simulated_pairs()], width=60)
    path = write(tmp_path / "in.fa", text)
    ngsgpu.corrects("-i", path, "-o", tmp_path / "plain.fa")
    done = ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fa", "--quality")
    assert f"{path}: no qualities; --quality sets none" in done.err
    assert (tmp_path / "out.fa").read_bytes() == (tmp_path / "plain.fa").read_bytes() != text
    ngsgpu.corrects("-i", path, "-o", tmp_path / "masked.fa", "--mask", "--quality")
    assert (tmp_path / "masked.fa").read_bytes().count(b"N") > text.count(b"N") + 300


def test_qualities_that_only_may_be_phred64_are_said_once(tmp_path: Path, ngsgpu: Commands) -> None:
    """Those of AVITI, trimmed at Q26."""
    records = [r._replace(qualities=b"YYXVSN;" * 14 + b"YY") for r in simulated_pairs()]
    path = write(tmp_path / "in.fq", fastq(records))
    done = ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fq")
    assert done.err.count("read as Phred+33 (Q26 to Q56)") == 1
    asked = ngsgpu.corrects("-i", path, "-o", tmp_path / "same.fq", "--phred-offset", 33)
    assert "read as" not in asked.err
    assert (tmp_path / "out.fq").read_bytes() == (tmp_path / "same.fq").read_bytes()
