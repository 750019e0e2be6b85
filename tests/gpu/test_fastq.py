"""The GPU's FASTQ reader makes the read set that the CPU's makes, and refuses what it refuses."""

from __future__ import annotations

import gzip
import logging
import random
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.compress.zstd import library
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet
from tests.support.io.alignments import bam, pairs_of
from tests.support.io.random_fastq import (
    Style,
    assert_equal_reads,
    patch_on_host,
    random_edits,
    random_lanes,
    read_on_host,
)
from tests.support.io.records import Record, fasta, fastq, reads, write

CHUNKS = [1, 300, 3000, 1 << 20]


def read(
    lanes: list[ReadFiles],
    *,
    quality_bits: int = 8,
    phred_offset: PhredOffset = "auto",
    chunk_bytes: int = 1 << 20,
    regular: bool = True,
) -> ReadSet:
    """Read on the GPU, and see that the GPU did it."""
    from ngsgpu.readset.gpu_read import read_to_device

    found = read_to_device(
        lanes,
        quality_bits=quality_bits,
        phred_offset=phred_offset,
        threads=3,
        chunk_bytes=chunk_bytes,
    )
    assert (found.layouts is not None) == regular
    return found.reads.to_host()


@pytest.mark.parametrize("layout", ["single", "pairs", "interleaved"])
@pytest.mark.parametrize("seed", range(20))
def test_reads_and_patches_as_the_cpu_does(tmp_path: Path, seed: int, layout: str) -> None:
    from ngsgpu.io.output.edits import EditStyle
    from ngsgpu.io.output.patch import write_patched
    from ngsgpu.readset.gpu_read import read_to_device

    rng = random.Random(f"{seed} {layout}")
    style = Style.random(rng)
    lanes = random_lanes(rng, tmp_path, style, layout)
    bits = rng.choice([8, 8, 2, 1, 0])
    expected = read_on_host(lanes, quality_bits=bits, phred_offset=style.phred_offset)
    found = read_to_device(
        lanes,
        quality_bits=bits,
        phred_offset=style.phred_offset,
        threads=rng.choice([1, 4]),
        chunk_bytes=rng.choice([300, 700, 3000, 10_000, 1 << 20]),
        keep_bytes=rng.choice([0, 5000, 1 << 30]),
    )
    assert_equal_reads(found.reads.to_host(), expected)
    assert found.layouts is not None
    edits = random_edits(rng, expected)
    written = EditStyle(rng.random() < 0.3, rng.choice([0, 0, 40, 84, 126]))
    contents, counts = patch_on_host(lanes, expected, edits, style.phred_offset, written)
    paths = [tmp_path / "out_1.fq", tmp_path / "out_2.fq"][: 2 if layout == "pairs" else 1]
    with OutputSet(paths) as outputs:
        patched = write_patched(
            found.layouts,
            [lane.outputs for lane in lanes],
            outputs,
            edits,
            paired=expected.paired,
            max_length=expected.max_length,
            threads=3,
            piece_bytes=rng.choice([500, 1 << 20]),
            style=written,
        )
    assert [path.read_bytes() for path in paths] == contents[: len(paths)]
    assert (patched.reads, patched.ambiguous) == (counts.reads, counts.ambiguous)
    assert np.array_equal(patched.by_position, counts.by_position)


@pytest.mark.parametrize("chunk_bytes", [1, 2, 7, 50, 51, 52, 53, 104, 105])
def test_chunks_may_be_smaller_than_a_record(tmp_path: Path, chunk_bytes: int) -> None:
    path = write(tmp_path / "in.fq", fastq(reads(9), b"\r\n"))
    lanes = [ReadFiles((str(path),), (0,))]
    assert_equal_reads(read(lanes, chunk_bytes=chunk_bytes), read_on_host(lanes))


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_large_read_sets_grow_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool, mixed: bool
) -> None:
    """In more and more stripes, on several GPUs one after the other, with any levels."""
    import cupy

    from ngsgpu.readset.gpu_read import read_to_device

    monkeypatch.setattr("ngsgpu.readset.gpu_pack._COPIED_SHARE", 1 << 50)
    monkeypatch.setattr("ngsgpu.device.spread._GROWING_STRIPE", 2 << 20)
    rng = random.Random(several + 2 * mixed)
    records = [
        Record(
            b"r%d" % i,
            bytes(rng.choices(b"ACGTN", (9, 9, 9, 9, 1), k=rng.randint(80, 100) if mixed else 100)),
            b"",
        )
        for i in range(60_000)
    ]
    levels = b"#,:F" if mixed else b"#,:FI"
    records = [r._replace(qualities=bytes(rng.choices(levels, k=len(r.bases)))) for r in records]
    lanes = [ReadFiles((str(write(tmp_path / "in.fq", fastq(records))),), (0,))]
    device = cupy.cuda.runtime.getDevice()
    found = read_to_device(
        lanes, chunk_bytes=1 << 20, devices=[device, device] if several else None
    )
    assert found.layouts is not None and found.reads.divided == several
    assert_equal_reads(found.reads.to_host(), read_on_host(lanes))
    found.reads.gather()
    assert_equal_reads(found.reads.to_host(), read_on_host(lanes))


