"""Random files: what is read is what was written, however the file is cut and compressed."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.text.batch import concatenate
from ngsgpu.io.text.pairs import read_interleaved, read_pairs
from ngsgpu.io.text.reader import read_batches
from tests.support.io import oracle
from tests.support.io.records import BASES, Record, bgzf, fasta, fastq, members, records_of, write

quick = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

header_text = st.lists(st.sampled_from(b"abcXYZ019:/._- \t@>+"), max_size=12).map(bytes)
base_text = st.lists(st.sampled_from(BASES), max_size=30).map(bytes)


@st.composite
def fastq_records(draw: st.DrawFn) -> list[Record]:
    bases = draw(st.lists(base_text, min_size=1, max_size=8))
    return [
        Record(
            draw(header_text),
            text,
            bytes(draw(st.lists(st.integers(33, 126), min_size=len(text), max_size=len(text)))),
        )
        for text in bases
    ]


fasta_records = st.lists(
    st.builds(Record, header_text, base_text, st.none()), min_size=1, max_size=8
)
line_end = st.sampled_from([b"\n", b"\r\n"])
chunk_size = st.one_of(st.integers(1, 40), st.sampled_from([300, 1 << 16]))


def cut_last(data: bytes, end: bytes, last_newline: bool) -> bytes:
    return data if last_newline else data.removesuffix(end)


def packed(data: bytes, how: str, size: int) -> bytes:
    if how == "bgzf":
        return bgzf(data, size)
    if how == "bgzf, then gzip":
        return bgzf(data[: len(data) // 2], size) + gzip.compress(data[len(data) // 2 :])
    return members(data, size) if how == "gzip" else data


compression = st.sampled_from(["plain", "gzip", "bgzf", "bgzf, then gzip"])


@quick
@given(fastq_records(), line_end, st.booleans(), compression, st.integers(5, 200), chunk_size)
def test_fastq_is_read_as_written(
    tmp_path: Path,
    records: list[Record],
    end: bytes,
    last_newline: bool,
    how: str,
    size: int,
    chunk_bytes: int,
) -> None:
    # The line end of an empty last line cannot be left out: the line would not be there.
    keep = last_newline or not records[-1].bases
    data = cut_last(fastq(records, end), end, keep)
    path = write(tmp_path / "reads", packed(data, how, size))
    for threads in (1, 3):
        batches = read_batches(path, chunk_bytes=chunk_bytes, phred_offset=33, threads=threads)
        assert records_of(batches) == (records, data)


@quick
@given(fasta_records, line_end, st.booleans(), st.integers(1, 40), compression, chunk_size)
def test_fasta_is_read_as_written(
    tmp_path: Path,
    records: list[Record],
    end: bytes,
    last_newline: bool,
    width: int,
    how: str,
    chunk_bytes: int,
) -> None:
    data = cut_last(fasta(records, end, width), end, last_newline)
    path = write(tmp_path / "reads", packed(data, how, 50))
    assert records_of(read_batches(path, chunk_bytes=chunk_bytes)) == (records, data)


def outcome(path: Path, chunk_bytes: int) -> tuple[list[Record], bytes] | tuple[str, int | None]:
    try:
        return records_of(read_batches(path, chunk_bytes=chunk_bytes, phred_offset=33))
    except InputError as error:
        assert "is not valid" not in error.cause, "the fault was not found"
        return str(error), error.record


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file with some bytes replaced, removed, inserted, or its end cut off."""
    end = draw(line_end)
    if draw(st.booleans()):
        data = bytearray(fastq(draw(fastq_records()), end))
    else:
        data = bytearray(fasta(draw(fasta_records), end, 9))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        some = draw(st.lists(st.sampled_from(b"A\n\r@+>!~ \t\x00\x7f\xffQ"), max_size=2).map(bytes))
        data[at : at + draw(st.integers(0, 2))] = some
    return bytes(data[: draw(st.integers(1, max(1, len(data))))])


@settings(quick, max_examples=600)
@given(damaged(), chunk_size)
@example(b"@r\n\n+", 100)
@example(b"@r\n\n+\n", 100)
@example(b"@r\nA\n+\nI\r", 3)
@example(b"@r\nA\n+\nI\n\n\r\n\n", 3)
@example(b"@r\nA\n+\nI\n\n@", 3)
@example(b"@r\rA\r+\rI\r", 4)
@example(b">r", 1)
@example(b">r\r\n\r\n\r\nA\r", 1)
def test_damaged_files_are_judged_as_the_description_says(
    tmp_path: Path, data: bytes, chunk_bytes: int
) -> None:
    path = write(tmp_path / "reads", data)
    result = outcome(path, 1 << 20)
    assert outcome(path, chunk_bytes) == result
    if data[:1] not in (b"@", b">"):
        assert "neither FASTQ nor FASTA" in str(result[0]) or not data
        return
    expected = oracle.read_fastq(data) if data[:1] == b"@" else oracle.read_fasta(data)
    if isinstance(expected, oracle.Bad):
        assert result[1] == expected.record
    else:
        assert result == (expected, data)


@quick
@given(fastq_records(), st.data())
def test_slices_concatenate_to_the_batch(
    tmp_path: Path, records: list[Record], data: st.DataObject
) -> None:
    path = write(tmp_path / "reads", fastq(records))
    (batch,) = read_batches(path, phred_offset=33)
    cuts = data.draw(st.lists(st.integers(0, len(batch)), max_size=4).map(sorted))
    edges = [0, *cuts, len(batch)]
    slices = [batch.slice(a, b) for a, b in pairwise(edges)]
    assert [len(part) for part in slices] == [b - a for a, b in pairwise(edges)]
    full = [part for part in slices if len(part) > 0]
    assert records_of(full) == records_of([batch])
    assert records_of([concatenate(full)]) == records_of([batch])


def test_a_slice_that_is_not_in_the_batch(tmp_path: Path) -> None:
    (batch,) = read_batches(write(tmp_path / "reads", b">a\nA\n>b\nC\n"))
    with pytest.raises(IndexError):
        batch.slice(1, 3)


@quick
@given(
    st.lists(st.tuples(base_text, base_text), min_size=1, max_size=12),
    chunk_size,
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_mates_come_in_step(
    tmp_path: Path, mates: list[tuple[bytes, bytes]], chunk_bytes: int, hint: int | None
) -> None:
    sides = [
        [
            Record(b"r%d/%d" % (i, side + 1), pair[side], b"I" * len(pair[side]))
            for i, pair in enumerate(mates)
        ]
        for side in (0, 1)
    ]
    paths = [write(tmp_path / str(side), fastq(sides[side])) for side in (0, 1)]
    pairs = list(read_pairs(*paths, chunk_bytes=chunk_bytes, batch_reads_hint=hint))
    assert all(len(first) == len(second) > 0 for first, second in pairs)
    assert hint is None or all(len(first) <= hint for first, _ in pairs)
    for side in (0, 1):
        assert records_of(pair[side] for pair in pairs) == (sides[side], fastq(sides[side]))

    both = [record for pair in zip(*sides, strict=True) for record in pair]
    path = write(tmp_path / "both", fastq(both))
    batches = list(read_interleaved(path, chunk_bytes=chunk_bytes))
    assert all(len(batch) % 2 == 0 for batch in batches)
    assert records_of(batches) == (both, fastq(both))
