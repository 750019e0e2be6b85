"""Signatures, tables and candidates in plain Python, slowly, written from docs/correct.md.

Reads are strings over ACGT; a table is a dict from key to the reads of a bucket.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

WORD = (1 << 64) - 1
COMPLEMENT = str.maketrans("ACGT", "TGCA")
DIGITS = str.maketrans("ACGT", "0123")


def mix(word: int) -> int:
    """The 64-bit finaliser of MurmurHash3, as published."""
    word ^= word >> 33
    word = word * 0xFF51AFD7ED558CCD & WORD
    word ^= word >> 33
    word = word * 0xC4CEB9FE1A85EC53 & WORD
    return word ^ word >> 33


def reverse_complement(bases: str) -> str:
    return bases.translate(COMPLEMENT)[::-1]


def number(bases: str) -> int:
    """Bases as a number, the first one in the highest digits."""
    return int(bases.translate(DIGITS), 4)


@lru_cache(maxsize=1 << 16)
def canonical(kmer: str) -> str:
    """The smaller of both strands: in the alphabet, in which bases are numbered."""
    return min(kmer, reverse_complement(kmer))


class Entry(NamedTuple):
    """A read in a bucket: where its k-mer is, and whether that is not the canonical strand."""

    read: int
    position: int
    reverse_complemented: bool


class Placement(NamedTuple):
    """How a candidate may be laid on an anchor."""

    read: int
    reverse_complemented: bool
    shift: int


Table = dict[int, list[Entry]]


def signature(bases: str, k: int, function: int) -> tuple[int, int, bool] | None:
    """Key, position and strand of the read's k-mer of smallest hash; None if it has no k-mer."""
    best = None
    for position in range(len(bases) - k + 1):
        kmer = bases[position : position + k]
        value = mix(number(canonical(kmer)) + function & WORD)
        # Of the places of the same k-mer the first counts.
        if best is None or value < best[0]:
            best = (value, position, kmer != canonical(kmer))
    return None if best is None else (best[0] % 4**k, best[1], best[2])


def make_tables(reads: list[str], k: int, hashes: int, seed: int = 0) -> list[Table]:
    """One table for each hash function; reads that are alone in their bucket are left out."""
    tables = []
    for function in range(256 * seed, 256 * seed + hashes):
        table: Table = {}
        for read, bases in enumerate(reads):
            found = signature(bases, k, function)
            if found is not None:
                table.setdefault(found[0], []).append(Entry(read, *found[1:]))
        tables.append({key: bucket for key, bucket in table.items() if len(bucket) > 1})
    return tables


def looked_at(bucket: list[Entry], index: int, window: int) -> list[Entry]:
    """The part of a bucket that its entry ``index`` looks at: as many on either side, if there."""
    if len(bucket) <= window:
        return bucket
    first = index - window // 2
    first = max(0, min(first, len(bucket) - window))
    return bucket[first : first + window]


def candidates(
    reads: list[str], tables: list[Table], anchor: int, k: int, max_bucket_size: int, window: int
) -> tuple[set[Placement], bool]:
    """Distinct placements of an anchor's candidates, and whether the anchor is crowded."""
    found = set()
    crowded = False
    for table in tables:
        for bucket in table.values():
            members = [entry.read for entry in bucket]
            if anchor not in members:
                continue
            crowded |= len(bucket) > max_bucket_size
            own = bucket[members.index(anchor)]
            for other in looked_at(bucket, members.index(anchor), window):
                if other.read == anchor:
                    continue
                reverse_complemented = own.reverse_complemented != other.reverse_complemented
                position = other.position
                if reverse_complemented:
                    position = len(reads[other.read]) - (other.position + k)
                found.add(Placement(other.read, reverse_complemented, own.position - position))
    return found, crowded
