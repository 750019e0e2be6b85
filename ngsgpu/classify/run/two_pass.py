"""Between two passes over queries: their blocks, in memory or a file, and what the first found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.call.posterior import Weights
from ngsgpu.classify.query.candidate_file import (
    END_BLOCK,
    CandidateFile,
    CandidateHeader,
    compact_block,
    encode_block,
)
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.queries import QueryBlock
from ngsgpu.device.memory import available_memory
from ngsgpu.errors import output_error
from ngsgpu.io.paths import nameless_file, temporary_place

SHARE_OF_MEMORY: Final = 0.25

MOST_QUERIES: Final = 1 << 15
MOST_BASES: Final = 1 << 24
"""Of the queries of a group, if it has several blocks."""


@dataclass(frozen=True, slots=True)
class FirstPass:
    """What a first pass over all reads found; None: nothing.

    Attributes:
        kept: uint8[targets], 0 for those dropped by the coverage filter.
        weights: the fit of the sample.
    """

    kept: NDArray[np.uint8] | None = None
    weights: Weights | None = None


class TwoPass:
    """Stores blocks in order; use it as a context manager.

    Args:
        header: of the file, if one is needed.
    """

    def __init__(self, header: CandidateHeader) -> None:
        self._header = header
        self._left = int(available_memory() * SHARE_OF_MEMORY)
        # A block, or None for the next one of the file.
        self._order: list[QueryBlock | None] = []
        self._file = nameless_file()

    def __enter__(self) -> TwoPass:
        return self

    def __exit__(self, *error: object) -> None:
        self._order.clear()
        self._file.close()

    def prepare(self, block: QueryBlock) -> QueryBlock | bytes:
        """The part of a block to store; thread-safe."""
        return compact_block(block) if self._left > 0 else encode_block(block)

    def keep(self, kept: QueryBlock | bytes) -> None:
        """Keep the next block.

        Raises:
            OutputError: the folder of temporary files is full.
        """
        if isinstance(kept, QueryBlock):
            self._left -= kept.nbytes
            self._order.append(kept)
            return
        self._order.append(None)
        self._write(kept)

    def _write(self, data: bytes) -> None:
        try:
            if self._file.tell() == 0:
                self._file.write(self._header.line())
            self._file.write(data)
        except OSError as error:
            raise output_error(temporary_place(), error) from error

    def groups(self, engine: Engine) -> Iterator[list[QueryBlock]]:
        """All blocks, in order, several at a time; can be called once.

        Calls take a fiftieth of the time of look-ups: threads would wait for each other more than
        work on single blocks.
        """
        group: list[QueryBlock] = []
        queries = bases = 0
        for block in self.blocks(engine):
            if group and (
                queries + len(block) > MOST_QUERIES
                or bases + block.bases > MOST_BASES
                or block.paired != group[0].paired
            ):
                yield group
                group, queries, bases = [], 0, 0
            group.append(block)
            queries += len(block)
            bases += block.bases
        if group:
            yield group

    def blocks(self, engine: Engine) -> Iterator[QueryBlock]:
        """All blocks, in order; can be called once."""
        self._write(END_BLOCK)
        self._file.seek(0)
        file = CandidateFile("the temporary file of candidates", self._file)
        in_file = file.blocks(engine.taxon_of_target, engine.database.windows)
        for place, block in enumerate(self._order):
            self._order[place] = None
            yield next(in_file) if block is None else block
