"""True reads and alignments as batches: SAM (also gzip, BAM, CRAM) and ART's ALN.

A kernel splits SAM text into records: one Python object per record would take longer than the
comparison. BAM and CRAM are first converted to SAM text by pysam.

Output of ART 2.5.8 (inspected and measured; ``docs/evaluation.md`` has the numbers):

* ``X_errFree.sam`` holds both mates of a pair consecutively, in the order of the FASTQ files, with
  the flags of a proper pair; the bases are in the direction of the reference, so those of the
  reverse strand (flag 16) must be reverse-complemented.
* ``X.sam`` has correct CIGARs on the forward strand only. On the reverse strand it says ``100=``
  regardless (``101=`` for a deletion, sometimes ``100X``).
* ``X.aln`` (one file per mate) has the gapped alignment of every read, in the read's direction, and
  names with ``/1`` or ``/2`` and, for the first mate, the suffix ``-1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.indels import CLAIM_INDEL, CLAIM_NO_INDEL, CLAIM_NONE
from ngsgpu.io.compress.alignments import ALIGNMENTS
from ngsgpu.io.compress.source import Source
from ngsgpu.jit import njit

BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records of a truth or alignment file, as text and offsets into it.

    Attributes:
        data: uint8 [bytes].
        name_start: int64 [n], first byte of the name.
        name_end: int64 [n], its end, without ``/1`` or ``/2``.
        mate: uint8 [n], 1 or 2 from flag or name, 0 if unknown.
        reverse: bool [n], whether the bases are the reverse complement of the read.
        seq_start: int64 [n], first base.
        seq_len: int64 [n], number of bases.
        claim: int32 [n], indels according to the alignment (``indels.CLAIM_*`` or mismatches).
        span: int64 [n], fragment length (absolute TLEN of SAM), 0 if unknown.
    """

    data: NDArray[np.uint8]
    name_start: NDArray[np.int64]
    name_end: NDArray[np.int64]
    mate: NDArray[np.uint8]
    reverse: NDArray[np.bool_]
    seq_start: NDArray[np.int64]
    seq_len: NDArray[np.int64]
    claim: NDArray[np.int32]
    span: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.name_start)

    def part(self, start: int, stop: int, step: int = 1) -> RecordTable:
        """Every ``step``-th record from ``start`` up to ``stop``; shares the text."""
        return self._rows(slice(start, stop, step))

    def take(self, rows: NDArray[np.int64]) -> RecordTable:
        """The given records in the given order; shares the text."""
        return self._rows(rows)

    def _rows(self, rows: slice | NDArray[np.int64]) -> RecordTable:
        columns = (getattr(self, column.name)[rows] for column in fields(self)[1:])
        return RecordTable(self.data, *columns)


def read_tables(path: str | Path, block_bytes: int = BLOCK_BYTES) -> Iterator[RecordTable]:
    """Read the records of a SAM, BAM, CRAM or ALN file in order.

    Secondary and supplementary alignments are skipped. Tables hold an even number of records,
    except for a file's last, so that mates stay together.

    Args:
        path: the file; SAM and ALN may be compressed.
        block_bytes: bytes of text per table.

    Raises:
        InputError: the file cannot be read or is of another kind.
    """
    source = Source(path, threads=1, chunk_bytes=block_bytes)
    try:
        if source.compression in ALIGNMENTS:
            yield from _tables(path, _pysam_text(path, block_bytes), is_aln=False)
            return
        chunks = (chunk.data for chunk in source.chunks())
        first = next(chunks, None)
        if first is None:
            raise _not_alignments(path)
        is_aln = first[:64].tobytes().startswith(b"##ART")

        def blocks() -> Iterator[NDArray[np.uint8]]:
            yield first
            yield from chunks

        yield from _tables(path, blocks(), is_aln=is_aln)
    finally:
        source.close()


def _not_alignments(path: str | Path) -> InputError:
    return InputError(
        path,
        "it contains no alignment records",
        "give the SAM file of the error-free reads (art_illumina -sam -ef writes X_errFree.sam)",
    )


