"""Counts of a sample of canonical k-mers, gathered batch by batch in bounded memory.

As in ``ngsgpu.readset.kmers``, a k-mer is sampled if its hash ends in zero bits, so that a sample
holds every occurrence of its k-mers. When the distinct k-mers outgrow their room, one more bit has
to be zero, and about half of them go. K-mers with N are none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit
from ngsgpu.sequence.codec import AMBIGUOUS, CODES
from ngsgpu.sequence.hashing import mix64
from ngsgpu.sequence.kmers import roll


@njit(nogil=True, cache=True)
def sample_text(
    codes: NDArray[np.uint8],
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    length: NDArray[np.int64],
    k: int,
    shift: int,
    sample: NDArray[np.uint64],
) -> int:
    """Collect the canonical k-mers of texts whose hash ends in ``shift`` zero bits.

    Args:
        codes: uint8[256], letter to code.
        data: uint8, letters.
        start: int64[n], first letter of each text.
        length: int64[n].
        k: k-mer length, 1 to 32.
        shift: low bits of the hash that are zero.
        sample: uint64, room for the k-mers.

    Returns:
        Their number, which may exceed the length of ``sample``.
    """
    chosen = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    found = 0
    for i in range(len(start)):
        forward = complement = np.uint64(0)
        run = 0
        for p in range(start[i], start[i] + length[i]):
            code = np.uint64(codes[data[p]])
            if code == np.uint64(AMBIGUOUS):
                run = 0
                continue
            forward, complement = roll(forward, complement, code, k)
            run += 1
            if run >= k:
                canonical = min(forward, complement)
                if mix64(canonical) & chosen == np.uint64(0):
                    if found < len(sample):
                        sample[found] = canonical
                    found += 1
    return found


class SampleCounts:
    """Distinct k-mers of a sample and how often each occurs.

    Args:
        k: k-mer length, 1 to 32.
        room: most distinct k-mers; 0 for all.

    Attributes:
        shift: one in ``2 ** shift`` k-mers is sampled.
        kmers: uint64[n], ascending.
        counts: int64[n].
    """

    def __init__(self, k: int, room: int = 0) -> None:
        self.k = k
        self.shift = 0
        self.kmers = np.zeros(0, dtype=np.uint64)
        self.counts = np.zeros(0, dtype=np.int64)
        self._room = room
        self._pending: list[NDArray[np.uint64]] = []

    def add(
        self, data: NDArray[np.uint8], start: NDArray[np.int64], length: NDArray[np.int64]
    ) -> None:
        """Count the k-mers of some texts; arguments as in ``sample_text``.

        Args:
            data: bytes that contain the texts.
            start: first byte of each text, int64[n].
            length: length of each text, int64[n].
        """
        room = int(length.sum() >> self.shift) + 1024
        while True:
            sample = np.empty(room, dtype=np.uint64)
            found = sample_text(CODES, data, start, length, self.k, self.shift, sample)
            if found <= room:
                break
            room = found
        self._pending.append(sample[:found].copy())
        if sum(map(len, self._pending)) >= max(1 << 22, len(self.kmers)):
            self.settle()

    def settle(self) -> None:
        """Merge what was added with the counts, and thin the sample if it outgrew its room."""
        if self._pending:
            kmers = np.concatenate([self.kmers, *self._pending])
            counts = np.ones(len(kmers), dtype=np.int64)
            counts[: len(self.counts)] = self.counts
            order = np.argsort(kmers, kind="stable")
            kmers, counts = kmers[order], counts[order]
            first = np.flatnonzero(np.diff(kmers, prepend=~kmers[:1]))
            self.kmers = kmers[first]
            self.counts = np.add.reduceat(counts, first) if len(first) else counts
            self._pending = []
        while self._room and len(self.kmers) > self._room:
            self.thin(self.shift + 1)

    def thin(self, shift: int) -> None:
        """Keep the k-mers whose hash ends in ``shift`` zero bits."""
        self.shift = shift
        chosen = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
        kept = (_hashes(self.kmers) & chosen) == 0
        self.kmers, self.counts = self.kmers[kept], self.counts[kept]

    def of(self, kmers: NDArray[np.uint64]) -> NDArray[np.int64]:
        """How often each of some k-mers occurs, int64[n]."""
        at = np.searchsorted(self.kmers, kmers)
        found = np.zeros(len(kmers), dtype=np.int64)
        within = np.flatnonzero(at < len(self.kmers))
        same = within[self.kmers[at[within]] == kmers[within]]
        found[same] = self.counts[at[same]]
        return found


@njit(nogil=True, cache=True)
def _hash_all(kmers: NDArray[np.uint64], hashes: NDArray[np.uint64]) -> None:
    for i in range(len(kmers)):
        hashes[i] = mix64(kmers[i])


def _hashes(kmers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashes = np.empty_like(kmers)
    _hash_all(kmers, hashes)
    return hashes
