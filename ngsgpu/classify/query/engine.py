"""Queries in, candidates out: one database, its partitions open, on the CPU.

Everything here works on a few thousand queries at a time and may be called by several threads.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.database.database import Database, Partition
from ngsgpu.classify.database.targets import Labels
from ngsgpu.classify.index.index import check_blocks
from ngsgpu.classify.params import PER_MILLION, QueryParameters, QueryRules, SketchRules
from ngsgpu.classify.params.sketch import ALL_KEYS
from ngsgpu.classify.query.cpu import (
    BLOCK_BITS,
    PartitionArrays,
    add_candidates,
    look_up,
    max_keys,
    sketch_queries,
)
from ngsgpu.classify.query.queries import CandidateArrays, Queries, QueryBlock
from ngsgpu.classify.query.scratch import Scratch
from ngsgpu.classify.sketch.cpu import expected_hits
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES
from ngsgpu.taxonomy.tree import root_only


def partition_bytes(partitions: Sequence[PartitionArrays]) -> int:
    """Size of the arrays of some partitions."""
    arrays = (array for partition in partitions for array in partition)
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))


def check_partitions(database: Database, numbers: Iterable[int]) -> None:
    """Check numbers of partitions.

    Raises:
        UsageError: the database has no such partition.
    """
    for number in numbers:
        if not 0 <= number < len(database.partitions):
            raise UsageError(
                f"there is no partition {number}; the database has {len(database.partitions)}, "
                "counted from 0"
            )


class Engine:
    """A database and how to classify with it.

    Args:
        database: the database.
        parameters: query parameters.
        partitions: numbers of the partitions to query; all by default. None are needed if
            candidates come from files.
        like: an engine of the same database, whose partitions are used as they are open, in place
            of ``partitions``.
        left_by_errors: see ``EvidenceParameters.left_by_errors``.

    Attributes:
        numbers: of the partitions.
        opened: the partitions of the database.
        partitions: their arrays, as passed to kernels.

    Raises:
        InputError: a partition cannot be opened.
        UsageError: a rank or a partition does not exist.
    """

    def __init__(
        self,
        database: Database,
        parameters: QueryParameters,
        partitions: Sequence[int] | None = None,
        like: Engine | None = None,
        *,
        left_by_errors: float = 1.0,
    ) -> None:
        self.database = database
        self.parameters = parameters
        self.taxonomy = database.taxonomy or root_only()
        self.sketch = database.parameters.sketch
        self.rules = self._rules(left_by_errors)
        self.lineages: NDArray[np.int32] = (
            self.taxonomy.ranked_lineages() if like is None else like.lineages
        )
        self.taxon_of_target = self._taxon_of_target()
        everything = range(len(database.partitions))
        self.numbers = list(everything if partitions is None else partitions)
        if like is not None:
            self.numbers = like.numbers
        check_partitions(database, self.numbers)
        self._scratch = Scratch()
        self.opened = [database.load_partition(number) for number in self.numbers]
        self.partitions: list[PartitionArrays] = (
            [self._arrays(partition) for partition in self.opened]
            if like is None
            else [own._replace(taxon=self._taxa(own.target)) for own in like.partitions]
        )

    def allowing(self, left_by_errors: float) -> Engine:
        """The same with calls for reads with other errors; see ``__init__``."""
        other = copy(self)
        other.rules = self._rules(left_by_errors)
        return other

    def _rules(self, left_by_errors: float) -> QueryRules:
        parameters = self.parameters
        lowest, highest = RANK_CODES[parameters.lowest], RANK_CODES[parameters.highest]
        scale = self.sketch.hit_scale
        return QueryRules(
            min_hits=parameters.hits_needed(self.sketch),
            near_hits=parameters.hits_near(self.sketch),
            few_hits=parameters.few_hits * self.sketch.kept // ALL_KEYS,
            many_hits=parameters.hits_many(self.sketch),
            unit=scale.unit,
            chance=scale.chance,
            difference=round(parameters.hit_difference * PER_MILLION),
            confidence=round(parameters.least_share(self.sketch) * left_by_errors * PER_MILLION),
            species_confidence=round(parameters.species_confidence * PER_MILLION),
            insert_size=parameters.insert_size,
            lowest=lowest,
            highest=highest,
            best_alone=int(parameters.ties == "first" and self.database.taxonomy is None),
        )

    def _taxon_of_target(self) -> NDArray[np.int32]:
        """Each target's lowest taxon that is not below the lowest rank; empty for sequences."""
        if self.rules.lowest == 0:
            return np.zeros(0, dtype=np.int32)
        node = self.database.targets.node
        above = self.lineages[node, self.rules.lowest :]
        has = above >= 0
        taxon = above[np.arange(len(node)), has.argmax(axis=1)]
        return np.where((node >= 0) & has.any(axis=1), taxon, np.int32(-1)).astype(np.int32)

    def _arrays(self, partition: Partition) -> PartitionArrays:
        first_window = partition.first_window
        blocks = np.arange(0, int(first_window[-1]) + 1, 1 << BLOCK_BITS)
        block_target = np.searchsorted(first_window, blocks, side="right") - 1
        return PartitionArrays(
            directory=partition.index.directory,
            entries=partition.index.entries,
            locations=partition.index.locations,
            bits=partition.index.bits,
            first_window=first_window,
            block_target=np.clip(block_target, 0, len(partition.target) - 1).astype(np.int32),
            target=partition.target,
            taxon=self._taxa(partition.target),
            sums=partition.sums,
            checked=_shared(len(partition.sums)),
        )

    def _taxa(self, target: NDArray[np.int32]) -> NDArray[np.int32]:
        """The taxa of a partition's targets; empty for sequences."""
        taxon = self.taxon_of_target
        return taxon[target] if len(taxon) > 0 else taxon

    @cached_property
    def labels(self) -> Labels:
        """What calls are called."""
        targets = self.database.targets
        return Labels(
            taxonomy=self.taxonomy,
            target_taxon=targets.node,
            target_bytes=targets.name_bytes,
            target_start=targets.name_start,
            target_length=targets.length,
            sketch=self.sketch,
        )

    @cached_property
    def node_rank(self) -> NDArray[np.uint8]:
        """uint8[nodes], in memory of our own."""
        return np.array(self.taxonomy.rank)

    @cached_property
    def target_node(self) -> NDArray[np.int32]:
        """int32[targets], each target's taxon or -1."""
        return np.array(self.database.targets.node)

    def expected_hits(self, block: QueryBlock) -> NDArray[np.int64]:
        """Hits of queries in an identical sequence, int64[n]; see ``sketch.cpu.expected_hits``."""
        sketch = self.sketch
        return expected_hits(block.length1, block.length2, sketch.kmer, sketch.hit_scale)

    def find_candidates(self, queries: Queries) -> QueryBlock:
        """Find the best candidates of queries in all partitions.

        Raises:
            InputError: a partition is damaged.
        """
        rules = self.sketch.rules
        first, second = queries.first, queries.second
        room = max_keys(first.length, rules) + max_keys(second.length, rules)
        longest = max(int(first.length.max(initial=0)), int(second.length.max(initial=0)))
        codes = self._scratch.array("codes", longest, np.uint8)
        keys = self._scratch.array("keys", room, np.uint32)
        key_start = np.empty(len(queries) + 1, dtype=np.int64)
        sketch_queries(first, second, rules, codes, keys, key_start)
        features = np.diff(key_start)
        length2 = second.length if queries.paired else np.zeros(len(queries), dtype=np.int32)
        bases = first.length.astype(np.int64) + length2
        span = _spans(np.maximum(bases, self.rules.span_of(paired=queries.paired)), rules)
        location = self._scratch.array("location", int(key_start[-1]), np.int64)
        count = self._scratch.array("count", int(key_start[-1]), np.int64)
        ends = np.empty(int(features.max(initial=0)), dtype=np.int64)
        best = CandidateArrays.empty(len(queries), self.parameters.candidates)
        for partition in self.partitions:
            if not blocks_are_whole(keys[: key_start[-1]], partition):
                raise next(own.damage() for own in self.opened if own.sums is partition.sums)
            most = int(look_up(keys, key_start, partition, location, count))
            values = self._scratch.array("values", 4 * most, np.uint32).reshape(4, most)
            add_candidates(
                key_start, location, count, span, rules.smer > 0, partition, values, ends, best
            )
        return QueryBlock(
            names=first.data,
            name_start=queries.name_start,
            name_end=queries.name_end,
            length1=first.length,
            length2=length2,
            features=features,
            candidates=best,
            paired=queries.paired,
        )


def _spans(bases: NDArray[np.int64], rules: SketchRules) -> NDArray[np.int64]:
    """Maximum windows of a reference sequence in which the features of queries begin.

    Args:
        bases: int64[n], of the queries, or of their inserts.
        rules: windows and features.
    """
    if rules.smer == 0:
        return 2 + bases // rules.stride
    kmers = np.maximum(bases - (rules.kmer - 1), 1)
    return np.asarray(1 + (kmers + (rules.stride - 2)) // rules.stride, dtype=np.int64)


def _shared(size: int) -> NDArray[np.uint8]:
    """Zeros, uint8[size], that all copies (forks) of this process read and write."""
    return np.frombuffer(mmap.mmap(-1, max(1, size)), dtype=np.uint8, count=size)


def blocks_are_whole(keys: NDArray[np.uint32], partition: PartitionArrays) -> bool:
    """Whether the index blocks that keys lead to are undamaged."""
    return len(partition.sums) == 0 or check_blocks(
        keys, partition.directory, partition.entries, partition.locations, partition.sums,
        partition.checked,
    )  # fmt: skip
