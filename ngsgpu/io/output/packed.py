"""Parts of compressed outputs that threads make from their inputs, each from beginning to end.

A part of an output ends where its compression may be cut, as near as possible behind a place where
inflating the input may begin. So each byte is inflated and compressed once, by one thread, in
memory that it uses again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.compress.formats import LEAST_PACKED, Packing
from ngsgpu.io.output.writer import OutputSet, Packed
from ngsgpu.io.reread import FileLayout, PieceReader, ReadFilesLayout, open_again

PART_BYTES: Final = 4 << 20
"""Bytes of a part where the input can be read from any place."""


class Span(NamedTuple):
    """Bytes of a file that hold whole all records of which a part has bytes.

    Attributes:
        start: first byte.
        end: end of the bytes.
        before: a record that begins before the part: its number and the next one, or twice the
            first of the part's own.
        own: first record whose sequence begins in the part, and the one behind the last.
        starts: uint32, where the sequences of all these records begin, from ``start`` on.
    """

    start: int
    end: int
    before: tuple[int, int]
    own: tuple[int, int]
    starts: NDArray[np.uint32]


@dataclass(slots=True)
class Source:
    """A file that becomes (a part of) an output.

    Attributes:
        file: the file.
        base: place of its first byte in the output's text.
        first_read: number of the read in its first record.
        step: from the read of a record to that of the next one.
        reader: reads it, once it is open.
    """

    file: FileLayout
    base: int
    first_read: int
    step: int
    reader: PieceReader

    def span(self, start: int, end: int) -> Span:
        """The bytes to read for a part of the file."""
        file = self.file
        first, last = file.records_in(start, end)
        before = max(0, first - 1)
        offsets = file.sequence_offsets(before, min(last + 1, len(file.starts)))
        begin = int(offsets[0]) if before < first else start
        stop = int(offsets[last - before]) if last < len(file.starts) else file.size
        starts = (offsets - begin).astype(np.uint32)
        return Span(begin, max(stop, end), (before, first), (first, last), starts)


@dataclass(frozen=True, slots=True)
class PackedPart:
    """A part of an output.

    Attributes:
        index: of the output.
        start: place of the first byte in the output's text.
        pieces: files and their bytes that it is made of.
        packing: compresses it.
        level: of the compression.
    """

    index: int
    start: int
    pieces: list[tuple[Source, int, int]]
    packing: Packing
    level: int

    def packed(self, text: NDArray[np.uint8]) -> list[Packed]:
        """The part, compressed."""
        own = self.packing
        step = own.piece_bytes if own.piece_bytes == own.unit_bytes else max(1, len(text))
        pieces = [text[at : at + step] for at in range(0, len(text), step)]
        return [Packed(own.pack(piece.data, self.level), len(piece)) for piece in pieces]


@dataclass(slots=True)
class PackedOutput:
    """A compressed output all of whose inputs can be read from any place.

    Attributes:
        index: of the output.
        packing: compresses it.
        level: of the compression.
        lanes: its files: layout, place in the output, number of the first read, step.
        sources: the same, once they are open.
    """

    index: int
    packing: Packing
    level: int
    lanes: list[tuple[FileLayout, int, int, int]]
    sources: list[Source]

    def parts(self, opened: ExitStack) -> Iterator[PackedPart]:
        """Open the files, and cut the output.

        Raises:
            InputError: a file has changed, or cannot be opened.
        """
        for lane in self.lanes:
            reader = open_again(lane[0], threads=1)
            opened.callback(reader.close)
            self.sources.append(Source(*lane, reader))
        return (self._part(start, end) for start, end in pairwise(self._cuts()))

    def _part(self, start: int, end: int) -> PackedPart:
        pieces = [
            (one, max(0, start - one.base), min(one.file.size, end - one.base))
            for one in self.sources
            if one.base < end and one.base + one.file.size > start
        ]
        return PackedPart(self.index, start, pieces, self.packing, self.level)

    def _cuts(self) -> list[int]:
        """Places in the output's text; the last piece is as the encoder would cut it."""
        unit = self.packing.unit_bytes
        total = self.sources[-1].base + self.sources[-1].file.size
        last = total // self.packing.piece_bytes * self.packing.piece_bytes
        least = max(LEAST_PACKED, unit)
        cuts = [0]
        for one in self.sources:
            places = (place.text for place in one.file.checkpoints)
            for place in places if one.file.checkpoints else range(0, one.file.size, PART_BYTES):
                cut = ((one.base + place) // unit + 1) * unit
                if cuts[-1] + least <= cut <= last - least:
                    cuts.append(cut)
        ends = [last, total] if cuts[-1] < last < total else [total]
        return [*cuts, *ends]


def packed_outputs(
    lanes: Sequence[ReadFilesLayout], targets: Sequence[Sequence[int]], outputs: OutputSet
) -> dict[int, PackedOutput]:
    """The outputs that can be written so, by their index.

    Args:
        lanes: positions of the sequences.
        targets: for each file of each lane, the index of its output.
        outputs: the outputs.
    """
    found: dict[int, PackedOutput] = {}
    ordered = set()
    for lane, indices in zip(lanes, targets, strict=True):
        for mate, (file, index) in enumerate(zip(lane.files, indices, strict=True)):
            packer = outputs.packing(index)
            if packer is None or not file.takes_offsets:
                ordered.add(index)
                continue
            own = found.setdefault(index, PackedOutput(index, *packer, [], []))
            base = own.lanes[-1][1] + own.lanes[-1][0].size if own.lanes else 0
            own.lanes.append((file, base, lane.first_read + mate, len(lane.files)))
    return {index: own for index, own in found.items() if index not in ordered}
