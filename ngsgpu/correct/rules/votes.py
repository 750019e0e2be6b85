"""Votes of an anchor's MSA on its candidates, as hashes of their corrected sequences."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import Alignments
from ngsgpu.align.alleles import carries_allele
from ngsgpu.align.rules import Rules
from ngsgpu.correct.forests import features
from ngsgpu.correct.forests.forest import NO_FOREST, accepts
from ngsgpu.correct.workspace import EDIT_BITS, Workspace
from ngsgpu.jit import Integer, njit
from ngsgpu.readset import ReadArrays
from ngsgpu.readset.cpu import plane_start, quality_code, quality_start, read_length
from ngsgpu.sequence.codec import base_at, popcount, set_base
from ngsgpu.sequence.hashing import mix64


@njit(nogil=True, cache=True)
def hash_sequence(planes: NDArray[np.uint64], start: int, length: Integer) -> np.uint64:
    """64-bit hash of a read's bases; never 0, which means no hash."""
    value = np.uint64(length)
    for word in range(2 * ((length + 63) >> 6)):
        value = mix64(value ^ planes[start + word])
    return value if value != np.uint64(0) else np.uint64(1)


@njit(nogil=True, cache=True)
def edited_hash(
    work: Workspace, reads: ReadArrays, anchor: Integer, edit: Integer, end: Integer
) -> np.uint64:
    """Hash of an anchor's bases with the edits from ``edit`` to ``end``."""
    length = read_length(reads, anchor)
    start = plane_start(reads, anchor)
    words = (length + 63) >> 6
    for word in range(2 * words):
        work.consensus[word] = reads.planes[start + word]
    for i in range(edit, end):
        edit_made = work.edits[i] & EDIT_BITS
        set_base(work.consensus, 0, words, edit_made >> 2, edit_made & 3)
    return hash_sequence(work.consensus, 0, length)


@njit(nogil=True, cache=True)
def keep_by_forest(
    work: Workspace,
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    length: Integer,
    candidates: Alignments,
    entry: Integer,
) -> None:
    """Put back into ``work.consensus`` the bases of a candidate that its forest does not change."""
    read = candidates.read[entry]
    own_length = read_length(reads, read)
    start = plane_start(reads, read)
    quality = quality_start(reads, read)
    words = (own_length + 63) >> 6
    differing = np.int64(0)
    for word in range(words):
        differing += np.int64(
            popcount(
                (work.consensus[word] ^ reads.planes[start + word])
                | (work.consensus[words + word] ^ reads.planes[start + words + word])
            )
        )
    if differing == 0:
        return
    shift = candidates.shift[entry]
    reverse_complemented = candidates.reverse_complemented[entry]
    features.describe_candidate(
        length, own_length, shift, candidates.weight[entry], differing, work.features
    )
    for word in range(words):
        left = (work.consensus[word] ^ reads.planes[start + word]) | (
            work.consensus[words + word] ^ reads.planes[start + words + word]
        )
        while left:
            lowest = left & (~left + np.uint64(1))
            left ^= lowest
            position = 64 * word + np.int64(popcount(lowest - np.uint64(1)))
            offset = own_length - 1 - position if reverse_complemented else position
            own = base_at(reads.planes, start, words, position)
            features.describe_candidate_position(
                rules,
                work.columns,
                length,
                own_length,
                offset + shift + rules.margin,
                position,
                3 - own if reverse_complemented else own,
                weights[quality_code(reads, quality, position)],
                work.forests.coverage,
                work.features,
            )
            base = base_at(work.consensus, 0, words, position)
            features.record(work.samples, 1, read, position, base, work.features)
            if not accepts(work.forests.candidate, work.features, work.forests.candidate.threshold):
                set_base(work.consensus, 0, words, position, own)


@njit(nogil=True, cache=True)
def vote_for_candidates(
    work: Workspace,
    reads: ReadArrays,
    weights: NDArray[np.int32],
    rules: Rules,
    length: Integer,
    candidates: Alignments,
    count: Integer,
    vote: Integer,
) -> Integer:
    """Vote for the consensus of each candidate that hardly reaches beyond the anchor.

    Not for those that carry an allele, for which the consensus is not the truth.
    """
    consensus = work.columns.consensus
    by_forest = work.forests.candidate.threshold != NO_FOREST
    for i in range(count):
        read = candidates.read[i]
        own_length = read_length(reads, read)
        shift = candidates.shift[i]
        if not candidates.kept[i] or shift < -rules.margin:
            continue
        if shift + own_length > length + rules.margin:
            continue
        if carries_allele(reads, rules, candidates, i, work.columns):
            continue
        words = (own_length + 63) >> 6
        for word in range(2 * words):
            work.consensus[word] = 0
        reverse_complemented = candidates.reverse_complemented[i]
        for aligned_offset in range(own_length):
            base = consensus[aligned_offset + shift + rules.margin]
            position = own_length - 1 - aligned_offset if reverse_complemented else aligned_offset
            code = np.uint64(3 - base if reverse_complemented else base)
            bit = np.uint64(position & 63)
            work.consensus[position >> 6] |= (code & np.uint64(1)) << bit
            work.consensus[words + (position >> 6)] |= (code >> np.uint64(1)) << bit
        if by_forest:
            keep_by_forest(work, reads, weights, rules, length, candidates, i)
        work.vote_reads[vote] = read
        work.vote_hashes[vote] = hash_sequence(work.consensus, 0, own_length)
        vote += 1
    return vote
