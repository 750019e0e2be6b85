"""What each kernel has to do: bytes of device memory, operations, and the floor.

A model counts what cannot be left out, over the whole run: each array that a kernel works on
crosses the memory once, whatever is found in caches after that; operations are those on 32 or 64
bits that the kernel's comment in its ``.cu`` file counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ngsgpu.io.gpu.parse import TILE
from ngsgpu.io.text.sample import MOST_SAMPLED
from ngsgpu.minhash.gpu_memory import PASSES

BYTES_PER_SECOND = 4.3e12
"""What a copy within the memory of an H200 moves, read and written."""

OPERATIONS_PER_SECOND = 30e12
"""Integer operations of an H200."""

SORT_BITS = 8
"""Bits of the keys that a pass of a radix sort settles."""


@dataclass(frozen=True, slots=True)
class Load:
    """Sizes of a correction.

    Attributes:
        file_bytes: of all input files.
        reads: number of reads.
        bases: of all reads.
        kmer: length of the minhash tables' k-mers.
        hashes: number of tables.
        quality_bits: kept a base.
        found: candidates that the tables gave, over all anchors.
        kept: candidates that the filter kept.
    """

    file_bytes: int
    reads: int
    bases: int
    kmer: int
    hashes: int
    quality_bits: int
    found: int
    kept: int

    @classmethod
    def of(cls, statistics: Any, files: list[Path]) -> Load:
        """The sizes of a finished run, from its ``CorrectionStatistics``."""
        parameters = statistics.parameters
        return cls(
            file_bytes=sum(path.stat().st_size for path in files),
            reads=statistics.reads["total"],
            bases=statistics.reads["bases"],
            kmer=parameters["minhash"]["kmer"],
            hashes=parameters["minhash"]["hashes"],
            quality_bits=parameters["quality_bits"],
            found=statistics.candidates["found"],
            kept=statistics.candidates["kept"],
        )

    @property
    def entries(self) -> int:
        """Entries of all tables before buckets are dropped."""
        return self.reads * self.hashes

    @property
    def words(self) -> float:
        """64-bit words of a bit plane of a read."""
        return -(-self.bases // max(1, self.reads) // 64)

    @property
    def plane_bytes(self) -> float:
        """Bytes of both bit planes of all reads."""
        return self.reads * 16 * self.words

    @property
    def quality_bytes(self) -> float:
        """Bytes of the quality codes of all reads."""
        return self.bases * self.quality_bits / 8


Model = Callable[[Load], tuple[float, float]]


def sign_reads(load: Load) -> tuple[float, float]:
    """Planes once a pass, a key and a place out for each read and function; 20 a hash."""
    passes = -(-load.hashes // PASSES[0][0])
    kmers = load.bases - load.reads * (load.kmer - 1)
    return passes * load.plane_bytes + 9 * load.entries, 20.0 * kmers * load.hashes


def sort_keys(load: Load) -> tuple[float, float]:
    """Key and read number in and out for each digit of the keys."""
    digits = -(-2 * load.kmer // SORT_BITS)
    return 24.0 * digits * load.entries, 10.0 * digits * load.entries


def correct_anchors(load: Load) -> tuple[float, float]:
    """Slots, tables, reads once and results; the candidates' alignments and column masks.

    An alignment takes about 40 operations and 25 for 64 bases, the masks 40 for 32 columns. The
    columns where reads differ come on top: how many they are depends on the data, so that the
    floor leaves them out.
    """
    moved = (4 + 6) * load.entries + load.plane_bytes + load.quality_bytes + 44.0 * load.reads
    halves = -(-load.bases // max(1, load.reads) // 32)
    return moved, load.found * (40 + 25 * load.words) + load.kept * 40.0 * halves


def sample_bases(load: Load) -> tuple[float, float]:
    """The sample's letters out, once; rows that are sampled before the step grows come on top."""
    reads = min(load.reads, 2 * MOST_SAMPLED)
    return reads * load.bases / max(1, load.reads), 0.0


