"""Inputs that cannot be used end with one line that says where, what and how to mend it."""

from __future__ import annotations

import gzip
import logging
import os
import random
from pathlib import Path

import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.text.reader import ReadLimits, read_batches
from ngsgpu.suffix.fasta import read_codes
from tests.support.io.records import (
    Record,
    bgzf,
    compression,
    fasta,
    fastq,
    members,
    reads,
    records_of,
    write,
)

GOOD = fastq(reads(3))


def refused(path: Path | str, **options: object) -> InputError:
    with pytest.raises(InputError) as caught:
        list(read_batches(path, **options))  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    assert caught.value.remedy
    return caught.value


FASTQ_FAULTS: dict[str, tuple[bytes, str, int, int]] = {
    "qualities too short": (b"@r\nACGT\n+\nIII\n@s\nA\n+\nI\n", "4 bases but 3 qualities", 4, 16),
    "qualities too long": (b"@r\nACGT\n+\nIIIII\n", "4 bases but 5 qualities", 4, 16),
    "no @": (b"r\nACGT\n+\nIIII\n", "expected '@' at the start of a record, found 'r'", 4, 13),
    "no +": (b"@r\nACGT\nIIII\n@s\n", "expected '+' after the sequence, found 'I'", 4, 15),
    "another name after +": (b"@r\nA\n+s\nI\n", "the '+' line names 's'", 4, 15),
    "wrapped": (b"@r\nAC\nGT\n+\nII\nII\n", "a wrapped FASTQ is not read", 4, 15),
    "wrapped qualities": (b"@r\nACGT\n+\nII\nII\n@s\n", "a wrapped FASTQ is not read", 4, 17),
    "quality below !": (b"@r\nAC\n+\nI\x1f\n", "0x1f at position 2 is no quality", 4, 16),
    "quality above ~": (b"@r\nAC\n+\n\x7fI\n", "0x7f at position 1 is no quality", 4, 16),
    "space in qualities": (b"@r\nAC\n+\nI \n", "a space in the qualities at position 2", 4, 16),
    "space in bases": (b"@r\nA C\n+\nIII\n", "a space in the sequence at position 2", 4, 14),
    "tab in bases": (b"@r\nAC\t\n+\nIII\n", "a tab in the sequence at position 3", 4, 14),
    "NUL in bases": (b"@r\nA\0C\n+\nIII\n", "a NUL byte in the sequence", 4, 14),
    "NUL in header": (b"@r\0\nAC\n+\nII\n", "the header contains a NUL byte", 4, 13),
    "NUL in + line": (b"@r\nAC\n+r\0\nII\n", "the '+' line contains a NUL byte", 4, 15),
    "protein letter": (b"@r\nACE\n+\nIII\n", "'E' at position 3", 4, 14),
    "gap": (b"@r\nA-C\n+\nIII\n", "a gap '-' in the sequence", 4, 14),
    "star": (b"@r\nAC*\n+\nIII\n", "a '*' in the sequence", 4, 14),
    "blank line between": (b"\n@r\nAC\n+\nII\n", "found a blank line", 4, 13),
    "FASTA record": (b">r\nAC\n", "expected '@' at the start of a record, found '>'", 4, 13),
    "SAM header": (b"@HD\tVN:1.6\n@SQ\tSN:x\tLN:1\n", "this looks like a SAM file", 4, 13),
    "cut in header": (b"@r", "the file ends within the header", 4, 13),
    "cut in bases": (b"@r\nAC", "the file ends within the sequence", 4, 14),
    "cut after bases": (b"@r\nAC\n", "the file ends after the sequence", 4, 15),
    "cut in +": (b"@r\nAC\n+", "the file ends within the '+' line", 4, 15),
    "cut in qualities": (b"@r\nAC\n+\nI", "the file ends within the qualities", 4, 16),
    "Mac line ends": (b"@r\rAC\r+\rII\r", "carriage return alone", 4, 13),
}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("chunk_bytes", [5, 1 << 20])
@pytest.mark.parametrize("what", FASTQ_FAULTS)
def test_fastq_faults(tmp_path: Path, what: str, chunk_bytes: int, end: bytes) -> None:
    fault, cause, record, line = FASTQ_FAULTS[what]
    path = write(tmp_path / "reads.fq", (GOOD + fault).replace(b"\n", end))
    error = refused(path, chunk_bytes=chunk_bytes)
    assert cause in error.cause
    assert (error.record, error.line) == (record, line)