def _pysam_text(path: str | Path, block_bytes: int) -> Iterator[NDArray[np.uint8]]:
    import pysam

    try:
        with pysam.AlignmentFile(str(path), check_sq=False) as file:
            lines: list[str] = []
            size = 0
            for record in file:
                lines.append(record.to_string())
                size += len(lines[-1]) + 1
                if size >= block_bytes:
                    yield _text(lines)
                    lines, size = [], 0
            yield _text(lines)
    except (OSError, ValueError) as error:
        raise InputError(path, f"pysam cannot read it ({error})", "check the file") from error


def _text(lines: list[str]) -> NDArray[np.uint8]:
    return np.frombuffer(bytearray("".join(f"{line}\n" for line in lines).encode()), np.uint8)


def _tables(
    path: str | Path, blocks: Iterator[NDArray[np.uint8]], *, is_aln: bool
) -> Iterator[RecordTable]:
    rest = np.empty(0, dtype=np.uint8)
    lines = 0
    records = 0
    block = next(blocks, None)
    while block is not None:
        following = next(blocks, None)
        data = np.concatenate([rest, block])
        if following is None and (data.size == 0 or data[-1] != ord("\n")):
            data = np.append(data, np.uint8(ord("\n")))
        table, used, read_lines, is_bad = _parse(data, is_aln=is_aln, last=following is None)
        lines += read_lines
        records += len(table)
        if is_bad or (following is None and used < data.size):
            what = "a whole ALN record" if is_aln else "a SAM record with its 11 fields"
            remedy = "make the file again" if records else "give the SAM file of the true reads"
            raise InputError(path, f"this is not {what}", remedy, line=lines + 1)
        if len(table):
            yield table
        rest = data[used:]
        block = following
    if records == 0:
        raise _not_alignments(path)


def _parse(
    data: NDArray[np.uint8], *, is_aln: bool, last: bool
) -> tuple[RecordTable, int, int, bool]:
    """Records of a block, their bytes and lines, and whether a bad line follows."""
    capacity = int(np.count_nonzero(data == ord("\n")))
    wide = np.zeros((5, capacity), dtype=np.int64)
    mate = np.empty(capacity, dtype=np.uint8)
    reverse = np.empty(capacity, dtype=np.bool_)
    claim = np.empty(capacity, dtype=np.int32)
    parse = parse_aln if is_aln else parse_sam
    count, used, lines, is_bad = parse(data, not last, wide, mate, reverse, claim)
    name_start, name_end, seq_start, seq_len, span = wide[:, :count]
    table = RecordTable(
        data, name_start, name_end, mate[:count], reverse[:count], seq_start, seq_len,
        claim[:count], span,
    )  # fmt: skip
    return table, int(used), int(lines), bool(is_bad)


@njit(nogil=True, cache=True)
def name_end(data: NDArray[np.uint8], start: int, end: int) -> tuple[int, int]:
    """End of a read's name without comment and ``/1`` or ``/2``, and the mate that said (or 0)."""
    for p in range(start, end):
        if data[p] == ord(" ") or data[p] == ord("\t"):
            end = p
            break
    # ART's ALN has a "-1" behind "/1".
    for tail in (2, 4):
        p = end - tail
        if p > start and data[p] == ord("/"):
            mate = int(data[p + 1]) - ord("0")
            if 1 <= mate <= 2 and (tail == 2 or data[p + 2] == ord("-")):
                return p, mate
    return end, 0


@njit(nogil=True, cache=True)
def _line_end(data: NDArray[np.uint8], start: int) -> int:
    p = start
    while p < data.size and data[p] != ord("\n"):
        p += 1
    return p


@njit(nogil=True, cache=True)
def _cigar_claim(data: NDArray[np.uint8], start: int, end: int, bases: int) -> int:
    if end - start == 1 and data[start] == ord("*"):
        return CLAIM_NONE
    number = 0
    mismatches = 0
    consumed = 0
    exact = True
    for p in range(start, end):
        letter = data[p]
        if ord("0") <= letter <= ord("9"):
            number = number * 10 + letter - ord("0")
            continue
        if letter == ord("I") or letter == ord("D") or letter == ord("N"):
            return CLAIM_INDEL
        if letter == ord("X"):
            mismatches += number
        elif letter != ord("="):
            exact = False
        consumed += number
        number = 0
    if consumed != bases:
        return CLAIM_INDEL
    # "M" does not distinguish matches from mismatches, so nothing can be checked.
    return mismatches if exact else CLAIM_NONE


