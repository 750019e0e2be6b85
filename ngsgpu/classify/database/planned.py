"""The targets of a planned partition, whose files must still be those that were planned."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

from ngsgpu.classify.database.database import Database
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.text.batch import first_word


def check_number(database: Database, number: int) -> None:
    """Check that there is a partition.

    Raises:
        UsageError: there is not.
    """
    if not 0 <= number < len(database.partitions):
        raise UsageError(
            f"there is no partition {number}; the database has {len(database.partitions)}, "
            "counted from 0"
        )


class PlannedTargets:
    """The targets of a planned partition's files: a sink that wants to see these and no others.

    Attributes:
        files: where there are targets of the partition.
    """

    def __init__(self, database: Database, number: int) -> None:
        targets = database.targets
        self._names = targets.names()
        self._length = targets.length
        self._wanted = targets.partition == number
        first = np.searchsorted(targets.file, np.arange(len(targets.files) + 1))
        self._span = dict(zip(targets.files, itertools.pairwise(first.tolist()), strict=True))
        self.files = [
            path for path, (begin, end) in self._span.items() if self._wanted[begin:end].any()
        ]
        self._started = dict.fromkeys(self.files, 0)
        self._open: deque[tuple[str, int]] = deque()

    def start(self, path: str, record: int, header: bytes) -> int:
        """A record begins; -1 for one of another partition."""
        begin, end = self._span[path]
        target = begin + record
        if target >= end or first_word(header) != self._names[target]:
            raise _other_references(path)
        self._started[path] = record + 1
        self._open.append((path, target))
        return target if self._wanted[target] else -1

    def finish(self, bases: int) -> None:
        """Number of bases of the first unfinished record."""
        path, target = self._open.popleft()
        if bases != self._length[target]:
            raise _other_references(path)

    def done(self) -> None:
        """All files were read."""
        for path, (begin, end) in self._span.items():
            if self._started.get(path, end - begin) != end - begin:
                raise _other_references(path)


def _other_references(path: str) -> InputError:
    return InputError(
        path,
        "the sequences have changed since the database was planned",
        "plan the database again with `ngsgpu db plan`",
    )