FASTA_FAULTS: dict[str, tuple[bytes, str, int, int]] = {
    "protein": (b">p\nMKVL\n", "'L' at position 4", 3, 9),
    "letter in a later line": (b">r\nACGT\nAC!T\n", "'!' at position 3", 3, 10),
    "after blank lines": (b">r\n\n\nAC GT\n", "a space in the sequence at position 3", 3, 11),
    "gap": (b">r\nAC\n--GT\n", "a gap '-' in the sequence at position 1", 3, 10),
    "> within a line": (b">r\nAC>GT\n", "'>' at position 3", 3, 9),
    "NUL in header": (b">r\0\nAC\n", "the header contains a NUL byte", 3, 8),
}


@pytest.mark.parametrize("chunk_bytes", [5, 1 << 20])
@pytest.mark.parametrize("what", FASTA_FAULTS)
def test_fasta_faults(tmp_path: Path, what: str, chunk_bytes: int) -> None:
    fault, cause, record, line = FASTA_FAULTS[what]
    good = b">a\nAC\nGT\n\n>b\nACGT\nA\n"
    path = write(tmp_path / "reads.fa", good + fault)
    error = refused(path, chunk_bytes=chunk_bytes)
    assert cause in error.cause
    assert (error.record, error.line) == (record, line)


def test_what_awkward_but_valid_records_may_hold(tmp_path: Path) -> None:
    records = [
        Record(b"", b"", b""),
        Record(b" starts with a space", b"acgtn.", b"@+>!~I"),
        Record(b"RNA and IUPAC", b"ACGURYSWKMBDHVN", b"@" * 15),
        Record(b"\xc3\xa9\x01 bytes beyond ASCII", b"A", b"+"),
    ]
    path = write(tmp_path / "reads.fq", fastq(records) + b"\n\r\n\n")
    assert records_of(read_batches(path)) == (records, path.read_bytes())
    repeated = write(tmp_path / "repeated.fq", b"@r 1\nAC\n+r 2\nII\n@s\tx\r\nA\r\n+s\tx\r\nI\r\n")
    assert len(records_of(read_batches(repeated))[0]) == 2


def test_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none.fq").cause


def test_directory(tmp_path: Path) -> None:
    assert "is a directory" in refused(tmp_path).cause


def test_impossible_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be opened"):
        list(read_batches("reads\0.fq"))
    assert "cannot be opened" in refused(tmp_path / ("x" * 300)).cause


def test_no_permission(tmp_path: Path) -> None:
    path = write(tmp_path / "reads.fq", GOOD)
    path.chmod(0)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        error = refused(path)
    finally:
        os.seteuid(me)
    assert "permission" in error.cause


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bgzf], ids=["", "gz", "bgzf"])
def test_empty_file_is_valid_and_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pack: object
) -> None:
    path = write(tmp_path / "reads.fq", pack(b""))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING, logger="ngsgpu"):
        assert list(read_batches(path)) == []
    assert [record.getMessage() for record in caplog.records] == [f"{path}: the file is empty"]


NEITHER: dict[str, tuple[bytes, str]] = {
    "rubbish": (random.Random(1).randbytes(5000).replace(b"@", b"a"), "binary data"),
    "text": (b"hello\n", "begins with 'h', neither FASTQ nor FASTA"),
    "blank": (b"\n\n@r\nA\n+\nI\n", "begins with a blank line"),
    "byte-order mark": (b"\xef\xbb\xbf" + GOOD, "byte-order mark"),
    "BAM without blocks": (b"BAM\x01\0\0\0\0", "a BAM file in another file, or one without"),
    "gzipped CRAM": (gzip.compress(b"CRAM\x03\0"), "a CRAM file in another file"),
    "SRA": (b"NCBI.sra\x05\x03\x19\x88", "this is an SRA archive"),
    "gzip twice": (gzip.compress(gzip.compress(GOOD)), "compressed twice"),
    "lz4": (b"\x04\x22\x4d\x18\x04\0", "compressed with lz4"),
    "zip": (b"PK\x03\x04" + bytes(40), "a zip archive"),
}


