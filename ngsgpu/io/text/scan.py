"""Kernels that split a chunk of bytes into records and check every byte.

A kernel reads each byte once. It stops at the first record that is incomplete in the chunk or
invalid, and reports only where that record begins: ``diagnose`` finds out what is wrong.
``tests/io`` checks that the two agree.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.jit import njit

BASES: Final = b"ACGTUNRYSWKMBDHVacgtunryswkmbdhv."
"""Letters a sequence may have: the IUPAC nucleotide codes in both cases, and ``.``, which old
Illumina pipelines wrote for N. Everything but ACGT (in either case) is an ambiguous base."""

FASTA_BASES: Final = BASES + b"xX"
"""The same for FASTA, where maskers write X: kraken2-build's and RepeatMasker, for instance."""

END: Final = 0
"""The chunk ended where a record ended."""
INCOMPLETE: Final = 1
"""The record at the returned position continues beyond the chunk."""
BAD: Final = 2
"""The record at the returned position breaks a rule."""
FULL: Final = 3
"""The arrays for the offsets are full."""

_LF: Final = 10
_CR: Final = 13


def base_table(bases: bytes = BASES) -> NDArray[np.bool_]:
    """Table, bool [256]: which bytes are letters of a sequence."""
    table = np.zeros(256, dtype=np.bool_)
    table[np.frombuffer(bases, dtype=np.uint8)] = True
    return table


@njit(nogil=True, cache=True)
def _line_end(data, at, eof):  # type: ignore[no-untyped-def]
    """Where the line that may end at ``at`` continues: next line, -1 not there yet, -2 no end."""
    n = data.size
    if at == n:
        return n if eof else -1
    if data[at] == _LF:
        return at + 1
    if data[at] == _CR:
        if at + 1 == n:
            return n if eof else -1
        if data[at + 1] == _LF:
            return at + 2
    return -2


@njit(nogil=True, cache=True)
def _header(data, at, max_header):  # type: ignore[no-untyped-def]
    """Find the LF that ends the header beginning at ``at``: its place, -1 not there, -2 bad."""
    n = data.size
    i = at
    while i < n and data[i] != _LF:
        if data[i] == 0 or i - at >= max_header:
            return -2
        i += 1
    return i if i < n else -1


@njit(nogil=True, cache=True)
def _has_return(data, start, end):  # type: ignore[no-untyped-def]
    """Whether there is a carriage return: in a header, lines end with it alone."""
    at = start
    while at < end and data[at] != _CR:
        at += 1
    return at < end


@njit(nogil=True, cache=True)
def _same_first_word(data, a, a_end, b, b_end):  # type: ignore[no-untyped-def]
    """Whether two headers agree up to their first space or tab."""
    while True:
        a_word = a < a_end and data[a] != 32 and data[a] != 9
        b_word = b < b_end and data[b] != 32 and data[b] != 9
        if not (a_word and b_word):
            return a_word == b_word
        if data[a] != data[b]:
            return False
        a += 1
        b += 1


@njit(nogil=True, cache=True)
def _only_line_ends(data, at):  # type: ignore[no-untyped-def]
    while at < data.size and (data[at] == _LF or data[at] == _CR):
        at += 1
    return at == data.size


@njit(nogil=True, cache=True)
def _are_plain(data, start, count):  # type: ignore[no-untyped-def]
    """Whether bytes are all A, C, G, T or N; a loop without branches, which becomes vector code."""
    begin = np.uint64(start)
    others = np.uint8(0)
    for k in range(np.uint64(count)):
        byte = data[begin + k]
        is_plain = (byte == 65) | (byte == 67) | (byte == 71) | (byte == 84) | (byte == 78)
        others |= np.uint8(0) if is_plain else np.uint8(1)
    return others == 0


@njit(nogil=True, cache=True)
def _range(data, start, end):  # type: ignore[no-untyped-def]
    """Lowest and highest of some bytes."""
    begin = np.uint64(start)
    low = np.uint8(255)
    high = np.uint8(0)
    for k in range(np.uint64(end - start)):
        byte = data[begin + k]
        low = byte if byte < low else low
        high = byte if byte > high else high
    return low, high


