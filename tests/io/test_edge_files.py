"""Every awkward file is read as pysam and pyfastx read it, or refused with the right message."""

from __future__ import annotations

from pathlib import Path

import pyfastx
import pysam
import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.text.pairs import read_interleaved, read_pairs
from ngsgpu.io.text.reader import PhredOffset, read_batches
from tests.support import DATA
from tests.support.io.edge_table import EXPECTED, INTERLEAVED, PAIRS, Parsed, Refused
from tests.support.io.records import Record, decompressed, name_of, records_of

CHUNKS = [13, 512, 32 << 20]


def as_pysam_sees(content: bytes, folder: Path) -> list[Record]:
    """Name and comment joined are the header, with pysam's loss of the white space between."""
    plain = folder / "plain"
    plain.write_bytes(content)
    with pysam.FastxFile(str(plain)) as file:
        return [
            Record(
                f"{entry.name or ''} {entry.comment or ''}".encode(),
                (entry.sequence or "").encode(),
                None if entry.quality is None else entry.quality.encode(),
            )
            for entry in file
        ]


def like_pysam(record: Record) -> Record:
    """A record as pysam would show it."""
    name = name_of(record.header)
    comment = record.header[len(name) + 1 :]
    return Record(name + b" " + comment, record.bases, record.qualities or None)


def as_pyfastx_sees(content: bytes, folder: Path) -> list[tuple[str, ...]]:
    """Name, bases and, for FASTQ, qualities."""
    if not content:
        return []
    plain = folder / "plain"
    plain.write_bytes(content)
    return list(pyfastx.Fastx(str(plain)))


def as_pyfastx_shows(record: Record) -> tuple[str, ...]:
    parts = [name_of(record.header), record.bases]
    if record.qualities is not None:
        parts.append(record.qualities)
    return tuple(part.decode() for part in parts)


def check_parsed(
    path: Path, folder: Path, count: int, phred_offset: PhredOffset, chunk_bytes: int
) -> None:
    batches = read_batches(path, phred_offset=phred_offset, chunk_bytes=chunk_bytes)
    records, data = records_of(batches)
    content = decompressed(path)
    assert len(records) == count
    assert data == content
    seen = [r._replace(qualities=r.qualities or None) for r in as_pysam_sees(content, folder)]
    assert [like_pysam(record) for record in records] == seen
    assert [as_pyfastx_shows(record) for record in records] == as_pyfastx_sees(content, folder)


def test_table_names_every_file() -> None:
    edge = DATA / "edge"
    files = {str(path.relative_to(edge)) for path in edge.rglob("*") if path.is_file()}
    assert files == set(EXPECTED)


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
@pytest.mark.parametrize("name", EXPECTED)
def test_file(tmp_path: Path, name: str, chunk_bytes: int) -> None:
    path = DATA / "edge" / name
    expected = EXPECTED[name]
    if isinstance(expected, Parsed):
        check_parsed(path, tmp_path, expected.records, "auto", chunk_bytes)
        return
    with pytest.raises(InputError) as caught:
        list(read_batches(path, chunk_bytes=chunk_bytes))
    error = caught.value
    assert error.path == str(path)
    assert expected.cause in error.cause
    assert (error.record, error.line) == (expected.record, expected.line)
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    "name",
    [name for name, e in EXPECTED.items() if isinstance(e, Refused) and "Phred+64" in e.cause],
)
@pytest.mark.parametrize("phred_offset", [33, 64])
def test_doubtful_qualities_are_read_when_the_offset_is_given(
    tmp_path: Path, name: str, phred_offset: PhredOffset
) -> None:
    path = DATA / "edge" / name
    count = decompressed(path).count(b"\n") // 4
    check_parsed(path, tmp_path, count, phred_offset, 1 << 20)


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
@pytest.mark.parametrize("names", PAIRS)
def test_pairs(names: tuple[str, str], chunk_bytes: int) -> None:
    path1, path2 = (DATA / "edge" / name for name in names)
    expected = PAIRS[names]
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            list(read_pairs(path1, path2, chunk_bytes=chunk_bytes))
        return
    pairs = list(read_pairs(path1, path2, chunk_bytes=chunk_bytes))
    assert sum(len(first) for first, _ in pairs) == expected
    for side, path in enumerate((path1, path2)):
        assert records_of(p[side] for p in pairs) == records_of(read_batches(path))


@pytest.mark.parametrize("chunk_bytes", CHUNKS)
@pytest.mark.parametrize("name", INTERLEAVED)
def test_interleaved(name: str, chunk_bytes: int) -> None:
    path = DATA / "edge" / name
    expected = INTERLEAVED[name]
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            list(read_interleaved(path, chunk_bytes=chunk_bytes))
        return
    batches = list(read_interleaved(path, chunk_bytes=chunk_bytes))
    assert sum(map(len, batches)) == 2 * expected
    assert all(len(batch) % 2 == 0 for batch in batches)
    assert records_of(batches) == records_of(read_batches(path))
