"""Canonical k-mers of reads, and the k-mer spectrum: how many k-mers occur how often.

For the spectrum only canonical k-mers whose hash falls in a fixed part of the hash range are
counted. That sample holds every occurrence of the k-mers it holds, so that multiplicities are
exact and only the numbers of k-mers are scaled.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import Integer, njit
from ngsgpu.pool import working
from ngsgpu.readset.cpu import ReadArrays, plane_start, read_length
from ngsgpu.readset.readset import AmbiguousBases, ReadSet
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.kmers import roll

SAMPLED_KMERS = 1 << 22
"""Minimum number of k-mer occurrences in a sample, if the reads have that many."""

SHARE_RIGHT_OF_VALLEY = 0.2
"""Minimum fraction of k-mer occurrences to the right of a valley that separates the errors: with
5 % errors, 0.36 of all 20-mers have none."""

_NO_AMBIGUOUS = AmbiguousBases(
    np.zeros(0, dtype=np.uint32), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
)


@dataclass(frozen=True, slots=True)
class KmerSpectrum:
    """Number of distinct k-mers by multiplicity.

    Attributes:
        k: k-mer length.
        multiplicity: int64[m], the occurring multiplicities, ascending.
        count: int64[m], distinct k-mers of the sample with each multiplicity.
        sampled: one in this many k-mers was sampled.
        kmers_per_base: k-mer occurrences of the reads divided by their bases.
    """

    k: int
    multiplicity: NDArray[np.int64]
    count: NDArray[np.int64]
    sampled: int
    kmers_per_base: float

    def share_above(self, multiplicity: int) -> float:
        """Part of all k-mer occurrences that is of k-mers with a larger multiplicity."""
        occurrences = self.multiplicity * self.count
        above = int(occurrences[self.multiplicity > multiplicity].sum())
        return above / max(1, int(occurrences.sum()))

    def dense(self, limit: int = 100_000) -> NDArray[np.int64]:
        """Counts by multiplicity from 0 to the largest one, at most ``limit``."""
        if len(self.multiplicity) == 0:
            return np.zeros(1, dtype=np.int64)
        within = self.multiplicity <= limit
        counts = np.zeros(int(self.multiplicity[within].max(initial=0)) + 1, dtype=np.int64)
        counts[self.multiplicity[within]] = self.count[within]
        return counts


@njit(nogil=True, cache=True)
def canonical_kmers(
    reads: ReadArrays,
    read: Integer,
    k: int,
    canonical: NDArray[np.uint64],
    forward: NDArray[np.uint64],
) -> Integer:
    """Write the canonical and the forward k-mers of a read; return their number.

    A k-mer is a number with its first base in the highest bits; the canonical one of a k-mer and
    its reverse complement is the smaller number.
    """
    length = read_length(reads, read)
    if length < k:
        return 0
    start = plane_start(reads, read)
    words = (length + 63) >> 6
    kmer = np.uint64(0)
    complement = np.uint64(0)
    low = np.uint64(0)
    high = np.uint64(0)
    for position in range(length):
        if position & 63 == 0:
            low = np.uint64(reads.planes[start + (position >> 6)])
            high = np.uint64(reads.planes[start + words + (position >> 6)])
        code = (low & np.uint64(1)) | ((high & np.uint64(1)) << np.uint64(1))
        low >>= np.uint64(1)
        high >>= np.uint64(1)
        kmer, complement = roll(kmer, complement, code, k)
        if position >= k - 1:
            forward[position - k + 1] = kmer
            canonical[position - k + 1] = min(kmer, complement)
    return length - k + 1


@njit(nogil=True, cache=True)
def unknown_kmers(reads: ReadArrays, ambiguous: AmbiguousBases, k: int) -> int:
    """Number of k-mers that have an ambiguous base."""
    found = 0
    for entry in range(len(ambiguous.reads)):
        last = read_length(reads, ambiguous.reads[entry]) - k
        following = 0
        for i in range(ambiguous.start[entry], ambiguous.start[entry + 1]):
            position = np.int64(ambiguous.positions[i])
            begin = max(following, position - k + 1)
            following = max(following, min(position, last) + 1)
            found += max(0, following - begin)
    return found


@njit(nogil=True, cache=True)
def sample_kmers(
    reads: ReadArrays,
    ambiguous: AmbiguousBases,
    first: int,
    last: int,
    k: int,
    shift: int,
    canonical: NDArray[np.uint64],
    forward: NDArray[np.uint64],
    sample: NDArray[np.uint64],
) -> int:
    """Collect the canonical k-mers of a run of reads whose hash ends in ``shift`` zero bits.

    k-mers with a base of ``ambiguous`` are left out. Returns the number of the others, which may
    exceed the length of ``sample``.
    """
    mask = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    found = 0
    entry = np.searchsorted(ambiguous.reads, np.uint32(first))
    for read in range(first, last):
        unknown, end = 0, 0
        if entry < len(ambiguous.reads) and ambiguous.reads[entry] == read:
            unknown, end = ambiguous.start[entry], ambiguous.start[entry + 1]
            entry += 1
        known_from = 0
        for i in range(canonical_kmers(reads, read, k, canonical, forward)):
            while unknown < end and ambiguous.positions[unknown] < i + k:
                known_from = ambiguous.positions[unknown] + 1
                unknown += 1
            if i < known_from:
                continue
            if mix64(canonical[i]) & mask == np.uint64(0):
                if found < len(sample):
                    sample[found] = canonical[i]
                found += 1
    return found


def count_kmers(
    reads: ReadSet, k: int, *, threads: int = 1, exact: bool = False, known_only: bool = False
) -> KmerSpectrum:
    """Spectrum of a read set.

    Args:
        reads: the read set.
        k: k-mer length, 1 to 32.
        threads: number of threads; does not affect the result.
        exact: count every k-mer.
        known_only: leave out k-mers with ambiguous bases, which otherwise count as their
            replacements, as on the GPU.
    """
    ambiguous = reads.ambiguous if known_only else _NO_AMBIGUOUS
    occurrences = kmer_occurrences(
        reads.arrays.uniform_length, reads.arrays.lengths, reads.reads, k
    ) - unknown_kmers(reads.arrays, ambiguous, k)
    shift = 0 if exact else sampling_shift(occurrences)
    pieces = np.linspace(0, reads.reads, 8 * threads + 1).astype(np.int64).tolist()

    def collect(bounds: tuple[int, int]) -> NDArray[np.uint64]:
        canonical = np.empty(max(reads.max_length, 1), dtype=np.uint64)
        forward = np.empty_like(canonical)
        room = int((occurrences >> shift) / len(pieces) * 1.5) + 1024
        while True:
            sample = np.empty(room, dtype=np.uint64)
            found = sample_kmers(
                reads.arrays, ambiguous, *bounds, k, shift, canonical, forward, sample
            )
            if found <= room:
                return sample[:found]
            room = found

    with working(threads, collect, itertools.pairwise(pieces), name="kmers") as samples:
        sample = np.concatenate(list(samples))
    sample.sort()
    return spectrum_of(sample, k, shift, occurrences / max(1, reads.bases))


def kmer_occurrences(uniform_length: int, lengths: Any, reads: int, k: int) -> int:
    """All k-mers of some reads; ``lengths`` are NumPy's or CuPy's, where they differ.

    Args:
        uniform_length: length of all reads; negative if they differ.
        lengths: length of each read, where they differ.
        reads: number of reads.
        k: length of a k-mer.
    """
    if uniform_length >= 0:
        return reads * max(0, uniform_length - k + 1)
    return int((lengths.astype(np.int64) - (k - 1)).clip(0, None).sum())


def sampling_shift(occurrences: int) -> int:
    """How many low bits of a k-mer's hash have to be zero for it to be sampled."""
    return max(0, (occurrences // SAMPLED_KMERS).bit_length() - 1)


def spectrum_of(
    sample: NDArray[np.uint64], k: int, shift: int, kmers_per_base: float
) -> KmerSpectrum:
    """Spectrum of a sample of canonical k-mers.

    Args:
        sample: the sample, sorted.
        k: k-mer length.
        shift: as for ``sample_kmers``.
        kmers_per_base: k-mer occurrences of the reads divided by their bases.
    """
    starts = np.flatnonzero(np.diff(sample, prepend=~sample[:1]))
    multiplicities = np.diff(np.append(starts, len(sample)))
    multiplicity, count = np.unique(multiplicities, return_counts=True)
    return KmerSpectrum(
        k=k,
        multiplicity=multiplicity.astype(np.int64),
        count=count.astype(np.int64),
        sampled=1 << shift,
        kmers_per_base=kmers_per_base,
    )


def estimate_coverage(spectrum: KmerSpectrum) -> float:
    """Reads per genome position, from the main peak of the spectrum; 0 without k-mers.

    At a position covered by ``c`` reads, its k-mer occurs ``c`` x k-mers per base x the fraction of
    error-free k-mers times. Errors make k-mers left of the spectrum's first valley; the peak is
    where, right of it, most k-mer occurrences lie. Without a valley, or with hardly anything right
    of it (multiplicities below about 3, or a mixture), ``_thin_depth`` is used.
    """
    counts = spectrum.dense().astype(np.float64)
    size = len(counts)
    if size < 2 or spectrum.kmers_per_base == 0:
        return 0.0
    occurrences = counts * np.arange(size)
    total = occurrences.sum()
    smooth = _smoothed(counts)
    valley = 1
    while valley + 1 < size and smooth[valley + 1] <= smooth[valley]:
        valley += 1
    if valley + 1 >= size or occurrences[valley:].sum() < SHARE_RIGHT_OF_VALLEY * total:
        return _thin_depth(counts) / spectrum.kmers_per_base
    weighted = _smoothed(occurrences) * np.arange(size)
    peak = float(np.argmax(np.where(np.arange(size) > valley, weighted, 0)))
    for _ in range(5):
        near = slice(max(valley, int(0.6 * peak)), int(1.4 * peak) + 2)
        peak = float((occurrences[near]).sum() / max(1.0, counts[near].sum()))
    without_error = occurrences[valley:].sum() / total
    return float(peak / (spectrum.kmers_per_base * without_error))


def _thin_depth(counts: NDArray[np.float64]) -> float:
    """Multiplicity that k-mers would have without errors, from those that occur at least twice.

    Multiplicities m of a genome's k-mers are Poisson distributed, for which m p(m) = d p(m - 1)
    with the mean d. Only m up to the end of that distribution are used: k-mers of repeats, of
    plasmids and of spiked-in phages are few, but occur so often that they would dominate.
    """
    total = float((counts * np.arange(len(counts))).sum())
    if len(counts) < 4:
        # Errors and k-mers seen once are indistinguishable.
        single, double = float(counts[1]), float(counts[2:].sum())
        return 2 * double / max(1.0, single) if double else total / max(1.0, single)
    depth, last = 0.0, 3
    for _ in range(20):
        multiplicity = np.arange(3, last + 1)
        before = float(counts[2:last].sum())
        depth = float((multiplicity * counts[3 : last + 1]).sum()) / max(1.0, before)
        last = min(len(counts) - 1, max(3, math.ceil(depth + 3 * math.sqrt(depth))))
    if depth == 0:
        return total / max(1.0, float(counts.sum()))
    chances = np.cumprod(depth / np.arange(1, last + 1)) * math.exp(-depth)
    kmers = float(counts[2 : last + 1].sum()) / float(chances[1:].sum())
    repeats = float((counts[last + 1 :] * np.arange(last + 1, len(counts))).sum())
    return depth / min(1.0, (kmers * depth + repeats) / total)


def _smoothed(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over a window of a tenth of each index to either side, at least the index itself."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    reach = index // 10
    low = np.maximum(0, index - reach)
    high = np.minimum(len(values), index + reach + 1)
    return (sums[high] - sums[low]) / (high - low)
