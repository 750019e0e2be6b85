"""Chunks that several threads split: the same batches, the same errors, failures that arrive."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.text import scan
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import read_interleaved, read_pairs
from ngsgpu.io.text.reader import read_batches
from ngsgpu.io.text.scan import find_fasta, find_fastq
from tests.support.io.records import Record, bgzf, fasta, fastq, reads, records_of, write

THREADS = (1, 2, 3, 7)

quick = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@st.composite
def misleading_records(draw: st.DrawFn) -> list[Record]:
    """Records whose qualities look like headers and plus lines, of very different lengths."""
    records = []
    for number in range(draw(st.integers(1, 30))):
        length = draw(st.sampled_from([0, 1, 2, 3, 20, 150]))
        first = draw(st.sampled_from([b"@", b"+", b"@+", b"I"]))
        qualities = (first + b"@+I!" * 40)[:length]
        header = draw(st.sampled_from([b"", b"@", b"+", b"r%d" % number, b"r 1:N:0", b"n" * 300]))
        records.append(Record(header, b"ACGTNacgtR" * 15, qualities))
    return [Record(r.header, r.bases[: len(r.qualities or b"")], r.qualities) for r in records]


def contents(batch: RecordBatch) -> list[object]:
    """All that a batch holds, for comparisons."""
    offsets = (batch.header_start, batch.header_end, batch.seq_start, batch.seq_end)
    places = [(array - batch.begin).tolist() for array in offsets]
    own = None if batch.qual_start is None else (batch.qual_start - batch.begin).tolist()
    return [batch.text.tobytes(), *places, batch.seq_len.tolist(), own, batch.first_record]


@quick
@given(
    misleading_records(),
    st.sampled_from([b"\n", b"\r\n"]),
    st.integers(1, 700),
    st.sampled_from(["plain", "bgzf"]),
)
def test_batches_are_the_same_for_any_number_of_threads(
    tmp_path: Path, records: list[Record], end: bytes, chunk_bytes: int, how: str
) -> None:
    data = fastq(records, end)
    path = write(tmp_path / "reads", bgzf(data) if how == "bgzf" else data)
    found = [
        list(read_batches(path, chunk_bytes=chunk_bytes, phred_offset=33, threads=threads))
        for threads in THREADS
    ]
    assert records_of(found[0]) == (records, data)
    for batches in found[1:]:
        assert list(map(contents, batches)) == list(map(contents, found[0]))


@quick
@given(misleading_records(), st.integers(0, 6000))
def test_the_guess_in_whole_records_is_the_next_header(records: list[Record], cut: int) -> None:
    text = fastq(records)
    starts = np.cumsum([0, *(len(fastq([record])) for record in records)]).tolist()
    data = np.frombuffer(text[cut:], dtype=np.uint8)
    guess = find_fastq(data, len(data))
    following = [start - cut for start in starts[:-1] if start > cut]
    assert guess == (following[0] if following else -1)


def test_the_guess_in_fasta() -> None:
    data = np.frombuffer(b"AC>GT\n>r\nACGT\n>s\n", dtype=np.uint8)
    assert find_fasta(data, len(data)) == 6
    assert find_fasta(data[7:], len(data) - 7) == 7
    assert find_fasta(data, 6) == -1


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("chunk_bytes", [200, 5000])
def test_errors_in_late_chunks_name_record_and_line(
    tmp_path: Path, threads: int, chunk_bytes: int
) -> None:
    good = reads(2000)
    bad = [*good[:1500], Record(b"bad", b"ACGT", b"II"), *good]
    path = write(tmp_path / "reads.fq", fastq(bad))
    with pytest.raises(InputError, match="4 bases but 2 qualities") as caught:
        list(read_batches(path, chunk_bytes=chunk_bytes, threads=threads))
    assert (caught.value.record, caught.value.line) == (1501, 6004)

    wrong = [*(Record(r.header, r.bases, None) for r in good[:900]), Record(b"x", b"ACJT", None)]
    path = write(tmp_path / "reads.fa", fasta([*wrong, *wrong], width=7))
    with pytest.raises(InputError, match="'J'") as caught:
        list(read_batches(path, chunk_bytes=chunk_bytes, threads=threads))
    assert (caught.value.record, caught.value.line) == (901, 3602)

    path = write(tmp_path / "cut.fq", fastq(good)[:-5])
    with pytest.raises(InputError, match="ends within the qualities") as caught:
        list(read_batches(path, chunk_bytes=chunk_bytes, threads=threads))
    assert (caught.value.record, caught.value.line) == (2000, 8000)


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_of_several_faults_is_named(tmp_path: Path, threads: int) -> None:
    first, second = reads(2000, mate=b"/1"), reads(2000, mate=b"/2")
    second[700] = Record(b"other/2", *second[700][1:])
    second[1800] = Record(b"bad", b"ACGT", b"II")
    paths = write(tmp_path / "1.fq", fastq(first)), write(tmp_path / "2.fq", fastq(second))
    with pytest.raises(InputError, match="not those of mates") as caught:
        list(read_pairs(*paths, chunk_bytes=1000, threads=threads))
    assert (caught.value.path, caught.value.record, caught.value.line) == (str(paths[1]), 701, 2801)


@quick
@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.integers(1, 300))
def test_mates_of_different_lengths_come_in_step(
    tmp_path: Path, lengths: list[int], chunk_bytes: int
) -> None:
    sides = [
        [Record(b"r%d" % i, b"A" * n, b"I" * n) for i, n in enumerate(lengths)],
        [Record(b"r%d" % i, b"A" * n, b"I" * n) for i, n in enumerate(reversed(lengths))],
    ]
    paths = [write(tmp_path / str(side), fastq(sides[side])) for side in (0, 1)]
    both = [record for pair in zip(*sides, strict=True) for record in pair]
    one = write(tmp_path / "both", fastq(both))
    for threads in (1, 3):
        pairs = list(read_pairs(*paths, chunk_bytes=chunk_bytes, threads=threads))
        for side in (0, 1):
            expected = sides[side], fastq(sides[side])
            assert records_of(pair[side] for pair in pairs) == expected
        batches = list(read_interleaved(one, chunk_bytes=chunk_bytes, threads=threads))
        assert records_of(batches) == (both, fastq(both))


@pytest.mark.parametrize("how", ["plain", "bgzf"])
def test_an_exception_in_a_thread_reaches_the_caller(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fastq(reads(3000))
    path = write(tmp_path / "reads", bgzf(data, 5000) if how == "bgzf" else data)

    def fail(*arguments: object) -> int:
        raise MemoryError(threading.current_thread().name)

    before = threading.active_count()
    monkeypatch.setattr(scan, "find_fastq", fail)
    batches = read_batches(path, chunk_bytes=1000, threads=3)
    assert len(next(batches)) > 0
    with pytest.raises(MemoryError, match="ngsgpu-split"):
        list(batches)
    assert threading.active_count() == before