@pytest.mark.parametrize("what", NEITHER)
def test_what_is_no_reads_at_all(tmp_path: Path, what: str) -> None:
    data, cause = NEITHER[what]
    path = write(tmp_path / "reads.fq", data)
    assert cause in refused(path).cause
    assert cause in refused(path, chunk_bytes=3).cause


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("pack", [gzip.compress, bgzf, lambda data: members(data, 500)])
def test_truncated_gzip_is_found_wherever_it_is_cut(
    tmp_path: Path, pack: object, threads: int
) -> None:
    data = pack(fastq(reads(200)))  # type: ignore[operator]
    for cut in (len(data) // 2, len(data) - 60, len(data) - 40, 40):
        path = write(tmp_path / "reads.fq.gz", data[:cut])
        error = refused(path, threads=threads)
        assert "truncated" in error.cause or "ends" in error.cause
        assert "again" in error.remedy


@pytest.mark.parametrize("pack", [gzip.compress, bgzf], ids=["gzip", "bgzf"])
def test_damaged_gzip(tmp_path: Path, pack: object) -> None:
    data = bytearray(pack(fastq(reads(200))))  # type: ignore[operator]
    for at in (60, len(data) - 35):
        broken = bytearray(data)
        broken[at] ^= 0x55
        error = refused(write(tmp_path / "reads.fq.gz", broken), phred_offset=33)
        assert "damaged" in error.cause or "truncated" in error.cause or error.record is not None
    error = refused(write(tmp_path / "tail.gz", bytes(data) + b"garbage after the data"))
    assert "damaged" in error.cause


def test_bgzf_without_end_marker_is_warned_about(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "reads.fq.gz", bgzf(GOOD, end_marker=False))
    with caplog.at_level(logging.WARNING, logger="ngsgpu"):
        assert records_of(read_batches(path)) == (reads(3), GOOD)
    assert "no BGZF end marker" in caplog.text


@pytest.mark.parametrize("damage", ["short", "long", "size"])
def test_bgzf_blocks_that_lie_about_their_sizes(tmp_path: Path, damage: str) -> None:
    data = bytearray(bgzf(GOOD, len(GOOD)))
    end = len(data) - 28
    if damage == "size":
        data[16:18] = (20).to_bytes(2, "little")
    else:
        change = -1 if damage == "short" else 1
        data[end - 4 : end] = (len(GOOD) + change).to_bytes(4, "little")
    assert "damaged" in refused(write(tmp_path / "reads.fq.gz", data)).cause


@pytest.mark.parametrize("zeros", [1, 17, 512, 3 << 20])
@pytest.mark.parametrize("end_marker", [True, False])
def test_zeros_behind_bgzf(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, zeros: int, end_marker: bool
) -> None:
    path = write(tmp_path / "reads.fq.gz", bgzf(GOOD, end_marker=end_marker) + bytes(zeros))
    with caplog.at_level(logging.WARNING, logger="ngsgpu"):
        assert records_of(read_batches(path)) == (reads(3), GOOD)
    assert ("no BGZF end marker" in caplog.text) != end_marker
    path = write(tmp_path / "reads.fq.gz", bgzf(GOOD) + bytes(zeros) + b"garbage after the data")
    assert "damaged" in refused(path).cause


@pytest.mark.parametrize("text", [
    b">s\rACGT\rACGT\r",
    b">s\rACGT\rACGT\r>t\rACGT",
    b">s\r\nACGT\r\n>t\rACGT\r\n",
    b">s\nACGT\n>t\rACGT\r>u\nACGT\n",
    b">s\nACGT\rACGT\n",
    b">s\rACGT\n",
    b">" + b"s\rACGT\r" * (1 << 18),
])  # fmt: skip
@pytest.mark.parametrize("chunk_bytes", [7, 1 << 20])
def test_carriage_returns_alone_in_fasta(tmp_path: Path, text: bytes, chunk_bytes: int) -> None:
    error = refused(write(tmp_path / "mac.fa", text), chunk_bytes=chunk_bytes)
    assert error.cause == "lines end with a carriage return alone (old Macintosh)"
    assert read_codes(tmp_path / "mac.fa", 1, chunk_bytes=64) is None


def test_x_is_an_ambiguous_base_of_fasta_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "masked.fa", b">s\nACGTxxxx\nXXACGT\n")
    (batch,) = read_batches(path)
    assert batch.seq_len.tolist() == [14]
    found = read_codes(path, 1)
    assert found is not None
    assert found[1].runs.tolist() == [[4, 4, ord("x")], [8, 2, ord("X")]]
    assert "'x'" in refused(write(tmp_path / "r.fq", b"@r\nACGx\n+\nIIII\n")).cause
    protein = refused(write(tmp_path / "p.fa", b">p\nXMKLV\n"))
    assert "'L' at position 4" in protein.cause
    assert "protein" in protein.remedy