@pytest.mark.parametrize("count", [4000, 20_000])
def test_many_reads_make_many_tiles_and_blocks(tmp_path: Path, count: int) -> None:
    rng = random.Random(count)
    paths = []
    for mate in (1, 2):
        records = reads(count, mate=b"/%d" % mate, length=rng.choice([100, 101]))
        paths.append(str(write(tmp_path / f"{mate}.fq", fastq(records))))
    lanes = [ReadFiles((paths[0], paths[1]), (0, 1))]
    assert_equal_reads(read(lanes, chunk_bytes=1 << 19), read_on_host(lanes))


@pytest.mark.parametrize("bits", [8, 2, 1, 0])
@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000])
def test_every_length_is_packed_alike(tmp_path: Path, bits: int, length: int) -> None:
    rng = random.Random(length)
    style = Style(7, length, length, b"\n", True, 0, 0.1, 0, "auto", "plain", b"")
    lanes = random_lanes(rng, tmp_path, style, "pairs")
    assert_equal_reads(read(lanes, quality_bits=bits), read_on_host(lanes, quality_bits=bits))


def test_the_longest_reads(tmp_path: Path) -> None:
    style = Style(3, 32_700, 32_767, b"\n", True, 0, 0.1, 0, "auto", "plain", b"")
    lanes = random_lanes(random.Random(1), tmp_path, style, "single")
    for chunk_bytes in (10_000, 1 << 20):
        assert_equal_reads(read(lanes, chunk_bytes=chunk_bytes), read_on_host(lanes))


GOOD = fastq(reads(6))
LONG = 1 << 17

