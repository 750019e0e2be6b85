"""The depletion kernels: which reads are the host's, and the records that are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ngsgpu.deplete.kmers import Room, covered_bases
from ngsgpu.deplete.params import MILLION, Sampling
from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit

_LF = np.uint8(10)
_CR = np.uint8(13)

COUNTERS = ("units", "kept_units", "bases", "kept_bases")
"""Counters of a run. A unit is a pair, or a read without mate."""
UNITS, KEPT_UNITS, BASES, KEPT_BASES = range(len(COUNTERS))


@njit(nogil=True, cache=True)
def find_kept(
    first: Mates,
    second: Mates,
    paired: bool,
    begin: int,
    end: int,
    sampling: Sampling,
    table: NDArray[np.uint32],
    bits: NDArray[np.uint64],
    min_bases: int,
    millionths: int,
    keep_host: bool,
    kept: NDArray[np.bool_],
    counts: NDArray[np.int64],
) -> None:
    """Decide which of the units ``begin`` up to ``end`` are kept.

    Args:
        first: reads, or first mates.
        second: second mates.
        paired: whether there are any.
        begin: first unit.
        end: end of the units.
        sampling: which k-mers count.
        table: those of the host.
        bits: ``PLANE_BITS``.
        min_bases: bases of a unit that they must cover for it to be the host's.
        millionths: the same in millionths of its bases.
        keep_host: whether the host's are kept.
        kept: bool[end - begin], the decisions.
        counts: int64[len(COUNTERS)], added to.
    """
    longest = 1
    for i in range(begin, end):
        longest = max(longest, first.seq_len[i], second.seq_len[i])
    room = Room(np.empty(longest + 1, dtype=np.uint64), np.empty(longest + 1, dtype=np.int64))
    for i in range(begin, end):
        bases = np.int64(first.seq_len[i])
        if paired:
            bases += second.seq_len[i]
        enough = max(min_bases, (millionths * bases + MILLION - 1) // MILLION)
        covered = covered_bases(
            first.data, first.seq_start[i], first.seq_len[i], sampling, table, bits, enough, room
        )
        if paired and covered < enough:
            covered += covered_bases(
                second.data, second.seq_start[i], second.seq_len[i], sampling, table, bits,
                enough - covered, room,
            )  # fmt: skip
        keep = (covered >= enough) == keep_host
        kept[i - begin] = keep
        counts[UNITS] += 1
        counts[BASES] += bases
        if keep:
            counts[KEPT_UNITS] += 1
            counts[KEPT_BASES] += bases


@njit(nogil=True, cache=True)
def _copy_record(mates: Mates, i: Integer, out: NDArray[np.uint8], at: Integer) -> int:
    """Copy a record and one line feed; return where the next record goes.

    A record of FASTQ ends with its qualities, whatever blank lines follow.
    """
    start, end = mates.header_start[i] - 1, mates.record_end[i]
    if len(mates.qual_start) > 0:
        text = mates.qual_start[i] + mates.seq_len[i]
        end = text + 1 if text < end and mates.data[text] == _CR else text
    elif mates.data[end - 1] == _LF:
        end -= 1
    source, target = np.uint64(start), np.uint64(at)
    size = np.uint64(end - start)
    for k in range(size):
        out[target + k] = mates.data[source + k]
    out[target + size] = _LF
    return at + (end - start) + 1


@njit(nogil=True, cache=True)
def copy_kept(
    first: Mates,
    second: Mates,
    interleaved: bool,
    begin: int,
    kept: NDArray[np.bool_],
    out: NDArray[np.uint8],
) -> int:
    """Copy the records of ``first`` that are kept; return the number of bytes.

    Args:
        first: records.
        second: their mates.
        interleaved: whether each mate follows its record.
        begin: first unit.
        kept: which units are kept, from ``begin`` on.
        out: room for them, and for a line feed each.
    """
    at = 0
    for i in range(len(kept)):
        if kept[i]:
            at = _copy_record(first, begin + i, out, at)
            if interleaved:
                at = _copy_record(second, begin + i, out, at)
    return at
