"""Numba kernels of the spectrum correction: the reference that every other backend must equal."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.readset import AmbiguousBases, ReadArrays
from ngsgpu.spectrum.kmers.reads import (
    ReadSpace,
    find_levels,
    is_clean,
    load_codes,
    load_scores,
    longest_run,
)
from ngsgpu.spectrum.kmers.solid import Solid
from ngsgpu.spectrum.params import SearchRules
from ngsgpu.spectrum.rules.search import search_read
from ngsgpu.spectrum.rules.voting import try_all, vote_read
from ngsgpu.spectrum.rules.walk import WalkSpace

# Classes of reads.
ERROR_FREE: Final = 0
FIXED: Final = 1
TRIMMED: Final = 2
DISCARDED: Final = 3
CLASSES: Final = ("error_free", "fixed", "trimmed", "discarded")

# Numbers of the rules.
SEARCH: Final = 0
VOTING: Final = 1
EXHAUSTIVE: Final = 2


class Workspace(NamedTuple):
    """What a thread needs.

    Attributes:
        read: the read.
        walk: ways through it.
        votes: int32[length, 4].
    """

    read: ReadSpace
    walk: WalkSpace
    votes: NDArray[np.int32]

    @classmethod
    def allocate(cls, max_length: int) -> Self:
        """For reads of a length."""
        size = max(1, max_length)
        return cls(
            ReadSpace.allocate(size), WalkSpace.allocate(size), np.zeros((size, 4), dtype=np.int32)
        )


class Results(NamedTuple):
    """Decisions on a range of reads.

    Attributes:
        classes: uint8[reads], see above.
        begin: int32[reads], first base of the longest part whose k-mers are all solid.
        end: int32[reads], its end; equal to ``begin`` without.
        counts: uint16[reads], number of edits.
        edits: uint32, position << 2 | base; has room for all bases.
    """

    classes: NDArray[np.uint8]
    begin: NDArray[np.int32]
    end: NDArray[np.int32]
    counts: NDArray[np.uint16]
    edits: NDArray[np.uint32]

    @classmethod
    def allocate(cls, reads: int, bases: int) -> Self:
        """A workspace for a number of reads and bases."""
        return cls(
            np.zeros(reads, dtype=np.uint8),
            np.zeros(reads, dtype=np.int32),
            np.zeros(reads, dtype=np.int32),
            np.zeros(reads, dtype=np.uint16),
            np.zeros(bases, dtype=np.uint32),
        )


@njit(nogil=True, cache=True)
def correct_reads(
    reads: ReadArrays,
    ambiguous: AmbiguousBases,
    scores: NDArray[np.uint8],
    solid: Solid,
    rules: SearchRules,
    rule: Integer,
    mutations: Integer,
    trim: bool,
    first: Integer,
    last: Integer,
    work: Workspace,
    results: Results,
) -> Integer:
    """Correct reads ``first`` up to ``last``; return the number of edits.

    Reads shorter than a k-mer are left as they are and count as free of errors. With the papers'
    rules only fixed reads change, or also what is left of trimmed ones (``trim``).
    """
    k = rules.kmer
    edits = 0
    read = work.read
    for number in range(first, last):
        own = number - first
        length = load_codes(reads, ambiguous, number, read.original)
        kmers = length - k + 1
        results.begin[own] = 0
        results.end[own] = length
        results.counts[own] = 0
        results.classes[own] = ERROR_FREE
        if kmers < 1 or (rule == SEARCH and is_clean(solid, k, read.original, length)):
            continue
        load_scores(reads, scores, number, read.original, length, read.scores)
        found = find_levels(solid, k, read.original, 0, length, read.before)
        if found == kmers:
            continue
        read.codes[:length] = read.original[:length]
        read.levels[:kmers] = read.before[:kmers]
        if rule == SEARCH:
            found = search_read(solid, rules, read, length, work.walk)
        elif rule == VOTING:
            found = vote_read(solid, k, mutations, read, length, work.votes)
        else:
            found = try_all(solid, k, mutations, read, length, found, work.walk.level)
        if found == kmers:
            results.classes[own] = FIXED
        else:
            results.classes[own] = TRIMMED if found else DISCARDED
            run, size = longest_run(read.levels, kmers)
            results.begin[own] = run
            results.end[own] = run + size + k - 1 if size else run
        if rule == SEARCH or found == kmers or trim:
            before = edits
            begin, end = (results.begin[own], results.end[own]) if trim else (0, length)
            for i in range(begin, end):
                if read.codes[i] != read.original[i]:
                    results.edits[edits] = (i << 2) | np.int64(read.codes[i])
                    edits += 1
            results.counts[own] = edits - before
    return edits
