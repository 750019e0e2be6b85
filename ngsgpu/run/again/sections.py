"""The records of pairs, read a second time, in sections that threads can load independently.

Batches of the CPU reader are split into records again. If the first pass recorded the positions of
the sequences, a section is a piece of each file instead: the thread that needs it reads the piece
and finds the other parts of the records around their sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.paths import changed
from ngsgpu.io.reread import FileLayout, Fill, PieceReader, ReadFilesLayout, open_again
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit
from ngsgpu.run.staged import ReadLengths

PAIRS_PER_SECTION: Final = 8192
"""Pairs of a section whose places are known: about two megabytes of each file. For one Python takes
about a quarter of a millisecond, in which no other thread can run Python."""

_INFLATED: Final = 4
"""Sections of gzip files are larger by this factor: inflating begins at a place before one."""

LF: Final = 10
CR: Final = 13

BatchSource: TypeAlias = Callable[[ReadFiles], Iterator[tuple[RecordBatch, ...]]]
"""Gives the batches of a lane."""


class Section(NamedTuple):
    """Consecutive pairs.

    Attributes:
        first_pair: number of the first one.
        pairs: how many.
        load: gives the records of first and of second mates; may be called in any thread.
        begin: record of the first pair in them.
    """

    first_pair: int
    pairs: int
    load: Callable[[], tuple[Mates, Mates]]
    begin: int = 0

    def part(self, first: int, last: int) -> Section:
        """Pairs ``first`` to ``last``, exclusive, of the section."""
        return Section(self.first_pair + first, last - first, self.load, self.begin + first)


def read_sections(
    lanes: Sequence[ReadFiles], read_lengths: ReadLengths, batches: BatchSource
) -> Iterator[Section]:
    """Sections from batches of the CPU reader.

    Args:
        lanes: the inputs.
        read_lengths: lengths recorded by the first pass.
        batches: reads a lane.

    Raises:
        InputError: a file cannot be read, or has changed.
    """
    pair = 0
    for lane in lanes:
        for batch in batches(lane):
            read_lengths.check(batch, 2 * pair)
            mates = Mates.of_pairs(batch)
            count = len(mates[0].seq_start)
            yield Section(pair, count, lambda mates=mates: mates)  # type: ignore[misc]
            pair += count
    read_lengths.check_number(lanes, 2 * pair)


def can_seek(lanes: Sequence[ReadFilesLayout]) -> bool:
    """Whether pieces of all files can be read in any order."""
    files = [file for lane in lanes for file in lane.files]
    return all(file.takes_offsets for file in files)


def indexed_sections(
    lanes: Sequence[ReadFilesLayout],
    read_lengths: ReadLengths,
    opened: ExitStack,
    *,
    pairs: int = PAIRS_PER_SECTION,
) -> Iterator[Section]:
    """Sections of files with known sequence positions.

    Args:
        lanes: the files; those of ``can_seek``.
        read_lengths: lengths recorded by the first pass.
        opened: closes the files after all sections were loaded.
        pairs: pairs per section.

    Raises:
        InputError: a file cannot be read, or has changed.
    """
    for lane in lanes:
        files = len(lane.files)
        readers = [open_again(file, threads=1) for file in lane.files]
        for reader in readers:
            opened.callback(reader.close)
        step = 3 - files
        total = len(lane.files[0].starts) // step
        own = pairs * (_INFLATED if any(file.checkpoints for file in lane.files) else 1)
        for begin in range(0, total, own):
            end = min(total, begin + own)
            # The thread that loads the records finds out which bytes they are.
            pieces = [
                partial(
                    _Piece.of,
                    lane.files[mate],
                    readers[mate],
                    read_lengths,
                    (step * begin, step * end),
                    lane.first_read + mate,
                    files,
                )
                for mate in range(files)
            ]
            yield Section(lane.first_read // 2 + begin, end - begin, partial(_load, pieces))


def _load(pieces: Sequence[Callable[[], _Piece]]) -> tuple[Mates, Mates]:
    """Records of first and second mates."""
    loaded = [piece().load() for piece in pieces]
    if len(loaded) == 2:
        return loaded[0], loaded[1]
    return loaded[0].every_second(0), loaded[0].every_second(1)


class _Piece(NamedTuple):
    """Consecutive records of a file.

    Attributes:
        path: the file.
        size: bytes of the piece.
        fill: reads them.
        seq_start: int64[records], where the sequences begin in the piece.
        seq_len: int32[records].
        to_end: whether the file ends with the piece.
    """

    path: str
    size: int
    fill: Fill
    seq_start: NDArray[np.int64]
    seq_len: NDArray[np.int32]
    to_end: bool

    @classmethod
    def of(
        cls,
        file: FileLayout,
        reader: PieceReader,
        read_lengths: ReadLengths,
        records: tuple[int, int],
        first_read: int,
        stride: int,
    ) -> _Piece:
        """The piece that contains these records.

        Only the positions of sequences are known, not those of records: the piece begins with the
        sequence before the first record and ends with that of the next one, or with the file's
        ends.

        Args:
            file: the file.
            reader: reads it.
            read_lengths: lengths of the reads.
            records: numbers in the file of the first record and of the one after the last.
            first_read: number of the read in the file's record 0.
            stride: difference between the read numbers of consecutive records.
        """
        first, last = records
        before, behind = min(first, 1), int(last < len(file.starts))
        offsets = file.sequence_offsets(first - before, last + behind)
        start = int(offsets[0]) if before else 0
        end = int(offsets[-1]) if behind else file.size
        if read_lengths.uniform_length >= 0:
            lengths = np.full(last - first, read_lengths.uniform_length, dtype=np.int32)
        else:
            numbers = slice(first_read + stride * first, first_read + stride * last, stride)
            lengths = np.ascontiguousarray(read_lengths.lengths[numbers])
        seq_start = offsets[before : before + last - first] - start
        fill = reader.prepare(start, end)
        return cls(file.path, end - start, fill, seq_start, lengths, not behind)

    def load(self) -> Mates:
        """Read the piece and find its records.

        Raises:
            InputError: they are not where they were.
        """
        data = np.empty(self.size, dtype=np.uint8)
        self.fill(data)
        count = len(self.seq_start)
        header_start, header_end, qual_start, record_end = np.empty((4, count), dtype=np.int64)
        same = find_records(
            data, self.seq_start, self.seq_len, header_start, header_end, qual_start, record_end
        )
        if not same:
            raise changed(self.path)
        if self.to_end:
            record_end[-1:] = self.size
        return Mates(
            data, header_start, header_end, self.seq_start, self.seq_len, qual_start, record_end
        )


@njit(nogil=True, cache=True)
def find_records(
    data: NDArray[np.uint8],
    seq_start: NDArray[np.int64],
    seq_len: NDArray[np.int32],
    header_start: NDArray[np.int64],
    header_end: NDArray[np.int64],
    qual_start: NDArray[np.int64],
    record_end: NDArray[np.int64],
) -> bool:
    """Find the parts of consecutive FASTQ records around their sequences.

    The first record's header is in ``data``; all arrays are as in ``Mates``.

    Returns:
        Whether there are records at all these positions.
    """
    size = len(data)
    begin: Integer = seq_start[0] - 1
    while begin > 0 and data[begin - 1] != LF:
        begin -= 1
    for i in range(len(seq_start)):
        line = seq_start[i] - 1
        if line <= begin or line >= size or data[line] != LF or data[begin] != ord("@"):
            return False
        header_start[i] = begin + 1
        header_end[i] = line - 1 if data[line - 1] == CR and line - 1 > begin else line
        at = line + 1 + seq_len[i]
        if at < size and data[at] == CR:
            at += 1
        at += 1  # behind the sequence's line end, in the line of the +
        while at < size and data[at] != LF:
            at += 1
        qual_start[i] = at + 1
        at += 1 + seq_len[i]
        if at > size:
            return False
        if at < size and data[at] == CR:
            at += 1
        if at < size and data[at] == LF:
            at += 1
        record_end[i] = at
        begin = at
    return True
