"""BAM and CRAM files are read as the FASTQ text that ``samtools fastq`` writes."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.alignments import bam as module
from ngsgpu.io.alignments.cram import CramChecksums, CrcError, _Checked
from ngsgpu.io.inputs import holds_pairs, pair_inputs
from ngsgpu.io.text.reader import read_batches
from tests.support import copies
from tests.support.commands import Commands
from tests.support.io import alignments as oracle
from tests.support.io.alignments import (
    FIRST,
    PAIRED,
    REVERSE,
    SECOND,
    SECONDARY,
    SUPPLEMENTARY,
    UNMAPPED,
    Alignment,
    as_fastq,
    bam,
    content,
    pairs_of,
)
from tests.support.io.records import bgzf, compression, reads, text_of, write

NEEDS_SAMTOOLS = pytest.mark.skipif(
    shutil.which("samtools") is None, reason="samtools is not installed"
)


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        list(read_batches(path, threads=2, phred_offset=33))
    assert caught.value.line is None
    return caught.value


@st.composite
def alignments(draw: st.DrawFn, paired: bool) -> Alignment:
    bases = bytes(draw(st.lists(st.sampled_from(oracle.CODES), max_size=40)))
    size = len(bases)
    qualities = draw(st.none() | st.lists(st.integers(0, 93), min_size=size, max_size=size))
    other = st.sampled_from([0, UNMAPPED, REVERSE, SECONDARY, SUPPLEMENTARY, 0x200, 0x400])
    flags = draw(other) | draw(other)
    mates = draw(st.sampled_from([0, FIRST, SECOND, FIRST | SECOND]))
    return Alignment(
        bytes(draw(st.lists(st.integers(33, 126), min_size=1, max_size=5))),
        flags | mates | (PAIRED if paired else 0),
        bases,
        None if qualities is None or not bases else bytes(qualities),
        tuple(draw(st.lists(st.integers(0, 2**32 - 1), max_size=3))),
        draw(st.binary(max_size=10)),
    )


RECORDS = st.booleans().flatmap(lambda paired: st.lists(alignments(paired), max_size=12))


@given(records=RECORDS, block=st.integers(1, 400), piece=st.sampled_from([1, 60, 1000]))
def test_text_is_that_of_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, records: list[Alignment], block: int, piece: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "reads.bam"
    path.write_bytes(bam(records, block))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE_BYTES", piece)
        assert text_of(path, chunk_bytes=100) == as_fastq(records)
    assert oracle.read_bam(path.read_bytes()) == as_fastq(records)


@NEEDS_SAMTOOLS
@given(records=RECORDS)
def test_text_is_that_of_samtools(
    tmp_path_factory: pytest.TempPathFactory, records: list[Alignment]
) -> None:
    # It keeps one of those of the same name that follow one another; first and second mates do.
    records = [
        record._replace(name=b"%d" % (number // 2), bases=record.bases.replace(b"=", b"A") or b"A",
                        flags=record.flags & ~0xC0 | (FIRST, SECOND)[(number ^ number >> 1) & 1],
                        qualities=record.qualities if record.bases else None, cigar=(), tags=b"")
        for number, record in enumerate(records)
    ]  # fmt: skip
    if records and not records[0].flags & PAIRED:
        records = [one._replace(name=b"%d" % at) for at, one in enumerate(records)]
    path = tmp_path_factory.getbasetemp() / "reads.bam"
    path.write_bytes(bam(records))
    run = subprocess.run(["samtools", "fastq", path], capture_output=True, check=True)
    assert as_fastq(records) == run.stdout
    assert text_of(path) == run.stdout


def test_first_mates_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a piece ends."""
    pairs = pairs_of(reads(8), reads(8, length=30))
    extra = pairs[3]._replace(flags=pairs[3].flags | SUPPLEMENTARY)
    swapped = [*pairs[:2], pairs[3], extra, pairs[2], *pairs[4:10], pairs[11], pairs[10]]
    path = write(tmp_path / "reads.bam", bam(swapped))
    for piece in range(1, 1600, 7):
        monkeypatch.setattr(module, "_PIECE_BYTES", piece)
        assert text_of(path) == as_fastq(pairs[:12])


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("piece", [200, 5000, 4 << 20])
def test_threads_and_pieces_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int, piece: int
) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", piece)
    records = pairs_of(reads(700, length=90), reads(700, length=81))
    records[5] = records[5]._replace(tags=b"x" * 9000)  # longer than a piece
    path = write(tmp_path / "reads.bam", bam(records, 5000))
    assert text_of(path, threads=threads, chunk_bytes=777) == as_fastq(records)