BAD = {
    "no @": GOOD.replace(b"@read3", b"read3"),
    "no @ at the start": GOOD[1:],
    "no +": GOOD.replace(b"+\nF", b"-\nF", 3),
    "blank line between": GOOD.replace(b"@read3", b"\n@read3"),
    "four blank lines between": GOOD.replace(b"@read3", b"\n\n\n\n@read3"),
    "many blank lines between": GOOD.replace(b"@read3", b"\n" * 10_000 + b"@read3"),
    "other name": GOOD.replace(b"+\n", b"+read4\n"),
    "longer name": GOOD.replace(b"@read2\n", b"@read2\n").replace(b"+\n", b"+read22\n", 3),
    "space after +": GOOD.replace(b"+\n", b"+ \n", 2),
    "too few qualities": GOOD.replace(b"F\n@read4", b"\n@read4"),
    "too many qualities": GOOD.replace(b"F\n@read4", b"FF\n@read4"),
    "qualities of other reads": GOOD.replace(b"F\n@read4", b"\n@read4").replace(
        b"\n@read5", b"F\n@read5"
    ),
    "wrapped": fastq(reads(6, length=40)).replace(b"CAACG", b"CAA\nCG"),
    "letter": GOOD.replace(b"GCA", b"GXA"),
    "gap": GOOD.replace(b"GCA", b"G-A", 1),
    "space in sequence": GOOD.replace(b"GCA", b"G A"),
    "carriage return in sequence": GOOD.replace(b"GCA", b"G\rA"),
    "two carriage returns": GOOD.replace(b"F\n@read4", b"F\r\r\n@read4"),
    "two carriage returns at the end": GOOD[:-1] + b"\r\r",
    "low quality": GOOD.replace(b"F\n@read4", b" \n@read4"),
    "high quality": GOOD.replace(b"F\n@read4", b"\x7f\n@read4"),
    "NUL in header": GOOD.replace(b"@read3", b"@re\0ad3"),
    "NUL in + line": GOOD.replace(b"+\n", b"+read0 \0\n"),
    "long header": GOOD.replace(b"@read3", b"@read3" + b"x" * (1 << 20)),
    "ends in header": GOOD + b"@read",
    "ends in sequence": GOOD + b"@read\nACG",
    "ends before +": GOOD + b"@read\nACG\n",
    "ends in +": GOOD + b"@read\nACG\n+",
    "ends before qualities": GOOD + b"@read\nACG\n+\n",
    "ends in qualities": GOOD + b"@read\nACG\n+\nFF",
    "ends before + of no bases": GOOD + b"@read\n\n",
    "ends in + of no bases": GOOD + b"@read\n\n+",
    "too long": fastq(reads(3, length=32_768)),
    "much too long": fastq(reads(1, length=LONG)),
    "old Macintosh": GOOD.replace(b"\n", b"\r"),
    "Phred+64": fastq(r._replace(qualities=bytes(range(66, 86)) + b"") for r in reads(6)).replace(
        b"S", b"h"
    ),
    "blank": b"\n\n\n\n\n",
    "no text": b"\0\1\2",
    "truncated gzip": gzip.compress(GOOD * 50)[:-20],
    "lz4": b"\x04\x22\x4d\x18abc",
    "truncated zstd": library.compress(GOOD * 50)[:-20],
    "truncated BAM": bam(pairs_of(reads(200), reads(200)))[:-40],
}


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
@pytest.mark.parametrize("name", BAD)
def test_errors_are_those_of_the_cpu(tmp_path: Path, name: str, chunk_bytes: int) -> None:
    path = write(tmp_path / "in.fq", BAD[name])
    lanes = [ReadFiles((str(path),), (0,))]
    with pytest.raises(InputError) as expected:
        read_on_host(lanes)
    with pytest.raises(InputError) as found:
        read(lanes, chunk_bytes=max(chunk_bytes, len(BAD[name]) // 300))
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("record", [0, 1, 2500, 2999])
def test_one_wrong_byte_is_found_wherever_it_is(tmp_path: Path, record: int) -> None:
    data = bytearray(fastq(reads(3000, length=70)))
    at = data.index(b"@read%d\n" % record)
    data[at + 60] = ord("*")
    lanes = [ReadFiles((str(write(tmp_path / "in.fq", bytes(data))),), (0,))]
    with pytest.raises(InputError, match=f"record {record + 1:,},"):
        read(lanes)


@pytest.mark.parametrize("offset", [33, 64])
def test_low_qualities_of_an_offset(tmp_path: Path, offset: PhredOffset) -> None:
    for lowest, is_fine in ((33, offset == 33), (59, True), (58, offset == 33)):
        data = fastq(r._replace(qualities=b"h" * 19 + bytes([lowest])) for r in reads(5))
        lanes = [ReadFiles((str(write(tmp_path / "in.fq", data)),), (0,))]
        if is_fine:
            expected = read_on_host(lanes, phred_offset=offset)
            assert_equal_reads(read(lanes, phred_offset=offset), expected)
        else:
            with pytest.raises(InputError, match="is too low for Phred"):
                read(lanes, phred_offset=offset)


def test_only_the_first_reads_decide_the_offset(tmp_path: Path) -> None:
    sample = reads(10_000, length=2)
    doubtful = [r._replace(qualities=b"Bh") for r in sample]
    for data, is_fine in (
        (fastq([*doubtful, sample[0]._replace(qualities=b"!!")]), False),
        (fastq([sample[0]._replace(qualities=b"!!"), *doubtful]), True),
    ):
        lanes = [ReadFiles((str(write(tmp_path / "in.fq", data)),), (0,))]
        for chunk_bytes in (20_000, 1 << 20):
            if is_fine:
                assert_equal_reads(read(lanes, chunk_bytes=chunk_bytes), read_on_host(lanes))
            else:
                with pytest.raises(InputError, match=r"looks like Phred\+64"):
                    read(lanes, chunk_bytes=chunk_bytes)


MATES = [
    (b"a", b"a", True),
    (b"a b", b"a c", True),
    (b"a\tb", b"a c", True),
    (b"a/1", b"a/2", True),
    (b"a.2", b"a.1", True),
    (b"a_1", b"a_2 x", True),
    (b"", b"", True),
    (b"1", b"1", True),
    (b"a/1", b"a/1", False),
    (b"a/2 x", b"a/2", False),
    (b"a.1", b"a.1", True),
    (b"a-1", b"a-2", False),
    (b"a/1", b"a/3", False),
    (b"a", b"b", False),
    (b"1", b"2", False),
    (b"", b"a", False),
    (b"ab", b"a", False),
    (b"x" * 40 + b"/1", b"x" * 40 + b"/2", True),
    (b"x" * 31 + b"y" + b"x" * 10, b"x" * 31 + b"z" + b"x" * 10, False),
    (b"x" * 32 + b"y", b"x" * 32 + b"z", False),
    (b"x" * 32, b"x" * 33, False),
    (b"x" * 64 + b" 1", b"x" * 64, True),
    (b"b/1", b"a/2", False),
]


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize(("name1", "name2", "agree"), MATES)
def test_names_of_mates(
    tmp_path: Path, name1: bytes, name2: bytes, agree: bool, interleaved: bool
) -> None:
    first, second = reads(4), reads(4)
    first[2] = first[2]._replace(header=name1)
    second[2] = second[2]._replace(header=name2)
    if interleaved:
        both = [record for pair in zip(first, second, strict=True) for record in pair]
        lanes = [ReadFiles((str(write(tmp_path / "in.fq", fastq(both))),), (0,), True)]
    else:
        paths = [write(tmp_path / f"{i}.fq", fastq(r)) for i, r in enumerate((first, second))]
        lanes = [ReadFiles((str(paths[0]), str(paths[1])), (0, 1))]
    for chunk_bytes in (150, 1 << 20):
        if agree:
            assert_equal_reads(read(lanes, chunk_bytes=chunk_bytes), read_on_host(lanes))
            continue
        with pytest.raises(InputError) as expected:
            read_on_host(lanes)
        with pytest.raises(InputError) as found:
            read(lanes, chunk_bytes=chunk_bytes)
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize(("count1", "count2"), [(5, 6), (6, 5), (0, 1), (500, 499), (1, 1000)])
def test_unequal_numbers_of_mates(tmp_path: Path, count1: int, count2: int) -> None:
    paths = [write(tmp_path / f"{n}.fq", fastq(reads(n))) for n in (count1, count2)]
    lanes = [ReadFiles((str(paths[0]), str(paths[1])), (0, 1))]
    with pytest.raises(InputError) as expected:
        read_on_host(lanes)
    with pytest.raises(InputError) as found:
        read(lanes, chunk_bytes=400)
    assert str(found.value) == str(expected.value)


def test_an_odd_number_of_interleaved_reads(tmp_path: Path) -> None:
    names = [r for pair in zip(reads(5), reads(5), strict=True) for r in pair]
    lanes = [ReadFiles((str(write(tmp_path / "in.fq", fastq(names[:-1]))),), (0,), True)]
    for chunk_bytes in CHUNKS:
        with pytest.raises(InputError, match="even number of records"):
            read(lanes, chunk_bytes=chunk_bytes)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read([ReadFiles((str(tmp_path / "none.fq"),), (0,))])


def test_a_bad_second_lane(tmp_path: Path) -> None:
    paths = [write(tmp_path / "1.fq", GOOD), write(tmp_path / "2.fq", BAD["letter"])]
    with pytest.raises(InputError, match=r"2\.fq, record 1, line 2"):
        read([ReadFiles((str(path),), (0,)) for path in paths])


UNUSUAL = {
    "FASTA": fasta(reads(6), width=7),
    "many blank lines at the end": GOOD + b"\r\n" * 300_000,
    "long header": GOOD.replace(b"@read3", b"@read3 " + b"x" * 500_000),
    "AVITI, trimmed": fastq(r._replace(qualities=b"YXVSN;" * 10) for r in reads(6, length=60)),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_files_are_read_all_the_same(tmp_path: Path, name: str) -> None:
    lanes = [ReadFiles((str(write(tmp_path / "in", UNUSUAL[name])),), (0,))]
    assert_equal_reads(read(lanes, chunk_bytes=1 << 16, regular=False), read_on_host(lanes))


@pytest.mark.parametrize("data", [b"", gzip.compress(b"", mtime=0)])
def test_empty_files(tmp_path: Path, caplog: pytest.LogCaptureFixture, data: bytes) -> None:
    paths = [str(write(tmp_path / f"{i}.fq", data)) for i in range(2)]
    lanes = [ReadFiles((paths[0], paths[1]), (0, 1))]
    expected = read_on_host(lanes)
    with caplog.at_level(logging.WARNING):
        caplog.clear()
        assert_equal_reads(read(lanes), expected)
    assert [record.getMessage() for record in caplog.records] == [
        f"{path}: the file is empty" for path in paths
    ]


def test_a_read_set_survives_the_way_to_the_device_and_back(tmp_path: Path) -> None:
    from ngsgpu.readset.gpu import READS, DeviceReadSet

    for longest in (5, 100):
        reads_ = ReadSet.from_sequences(["ACGTN", "NA" * (longest // 2) + "C"])
        device = DeviceReadSet.from_host(reads_)
        assert_equal_reads(device.to_host(), reads_)
        assert device.nbytes == reads_.nbytes
        struct = READS.unpack(device.struct.get())
        assert struct["uniform_length"] == reads_.arrays.uniform_length
        assert struct["quality_bits"] == reads_.arrays.quality_bits
