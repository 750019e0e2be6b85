"""Merging the candidates that partitions found, block by block, from their files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.query.candidate_file import CandidateFile
from ngsgpu.classify.query.cpu import merge_candidates
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import QueryBlock
from ngsgpu.errors import InputError, UsageError


def check_files(files: Sequence[CandidateFile], engine: Engine) -> str:
    """Check that files of candidates belong together and to the database.

    Returns:
        The name of their sample.

    Raises:
        InputError: a file belongs to something else.
        UsageError: files are missing.
    """
    if not files:
        raise UsageError("no candidate files given")
    parameters = engine.parameters
    wanted = {
        "database": (engine.database.digest, "another database"),
        "candidates": (parameters.candidates, "another `candidates`"),
        "insert_size": (parameters.insert_size, "another `insert_size`"),
        "lowest": (parameters.lowest, "another `lowest`"),
        "by_model": (engine.by_model, "other rules of calls (`metacache`)"),
        "sample": (files[0].header.sample, f"another sample than {files[0].path}"),
    }
    seen: dict[int, str] = {}
    for file in files:
        for name, (value, what) in wanted.items():
            found = getattr(file.header, name)
            if found != value:
                shown = "" if name in ("database", "by_model") else f" ({found}, here {value})"
                raise InputError(
                    file.path, f"was made with {what}{shown}", "merge files of the same run"
                )
        number = file.header.partition
        if number in seen:
            raise InputError(
                file.path,
                f"is of partition {number}, as is {seen[number]}",
                "give one file per partition",
            )
        seen[number] = file.path
    missing = sorted(set(range(len(engine.database.partitions))) - set(seen))
    if missing:
        numbers = ", ".join(map(str, missing))
        raise UsageError(f"the candidates of partition {numbers} are missing; give all of them")
    return files[0].header.sample


def merged_blocks(
    files: Sequence[CandidateFile], engine: Engine, advance: Callable[[int], None]
) -> Iterator[list[QueryBlock]]:
    """The same queries of all files, in blocks of whatever length.

    Args:
        files: candidates of the same reads, a file per partition.
        engine: the classifier, which knows the targets.
        advance: called with the number of bytes read.

    Raises:
        InputError: the files are not of the same reads.
    """
    cursors = [_Cursor(file, engine) for file in files]
    while True:
        left = [cursor.left() for cursor in cursors]
        count = min(left)
        if count == 0:
            if max(left) > 0:
                short = files[left.index(0)].path
                longer = files[left.index(max(left))].path
                raise _other_reads(short, f"has fewer reads than {longer}")
            return
        blocks = [cursor.take(count) for cursor in cursors]
        first = _identity(blocks[0])
        for file, block in zip(files[1:], blocks[1:], strict=True):
            if not np.array_equal(first, _identity(block)):
                raise _other_reads(file.path, f"has other reads than {files[0].path}")
        yield blocks
        advance(count)


def _other_reads(path: str, cause: str) -> InputError:
    return InputError(path, cause, "merge files made from the same reads")


def join_blocks(blocks: list[QueryBlock]) -> QueryBlock:
    """One block with the best candidates of all."""
    best = blocks[0].candidates.copy()
    for block in blocks[1:]:
        merge_candidates(block.candidates, best)
    return replace(blocks[0], candidates=best)


def _identity(block: QueryBlock) -> NDArray[np.uint8]:
    """Names of queries, which follow each other in one array, and lengths."""
    ends = (block.name_end - block.name_start).astype(np.int32)
    names = block.names[int(block.name_start[0]) : int(block.name_end[-1])]
    numbers = [array.view(np.uint8) for array in (ends, block.length1, block.length2)]
    return np.concatenate([names, *numbers])


class _Cursor:
    """Reading position in a file of candidates."""

    def __init__(self, file: CandidateFile, engine: Engine) -> None:
        self._blocks = file.blocks(engine.taxon_of_target, engine.database.windows)
        self._block: QueryBlock | None = None
        self._used = 0

    def left(self) -> int:
        """Queries of the block that were not taken yet; 0 at the end of the file."""
        if self._block is None or self._used == len(self._block):
            self._block = next(self._blocks, None)
            self._used = 0
        return 0 if self._block is None else len(self._block) - self._used

    def take(self, count: int) -> QueryBlock:
        """The next queries, no more than are left."""
        block = self._block
        assert block is not None
        begin = self._used
        self._used += count
        return block.part(begin, self._used)
