"""Records read a second time are the same, whether they are split again or their places known."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError
from ngsgpu.extend.cpu import Extensions
from ngsgpu.extend.gpu_run import with_results
from ngsgpu.extend.params import ExtensionParameters
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.run.again.sections import Section, can_seek, indexed_sections, read_sections
from ngsgpu.run.staged import ReadLengths
from tests.support.io.layouts import kept, layouts_of
from tests.support.io.random_fastq import Style, random_lanes, read_on_host
from tests.support.io.records import fastq, reads, write


def batches(lane: ReadFiles, phred_offset: PhredOffset = 33) -> Iterator[tuple[RecordBatch, ...]]:
    return lane.batches(threads=1, phred_offset=phred_offset, chunk_bytes=2000)


def text(data: np.ndarray, begin: int, end: int) -> bytes:
    return data[begin:end].tobytes()


def contents(sections: Iterator[Section]) -> list[tuple[bytes, ...]]:
    """Header, bases, qualities and whole record of each mate of each pair."""
    found: list[tuple[bytes, ...]] = []
    for section in sections:
        assert section.first_pair == len(found)
        mates = section.load()
        for row in range(section.begin, section.begin + section.pairs):
            found.append(sum((parts(side, row) for side in mates), ()))
    return found


def parts(mates: Mates, row: int) -> tuple[bytes, ...]:
    length = int(mates.seq_len[row])
    return (
        text(mates.data, mates.header_start[row], mates.header_end[row]),
        text(mates.data, mates.seq_start[row], mates.seq_start[row] + length),
        text(mates.data, mates.qual_start[row], mates.qual_start[row] + length),
        text(mates.data, mates.header_start[row] - 1, mates.record_end[row]),
    )


@pytest.mark.parametrize("seed", range(30))
def test_both_ways_give_the_same_records(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    style = Style.random(rng)
    lanes = random_lanes(rng, tmp_path, style, rng.choice(["pairs", "interleaved"]))
    shape = ReadLengths.of(read_on_host(lanes, phred_offset=style.phred_offset))
    expected = contents(read_sections(lanes, shape, lambda lane: batches(lane, style.phred_offset)))
    assert len(expected) == shape.reads // 2
    layouts = [kept(lane) for lane in layouts_of(lanes, style.phred_offset)]
    assert can_seek(layouts)
    with ExitStack() as opened:
        sections = indexed_sections(layouts, shape, opened, pairs=rng.choice([1, 3, 17, 4096]))
        assert contents(sections) == expected


def test_what_is_not_kept_cannot_be_read_in_any_order(tmp_path: Path) -> None:
    rng = random.Random(1)
    lanes = random_lanes(rng, tmp_path, Style.random(rng), "pairs")
    layouts = layouts_of(lanes)
    plain = all(file.compression == "plain" for lane in layouts for file in lane.files)
    assert can_seek(layouts) == plain


@pytest.fixture
def lane(tmp_path: Path) -> ReadFiles:
    inputs = [write(tmp_path / f"{mate}.fq", fastq(reads(50))) for mate in (1, 2)]
    return ReadFiles(tuple(map(str, inputs)), (0, 1))


def test_records_that_moved_are_refused(tmp_path: Path, lane: ReadFiles) -> None:
    shape = ReadLengths.of(read_on_host([lane]))
    layouts = layouts_of([lane])
    first = Path(lane.inputs[0])
    data = first.read_bytes()
    with ExitStack() as opened:
        sections = list(indexed_sections(layouts, shape, opened))
        first.write_bytes(b"@longer" + data[1 : len(data) - 6])
        with pytest.raises(InputError, match="the file changed during the run"):
            sections[0].load()
    with pytest.raises(InputError, match="changed during the run"), ExitStack() as opened:
        list(indexed_sections(layouts, shape, opened))


def test_files_that_end_early_are_refused(lane: ReadFiles) -> None:
    shape = ReadLengths.of(read_on_host([lane]))
    for path in map(Path, lane.inputs):
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-4]))
    with pytest.raises(InputError, match="the file was truncated during the run"):
        contents(read_sections([lane], shape, batches))


@pytest.mark.parametrize("sizes", [(50,), (1, 49), (20, 20, 10), (7,) * 8])
def test_results_are_laid_beside_their_pairs(lane: ReadFiles, sizes: tuple[int, ...]) -> None:
    shape = ReadLengths.of(read_on_host([lane]))
    rules = ExtensionParameters().rules(300, 10)
    results = Extensions.allocate(50, rules)
    results.total[:] = np.arange(50)
    ends = np.minimum(np.cumsum(sizes), 50).tolist()
    cut = [results.rows(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    for chunk in (2, 30, 4096):
        with ExitStack() as opened:
            sections = indexed_sections(layouts_of([lane]), shape, opened, pairs=chunk)
            numbers: list[int] = []
            for section, part in with_results(sections, iter(cut)):
                assert section.pairs == len(part.kind)
                assert part.total.tolist() == [
                    *range(section.first_pair, section.first_pair + section.pairs)
                ]
                numbers += part.total.tolist()
            assert numbers == [*range(50)]