MODELS: dict[str, Model] = {
    # Reading: a chunk comes from the memory once, and from the cache for all but the first kernel.
    "count_lines": lambda load: (load.file_bytes, load.file_bytes),
    "sum_lines": lambda load: (8 * load.file_bytes / TILE, 10 * load.file_bytes / TILE),
    "list_lines": lambda load: (16.0 * load.reads, load.file_bytes),
    "check_records": lambda load: (12.0 * load.reads, 15.0 * load.file_bytes),
    "check_mates": lambda load: (0.0, float(load.file_bytes - 2 * load.bases)),
    "sample_bases": sample_bases,
    "pack_records": lambda load: (
        load.plane_bytes + load.quality_bytes + 4 * load.reads,
        10.0 * load.bases,
    ),
    # Of the first records only.
    "mark_scores": lambda load: (0.0, 0.0),
    # Unknown bases are few, and how often reads are gone through for them depends on the data.
    "find_neighbours": lambda load: (0.0, 0.0),
    "count_neighbours": lambda load: (load.plane_bytes, 35.0 * load.bases),
    "put_bases": lambda load: (0.0, 0.0),
    "sample_kmers": lambda load: (load.plane_bytes, 25.0 * load.bases),
    "sign_reads": sign_reads,
    "cupy.argsort": sort_keys,
    # Only where memory is scarce.
    "mark_part": lambda load: (0.0, 0.0),
    "mark_shared": lambda load: (12.0 * load.entries, 5.0 * load.entries),
    "cupy.cumsum": lambda load: (8.0 * load.entries, 1.0 * load.entries),
    "fill_table": lambda load: (33.0 * load.entries, 40.0 * load.entries),
    "find_cells": lambda load: (0.5 * load.entries, 3.0 * load.entries),
    "find_slots": lambda load: (
        130.0 * load.entries,
        20.0 * (load.bases - load.reads * (load.kmer - 1)) * load.hashes,
    ),
    "correct_anchors": correct_anchors,
}


@dataclass(frozen=True, slots=True)
class QueryLoad:
    """Sizes of a classification.

    Attributes:
        queries: reads, or pairs.
        bases: of all.
        kmers: of all windows.
        features: of all queries.
        locations: that they have, about.
        candidates: kept for each query.
        name_bytes: of all names.
        line_bytes: of the table of reads.
    """

    queries: int
    bases: int
    kmers: int
    features: int
    locations: int
    candidates: int
    name_bytes: int
    line_bytes: int

    @property
    def candidate_bytes(self) -> float:
        """Bytes of all candidates."""
        return 16.0 * self.candidates * self.queries


SECTOR = 32
"""Bytes that a look at random brings."""


def find_candidates(load: QueryLoad) -> tuple[float, float]:
    """A sector of directory and of entries a feature, one for each four locations; the lists.

    A k-mer takes about 15 operations to be made and 100 to be sorted among others, a feature 40,
    a location 60 to be sorted and ranked.
    """
    moved = SECTOR * (2 * load.features + load.locations / 4) + load.candidate_bytes
    operations = 115.0 * load.kmers + 40.0 * load.features + 60.0 * load.locations
    return moved + 12.0 * load.queries, operations


QUERY_MODELS: dict[str, Callable[[QueryLoad], tuple[float, float]]] = {
    "copy_names": lambda load: (
        load.name_bytes + 8.0 * load.queries,
        4.0 * load.name_bytes,
    ),
    "find_candidates": find_candidates,
    # How much is left to these is seen when it is run; their floors are of no use.
    "rank_longer": lambda load: (0.0, 0.0),
    "gather_longest": lambda load: (0.0, 0.0),
    "pick_longest": lambda load: (0.0, 0.0),
    "merge_candidates": lambda load: (3 * load.candidate_bytes, 0.0),
    "count_evidence": lambda load: (36.0 * load.queries, 30.0 * load.queries),
    "mark_covered": lambda load: (load.candidate_bytes, 10.0 * load.candidates * load.queries),
    "call_queries": lambda load: (
        load.candidate_bytes + 44.0 * load.queries,
        200.0 * load.queries,
    ),
    "sum_tiles": lambda load: (8.0 * load.queries / TILE_QUERIES, 0.0),
    "write_table": lambda load: (
        load.name_bytes + load.line_bytes + 36.0 * load.queries,
        20.0 * load.line_bytes,
    ),
    "write_kraken": lambda load: (
        2.0 * load.name_bytes + 72.0 * load.queries,
        20.0 * (load.name_bytes + 36.0 * load.queries),
    ),
}

TILE_QUERIES = 256
"""Queries of a block of ``call_queries``."""


