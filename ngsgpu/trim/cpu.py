"""Trimming the records of a task on the CPU."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.text.pairs import Mates
from ngsgpu.jit import Integer, njit
from ngsgpu.sequence.intrinsics import borrowed
from ngsgpu.trim.counts import (
    CORRECTED_BASES,
    CORRECTED_READS,
    MOST_INSERT,
    NO_INDEX,
    TRIMMED_BASES,
    TRIMMED_READS,
    UNITS,
    ReadSums,
    Tally,
    count_read,
)
from ngsgpu.trim.cuts import (
    NOWHERE,
    Read,
    cut,
    cut_poly_g,
    cut_poly_x,
    find_adapter,
    length_of,
    shorten,
)
from ngsgpu.trim.filters import MATE_FAILED, PASSED, REASONS, RESULTS, SHORT, result_of
from ngsgpu.trim.overlap import Overlap, Words, correct, find_overlap, words_for
from ngsgpu.trim.records import behind_umi, lacks_index, load, move_umi, put_record, room_for
from ngsgpu.trim.rules import NO_UMI, Rules

KEPT1, KEPT2, UNPAIRED1, UNPAIRED2, FAILED = range(5)
"""Outputs of a task."""

_OTHERS: Final = 2
"""Adapters before the sequences that are looked for in all reads."""

_REASONS: Final = "".join(REASONS.get(number, "") for number in range(RESULTS)) + MATE_FAILED
REASON_BYTES: Final = np.frombuffer(_REASONS.encode(), dtype=np.uint8)
REASON_ENDS: Final = np.cumsum(
    [0, *(len(REASONS.get(number, "")) for number in range(RESULTS)), len(MATE_FAILED)]
)
"""The reasons of all results, and behind them that of a read whose mate failed."""


class Room(NamedTuple):
    """Where a task writes.

    Attributes:
        outputs: uint8, of ``KEPT1`` and so on.
        wanted: whether unpaired reads are written, and those that failed.
        interleaved: whether second mates follow the first ones.
        adapters: uint8, what was cut off, one behind the other.
        adapter_sizes: int64 [units, 2], bytes of that, in this order: of the first and second mate.
        tag: uint8, for a UMI that is put into names.
    """

    outputs: tuple[
        NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8], NDArray[np.uint8],
        NDArray[np.uint8],
    ]  # fmt: skip
    wanted: tuple[bool, bool, bool]
    interleaved: bool
    adapters: NDArray[np.uint8]
    adapter_sizes: NDArray[np.int64]
    tag: NDArray[np.uint8]


class Space(NamedTuple):
    """Workspace of a task.

    Attributes:
        read1: first mate.
        read2: second mate.
        words: of both.
        sizes: int64 [6], bytes of the outputs, and of what was cut off.
    """

    read1: Read
    read2: Read
    words: Words
    sizes: NDArray[np.int64]


@njit(nogil=True, cache=True)
def trim_records(
    first: Mates, second: Mates, paired: bool, begin: Integer, end: Integer, longest: Integer,
    rules: Rules, duplicates: NDArray[np.bool_], room: Room, tally: Tally,
) -> NDArray[np.int64]:  # fmt: skip
    """Trim records ``begin`` up to ``end`` and write those that are kept.

    Args:
        first: reads, or first mates.
        second: second mates; not used for reads without.
        paired: whether there are any.
        begin: first record.
        end: behind the last.
        longest: bases of the longest of them.
        rules: what is done.
        duplicates: bool [units], those that are not written; empty: none.
        room: where to write.
        tally: is increased.

    Returns:
        int64 [6], bytes of the outputs, and of what was cut off.
    """
    space = Space(
        room_for(longest),
        room_for(longest),
        words_for(longest),
        np.zeros(6, dtype=np.int64),
    )
    _trim_all(first, second, paired, begin, end, rules, duplicates, room, tally, space)
    return space.sizes


@njit(nogil=True, cache=True)
def _trim_all(
    first: Mates, second: Mates, paired: bool, begin: Integer, end: Integer, rules: Rules,
    duplicates: NDArray[np.bool_], room: Room, tally: Tally, space: Space,
) -> None:  # fmt: skip
    """See ``trim_records``, which owns everything: to count references takes as long as this.

    So would calls: rules, rooms and tallies are hundreds of numbers, which each call would copy.
    What is called here for every record is therefore inlined.
    """
    first, second, rules = borrowed(first), borrowed(second), borrowed(rules)
    duplicates, room, tally = borrowed(duplicates), borrowed(room), borrowed(tally)
    read1, read2, words, done = borrowed(space)
    for i in range(begin, end):
        unit = i - begin
        load(first, i, rules, read1)
        count_read(read1, tally.before[0])
        if paired:
            load(second, i, rules, read2)
            count_read(read2, tally.before[1])
        umi, behind = room.tag[:0], np.int64(0)
        if rules.umi != NO_UMI:
            behind = np.int64(behind_umi(first, second, paired, i, rules))
            tally.totals[NO_INDEX] += lacks_index(first, second, paired, i, rules)
            umi = room.tag[: move_umi(first, second, paired, i, read1, read2, rules, room.tag)]
        left1, front1 = cut(read1, 0, rules)
        left2, front2 = cut(read2, 1, rules) if paired else (True, np.int64(0))
        corrected = False
        if left1 and left2:
            if paired:
                corrected = _trim_pair(
                    read1, read2, front1, front2, words, rules, unit, room, done, tally
                )
            else:
                _trim_read(read1, rules, unit, room, done, tally)
        result1 = result_of(read1, rules) if left1 else SHORT
        result2 = (result_of(read2, rules) if left2 else SHORT) if paired else PASSED
        result = max(result1, result2)
        tally.results[result] += 2 if paired else 1
        tally.totals[UNITS] += 1
        is_written = not (len(duplicates) and duplicates[unit])
        if is_written:
            if paired:
                _put_pair(
                    first, second, i, read1, read2, result1, result2, umi, behind, rules, room, done
                )
            elif result == PASSED:
                _put(KEPT1, first, i, read1, umi, behind, PASSED, room, done)
            elif room.wanted[2]:
                _put(FAILED, first, i, read1, umi, behind, result, room, done)
        is_kept = is_written and result == PASSED
        _count_change(first, i, read1, is_kept, corrected, rules, tally.lost[0], tally.gained[0])
        if paired:
            _count_change(
                second, i, read2, is_kept, corrected, rules, tally.lost[1], tally.gained[1]
            )


@njit(nogil=True, cache=True, forceinline=True)
def _count_change(
    mates: Mates, i: Integer, read: Read, is_kept: bool, corrected: bool, rules: Rules,
    lost: ReadSums, gained: ReadSums,
) -> None:  # fmt: skip
    """Count what became of a record, if it is not kept as it was, as most are; loads it again."""
    if is_kept:
        if length_of(read) == mates.seq_len[i] and not corrected:
            return
        count_read(read, gained)
    load(mates, i, rules, read)
    count_read(read, lost)


@njit(nogil=True, cache=True, forceinline=True)
def _trim_pair(
    read1: Read, read2: Read, front1: Integer, front2: Integer, words: Words,
    rules: Rules, unit: Integer, room: Room, sizes: NDArray[np.int64], tally: Tally,
) -> bool:  # fmt: skip
    """Cut tails and adapters off both mates; whether bases were corrected."""
    if rules.poly_g:
        cut_poly_g(read1, rules.poly_g)
        cut_poly_g(read2, rules.poly_g)
    overlap = find_overlap(read1, read2, words, rules)
    _count_insert(read1, read2, overlap, front1 + front2, tally)
    bases: Integer = 0
    if rules.corrects:
        reads, bases = correct(read1, read2, overlap)
        tally.totals[CORRECTED_READS] += reads
        tally.totals[CORRECTED_BASES] += bases
    if rules.trims_adapters:
        if overlap.found and overlap.offset < 0:
            _end_at(read1, overlap.length + front2, 0, unit, room, sizes, tally)
            _end_at(read2, overlap.length + front1, 1, unit, room, sizes, tally)
            tally.totals[TRIMMED_READS] += 2
        else:
            _cut_adapter(read1, 0, rules, unit, room, sizes, tally)
            _cut_adapter(read2, 1, rules, unit, room, sizes, tally)
        _cut_others(read1, rules)
        _cut_others(read2, rules)
    _end_trimming(read1, 0, rules, tally)
    _end_trimming(read2, 1, rules, tally)
    return bool(bases > 0)


@njit(nogil=True, cache=True, forceinline=True)
def _trim_read(
    read: Read, rules: Rules, unit: Integer, room: Room, sizes: NDArray[np.int64], tally: Tally
) -> None:
    """Cut tails and adapters off a read without mate."""
    if rules.poly_g:
        cut_poly_g(read, rules.poly_g)
    if rules.trims_adapters:
        _cut_adapter(read, 0, rules, unit, room, sizes, tally)
        _cut_others(read, rules)
    _end_trimming(read, 0, rules, tally)


@njit(nogil=True, cache=True, forceinline=True)
def _end_trimming(read: Read, mate: Integer, rules: Rules, tally: Tally) -> None:
    if rules.poly_x:
        base, bases = cut_poly_x(read, rules.poly_x)
        if base >= 0:
            tally.poly_x[0, base] += 1
            tally.poly_x[1, base] += bases
    if rules.longest[mate] > 0:
        shorten(read, rules.longest[mate])


@njit(nogil=True, cache=True, forceinline=True)
def _count_insert(
    read1: Read, read2: Read, overlap: Overlap, fronts: Integer, tally: Tally
) -> None:
    size: Integer = MOST_INSERT
    if overlap.found:
        size = overlap.length + fronts
        if overlap.offset > 0:
            size = length_of(read1) + length_of(read2) - overlap.length + fronts
    tally.inserts[size if size < MOST_INSERT else MOST_INSERT] += 1


@njit(nogil=True, cache=True, forceinline=True)
def _end_at(
    read: Read, length: Integer, mate: Integer, unit: Integer, room: Room,
    sizes: NDArray[np.int64], tally: Tally,
) -> None:  # fmt: skip
    """Cut off what is behind a length, and note it as an adapter."""
    if length < length_of(read):
        start = read.span[0] + length
        _note(read.bases, start, read.span[1], mate, unit, room, sizes, tally)
        read.span[1] = start


@njit(nogil=True, cache=True, forceinline=True)
def _cut_adapter(
    read: Read, mate: Integer, rules: Rules, unit: Integer, room: Room,
    sizes: NDArray[np.int64], tally: Tally,
) -> None:  # fmt: skip
    """Cut the adapter of first or second mates off."""
    at = find_adapter(read, mate, rules, 4)
    if at == NOWHERE:
        return
    if at < 0:
        begin = rules.adapter_ends[mate]
        end = rules.adapter_ends[mate + 1] + at
        _note(rules.adapters, begin, end, mate, unit, room, sizes, tally)
        tally.totals[TRIMMED_READS] += 1
        read.span[1] = read.span[0]
        return
    tally.totals[TRIMMED_READS] += 1
    _end_at(read, at, mate, unit, room, sizes, tally)


@njit(nogil=True, cache=True, forceinline=True)
def _cut_others(read: Read, rules: Rules) -> None:
    """Cut off all sequences that are looked for in all reads, one after the other."""
    for number in range(_OTHERS, len(rules.adapter_ends) - 1):
        at = find_adapter(read, number, rules, rules.others_need)
        if at != NOWHERE:
            shorten(read, max(0, at))


@njit(nogil=True, cache=True, forceinline=True)
def _note(
    bases: NDArray[np.uint8], start: Integer, end: Integer, mate: Integer, unit: Integer,
    room: Room, sizes: NDArray[np.int64], tally: Tally,
) -> None:  # fmt: skip
    """Note what was cut off as an adapter."""
    size = end - start
    at = sizes[5]
    for i in range(size):
        room.adapters[at + i] = bases[start + i]
    sizes[5] += size
    room.adapter_sizes[unit, mate] = size
    tally.totals[TRIMMED_BASES] += size


@njit(nogil=True, cache=True, forceinline=True)
def _put(
    output: Integer, mates: Mates, i: Integer, read: Read, umi: NDArray[np.uint8],
    behind: Integer, reason: Integer, room: Room, sizes: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write a record to an output."""
    text = REASON_BYTES[REASON_ENDS[reason] : REASON_ENDS[reason + 1]]
    for number, out in enumerate(room.outputs):
        if number == output:
            sizes[number] = put_record(mates, i, read, umi, behind, text, out, sizes[number])