@pytest.mark.parametrize("mark", [b"@", b">"])
def test_header_that_is_too_long_at_its_true_limit(tmp_path: Path, mark: bytes) -> None:
    header = mark + b"h" * ((1 << 20) + 1)
    error = refused(write(tmp_path / "reads", header + b"\nACGT\n+\nIIII\n"))
    assert "the header is longer than 1,048,576 bytes" in error.cause


def test_fault_far_within_a_long_read(tmp_path: Path) -> None:
    bases = b"A" * (3 << 20)
    text = b"@r\n%b\n+\n%b \n" % (bases, b"I" * (len(bases) - 1))
    assert "a space in the qualities" in refused(write(tmp_path / "reads.fq", text)).cause


def test_reads_have_a_limit_of_their_own(tmp_path: Path) -> None:
    limits = ReadLimits(read_bytes=100_000)
    path = write(tmp_path / "reads.fq", fastq([Record(b"r", b"A" * 300_000, b"I" * 300_000)]))
    assert "longer than 100,000 bytes" in refused(path, limits=limits, chunk_bytes=1000).cause
    path = write(tmp_path / "reads.fa", fasta([Record(b"r", b"A" * 300_000, None)]))
    (batch,) = read_batches(path, limits=limits, chunk_bytes=1000)
    assert batch.seq_len.tolist() == [300_000]


def test_record_just_below_the_limit(tmp_path: Path) -> None:
    """It is looked at when the limit is reached, and not refused for what follows it."""
    limits = ReadLimits(record_bytes=100_000)
    records = [Record(b"r%d" % at, b"A" * 90_000, None) for at in range(3)]
    path = write(tmp_path / "reads.fa", fasta(records))
    assert sum(map(len, read_batches(path, limits=limits, chunk_bytes=1000))) == 3


def test_record_that_is_too_long(tmp_path: Path) -> None:
    path = write(tmp_path / "reads.fa", fasta([Record(b"r", b"A" * 300_000, None)]))
    limits = ReadLimits(record_bytes=100_000)
    assert "longer than 100,000 bytes" in refused(path, limits=limits, chunk_bytes=1000).cause
    limits = ReadLimits(header_bytes=5)
    path = write(tmp_path / "reads.fq", b"@123456\nA\n+\nI\n")
    error = refused(path, limits=limits)
    assert "longer than 5 bytes" in error.cause
    path = write(tmp_path / "reads.fq", b"@12345\nA\n+12345678\nI\n")
    assert "the '+' line is longer" in refused(path, limits=limits).cause


@pytest.mark.parametrize("low, high, cause", [
    ("B", "h", "looks like Phred+64"),  # Illumina 1.5
    ("@", "i", "looks like Phred+64"),  # Illumina 1.3
    (";", "h", "looks like Phred+64"),  # Solexa
    ("I", "I", None),  # made up
    ("K", "K", None),
    ("h", "h", None),
    ("F", "K", None),  # trimmed, recent Illumina
    ("#", "F", None),  # NovaSeq
    ("<", "S", None),  # AVITI, trimmed
    ("~", "~", None),  # PacBio
    ("@", "~", None),
    ("!", "~", None),
    ("#", "h", None),  # Nanopore
])  # fmt: skip
def test_which_qualities_look_like_phred64(
    tmp_path: Path, low: str, high: str, cause: str | None
) -> None:
    read = Record(b"r", b"ACGT", (low + high + low + high).encode())
    path = write(tmp_path / "reads.fq", fastq([read] * 5))
    if cause is None:
        assert len(records_of(read_batches(path))[0]) == 5
    else:
        error = refused(path, chunk_bytes=7)
        assert cause in error.cause
        assert "`phred_offset=64`" in error.remedy
        assert "`phred_offset=33`" in error.remedy


