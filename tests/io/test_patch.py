"""Writing inputs again with bases replaced gives what the CPU's correction writes."""

from __future__ import annotations

import errno
import gzip
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError, OutputError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import EditCounts, Edits, EditStyle
from ngsgpu.io.output.patch import pieces_of, write_patched
from ngsgpu.io.output.precopy import Precopy
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import identify
from ngsgpu.io.reread import FileLayout, ReadFilesLayout
from tests.support.io.layouts import layouts_of
from tests.support.io.random_fastq import (
    Style,
    patch_on_host,
    random_edits,
    random_lanes,
    read_on_host,
)
from tests.support.io.records import fastq, reads, write


def assert_same_counts(found: EditCounts, expected: EditCounts) -> None:
    assert found.reads == expected.reads
    assert found.ambiguous == expected.ambiguous
    assert np.array_equal(found.by_position, expected.by_position)


@pytest.mark.parametrize("seed", range(40))
def test_writes_what_the_cpu_writes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    style = Style.random(rng)
    layout = rng.choice(["single", "pairs", "interleaved"])
    lanes = random_lanes(rng, tmp_path, style, layout)
    read_set = read_on_host(lanes, phred_offset=style.phred_offset)
    edits = random_edits(rng, read_set)
    written = EditStyle(rng.random() < 0.3, rng.choice([0, 0, 40, 84, 126]))
    expected, counts = patch_on_host(lanes, read_set, edits, style.phred_offset, written)
    layouts = layouts_of(lanes, style.phred_offset)
    names = [rng.choice(["out_1.fq", "out_1.fq.gz"]), rng.choice(["out_2.fq", "out_2.fq.gz"])]
    paths = [tmp_path / name for name in names[: 2 if layout == "pairs" else 1]]
    advanced: list[int] = []
    targets = [lane.outputs for lane in lanes]
    with OutputSet(paths) as outputs, ExitStack() as stack:
        copied = None
        # Nothing else may write to the outputs meanwhile, so it is all or nothing.
        if rng.random() < 0.5:
            precopy = stack.enter_context(Precopy(layouts, targets, outputs, 2))
            copied = precopy.finish()
        found = write_patched(
            layouts,
            targets,
            outputs,
            edits,
            paired=read_set.paired,
            max_length=read_set.max_length,
            threads=rng.choice([1, 3]),
            piece_bytes=rng.choice([1, 500, 5000, 1 << 20]),
            copied=copied,
            style=written,
            advance=advanced.append,
        )
    assert_same_counts(found, counts)
    assert sum(advanced) == read_set.reads
    for path, content in zip(paths, expected, strict=False):
        data = path.read_bytes()
        assert (gzip.decompress(data) if path.suffix == ".gz" else data) == content


def no_edits(count: int) -> Edits:
    return Edits(
        np.zeros(count, dtype=np.int64),
        np.zeros(count, dtype=np.uint16),
        np.zeros(0, dtype=np.uint32),
    )


def copy(layouts: list[ReadFilesLayout], path: Path, count: int, threads: int = 2) -> None:
    with OutputSet([path]) as outputs:
        write_patched(
            layouts, [(0,)], outputs, no_edits(count), paired=False, max_length=20,
            threads=threads, piece_bytes=300,
        )  # fmt: skip


@pytest.fixture(params=["plain", "gzip"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    data = fastq(reads(100))
    yield write(tmp_path / "in.fq", gzip.compress(data) if request.param == "gzip" else data)


def test_a_changed_file_is_refused(tmp_path: Path, file: Path) -> None:
    layouts = layouts_of([ReadFiles((str(file),), (0,))])
    write(file, file.read_bytes()[:-10])
    with pytest.raises(InputError, match=r"in\.fq: the file changed during the run"):
        copy(layouts, tmp_path / "out.fq", 100)
    assert [path.name for path in tmp_path.iterdir()] == ["in.fq"]
    file.unlink()
    with pytest.raises(InputError, match="the file changed"):
        copy(layouts, tmp_path / "out.fq", 100)


def test_a_file_that_ends_early_is_refused(tmp_path: Path, file: Path) -> None:
    layouts = layouts_of([ReadFiles((str(file),), (0,))])
    longer = write(tmp_path / "longer.fq", file.read_bytes())
    segment = layouts[0].files[0].segments[0]
    shorter = fastq(reads(50))
    write(longer, gzip.compress(shorter) if file.read_bytes()[:1] == b"\x1f" else shorter)
    wrong = FileLayout(
        str(longer),
        layouts[0].files[0].compression,
        identify(str(longer)),
        (segment,),
        layouts[0].files[0].starts,
    )
    with pytest.raises(InputError, match="the file changed"):
        copy([ReadFilesLayout((wrong,), 0)], tmp_path / "out.fq", 100)


def test_a_full_disk_is_an_output_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "in.fq", fastq(reads(100)))
    layouts = layouts_of([ReadFiles((str(file),), (0,))])
    with pytest.raises(OutputError, match="the disk is full"):
        copy(layouts, Path("/dev/full"), 100)

    def no_space(fd: int, data: memoryview, offset: int) -> int:
        if offset > 2000:
            raise OSError(errno.ENOSPC, "")
        return min(len(data), 100)

    monkeypatch.setattr(os, "pwrite", no_space)
    with pytest.raises(OutputError, match=r"out\.fq: the disk is full"):
        copy(layouts, tmp_path / "out.fq", 100)
    assert [path.name for path in tmp_path.iterdir()] == ["in.fq"]


def test_kept_bytes_are_not_read_again(tmp_path: Path) -> None:
    data = fastq(reads(100))
    file = write(tmp_path / "in.fq", data)
    (lane,) = layouts_of([ReadFiles((str(file),), (0,))])
    write(file, b"x" * len(data))
    array = np.frombuffer(data, dtype=np.uint8)
    (known,) = lane.files
    kept = FileLayout(
        known.path, "gzip", identify(str(file)), known.segments, known.starts,
        (array[:10], array[10:1000], array[1000:]),
    )  # fmt: skip
    copy([ReadFilesLayout((kept,), 0)], tmp_path / "out.fq", 100)
    assert (tmp_path / "out.fq").read_bytes() == data


@pytest.mark.parametrize("piece_bytes", [1, 37, 100, 1000, 1 << 20])
def test_pieces_cover_the_file_and_hold_their_sequences(tmp_path: Path, piece_bytes: int) -> None:
    data = fastq(reads(100)) + b"\n\n"
    file = write(tmp_path / "in.fq", data)
    ((layouts,),) = (lane.files for lane in layouts_of([ReadFiles((str(file),), (0,))]))
    at = record = 0
    for piece in pieces_of(layouts, piece_bytes):
        assert (piece.start, piece.first_record) == (at, record)
        at, record = piece.end, piece.last_record
        for start in layouts.starts[piece.first_record : piece.last_record]:
            begin = int(start) + piece.base
            assert piece.start <= begin and begin + 20 <= piece.end
            assert data[begin - 1 : begin] == b"\n" and data[begin + 20 : begin + 22] == b"\n+"
    assert (at, record) == (len(data), 100)