def test_header_may_be_longer_than_what_is_read_at_a_time(tmp_path: Path) -> None:
    records = pairs_of(reads(3), reads(3))
    header = b"".join(b"@CO\t%d\n" % number for number in range(40_000))
    path = write(tmp_path / "reads.bam", bgzf(content(records, header), 60_000))
    assert text_of(path) == as_fastq(records)
    assert compression(path) == "bam"


def test_no_reads(tmp_path: Path) -> None:
    path = write(tmp_path / "reads.bam", bam([]))
    assert text_of(path) == b""
    assert not holds_pairs(path)


RECORD = Alignment(b"r", UNMAPPED, b"ACGT", bytes(4))


@pytest.mark.parametrize(
    "wrong, cause",
    [
        (RECORD._replace(qualities=bytes([1, 2, 94, 3])), "read 3: a quality is above 93"),
        (RECORD._replace(name=b"a b"), "read 3: the read's name"),
        (RECORD._replace(name=b"a\0b"), "read 3: the read's name"),
    ],
)
def test_bad_reads_are_refused(tmp_path: Path, wrong: Alignment, cause: str) -> None:
    path = write(tmp_path / "reads.bam", bam([RECORD, RECORD, wrong, RECORD]))
    error = refused(path)
    assert error.cause.startswith("the BAM data are damaged")
    assert cause in error.cause


@pytest.mark.parametrize("at, value", [(12, 0), (16, 200), (20, 5), (20, 1 << 31), (0, 8)])
def test_contradicting_lengths_are_refused(tmp_path: Path, at: int, value: int) -> None:
    record = bytearray(oracle.packed(RECORD))
    size = {12: "<B", 16: "<H"}.get(at, "<I")
    struct.pack_into(size, record, at, value)
    path = write(tmp_path / "reads.bam", bgzf(content([RECORD]) + bytes(record)))
    assert "read 2: the record's lengths contradict each other" in refused(path).cause


def test_letters_that_are_no_bases_are_refused_by_record(tmp_path: Path) -> None:
    path = write(tmp_path / "reads.bam", bam([RECORD, RECORD._replace(bases=b"AC=T")]))
    error = refused(path)
    assert (error.record, "'='" in error.cause) == (2, True)


def test_reads_with_and_without_mates_are_not_mixed(tmp_path: Path) -> None:
    pair = pairs_of(reads(1), reads(1))
    for records, cause in (
        ([*pair, RECORD], "the read has no mate, but those before it do"),
        ([RECORD, *pair], "the read has a mate, but those before it do not"),
    ):
        error = refused(write(tmp_path / "reads.bam", bam(records)))
        assert error.cause == cause
        assert "samtools view -b -f 1" in error.remedy
        assert error.record == len(records) - len(records) // 2 + (records[0] is not RECORD)


def test_truncated_wherever_it_is_cut(tmp_path: Path) -> None:
    """Also between records and blocks."""
    whole = bam(pairs_of(reads(4), reads(4)), 150)
    for cut in range(18, len(whole)):
        error = refused(write(tmp_path / "reads.bam", whole[:cut]))
        assert "end early" in error.cause or "damaged" in error.cause
    assert (
        "end early"
        in refused(
            write(tmp_path / "reads.bam", bgzf(content(pairs_of(reads(4), reads(4)))[:-1]))
        ).cause
    )


def test_flipped_bytes_change_nothing_or_are_refused(tmp_path: Path) -> None:
    whole = bam(pairs_of(reads(3), reads(3)), 150)
    expected = text_of(write(tmp_path / "reads.bam", whole))
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        path = write(tmp_path / "reads.bam", bytes(damaged))
        try:
            text = b"".join(batch.text.tobytes() for batch in read_batches(path))
        except InputError:
            continue
        assert text == expected, at  # bytes of the gzip header that mean nothing


