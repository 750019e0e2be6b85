"""What stages return: their output, to iterate over or to keep as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ngsgpu.api.files import Item, Pair, Reads
from ngsgpu.api.record import Record
from ngsgpu.api.runs import Folder
from ngsgpu.errors import UsageError
from ngsgpu.io.compress.deflate import DEFAULT_LEVEL
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.batch import RecordBatch

_AT_ONCE: Final = 1 << 22


def save_files(
    files: Sequence[Path], paths: Sequence[str | Path], threads: int, compress_level: int
) -> None:
    """Copy files to others, all or none of which appear.

    Args:
        files: the files, not compressed.
        paths: as many; names ending in ``.gz`` or ``.zst`` are compressed.
        threads: that compress.
        compress_level: 1 (fast) to 12 (small).

    Raises:
        OutputError: a file cannot be written; none was.
        UsageError: there are more or fewer paths.
    """
    if len(paths) != len(files):
        needed = "one path is" if len(files) == 1 else "two paths, one for each mate, are"
        raise UsageError(f"{needed} needed here, not {len(paths)}")
    with OutputSet(paths, threads=threads, compression_level=compress_level) as outputs:
        for number, path in enumerate(files):
            with path.open("rb") as file:
                while piece := file.read(_AT_ONCE):
                    outputs.write(number, piece)


class Result(Reads[Item]):
    """Reads that a stage made: iterate over records, or over pairs, as often as needed.

    They are in temporary files, which go when the object does.

    Args:
        folder: holds the files.
        paths: the file, or that of first and that of second mates.
        statistics: of the stage.
        interleaved: whether mates alternate in the one file.

    Attributes:
        statistics: what the command writes by ``--stats``; ``to_json()`` and ``summary()`` show it.
    """

    def __init__(
        self,
        folder: Folder,
        paths: Sequence[Path],
        statistics: Any,
        *,
        interleaved: bool = False,
    ) -> None:
        lane = ReadFiles(tuple(map(str, paths)), interleaved=interleaved)
        super().__init__([lane], phred_offset=33)  # which takes any qualities
        self.statistics = statistics
        self._folder = folder
        self._names = [path.name for path in paths]

    @property
    def _paths(self) -> list[Path]:
        return [self._folder.path / name for name in self._names]

    def batches(self) -> Iterator[tuple[RecordBatch, ...]]:
        """The records in arrays: a batch at a time, or the batches of both mates."""
        if any(path.stat().st_size for path in self._paths):
            yield from super().batches()

    def save(
        self, *paths: str | Path, threads: int = 1, compress_level: int = DEFAULT_LEVEL
    ) -> None:
        """Write the bytes that the command writes: to one file, or to one for each mate.

        Args:
            paths: names ending in ``.gz`` or ``.zst`` are compressed.
            threads: that compress.
            compress_level: 1 (fast) to 12 (small).

        Raises:
            OutputError: a file cannot be written; none was.
            UsageError: the number of paths is another one.
        """
        save_files(self._paths, paths, threads, compress_level)

    def close(self) -> None:
        """Remove the temporary files."""
        self._folder.remove()


class Merged(Result[Record]):
    """Merged reads, and the pairs that stayed.

    Attributes:
        unmerged: the pairs.
    """

    unmerged: Result[Pair]
