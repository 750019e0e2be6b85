"""From files to the evaluation: align the raw reads, find variant sites, compare."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError, UsageError
from ngsgpu.evaluate.mapped.aligner import AlignedReads, Alignments, align_reads, read_alignments
from ngsgpu.evaluate.mapped.compare import KINDS, QUALITIES, TOTALS, Counters, compare
from ngsgpu.evaluate.mapped.fragments import OUTCOMES, WHERE, judge
from ngsgpu.evaluate.mapped.params import Thresholds
from ngsgpu.evaluate.mapped.pileup import Reads, pile_up
from ngsgpu.evaluate.mapped.result import MappedEvaluation, Merging
from ngsgpu.evaluate.mapped.sites import Sites, call_sites, read_known
from ngsgpu.evaluate.truth.matching import Names, first_difference, hashes_of, names_of
from ngsgpu.evaluate.truth.merged import MergedReads
from ngsgpu.evaluate.truth.reference import Reference, read_reference
from ngsgpu.evaluate.truth.streams import RecordStream, unwrapped
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.sequence.codec import CODES


def evaluate_mapped_reads(
    reference: str | Path,
    in1: Paths,
    in2: Paths | None = None,
    *,
    out1: Paths | None = None,
    out2: Paths | None = None,
    merged: Paths | None = None,
    known: str | Path | None = None,
    alignments: Paths | None = None,
    aligner: str = "bwa",
    limits: Thresholds | None = None,
    threads: int = 1,
) -> MappedEvaluation:
    """Compare corrected or merged reads with a reference, by the alignments of the raw reads.

    Files are read two or three times. Memory: 40 bytes a base of the reference and about 40 a read.

    Args:
        reference: FASTA of the reads' genome, or of one like it.
        in1: raw reads, or first mates.
        in2: second mates.
        out1: the corrected reads, in the same order.
        out2: second mates after correction.
        merged: reads merged from these pairs, in their order, Phred+33.
        known: VCF or BCF of known variants; their positions are variant sites.
        alignments: SAM, BAM or CRAM of the raw reads in their order, as bwa and minimap2 write it;
            without it ``aligner`` makes it.
        aligner: ``bwa`` or ``minimap2``.
        limits: thresholds.
        threads: threads that align and decompress.

    Raises:
        InputError: a file cannot be read, changes meanwhile, or files do not hold the same reads.
        NgsgpuError: the aligner failed.
        UsageError: options contradict each other.
    """
    limits = limits or Thresholds()
    if (out1 is None) != (out2 is None or in2 is None) and out1 is None:
        raise UsageError("`out2` needs `out1` and `in2`")
    if out1 is not None and (in2 is None) != (out2 is None):
        raise UsageError("`in2` and `out2` belong together; give both or neither")
    if merged is not None and in2 is None:
        raise UsageError("`merged` needs the pairs; give `in2`")
    raw = [listed(in1)] + ([] if in2 is None else [listed(in2)])
    if len({len(paths) for paths in raw}) > 1:
        raise UsageError("give as many files of second mates as of first mates")
    out = [listed(paths) for paths in (out1, out2) if paths is not None]
    # Unreadable files are reported before reads are aligned.
    for paths in [*raw, *out, [] if merged is None else listed(merged)]:
        for path in paths:
            RecordStream([path], 1)
    read = [*chain(*raw), *chain(*out), *listed(merged or []), reference]
    with unchanged(map(str, read)):
        genome = read_reference(reference)
        if alignments is None:
            with align_reads(reference, list(zip(*raw, strict=True)), aligner, threads) as sams:
                aligned = read_alignments(sams, genome, limits.min_mapq)
        else:
            aligner = ""
            aligned = read_alignments(listed(alignments), genome, limits.min_mapq)
        if not (aligned.rows.place >= 0).any():
            raise InputError(
                reference,
                f"none of the {len(aligned.hashes):,} reads aligns to it with a mapping quality of "
                f"{limits.min_mapq} or more",
                "give the genome of these reads, or a lower `min_mapq`",
            )
        positions = np.zeros(0, dtype=np.int64) if known is None else read_known(known, genome)
        sites = _find_sites(raw, aligned, genome, positions, limits, threads)
        corrected = None
        if out1 is not None:
            corrected = _compare(raw, out, aligned, genome, sites, limits, threads)
        merging = None
        if merged is not None:
            merging = _judge(raw, listed(merged), aligned, genome, sites, limits, threads)
        return MappedEvaluation(
            aligner, limits, len(aligned.hashes), int((aligned.rows.place >= 0).sum()), sites,
            corrected, merging,
        )  # fmt: skip


class _Scratch:
    """Arrays of the kernels, as long as the longest read so far."""

    def __init__(self) -> None:
        self.where = np.empty((2, 0), dtype=np.int64)
        self.calls = np.empty((2, 0), dtype=np.int64)

    def reach(self, mates: list[RecordBatch]) -> None:
        """Make room for the reads of a batch."""
        longest = max(int(batch.seq_len.max(initial=0)) for batch in mates)
        if longest > self.where.shape[1]:
            self.where = np.empty((2, longest), dtype=np.int64)
            self.calls = np.empty((2, longest), dtype=np.int64)


def _batches(
    members: list[list[str | Path]], aligned: AlignedReads, group: int, threads: int
) -> Iterator[tuple[list[RecordBatch], list[Names], Alignments]]:
    """Records of all files in step, with their alignments; the first ``group`` files are raw.

    Raises:
        InputError: the files do not hold the same reads, or these have other alignments.
    """
    streams = [RecordStream(paths, threads) for paths in members]
    done = 0
    while count := min(stream.left for stream in streams):
        batches = [stream.take(count) for stream in streams]
        # A corrected read whose name says which mate it is has to be that mate.
        mates = [i + 1 if group == 2 and i < group else 0 for i in range(len(batches))]
        names = [
            names_of(batch, np.full(count, mate, dtype=np.uint8))
            for batch, mate in zip(batches, mates, strict=True)
        ]
        for i, batch in enumerate(batches[1:], start=1):
            own = names[i % group]
            if i < group:
                own = own._replace(mate=names[i].mate)
            row = first_difference(own, names[i])
            if row < count:
                raise InputError(
                    batch.path,
                    f"the read is {batch.name(row)} where {batches[i % group].path} has "
                    f"{batches[i % group].name(row)}",
                    "give mates, and corrected reads, in the order of the raw reads",
                    record=batch.first_record + row + 1,
                )
        yield batches, names, _alignments_of(batches, names, aligned, group, done)
        done += count * group
    if any(stream.left for stream in streams):
        short, longer = sorted(streams, key=lambda stream: stream.left)[:: len(streams) - 1]
        raise InputError(
            short.path, f"it has fewer records than {longer.path}", "give the same reads"
        )
    if done != len(aligned.hashes):
        raise InputError(
            aligned.path,
            f"it has {len(aligned.hashes):,} primary alignments of {done:,} reads",
            "give those of the raw reads, with the unaligned ones",
        )


def _alignments_of(
    batches: list[RecordBatch], names: list[Names], aligned: AlignedReads, group: int, done: int
) -> Alignments:
    """Alignments of a batch of reads, whose names are checked."""
    for m in range(group):
        own = hashes_of(names[m].data, names[m].start, names[m].end)
        theirs = aligned.hashes[done + m : done + m + group * len(own) : group]
        if len(theirs) < len(own) or not np.array_equal(own, theirs):
            row = int(np.argmax(own[: len(theirs)] != theirs)) if len(theirs) else 0
            raise InputError(
                batches[m].path,
                f"read {batches[m].name(row)} is not where its alignment should be",
                "give the alignments of all raw reads in their order, as bwa and minimap2 write "
                "them",
                record=batches[m].first_record + row + 1,
            )
    return aligned.rows.part(done, done + group * len(batches[0]))


def _reads(batch: RecordBatch) -> Reads:
    data, start = unwrapped(batch)
    lengths = np.ascontiguousarray(batch.seq_len, dtype=np.int64)
    if batch.qual_start is None:
        return Reads(data, start, lengths, np.full(len(batch), -1, dtype=np.int64), batch.data)
    return Reads(data, start, lengths, np.ascontiguousarray(batch.qual_start), batch.data)


def _pair(batches: list[RecordBatch]) -> tuple[Reads, Reads]:
    """Reads of the mates; twice the same if they are single."""
    reads = [_reads(batch) for batch in batches]
    return reads[0], reads[-1]


def _find_sites(
    raw: list[list[str | Path]],
    aligned: AlignedReads,
    genome: Reference,
    known: NDArray[np.int64],
    limits: Thresholds,
    threads: int,
) -> Sites:
    counts = np.zeros((len(genome.codes), 4), dtype=np.uint32)
    agreeing = np.zeros_like(counts)
    gaps = np.zeros(len(counts), dtype=np.uint32)
    scratch = _Scratch()
    group = len(raw)
    for batches, _, rows in _batches(raw, aligned, group, threads):
        scratch.reach(batches)
        bad = pile_up(
            CODES, _pair(batches), group, rows, limits.min_quality, scratch.where, scratch.calls,
            counts, agreeing, gaps,
        )  # fmt: skip
        if bad >= 0:
            batch = batches[bad % group]
            row = bad // group
            raise InputError(
                batch.path,
                f"read {batch.name(row)} has {batch.seq_len[row]} bases, its alignment another "
                "number",
                "give the alignments of these reads",
                record=batch.first_record + row + 1,
            )
    return call_sites(genome, counts, agreeing, gaps, known, limits)


def _compare(
    raw: list[list[str | Path]],
    out: list[list[str | Path]],
    aligned: AlignedReads,
    genome: Reference,
    sites: Sites,
    limits: Thresholds,
    threads: int,
) -> Counters:
    shape = (2, len(sites.position), 4)
    counters = Counters(
        np.zeros(len(TOTALS), dtype=np.int64),
        np.zeros((len(KINDS), 4), dtype=np.int64),
        np.zeros((2, QUALITIES, 2), dtype=np.int64),
        np.zeros(shape, dtype=np.uint32),
        np.zeros(shape, dtype=np.uint32),
    )
    scratch = _Scratch()
    group = len(raw)
    for batches, _, rows in _batches([*raw, *out], aligned, group, threads):
        scratch.reach(batches)
        compare(
            CODES, genome.codes, sites.number, sites.alleles, _pair(batches[:group]),
            _pair(batches[group:]), group, rows, limits.min_quality, scratch.where, scratch.calls,
            counters,
        )  # fmt: skip
    return counters


def _judge(
    raw: list[list[str | Path]],
    merged: list[str | Path],
    aligned: AlignedReads,
    genome: Reference,
    sites: Sites,
    limits: Thresholds,
    threads: int,
) -> Merging:
    outcomes = np.zeros(len(OUTCOMES), dtype=np.int64)
    qualities = np.zeros((len(WHERE), QUALITIES, 2), dtype=np.int64)
    stream = MergedReads(merged, threads)
    scratch = _Scratch()
    for batches, names, rows in _batches(raw, aligned, 2, threads):
        scratch.reach(batches)
        mates = _pair(batches)
        for part, batch, found in stream.of(names[0]._replace(mate=np.zeros_like(names[0].mate))):
            texts = mates[0] if batch is None else _reads(batch)
            judge(
                CODES, genome.codes, sites.number, limits.min_overlap, mates, rows, part.start,
                texts, found, scratch.where, outcomes, qualities,
            )  # fmt: skip
    stream.finish()
    return Merging(outcomes, qualities)
