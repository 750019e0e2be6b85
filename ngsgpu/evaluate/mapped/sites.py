"""Positions at which the reads' genome differs from the reference, or differs in itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.mapped.params import Thresholds
from ngsgpu.evaluate.truth.reference import Reference

NEAR_GAP = 5
"""Bases to either side of an indel allele at which reads that end there are misaligned."""

_POSITIONS = 1 << 22


@dataclass(frozen=True, slots=True)
class Sites:
    """Variant sites.

    Attributes:
        number: int32[positions], number of the site at each position, -1 elsewhere.
        position: int64[sites], ascending.
        known: int, sites that were given.
        homozygous: int, sites whose commonest base is not the reference's.
        alleles: int64[sites, 2], the two alleles of heterozygous sites, -1 at others.
        site: int64[variants], site of each minority variant.
        base: int64[variants], its base.
        frequency: float64[variants], its fraction of the bases.
    """

    number: NDArray[np.int32]
    position: NDArray[np.int64]
    known: int
    homozygous: int
    alleles: NDArray[np.int64]
    site: NDArray[np.int64]
    base: NDArray[np.int64]
    frequency: NDArray[np.float64]

    @property
    def heterozygous(self) -> NDArray[np.int64]:
        """Numbers of the heterozygous sites."""
        return np.flatnonzero(self.alleles[:, 0] >= 0)


def read_known(path: str | Path, genome: Reference) -> NDArray[np.int64]:
    """Positions of the variants of a VCF or BCF file, with all bases of their REF.

    Raises:
        InputError: pysam cannot read it, or a variant is not in the reference.
    """
    import pysam

    positions: list[int] = []
    try:
        with pysam.VariantFile(str(path)) as file:
            for record in file:
                number = genome.numbers.get(record.chrom, -1)
                begin = int(genome.start[number]) + record.start
                end = begin + record.rlen
                if number < 0 or end > genome.start[number + 1]:
                    raise InputError(
                        path,
                        f"the variant {record.chrom}:{record.pos} is not in the reference",
                        "give the variants of this reference, with the same names",
                    )
                positions.extend(range(begin, end))
    except (OSError, ValueError) as error:
        raise InputError(path, f"pysam cannot read it ({error})", "check the file") from error
    return np.unique(np.array(positions, dtype=np.int64))


def _near_gaps(
    counts: NDArray[np.uint32], gaps: NDArray[np.uint32], limits: Thresholds
) -> NDArray[np.bool_]:
    """Positions up to ``NEAR_GAP`` away from one at which reads have an indel allele."""
    near = np.zeros(len(counts), dtype=np.bool_)
    found = np.flatnonzero(gaps >= 3)
    around = [counts[np.maximum(found - step, 0)].sum(axis=1, dtype=np.int64) for step in (0, 1)]
    depth = np.maximum(*around) + gaps[found]
    for position in found[gaps[found] >= limits.allele_fraction * depth].tolist():
        near[max(0, position - NEAR_GAP) : position + NEAR_GAP + 1] = True
    return near


def call_sites(
    genome: Reference,
    counts: NDArray[np.uint32],
    agreeing: NDArray[np.uint32],
    gaps: NDArray[np.uint32],
    known: NDArray[np.int64],
    limits: Thresholds,
) -> Sites:
    """Variant sites of the raw reads.

    A position is one if it is known, or if at least three of its bases, and ``allele_fraction`` of
    them, differ from the reference in the same way, or if it has two alleles with ``min_depth`` and
    ``allele_fraction``, or a minority variant: a base other than the commonest one, seen by both
    mates of ``min_pairs`` pairs, with ``min_frequency``. Of equally common bases the first in
    the order ACGT is the commoner one.

    Args:
        genome: the reference.
        counts: uint32[positions, 4], bases of the raw reads.
        agreeing: uint32[positions, 4], pairs whose mates agree.
        gaps: uint32[positions], reads with a gap there.
        known: int64, positions that were given.
        limits: the thresholds.
    """
    near_gap = _near_gaps(counts, gaps, limits)
    found: list[NDArray[np.int64]] = []
    alleles, site, base, frequency = [], [], [], []
    homozygous = 0
    for first in range(0, len(counts), _POSITIONS):
        part = slice(first, first + _POSITIONS)
        own = counts[part].astype(np.int64)
        depth = own.sum(axis=1)
        other = own.copy()
        truth = genome.codes[part]
        rows = np.flatnonzero(truth < 4)
        other[rows, truth[rows]] = 0
        order = np.argsort(-own, axis=1, kind="stable")
        ranked = np.take_along_axis(own, order, axis=1)
        enough = limits.allele_fraction * depth
        is_other = (other.max(axis=1) >= np.maximum(3, enough)) & (truth < 4)
        is_near_gap = near_gap[part]
        is_two = (depth >= limits.min_depth) & (ranked[:, 1] >= enough) & ~is_near_gap
        minor = (agreeing[part] >= limits.min_pairs) & (
            own >= np.maximum(1, limits.min_frequency * depth)[:, None]
        )
        np.put_along_axis(minor, order[:, :1], False, axis=1)
        minor &= ~is_near_gap[:, None]
        is_known = np.zeros(len(own), dtype=np.bool_)
        is_known[known[(known >= first) & (known < first + len(own))] - first] = True
        chosen = np.flatnonzero(is_other | is_two | is_near_gap | minor.any(axis=1) | is_known)
        homozygous += int((is_other[chosen] & (order[chosen, 0] != truth[chosen])).sum())
        pair = np.where(is_two[chosen, None], order[chosen, :2], -1)
        at, letter = np.nonzero(minor[chosen])
        site.append(at + sum(map(len, found)))
        base.append(letter)
        frequency.append(own[chosen[at], letter] / depth[chosen[at]])
        found.append(chosen + first)
        alleles.append(pair)
    position = np.concatenate(found)
    number = np.full(len(counts), -1, dtype=np.int32)
    number[position] = np.arange(len(position), dtype=np.int32)
    return Sites(
        number,
        position,
        len(known),
        homozygous,
        np.ascontiguousarray(np.concatenate(alleles), dtype=np.int64),
        np.concatenate(site).astype(np.int64),
        np.concatenate(base).astype(np.int64),
        np.concatenate(frequency),
    )
