"""Records of compressed inputs, kept in memory so that the second reading need not inflate them."""

from __future__ import annotations

from collections.abc import Iterator

from ngsgpu.io.compress.source import is_compressed
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch

Batches = list[tuple[RecordBatch, ...]]


class KeptRecords:
    """The batches of a first reading, lane by lane, as far as there is room for them.

    Args:
        room: bytes of memory that they may take.

    Attributes:
        nbytes: bytes that they take.
        is_full: whether a lane was not kept for want of room.
    """

    def __init__(self, room: int) -> None:
        self.nbytes = 0
        self.is_full = False
        self._room = room
        self._lanes: dict[tuple[str, ...], Batches] = {}

    def keep(
        self, lane: ReadFiles, batches: Iterator[tuple[RecordBatch, ...]]
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Pass on the batches of a lane, and keep them if one of its files is compressed."""
        if not any(map(is_compressed, lane.inputs)):
            yield from batches
            return
        before = self.nbytes
        kept: Batches | None = []
        for mates in batches:
            if kept is not None:
                self.nbytes += sum(batch.nbytes for batch in mates)
                kept.append(mates)
                if self.nbytes > self._room:
                    kept, self.nbytes, self.is_full = None, before, True
            yield mates
        if kept is not None:
            self._lanes[lane.inputs] = kept

    def take(self, lane: ReadFiles) -> Iterator[tuple[RecordBatch, ...]] | None:
        """The batches of a lane, each forgotten when it is taken; None if they were not kept."""
        kept = self._lanes.pop(lane.inputs, None)
        if kept is None:
            return None
        return _taken(kept)

    def drop(self) -> None:
        """Forget all batches: their memory is needed."""
        self._lanes.clear()
        self.nbytes = 0


def _taken(kept: Batches) -> Iterator[tuple[RecordBatch, ...]]:
    kept.reverse()
    while kept:
        yield kept.pop()
