"""Compressed outputs made part by part by threads, and gzip files read from any place."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.io.compress import bgzf, formats, seek
from ngsgpu.io.compress import gzip as gzip_stream
from ngsgpu.io.compress.formats import reads_blocks
from ngsgpu.io.compress.seek import SeekingReader
from ngsgpu.io.compress.source import Source
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output import packed
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.edits import EditStyle
from ngsgpu.io.output.patch import write_patched
from ngsgpu.io.output.precopy import Precopy
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.reread import ReadFilesLayout
from tests.support.io.layouts import layouts_of
from tests.support.io.random_fastq import patch_on_host, random_edits, read_on_host
from tests.support.io.records import write


def fastq_text(rng: random.Random, records: int, length: int = 100) -> bytes:
    """Records of pairs with names of several lengths, and qualities that vary."""
    lines = []
    for number in range(records):
        bases = "".join(rng.choices("ACGT", k=length))
        qualities = "".join(rng.choices("F:,#", (20, 3, 2, 1), k=length))
        lines.append(
            f"@read{number // 2}{'x' * (number // 2 % 9)} 1:N:0\n{bases}\n+\n{qualities}\n"
        )
    return "".join(lines).encode()


def places_of(path: Path) -> tuple[seek.Checkpoint, ...]:
    """Noted by inflating a file once."""
    source = Source(path, threads=4, chunk_bytes=50_000)
    size = sum(chunk.size for chunk in source.chunks())
    assert source.checkpoints is not None
    return source.checkpoints.found(size)


@pytest.fixture
def _many_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seek, "SPACING", 100_000)
    monkeypatch.setattr(seek, "_MARGIN", 66_000)
    monkeypatch.setattr(gzip_stream, "CHUNK_BYTES", 1 << 16)
    monkeypatch.setattr(bgzf, "_GROUP_BYTES", 1 << 15)


def pack(form: str, text: bytes) -> bytes:
    third = len(text) // 3
    if form == "members":
        return b"".join(gzip.compress(text[at : at + third]) for at in range(0, len(text), third))
    return (
        bytes(reads_blocks(text, 1)) + formats.EOF_BLOCK if form == "bgzf" else gzip.compress(text)
    )


@pytest.mark.usefixtures("_many_places")
@pytest.mark.parametrize("form", ["gzip", "members", "bgzf"])
def test_any_part_of_the_text(tmp_path: Path, form: str) -> None:
    rng = random.Random(7)
    text = fastq_text(rng, 8_000)
    path = write(tmp_path / "in.fq.gz", pack(form, text))
    places = places_of(path)
    assert len(places) > 4
    assert any(place.window is not None for place in places) == (form != "bgzf")
    reader = SeekingReader(str(path), places, len(text))
    parts = [(0, 10), (len(text) - 10, len(text)), (0, len(text))]
    parts += [tuple(sorted(rng.choices(range(len(text)), k=2))) for _ in range(60)]
    for start, end in parts:
        data = np.empty(end - start, dtype=np.uint8)
        reader.fill(data, start)
        assert data.tobytes() == text[start:end]
    reader.close()


def test_another_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "in.fq.gz", gzip.compress(b"x" * 1000))
    for data, size in ((gzip.compress(b"x" * 900), 1000), (b"y" * 1000, 1000)):
        write(path, data)
        reader = SeekingReader(str(path), (seek.Checkpoint(0, 0, None),), size)
        with pytest.raises(InputError, match="the file changed"):
            reader.fill(np.empty(size, dtype=np.uint8), 0)
        reader.close()


def test_a_file_with_too_few_places_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    noted = seek.Checkpoints()
    assert noted.wants(seek.SPACING) and not noted.wants(seek.SPACING - 1)
    noted.note(80, seek.SPACING, None)
    assert [place.text for place in noted.found(2 * seek.SPACING)] == [0, seek.SPACING]
    assert noted.found(1 << 30) == ()
    noted.drop()
    assert noted.found(2 * seek.SPACING) == () and not noted.wants(3 * seek.SPACING)


@pytest.mark.usefixtures("_many_places")
@pytest.mark.parametrize("ending", [".gz", ".zst"])
@pytest.mark.parametrize("form", ["plain", "gzip", "bgzf"])
@pytest.mark.parametrize("layout", ["pairs", "lanes", "interleaved"])
def test_writes_what_the_cpu_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, form: str, layout: str
) -> None:
    """The same edits and counts, whatever the cuts; of several lanes in one output, too."""
    monkeypatch.setattr(packed, "LEAST_PACKED", 65280)
    monkeypatch.setattr(packed, "PART_BYTES", 70_000)
    rng = random.Random(3)
    paths = []
    for number in range(3):
        text = fastq_text(rng, 1_501 if number == 2 else 2_400)
        name = f"in{number}.fq" + ("" if form == "plain" else ".gz")
        paths.append(str(write(tmp_path / name, text if form == "plain" else pack(form, text))))
    lanes = {
        "pairs": [ReadFiles((paths[0], paths[1]), (0, 1))],
        "lanes": [ReadFiles((path,), (0,)) for path in paths],
        "interleaved": [ReadFiles((paths[0],), (0,), interleaved=True)],
    }[layout]
    read_set = read_on_host(lanes, phred_offset=33)
    edits = random_edits(rng, read_set)
    style = EditStyle(False, 40)
    expected, counts = patch_on_host(lanes, read_set, edits, 33, style)
    layouts = [
        ReadFilesLayout(tuple(
            replace(file, checkpoints=() if form == "plain" else places_of(Path(file.path)))
            for file in lane.files
        ), lane.first_read)
        for lane in layouts_of(lanes, 33)
    ]  # fmt: skip
    outputs = [tmp_path / f"out{index}.fq{ending}" for index in range(len(lanes[0].inputs))]
    advanced: list[int] = []
    with OutputSet(outputs, threads=2) as opened:
        assert packed.packed_outputs(layouts, [lane.outputs for lane in lanes], opened)
        found = write_patched(
            layouts, [lane.outputs for lane in lanes], opened, edits, paired=read_set.paired,
            max_length=read_set.max_length, threads=2, style=style, advance=advanced.append,
        )  # fmt: skip
    assert found.reads == counts.reads
    assert np.array_equal(found.by_position, counts.by_position)
    assert sum(advanced) == read_set.reads
    for path, content in zip(outputs, expected, strict=False):
        source = Source(path, threads=1, chunk_bytes=1 << 20)
        assert b"".join(chunk.data.tobytes() for chunk in source.chunks()) == content
        source.close()


@pytest.mark.usefixtures("_many_places")
def test_plain_copies_are_inflated_from_many_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = fastq_text(random.Random(8), 5_000)
    paths = [write(tmp_path / f"{i}.gz", gzip.compress(own)) for i, own in enumerate((text, text))]
    lanes = [ReadFiles((str(path),), (0,)) for path in paths]
    layouts = [
        ReadFilesLayout(
            tuple(replace(file, checkpoints=places_of(Path(file.path))) for file in lane.files), 0
        )
        for lane in layouts_of(lanes, 33)
    ]
    for is_in_memory in (False, True):
        monkeypatch.setattr(AtomicFile, "is_in_memory", is_in_memory)
        out = tmp_path / "out.fq"
        with (
            OutputSet([out], threads=8) as outputs,
            Precopy(layouts, [(0,), (0,)], outputs, 8) as precopy,
        ):
            assert list(precopy.finish()) == [0]
        assert out.read_bytes() == 2 * text


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_way(tmp_path: Path) -> None:
    """Cut at blocks of the encoder as if written in order; the last piece is short."""
    text = fastq_text(random.Random(5), 60_000, 150)
    path = str(write(tmp_path / "in.fq.gz", gzip.compress(text, 1)))
    lanes = [ReadFiles((path,), (0,))]
    read_set = read_on_host(lanes, phred_offset=33)
    edits = random_edits(random.Random(6), read_set)
    expected, _ = patch_on_host(lanes, read_set, edits, 33, EditStyle())
    (lane,) = layouts_of(lanes, 33)
    (file,) = lane.files
    places = places_of(Path(path))
    assert len(places) > 1
    lane = ReadFilesLayout((replace(file, checkpoints=places),), 0)
    with OutputSet([tmp_path / "in_order.fq.gz", tmp_path / "parts.fq.gz"], threads=2) as outputs:
        outputs.write(0, expected[0])
        write_patched(
            [lane], [(1,)], outputs, edits, paired=False, max_length=150, threads=2
        )  # fmt: skip
    assert (tmp_path / "in_order.fq.gz").read_bytes() == (tmp_path / "parts.fq.gz").read_bytes()