def test_pairs_are_known_by_their_flags(tmp_path: Path) -> None:
    pairs = write(tmp_path / "pairs.bam", bam(pairs_of(reads(3), reads(3))))
    single = write(tmp_path / "single.bam", bam([RECORD]))
    assert [lane.interleaved for lane in pair_inputs([pairs], [])] == [True]
    assert [lane.interleaved for lane in pair_inputs([single], [])] == [False]
    assert [lane.interleaved for lane in pair_inputs([single], [], interleaved=True)] == [True]
    with pytest.raises(Exception, match=r"holds pairs and .* does not"):
        pair_inputs([pairs, single], [])


def test_mates_that_are_not_adjacent_are_refused(tmp_path: Path) -> None:
    records = pairs_of(reads(3), reads(3))
    path = write(tmp_path / "sorted.bam", bam([*records[::2], *records[1::2], *records[:0]]))
    (lane,) = pair_inputs([path], [])
    with pytest.raises(InputError) as caught:
        list(lane.batches(threads=1, phred_offset=33, chunk_bytes=1 << 20))
    assert "samtools collate" in caught.value.remedy
    assert (caught.value.record, caught.value.line) == (2, None)


def written_by_pysam(path: Path, records: list[Alignment], mode: str, **more: object) -> Path:
    """The records as pysam writes them, aligned to a reference if they have a CIGAR."""
    header = {"HD": {"VN": "1.6"}, "SQ": [{"SN": "c", "LN": 1000}]}
    with pysam.AlignmentFile(str(path), mode, header=header, **more) as file:
        for number, record in enumerate(records):
            one = pysam.AlignedSegment(file.header)
            one.query_name, one.flag = record.name.decode(), record.flags
            one.query_sequence = record.bases.decode()
            if record.qualities is not None:
                one.query_qualities = list(record.qualities)
            if not record.flags & UNMAPPED:
                one.reference_id, one.reference_start = 0, number
                one.cigartuples = [(0, len(record.bases))]
            file.write(one)
    return path


def test_cram_of_unaligned_reads_needs_no_reference(tmp_path: Path) -> None:
    records = pairs_of(reads(200), reads(200))
    path = written_by_pysam(tmp_path / "reads.cram", records, "wc")
    assert compression(path) == "cram"
    assert text_of(path) == as_fastq(records)
    assert holds_pairs(path)


@pytest.fixture
def aligned(tmp_path: Path) -> tuple[Path, Path, bytes]:
    """A CRAM file of aligned reads, its reference, and the text of the reads."""
    bases = b"ACGTTGCAAGGTCTCATTAGC" * 50
    reference = write(tmp_path / "ref.fa", b">c\n" + bases[:1000] + b"\n")
    records = [
        Alignment(b"r%d" % at, REVERSE * (at % 2), bases[at : at + 60], bytes([30] * 60))
        for at in range(50)
    ]
    path = written_by_pysam(
        tmp_path / "reads.cram", records, "wc", reference_filename=str(reference)
    )
    return path, reference, as_fastq(records)