@njit(nogil=True, cache=True)
def parse_sam(
    data: NDArray[np.uint8],
    keep_even: bool,
    wide: NDArray[np.int64],
    mate: NDArray[np.uint8],
    reverse: NDArray[np.bool_],
    claim: NDArray[np.int32],
) -> tuple[int, int, int, bool]:
    """Split SAM text into records.

    Args:
        data: uint8, text that starts with a line.
        keep_even: leave the last record in the text if the number is odd.
        wide: int64[5, lines], zeros, set to start and end of names, start and number of bases,
            and the fragment length if known.
        mate: uint8[lines], set.
        reverse: bool[lines], set.
        claim: int32[lines], set.

    Returns:
        Records, bytes used, lines used, and whether the next line is bad.
    """
    count = 0
    start = 0
    lines = 0
    used = 0
    used_lines = 0
    fields = np.empty(12, dtype=np.int64)
    while True:
        end = _line_end(data, start)
        if end == data.size:
            break
        if start < end and data[start] != ord("@"):
            n = 0
            fields[0] = start
            for p in range(start, end):
                if data[p] == ord("\t"):
                    n += 1
                    fields[n] = p + 1
                    if n == 10:
                        break
            if n < 10:
                return count, start, lines, True
            flag = 0
            for p in range(fields[1], fields[2] - 1):
                if not ord("0") <= data[p] <= ord("9"):
                    return count, start, lines, True
                flag = flag * 10 + data[p] - ord("0")
            if flag & 0x900 == 0:
                if keep_even and count % 2 == 0:
                    used, used_lines = start, lines
                stop, named = name_end(data, start, fields[1] - 1)
                bases = fields[10] - 1 - fields[9]
                if bases == 1 and data[fields[9]] == ord("*"):
                    bases = 0
                wide[0, count] = start
                wide[1, count] = stop
                wide[2, count] = fields[9]
                wide[3, count] = bases
                for p in range(fields[8], fields[9] - 1):
                    if ord("0") <= data[p] <= ord("9"):
                        wide[4, count] = 10 * wide[4, count] + data[p] - ord("0")
                mate[count] = 1 if flag & 0x40 else (2 if flag & 0x80 else named)
                reverse[count] = flag & 0x10 != 0
                claim[count] = _cigar_claim(data, fields[5], fields[6] - 1, bases)
                count += 1
        start = end + 1
        lines += 1
    if keep_even and count % 2 == 1:
        return count - 1, used, used_lines, False
    return count, start, lines, False


@njit(nogil=True, cache=True)
def parse_aln(
    data: NDArray[np.uint8],
    keep_even: bool,
    wide: NDArray[np.int64],
    mate: NDArray[np.uint8],
    reverse: NDArray[np.bool_],
    claim: NDArray[np.int32],
) -> tuple[int, int, int, bool]:
    """Split ART's ALN text into records; arguments and result as for `parse_sam`.

    A record is a header line (``>reference``, name, position, strand) and two lines of equal
    length, the reference's and the read's, with ``-`` for gaps. No bases are taken from it.
    """
    count = 0
    start = 0
    lines = 0
    while True:
        end = _line_end(data, start)
        if end == data.size:
            break
        if data[start] == ord("#") or data[start] == ord("@") or start == end:
            start = end + 1
            lines += 1
            continue
        if data[start] != ord(">"):
            return count, start, lines, True
        first = end + 1
        first_end = _line_end(data, first)
        second_end = _line_end(data, min(first_end + 1, data.size))
        if second_end == data.size:
            break
        if second_end - first_end - 1 != first_end - first:
            return count, start, lines, True
        tab = start
        while tab < end and data[tab] != ord("\t"):
            tab += 1
        if tab == end:
            return count, start, lines, True
        stop, named = name_end(data, tab + 1, end)
        wide[0, count] = tab + 1
        wide[1, count] = stop
        wide[2, count] = first
        wide[3, count] = 0
        mate[count] = named
        reverse[count] = False
        claim[count] = CLAIM_NO_INDEL
        for p in range(first, second_end):
            if data[p] == ord("-"):
                claim[count] = CLAIM_INDEL
                break
        count += 1
        start = second_end + 1
        lines += 3
    return count, start, lines, False