@njit(nogil=True, cache=True)
def count_qualities(data, qual_start, seq_len, records, counts):  # type: ignore[no-untyped-def]
    """Add each quality byte of the first ``records`` records to ``counts``, int64[256]."""
    for i in range(records):
        for k in range(qual_start[i], qual_start[i] + seq_len[i]):
            counts[data[k]] += 1


@njit(nogil=True, cache=True)
def find_fastq(data, end):  # type: ignore[no-untyped-def]
    """Guess the first record that begins at a line start before ``end``; -1 if none is seen.

    A line that begins with ``@`` is a header or qualities. The line after the next begins with
    ``+`` for a header only: after qualities it is a sequence.
    """
    at = 0
    while True:
        while at < end and data[at] != _LF:
            at += 1
        at += 1
        if at >= end:
            return -1
        if data[at] != 64:
            continue
        line = at
        for _ in range(2):
            while line < data.size and data[line] != _LF:
                line += 1
            line += 1
        if line >= data.size:
            return -1
        if data[line] == 43:
            return at


@njit(nogil=True, cache=True)
def find_fasta(data, end):  # type: ignore[no-untyped-def]
    """The first record that begins after a line end before ``end``; -1 if there is none."""
    for at in range(1, end):
        if data[at] == 62 and data[at - 1] == _LF:
            return at
    return -1


@njit(nogil=True, cache=True)
def scan_fastq(  # type: ignore[no-untyped-def]
    data, start, end, eof, is_base, lowest, max_header,
    header_start, header_end, seq_start, seq_end, seq_len, qual_start, count,
):  # fmt: skip
    """Split FASTQ bytes into records of four lines.

    Args:
        data: uint8 [bytes], the chunk and some of what follows it.
        start: where to begin.
        end: records that begin at or after this position are left out.
        eof: whether the file ends where ``data`` ends.
        is_base: bool [256], see ``base_table``.
        lowest: lowest byte allowed as a quality; the highest is 126.
        max_header: longest header allowed, bytes.
        header_start: int64 [capacity], filled from index ``count``; so are ``header_end``,
            ``seq_start``, ``seq_end``, ``qual_start`` and the int32 ``seq_len``.
        header_end: see ``header_start``.
        seq_start: see ``header_start``.
        seq_end: see ``header_start``.
        seq_len: see ``header_start``.
        qual_start: see ``header_start``.
        count: number of records already there.

    Returns:
        (status, number of records, position of the first byte after them).
    """
    n = data.size
    at = start
    length = 0
    while at < end:
        if data[at] != 64:
            # Blank lines are allowed at the end of the file only.
            if _only_line_ends(data, at):
                return (END, count, n) if eof else (INCOMPLETE, count, at)
            return BAD, count, at
        if count == header_start.size:
            return FULL, count, at
        stop = BAD if eof else INCOMPLETE

        lf = _header(data, at + 1, max_header)
        if lf < 0:
            return (stop if lf == -1 else BAD), count, at
        title_end = lf
        if data[lf - 1] == _CR and lf - 1 > at:
            title_end = lf - 1

        bases = lf + 1
        i = bases
        # Most reads have the length of the one before.
        if bases + length < n and _are_plain(data, bases, length):
            i += length
        while i < n and is_base[data[i]]:
            i += 1
        bases_end = i
        i = _line_end(data, i, False)
        if i < 0:
            return (stop if i == -1 else BAD), count, at

        if i == n:
            return stop, count, at
        if data[i] != 43:
            return BAD, count, at
        plus = i + 1
        i = _line_end(data, plus, False)
        if i == -1:
            return stop, count, at
        if i == -2:
            lf = _header(data, plus, max_header + 1)
            if lf < 0:
                return (stop if lf == -1 else BAD), count, at
            plus_end = lf - 1 if data[lf - 1] == _CR else lf
            if not _same_first_word(data, at + 1, title_end, plus, plus_end):
                return BAD, count, at
            i = lf + 1

        length = bases_end - bases
        qualities_end = min(i + length, n)
        low, high = _range(data, i, qualities_end)
        if qualities_end > i and (low < lowest or high > 126):
            return BAD, count, at
        if qualities_end - i < length:
            return stop, count, at
        following = _line_end(data, qualities_end, eof)
        if following < 0:
            return (INCOMPLETE if following == -1 else BAD), count, at

        header_start[count] = at + 1
        header_end[count] = title_end
        seq_start[count] = bases
        seq_end[count] = bases_end
        seq_len[count] = length
        qual_start[count] = i
        count += 1
        at = following
    return END, count, at


