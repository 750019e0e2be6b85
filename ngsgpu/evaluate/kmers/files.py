"""From files to the k-mers that correction removed or made."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ngsgpu.errors import InputError, UsageError
from ngsgpu.evaluate.kmers.result import KmerEvaluation, Minority
from ngsgpu.evaluate.kmers.sample import SampleCounts
from ngsgpu.evaluate.truth.records import read_tables
from ngsgpu.evaluate.truth.streams import unwrapped
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.reader import read_batches
from ngsgpu.sequence.kmers import distinct

ROOM = 1 << 24
"""Distinct k-mers of a file's sample: about 0.6 GB while they are counted."""


def evaluate_kmers(
    raw: Paths,
    corrected: Paths,
    *,
    reference: Paths | None = None,
    truth: Paths | None = None,
    minority: Paths | None = None,
    k: int = 21,
    min_before: int = 4,
    min_after: int = 3,
    exact: bool = False,
    room: int = ROOM,
    threads: int = 1,
) -> KmerEvaluation:
    """Compare the k-mers of reads before and after correction with true ones.

    Args:
        raw: the reads before correction, mates too.
        corrected: the reads after correction.
        reference: FASTA of the genome, or of error-free reads (also FASTQ).
        truth: SAM, BAM or CRAM of the error-free reads.
        minority: FASTA of a rarer strain; its k-mers are true as well, and those that neither
            ``reference`` nor ``truth`` has are its own.
        k: k-mer length, 1 to 32.
        min_before: occurrences in the raw reads of the own k-mers that count.
        min_after: occurrences in the corrected reads of those that remain.
        exact: count all k-mers rather than a sample.
        room: distinct k-mers of each sample.
        threads: threads that decompress.

    Raises:
        InputError: a file cannot be read, or the truth has no k-mers.
        UsageError: there is no truth, or k is out of range.
    """
    if not 1 <= k <= 32:
        raise UsageError(f"`kmer` must be from 1 to 32, not {k}")
    if reference is None and truth is None:
        raise UsageError("nothing to compare with; give `reference`, `truth` or both")
    limit = 0 if exact else room
    true = SampleCounts(k, limit)
    _add_texts(true, [] if reference is None else listed(reference), threads)
    for path in [] if truth is None else listed(truth):
        for table in read_tables(path):
            true.add(
                table.data,
                np.ascontiguousarray(table.seq_start),
                np.ascontiguousarray(table.seq_len),
            )
    true.settle()
    if len(true.kmers) == 0:
        path = listed(reference if reference is not None else truth or [])[0]
        raise InputError(path, f"it has no {k}-mers", "give the genome, or a smaller `kmer`")
    rare = SampleCounts(k, limit)
    _add_texts(rare, [] if minority is None else listed(minority), threads)
    rare.settle()
    before, after = SampleCounts(k, limit), SampleCounts(k, limit)
    for counts, paths in ((before, raw), (after, corrected)):
        _add_texts(counts, listed(paths), threads)
        counts.settle()
    shift = max(counts.shift for counts in (true, rare, before, after))
    for counts in (true, rare, before, after):
        counts.thin(shift)
    own = rare.kmers[true.of(rare.kmers) == 0]
    every = distinct(np.concatenate([true.kmers, rare.kmers]))
    result = KmerEvaluation.of(every, before, after)
    if minority is None:
        return result
    counts_before, counts_after = before.of(own), after.of(own)
    enough = counts_before >= min_before
    return result.with_minority(
        Minority(
            len(own),
            min_before,
            min_after,
            int(enough.sum()),
            int((enough & (counts_after >= min_after)).sum()),
            int((enough & (counts_after == 0)).sum()),
        )
    )


def _add_texts(counts: SampleCounts, paths: Iterable[object], threads: int) -> None:
    """Count the k-mers of FASTA or FASTQ files."""
    for path in paths:
        for batch in read_batches(str(path), threads=threads):
            data, start = unwrapped(batch)
            counts.add(data, start, np.ascontiguousarray(batch.seq_len, dtype=np.int64))
