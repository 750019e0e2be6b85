"""True reads as FASTQ or FASTA, such as consensus reads of molecules by their barcodes (UMI)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ngsgpu.evaluate.truth.indels import CLAIM_NONE
from ngsgpu.evaluate.truth.matching import names_of
from ngsgpu.evaluate.truth.records import RecordTable, read_tables
from ngsgpu.evaluate.truth.streams import unwrapped
from ngsgpu.io.compress.alignments import ALIGNMENTS
from ngsgpu.io.compress.source import Source
from ngsgpu.io.text.reader import read_batches

_READS: Final = re.compile(rb">|@(?![A-Z][A-Z]\t)")
"""How FASTQ and FASTA begin, and SAM does not."""


def truth_reader(
    paths: Sequence[str | Path], *, group: int, interleaved: bool
) -> Callable[[str | Path], Iterator[RecordTable]]:
    """What reads true reads of any kind: SAM, BAM, CRAM, FASTQ or FASTA.

    Args:
        paths: the files. Where names in FASTQ or FASTA do not tell mates, several files hold first
            and second mates in turn if the reads are pairs in two files, and else pairs.
        group: 2 if the reads are pairs in two files, 1 otherwise.
        interleaved: whether the reads are pairs in one file.
    """
    in_turn = group == 2 and len(paths) > 1
    mates = {path: 1 + index % 2 for index, path in enumerate(paths)} if in_turn else {}

    def read(path: str | Path) -> Iterator[RecordTable]:
        if not _holds_reads(path):
            return read_tables(path)
        return _tables(path, mates.get(path), paired=interleaved or group == 2)

    return read


def _holds_reads(path: str | Path) -> bool:
    """Whether a file is FASTQ or FASTA; a stream, which can be read once, is taken for SAM."""
    if not Path(path).is_file():
        return False
    source = Source(path, threads=1, chunk_bytes=1 << 16)
    try:
        if source.compression in ALIGNMENTS:
            return False
        chunk = next(source.chunks(), None)
        return chunk is not None and _READS.match(chunk.data[:4].tobytes()) is not None
    finally:
        source.close()


def _tables(path: str | Path, mate: int | None, *, paired: bool) -> Iterator[RecordTable]:
    """The reads of a file, with names without ``/1`` or ``/2``."""
    for batch in read_batches(path):
        numbers = np.arange(batch.first_record, batch.first_record + len(batch))
        mates = numbers % 2 + 1 if mate is None else np.full(len(batch), mate)
        names = names_of(batch, (mates * paired).astype(np.uint8))
        data, start = unwrapped(batch)
        if data is not batch.data:
            start = start + len(batch.data)
            data = np.concatenate([batch.data, data])
        yield RecordTable(
            data, names.start, names.end, names.mate,
            np.zeros(len(batch), dtype=np.bool_), start, batch.seq_len.astype(np.int64),
            np.full(len(batch), CLAIM_NONE, dtype=np.int32), np.zeros(len(batch), dtype=np.int64),
        )  # fmt: skip