def test_cram_finds_its_reference(
    aligned: tuple[Path, Path, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ngsgpu: Commands,
) -> None:
    path, reference, text = aligned
    assert text_of(path) == text  # by the header's UR
    elsewhere = tmp_path / "elsewhere.fa"
    reference.rename(elsewhere)
    for name in ("REF_PATH", "REF_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    error = refused(path)
    assert error.cause == "the reference sequences of the CRAM file were not found"
    assert "`cram_reference`" in error.remedy
    count = ("kmers", "count", "-q", "-k", "21", "--backend", "cpu")
    write(tmp_path / "reads.fq", text)
    ngsgpu(*count, "-i", tmp_path / "reads.fq", "--histo", tmp_path / "expected")
    ngsgpu(*count, "-i", path, "--cram-reference", elsewhere, "--histo", tmp_path / "found")
    assert (tmp_path / "found").read_bytes() == (tmp_path / "expected").read_bytes()


def test_reference_without_index(
    aligned: tuple[Path, Path, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ngsgpu: Commands,
) -> None:
    """Its folder may be one where nothing can be written, and gets nothing that nobody named."""
    path, reference, text = aligned
    folder = tmp_path / "references"
    folder.mkdir()
    reference.rename(folder / "r.fa")
    monkeypatch.setenv("REF_PATH", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    trim = ("trim", "-A", "-Q", "-L", "-i", path, "-o", tmp_path / "o.fq", "--cram-reference")
    folder.chmod(0o500)
    done = ngsgpu(*trim, folder / "r.fa")
    folder.chmod(0o700)
    assert done.status == 0, done.err
    assert (tmp_path / "o.fq").read_bytes() == text
    assert [own.name for own in folder.iterdir()] == ["r.fa"]
    assert list((tmp_path / "temporary").iterdir()) == []
    other = write(tmp_path / "other.fa", b">d\nACGT\n")
    assert f"were not found in {other}; " in ngsgpu(*trim, other).err
    assert "this is a directory" in ngsgpu(*trim, folder).err


def test_damaged_cram(tmp_path: Path) -> None:
    whole = written_by_pysam(
        tmp_path / "reads.cram", pairs_of(reads(40), reads(40)), "wc"
    ).read_bytes()
    for cut in (len(whole) - 1, len(whole) - 38, len(whole) // 2, 30):
        error = refused(write(tmp_path / "cut.cram", whole[:cut]))
        assert "end early" in error.cause
    expected = text_of(write(tmp_path / "whole.cram", whole))
    refusals = 0
    for at in range(4, len(whole), len(whole) // 12):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        path = write(tmp_path / "damaged.cram", bytes(damaged))
        try:
            assert text_of(path) == expected  # bytes of what no read has
        except InputError:
            refusals += 1
    assert refusals


def test_flipped_byte_of_an_uncompressed_header(tmp_path: Path) -> None:
    """htslib takes it as it is: here, that no read has qualities."""
    path = written_by_pysam(tmp_path / "reads.cram", pairs_of(reads(3), reads(3)), "wc")
    damaged = bytearray(path.read_bytes())
    damaged[damaged.index(b"CF\x03\x04\x01") + 5] ^= 0x55
    error = refused(write(path, bytes(damaged)))
    assert "the checksum of block 1 of container 2 is wrong" in error.cause


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_checksums_of_cram(tmp_path: Path, size: int) -> None:
    """Every flipped byte is noticed, or makes the walk end elsewhere."""
    path = written_by_pysam(tmp_path / "reads.cram", pairs_of(reads(40), reads(40)), "wc")
    whole = path.read_bytes()

    def is_whole(data: bytes) -> bool:
        checksums = CramChecksums()
        for at in range(0, len(data), size):
            checksums.add(data[at : at + size])
        return checksums.is_whole

    assert is_whole(whole)
    assert not is_whole(whole[:-1])
    for at in range(26, len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        try:
            assert not is_whole(bytes(damaged)), at
        except CrcError:
            continue


@given(number=st.integers(0, 2**63 - 1))
def test_numbers_of_cram(number: int) -> None:
    for longest, coded in ((4, itf8(number % 2**32)), (8, ltf8(number))):
        reading = _Checked().number(longest)
        wanted = next(reading)
        with pytest.raises(StopIteration) as ended:
            while True:
                own, coded = coded[:wanted], coded[wanted:]
                wanted = reading.send(own)
        assert (ended.value.value, coded) == (number % 2**32 if longest == 4 else number, b"")


def itf8(number: int) -> bytes:
    """As the specification says it, 2.3."""
    for more in range(4):
        if number < 1 << 7 * (more + 1):
            coded = number | (0xF00 >> more & 0xFF) << 8 * more
            return coded.to_bytes(more + 1)
    return bytes([0xF0 | number >> 28, number >> 20 & 255, number >> 12 & 255, number >> 4 & 255,
                  number & 15])  # fmt: skip


def ltf8(number: int) -> bytes:
    """As the specification says it, 2.3."""
    for more in range(8):
        if number < 1 << 7 * (more + 1):
            coded = number | (0xFF00 >> more & 0xFF) << 8 * more
            return coded.to_bytes(more + 1)
    return b"\xff" + number.to_bytes(8)


def test_cram_through_standard_input(tmp_path: Path) -> None:
    path = written_by_pysam(tmp_path / "reads.cram", pairs_of(reads(40), reads(40)), "wc")
    whole = path.read_bytes()
    count = [copies.ngsgpu(), "kmers", "count", "-q", "-k", "15", "--backend", "cpu", "-i", "-"]
    for data, status in ((whole, 0), (whole[:-38], 2)):
        histogram = ["--histo", str(tmp_path / "histo")]
        run = subprocess.run([*count, *histogram], input=data, capture_output=True)
        assert run.returncode == status, run.stderr