@dataclass(frozen=True, slots=True)
class ExtensionLoad:
    """Sizes of an extension.

    Attributes:
        reading: sizes of what is read, and of the tables: ``kmer``, ``hashes``; ``found`` and
            ``kept`` are candidates that tasks took.
        window: bases of an end whose k-mers count.
        step: bases that an iteration appends.
        cell_bits: bits of a key that choose the cell.
        tasks: primary and auxiliary ones.
        iterations: of all tasks.
        gap_bases: that the extended reads have beside those of their reads.
    """

    reading: Load
    window: int
    step: int
    cell_bits: int
    tasks: int
    iterations: int
    gap_bases: int

    @property
    def entries(self) -> int:
        """Entries of all tables: two ends of a read in each."""
        return 2 * self.reading.entries

    @property
    def hashed(self) -> float:
        """Hashes of the k-mers of all tasks' sequences."""
        load = self.reading
        length = load.bases / max(1, load.reads)
        in_reads = self.tasks * max(0.0, length - load.kmer + 1)
        return (in_reads + self.iterations * self.step) * load.hashes

    @property
    def look_ups(self) -> float:
        """Distinct minima of the sequences' windows: two in each window and one more k-mer."""
        return self.hashed * 2 / (self.window - self.reading.kmer + 2)


def sign_ends(load: ExtensionLoad) -> tuple[float, float]:
    """Planes once a function, a key and a place out for each end; 20 a hash."""
    reading = load.reading
    moved = reading.hashes * reading.plane_bytes + 9.0 * load.entries
    return moved, 20.0 * (load.window - reading.kmer + 1) * load.entries


def sort_end_keys(load: ExtensionLoad) -> tuple[float, float]:
    """Key and number of an end in and out for each digit of the keys."""
    digits = -(-2 * load.reading.kmer // SORT_BITS)
    return 24.0 * digits * load.entries, 10.0 * digits * load.entries


def find_cells(load: ExtensionLoad) -> tuple[float, float]:
    """Keys in, a number out for each cell, which is found by halving."""
    cells = load.reading.hashes * 2.0**load.cell_bits
    return 8.0 * load.entries + 4 * cells, 10.0 * load.cell_bits * cells


def extend_pairs(load: ExtensionLoad) -> tuple[float, float]:
    """A sector of cells and of entries a look-up, those of the bases a candidate; the results.

    A hash takes 20 operations, a candidate's alignment 40 and 25 for 64 bases. Columns in which
    candidates differ, their qualities, and the search for the mate come on top: how many they are
    depends on the data, so that the floor leaves them out.
    """
    reading = load.reading
    sectors = -(-16 * reading.words // SECTOR)
    moved = SECTOR * (2 * load.look_ups + sectors * reading.found) + 2.0 * load.gap_bases
    return moved, 20 * load.hashed + reading.found * (40 + 25 * reading.words)


def _of_reading(name: str) -> Callable[[ExtensionLoad], tuple[float, float]]:
    return lambda load: MODELS[name](load.reading)


EXTENSION_MODELS: dict[str, Callable[[ExtensionLoad], tuple[float, float]]] = {
    name: _of_reading(name)
    for name in (
        "count_lines",
        "sum_lines",
        "list_lines",
        "check_records",
        "check_mates",
        "sample_bases",
        "pack_records",
        "mark_scores",
        "find_neighbours",
        "count_neighbours",
        "put_bases",
    )
} | {
    "sign_ends": sign_ends,
    # Only where memory is scarce.
    "mark_ends": lambda load: (0.0, 0.0),
    "cupy.argsort": sort_end_keys,
    "fill_ends": lambda load: (25.0 * load.entries, 10.0 * load.entries),
    "find_cells": find_cells,
    "extend_pairs": extend_pairs,
}


@dataclass(frozen=True, slots=True)
class InflateLoad:
    """Sizes of a gzip file that is inflated.

    Attributes:
        compressed: bytes of it.
        text: bytes inflated.
        batch: compressed bytes inflated at a time.
        cpu_seconds: of ISA-L on one core.
    """

    compressed: int
    text: int
    batch: int
    cpu_seconds: float


INFLATE_MODELS: dict[str, Callable[[InflateLoad], tuple[float, float]]] = {
    # A slice is searched up to its first block: how far depends on the data.
    "find_starts": lambda load: (0.0, 0.0),
    # Decoding waits for each symbol before the next: its floor is not the memory's.
    "measure_chunks": lambda load: (load.compressed, 0.0),
    "decode_chunks": lambda load: (load.compressed + 2.0 * load.text, 0.0),
    # Windows stay in the cache.
    "compose_windows": lambda load: (0.0, 0.0),
    "chain_windows": lambda load: (0.0, 0.0),
    "resolve_symbols": lambda load: (3.0 * load.text, 4.0 * load.text),
    "sum_sections": lambda load: (load.text, 2.0 * load.text),
}


def floor_seconds(moved: float, operations: float) -> float:
    """The least time that this many bytes and operations take, done at the same time."""
    return max(moved / BYTES_PER_SECOND, operations / OPERATIONS_PER_SECOND)
