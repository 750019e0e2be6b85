"""Random FASTQ files, regular and awkward, and random edits of their reads."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.edits import AS_THEY_ARE, EditCounts, Edits, EditStyle, write_edits
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset.qualities import widened
from tests.support.io.records import bgzf, members, write

COMPRESSIONS = ("plain", "gzip", "members", "bgzf", "bzip2", "xz")


@dataclass(frozen=True)
class Style:
    """What files of a run look like."""

    reads: int
    shortest: int
    longest: int
    end: bytes
    ends_with_line_end: bool
    blank_lines: int
    ambiguous: float
    repeats_name: float
    phred_offset: PhredOffset
    compression: str
    comment: bytes

    @classmethod
    def random(cls, rng: random.Random, *, plain: bool = False) -> Style:
        longest = rng.choice([1, 20, 64, 65, 100, 150, 300])
        shortest = longest if rng.random() < 0.5 else rng.randrange(longest)
        return cls(
            reads=rng.choice([1, 2, 3, 30, 150]),
            shortest=shortest,
            longest=longest,
            end=rng.choice([b"\n", b"\n", b"\r\n"]),
            ends_with_line_end=rng.random() < 0.7,
            blank_lines=rng.choice([0, 0, 0, 1, 3, 4, 9]),
            ambiguous=rng.choice([0, 0.01, 0.01, 0.2, 1]),
            repeats_name=rng.choice([0, 0, 0.3, 1]),
            phred_offset=rng.choice(["auto", "auto", 33, 64]),
            compression="plain" if plain else rng.choice(["plain", "plain", *COMPRESSIONS]),
            comment=rng.choice([b"", b" 1:N:0:ACGT", b"\tx=1 y", b" " + b"c" * 100]),
        )

    def content(self, rng: random.Random, names: list[bytes]) -> bytes:
        """A file of reads with these names."""
        text = []
        offset = 64 if self.phred_offset == 64 else 33
        for name in names:
            length = rng.randint(self.shortest, self.longest)
            letters = rng.choices(b"ACGTacgt", k=length)
            for at in range(length):
                if rng.random() < self.ambiguous:
                    letters[at] = rng.choice(b"NNNn.RYU")
            qualities = rng.choices(range(offset, offset + 42), k=length)
            again = name + rng.choice([b"", b" other"]) if rng.random() < self.repeats_name else b""
            text += [b"@" + name + self.comment, bytes(letters), b"+" + again, bytes(qualities)]
        end = self.end
        data = end.join(text)
        if self.ends_with_line_end:
            data += end * (1 + self.blank_lines)
        return data

    def write(self, path: Path, content: bytes) -> Path:
        encoders = {
            "plain": bytes,
            "gzip": gzip.compress,
            "members": lambda data: members(data, 1000),
            "bgzf": lambda data: bgzf(data, 700),
            "bzip2": bz2.compress,
            "xz": lzma.compress,
        }
        return write(path, encoders[self.compression](content))


def random_lanes(rng: random.Random, folder: Path, style: Style, layout: str) -> list[ReadFiles]:
    """One to three lanes of files; outputs are numbered by mate, all lanes share them."""
    mark = rng.choice([b"/", b".", b"_", None])
    lanes = []
    for lane in range(rng.choice([1, 1, 2, 3])):
        count = max(1, style.reads + rng.randrange(-1, 2)) if style.reads else 0
        plain_names = [b"r%d.%d" % (lane, rng.randrange(1 << 40)) for _ in range(count)]
        mates = [
            [name if mark is None else name + mark + b"%d" % mate for name in plain_names]
            for mate in (1, 2)
        ]
        if layout == "pairs":
            paths = [folder / f"{lane}_{mate}.fq" for mate in (1, 2)]
            for path, names in zip(paths, mates, strict=True):
                style.write(path, style.content(rng, names))
            lanes.append(ReadFiles(tuple(map(str, paths)), (0, 1)))
            continue
        names = plain_names
        if layout == "interleaved":
            names = [name for pair in zip(*mates, strict=True) for name in pair]
        path = style.write(folder / f"{lane}.fq", style.content(rng, names))
        lanes.append(ReadFiles((str(path),), (0,), layout == "interleaved"))
    return lanes


def read_on_host(
    lanes: list[ReadFiles],
    *,
    quality_bits: int = 8,
    phred_offset: PhredOffset = "auto",
    by_level: bool = False,
) -> ReadSet:
    """What the CPU makes of the lanes."""
    offset = 33 if phred_offset == "auto" else phred_offset
    builder = ReadSetBuilder(
        paired=lanes[0].paired, quality_bits=quality_bits, phred_offset=offset, by_level=by_level
    )
    for lane in lanes:
        for mates in lane.batches(threads=1, phred_offset=phred_offset, chunk_bytes=1 << 20):
            builder.add(*mates)
    return builder.finish()


def with_bytes(reads: ReadSet) -> ReadSet:
    """The read set with a byte for each quality, if only levels of them are kept."""
    if not reads.levels:
        return reads
    arrays = reads.arrays
    lengths = arrays.lengths
    if arrays.uniform_length >= 0:
        lengths = np.full(reads.reads, arrays.uniform_length, dtype=np.int32)
    sizes = arrays.lengths.astype(np.int64)
    arrays = arrays._replace(
        qualities=widened(arrays.qualities, lengths, reads.levels),
        quality_start=np.cumsum(sizes) - sizes,
        quality_bits=8,
    )
    return replace(reads, arrays=arrays, levels=())


def assert_equal_reads(found: ReadSet, expected: ReadSet) -> None:
    found, expected = with_bytes(found), with_bytes(expected)
    for name in ("reads", "bases", "paired", "min_length", "max_length"):
        assert getattr(found, name) == getattr(expected, name), name
    for ours, theirs in ((found.arrays, expected.arrays), (found.ambiguous, expected.ambiguous)):
        for name in ours._fields:
            value, wanted = getattr(ours, name), getattr(theirs, name)
            if isinstance(wanted, np.ndarray):
                assert value.dtype == wanted.dtype, name
                assert np.array_equal(value, wanted), name
            else:
                assert value == wanted, name


def random_edits(rng: random.Random, reads: ReadSet) -> Edits:
    """Edits of about half of the reads."""
    starts = np.zeros(reads.reads, dtype=np.int64)
    counts = np.zeros(reads.reads, dtype=np.uint16)
    values: list[int] = []
    order = list(range(reads.reads))
    rng.shuffle(order)
    for read in order:
        uniform = reads.arrays.uniform_length
        length = uniform if uniform >= 0 else int(reads.arrays.lengths[read])
        count = rng.randrange(min(4, length + 1)) if rng.random() < 0.7 else 0
        starts[read] = len(values)
        counts[read] = count
        positions = sorted(rng.sample(range(length), count))
        values += [position << 2 | rng.randrange(4) for position in positions]
    return Edits(starts, counts, np.array(values, dtype=np.uint32))


def patch_on_host(
    lanes: list[ReadFiles],
    reads: ReadSet,
    edits: Edits,
    phred_offset: PhredOffset,
    style: EditStyle = AS_THEY_ARE,
) -> tuple[list[bytes], EditCounts]:
    """The outputs as the CPU's correction writes them, and what it counts."""
    outputs = [b"", b""]
    rows = 2 if reads.paired else 1
    counts = EditCounts(0, 0, np.zeros((rows, max(1, reads.max_length)), dtype=np.int64))
    read = 0
    for lane in lanes:
        for mates in lane.batches(threads=1, phred_offset=phred_offset, chunk_bytes=1 << 20):
            for mate, batch in enumerate(mates):
                write_edits(
                    batch.data,
                    0,
                    batch.seq_start,
                    read + mate,
                    len(mates),
                    edits,
                    counts,
                    style,
                    is_fastq=batch.qual_start is not None,
                )
                outputs[lane.outputs[mate]] += batch.text.tobytes()
            read += sum(map(len, mates))
    return outputs, counts
