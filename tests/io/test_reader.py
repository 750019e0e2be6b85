"""Reading: standard input, records longer than a chunk, readers that are given up."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.text.pairs import read_interleaved, read_pairs
from ngsgpu.io.text.reader import read_batches
from tests.support.io.records import Record, bgzf, fasta, fastq, reads, records_of, write

COUNT_STDIN = """
from ngsgpu.io.text.reader import read_batches
print([(len(batch), batch.path) for batch in read_batches("-")])
"""


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bgzf], ids=["", "gz", "bgzf"])
def test_standard_input(pack: object) -> None:
    data = pack(fastq(reads(50)))  # type: ignore[operator]
    done = subprocess.run([sys.executable, "-c", COUNT_STDIN], input=data, capture_output=True)
    assert done.stdout == b"[(50, '-')]\n", done.stderr


def test_a_pipe_that_gives_a_few_bytes_at_a_time(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = bgzf(fastq(reads(30)))

    def feed() -> None:
        with pipe.open("wb", buffering=0) as file:
            for start in range(0, len(data), 7):
                file.write(data[start : start + 7])

    feeder = threading.Thread(target=feed)
    feeder.start()
    records, _ = records_of(read_batches(pipe, threads=2))
    feeder.join()
    assert records == reads(30)


@pytest.mark.parametrize("width", [None, 60])
def test_record_longer_than_many_chunks(tmp_path: Path, width: int | None) -> None:
    records = [
        Record(b"short", b"ACGT", None),
        Record(b"long", b"ACGTTGCA" * 60_000, None),
        Record(b"short again", b"A", None),
    ]
    data = fasta(records, width=width)
    path = write(tmp_path / "contigs.fa", data)
    for chunk_bytes in (1000, 70_000, 1 << 20):
        assert records_of(read_batches(path, chunk_bytes=chunk_bytes)) == (records, data)


def test_many_short_records_make_the_arrays_grow(tmp_path: Path) -> None:
    records = [Record(b"", b"", b"")] * 5000
    path = write(tmp_path / "reads.fq", fastq(records))
    assert records_of(read_batches(path)) == (records, path.read_bytes())
    records = [Record(b"", b"A", None)] * 5000
    path = write(tmp_path / "reads.fa", fasta(records))
    assert records_of(read_batches(path)) == (records, path.read_bytes())


def test_arrays_have_the_promised_types(tmp_path: Path) -> None:
    (batch,) = read_batches(write(tmp_path / "reads.fq", fastq(reads(3))))
    assert batch.data.dtype == np.uint8
    assert batch.seq_len.dtype == np.int32
    for field in ("header_start", "header_end", "seq_start", "seq_end", "qual_start"):
        assert getattr(batch, field).dtype == np.int64
    assert batch.data.flags.writeable
    assert batch.names() == [b"read0", b"read1", b"read2"]


def reading_threads() -> int:
    return sum(thread.name.startswith("ngsgpu-") for thread in threading.enumerate())


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, bgzf], ids=["", "gz", "bgzf"])
def test_a_reader_given_up_leaves_no_thread_behind(tmp_path: Path, pack: object) -> None:
    path = write(tmp_path / "reads", pack(fastq(reads(5000))))  # type: ignore[operator]
    before = reading_threads()
    batches = read_batches(path, chunk_bytes=2000, threads=2)
    next(batches)
    assert reading_threads() > before
    batches.close()
    assert reading_threads() == before


def test_a_reader_given_up_does_not_wait_for_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pipe.open("r+b", buffering=0) as held_open:
        held_open.write(fastq(reads(40)))
        batches = read_batches(pipe, chunk_bytes=500)
        next(batches)
        batches.close()  # returns, though nobody writes on


def test_pair_files_of_unequal_length(tmp_path: Path) -> None:
    short = write(tmp_path / "short.fq", fastq(reads(5, mate=b"/1")))
    long = write(tmp_path / "long.fq", fastq(reads(8, mate=b"/2")))
    for paths in ((short, long), (long, short)):
        for chunk_bytes in (60, 1 << 20):
            with pytest.raises(InputError) as caught:
                list(read_pairs(*paths, chunk_bytes=chunk_bytes))
            assert caught.value.path == str(short)
            assert caught.value.record == 6
            assert f"ends after 5 records, but {long} has more" in caught.value.cause


NAMES: list[tuple[bytes, bytes, str | None]] = [
    (b"r", b"r", None),
    (b"r/1", b"r/2", None),
    (b"r/2", b"r/1", None),
    (b"r.1", b"r.2", None),
    (b"SRR1.7.1 7 length=9", b"SRR1.7.2 7 length=9", None),
    (b"r_1", b"r_2", None),
    (b"r 1:N:0:ACGT", b"r 2:N:0:ACGT", None),
    (b"r\t1", b"r 2", None),
    (b"", b"", None),
    (b" x", b" y", None),
    (b"1", b"1", None),
    (b"r.1", b"r.1", None),
    (b"r/1", b"r/1", "the same mate number"),
    (b"r/2 x", b"r/2", "the same mate number"),
    (b"r", b"s", "not those of mates"),
    (b"r/1", b"s/2", "not those of mates"),
    (b"r/1", b"r/3", "not those of mates"),
    (b"r1", b"r2", "not those of mates"),
    (b"x:10:2", b"x:10:1", "not those of mates"),
    (b"r_R1", b"r_R2", "differ in the mate's number only"),
    (b"r_1:N:0", b"r_2:N:0", "differ in the mate's number only"),
    (b"r.2_x y", b"r.1_x y", "differ in the mate's number only"),
    (b"1", b"2", "not those of mates"),
    (b"r", b"r/2", "not those of mates"),
    (b"rr/1", b"r/2", "not those of mates"),
    (b"", b"r", "not those of mates"),
]


@pytest.mark.parametrize("name1, name2, cause", NAMES)
def test_names_of_mates(tmp_path: Path, name1: bytes, name2: bytes, cause: str | None) -> None:
    good = reads(2)
    first = fastq([*good, Record(name1, b"A", b"I")])
    second = fastq([*good, Record(name2, b"A", b"I")])
    paths = write(tmp_path / "1.fq", first), write(tmp_path / "2.fq", second)
    both = fastq([*(good[0], good[0]), Record(name1, b"A", b"I"), Record(name2, b"A", b"I")])
    interleaved = write(tmp_path / "both.fq", both)
    if cause is None:
        assert sum(len(first) for first, _ in read_pairs(*paths)) == 3
        assert sum(map(len, read_interleaved(interleaved))) == 4
        return
    with pytest.raises(InputError, match=cause) as caught:
        list(read_pairs(*paths))
    assert (caught.value.path, caught.value.record, caught.value.line) == (str(paths[1]), 3, 9)
    with pytest.raises(InputError, match=cause) as caught:
        list(read_interleaved(interleaved, chunk_bytes=10))
    assert (caught.value.record, caught.value.line) == (4, 13)
    assert "records 3 and 4" in caught.value.cause


def test_interleaved_with_a_read_too_many(tmp_path: Path) -> None:
    records = [record for record in reads(3) for _ in range(2)][:5]
    path = write(tmp_path / "reads.fq", fastq(records))
    with pytest.raises(InputError, match="even number of records, but there are 5") as caught:
        list(read_interleaved(path, chunk_bytes=100))
    assert caught.value.record == 5


def test_a_pair_of_empty_files(tmp_path: Path) -> None:
    paths = write(tmp_path / "1.fq", b""), write(tmp_path / "2.fq", b"")
    assert list(read_pairs(*paths)) == []
    assert list(read_interleaved(paths[0])) == []