@njit(nogil=True, cache=True)
def scan_fasta(  # type: ignore[no-untyped-def]
    data, start, end, eof, is_base, max_header,
    header_start, header_end, seq_start, seq_end, seq_len, count,
):  # fmt: skip
    """Split FASTA bytes into records; sequences may be wrapped and have blank lines.

    Args and arrays are those of ``scan_fastq``.

    Returns:
        (status, number of records, position of the first byte after them, number of lines from
        ``start`` to that position).
    """
    n = data.size
    at = start
    lines = 0
    while at < end:
        if data[at] != 62:
            return BAD, count, at, lines
        if count == header_start.size:
            return FULL, count, at, lines
        lf = _header(data, at + 1, max_header)
        if lf == -2:
            return BAD, count, at, lines
        if lf == -1:
            if not eof:
                return INCOMPLETE, count, at, lines
            lf = n
        title_end = lf
        if data[lf - 1] == _CR and lf - 1 > at:
            title_end = lf - 1
        if _has_return(data, at + 1, title_end):
            return BAD, count, at, lines

        i = min(lf + 1, n)
        first = i
        last = i
        length = 0
        record_lines = 1
        at_line_start = True
        while i < n:
            byte = data[i]
            if is_base[byte]:
                if length == 0:
                    first = i
                length += 1
                i += 1
                last = i
                at_line_start = False
                continue
            if byte == 62 and at_line_start:
                break
            i = _line_end(data, i, eof)
            if i == -1:
                return INCOMPLETE, count, at, lines
            if i == -2:
                return BAD, count, at, lines
            record_lines += 1
            at_line_start = True
        if i == n and not eof:
            return INCOMPLETE, count, at, lines

        header_start[count] = at + 1
        header_end[count] = title_end
        seq_start[count] = first
        seq_end[count] = last
        seq_len[count] = length
        count += 1
        lines += record_lines
        at = i
    return END, count, at, lines


def may_be_phred64(low: int, high: int) -> bool:
    """Whether qualities between these two bytes can have been written with an offset of 64.

    Phred+64 and Solexa+64 files hold ``;`` (59, Q-5) to ``j`` (106, Q42). Read as Phred+33 that
    would be Q26 to Q73. True if all qualities are in that range, not all are equal, and at least
    one is ``V`` (86) or higher: Q53 for Phred+33, which no Illumina instrument writes (their
    highest is ``K``, 75), but only Q22 for Phred+64. PacBio and Nanopore files reach above 106 or
    have qualities below 59; files with a single artificial quality pass.

    Args:
        low: lowest quality byte of the sampled reads.
        high: highest quality byte.
    """
    return 59 <= low < high and 86 <= high <= 106


FIRST_SOLEXA_BASES: Final = 36
"""Longest reads of the pipelines whose best quality was below Q30."""


def looks_like_phred64(counts: NDArray[np.int64], longest: int) -> bool:
    """Whether qualities were probably written with an offset of 64.

    A range is not enough: Element's AVITI writes Phred+33 up to ``Y`` (89, Q56), and reads whose
    ends below Q26 are cut off have nothing below ``;``. Of qualities that ``may_be_phred64``, those
    with any of ``^`` (94) or higher are (Q30, and Q61 for Phred+33, above every instrument whose
    lowest can be Q26). Below that, Phred+64 would mean that the best base of all is worse than Q30.
    That was so in the first Solexa reads, of up to 36 bases, and in runs that failed, with many
    bases below Q5 (``E``, 69, Q36 for Phred+33): more than one in four.

    Args:
        counts: int64[256], how often each quality byte is in the sampled reads.
        longest: bases of the longest of them.
    """
    seen = np.flatnonzero(counts)
    if len(seen) == 0 or not may_be_phred64(int(seen[0]), int(seen[-1])):
        return False
    low = int(counts[:69].sum())
    return int(seen[-1]) >= 94 or longest <= FIRST_SOLEXA_BASES or 4 * low > int(counts.sum())