AVITI = "YYYYYYXXVVTTSSQQNNKKFFB;"


@pytest.mark.parametrize("qualities, length, is_old", [
    (AVITI, 75, False),  # trimmed at Q26
    (AVITI, 37, False),
    (AVITI, 36, True),  # the first Solexa reads
    ("YYYYYYYYYYYYYYYYWYWYYSWYQ", 25, True),
    ("]YSVB;", 100, True),  # a run that failed
    ("]YS;", 100, False),  # not more than a quarter below Q5
    ("]YS;;", 100, True),
    ("^YSVQ", 150, True),  # Q30 of Phred+64
    ("YYYYYYYYYYYYYYYYYY^", 150, True),
    ("]YYYYYYYYYYYYYYYYYS", 150, False),
])  # fmt: skip
@pytest.mark.parametrize("chunk_bytes", [200, 32 << 20])
def test_what_phred64_would_imply_decides(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    qualities: str,
    length: int,
    is_old: bool,
    chunk_bytes: int,
) -> None:
    text = (qualities * length)[: length * len(qualities)].encode()
    records = [
        Record(b"r", b"A" * length, text[i * length : (i + 1) * length])
        for i in range(len(qualities))
    ]
    path = write(tmp_path / "reads.fq", fastq(records))
    if is_old:
        assert "looks like Phred+64" in refused(path, chunk_bytes=chunk_bytes).cause
        return
    with caplog.at_level(logging.WARNING, logger="ngsgpu"):
        assert records_of(read_batches(path, chunk_bytes=chunk_bytes))[0] == records
        assert len(list(read_batches(path, phred_offset=33))) == 1
    (line,) = [record.getMessage() for record in caplog.records]
    assert "read as Phred+33" in line
    assert "`phred_offset=33` or 64" in line


@pytest.mark.parametrize("chunk_bytes", [1 << 15, 32 << 20])
def test_first_ten_thousand_reads_decide_about_phred64(tmp_path: Path, chunk_bytes: int) -> None:
    old = Record(b"r", b"ACGT", b"BBhh")
    new = Record(b"r", b"ACGT", b"##FF")
    late = write(tmp_path / "late.fq", fastq([old] * 10_000 + [new]))
    early = write(tmp_path / "early.fq", fastq([old] * 9_999 + [new]))
    assert "looks like Phred+64" in refused(late, chunk_bytes=chunk_bytes).cause
    assert sum(map(len, read_batches(early, chunk_bytes=chunk_bytes))) == 10_000
    faulty = write(tmp_path / "faulty.fq", fastq([old] * 10_000) + b"rubbish\n")
    assert "looks like Phred+64" in refused(faulty, chunk_bytes=chunk_bytes).cause


def test_offset_64_refuses_what_is_too_low(tmp_path: Path) -> None:
    path = write(tmp_path / "reads.fq", fastq([Record(b"r", b"ACGT", b"hh:h")]))
    error = refused(path, phred_offset=64)
    assert "':' at position 3 is too low for Phred+64" in error.cause
    assert (error.record, error.line) == (1, 4)
    assert "`phred_offset=33`" in error.remedy


def test_long_names_are_shortened_in_messages(tmp_path: Path) -> None:
    path = write(tmp_path / "reads.fq", b"@" + b"x" * 1000 + b"\nA\n+y\x1b\nI\n")
    error = refused(path)
    assert "y\\x1b" in error.cause
    assert len(error.cause) < 200


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name, pack, expected", [
    ("plain.txt", lambda data: data, "plain"),
    ("gzip", gzip.compress, "gzip"),
    ("bgzf.fasta", bgzf, "bgzf"),
])  # fmt: skip
def test_formats_are_recognised_by_content(
    tmp_path: Path, name: str, pack: object, expected: str, threads: int
) -> None:
    path = write(tmp_path / name, pack(GOOD))  # type: ignore[operator]
    assert compression(path) == expected
    assert records_of(read_batches(path, threads=threads)) == (reads(3), GOOD)