@njit(nogil=True, cache=True, forceinline=True)
def _put_pair(
    first: Mates, second: Mates, i: Integer, read1: Read, read2: Read, result1: Integer,
    result2: Integer, umi: NDArray[np.uint8], behind: Integer, rules: Rules, room: Room,
    sizes: NDArray[np.int64],
) -> None:  # fmt: skip
    """Write a pair, or what is left of it."""
    unpaired1, unpaired2, failed = room.wanted
    mate_failed = RESULTS
    if result1 == PASSED and result2 == PASSED:
        _put(KEPT1, first, i, read1, umi, behind, PASSED, room, sizes)
        _put(
            KEPT1 if room.interleaved else KEPT2, second, i, read2, umi, behind, PASSED, room, sizes
        )
    elif result1 == PASSED:
        if unpaired1:
            _put(UNPAIRED1, first, i, read1, umi, behind, PASSED, room, sizes)
        elif failed:
            _put(FAILED, first, i, read1, umi, behind, mate_failed, room, sizes)
        if failed:
            _put(FAILED, second, i, read2, umi, behind, result2, room, sizes)
    elif result2 == PASSED:
        if failed:
            _put(FAILED, first, i, read1, umi, behind, result1, room, sizes)
        if unpaired2 or unpaired1:
            own = UNPAIRED2 if unpaired2 else UNPAIRED1
            _put(own, second, i, read2, umi, behind, PASSED, room, sizes)
        elif failed:
            _put(FAILED, second, i, read2, umi, behind, mate_failed, room, sizes)
    elif failed and not rules.as_fastp:
        _put(FAILED, first, i, read1, umi, behind, result1, room, sizes)
        _put(FAILED, second, i, read2, umi, behind, result2, room, sizes)
