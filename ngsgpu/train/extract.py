"""Positions that forests decide on, with features and the truth, from reads with known truth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.align.alignment import quality_weights
from ngsgpu.correct import cpu
from ngsgpu.correct.cpu_run import CorrectionOnCpu, anchors_in_bucket_order, observed_rules
from ngsgpu.correct.forests.features import Samples
from ngsgpu.correct.forests.forest import Forests, fixed_coverage, no_trees
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.correct.workspace import Workspace
from ngsgpu.errors import InputError
from ngsgpu.evaluate.truth.indels import BAND, has_indel, oriented_code
from ngsgpu.evaluate.truth.matching import Counterparts, names_of
from ngsgpu.evaluate.truth.streams import RecordStream, check_true_lengths, unwrapped
from ngsgpu.io.inputs import pair_inputs
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.reread import unchanged
from ngsgpu.jit import Integer, njit
from ngsgpu.minhash import build_tables
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Progress
from ngsgpu.sequence.codec import AMBIGUOUS, CODES

UNKNOWN = -1
"""Label where the truth is not known, or where the read has an insertion or deletion."""

Rows = NDArray[np.int32]
"""[., 4 + features] as ``Samples.rows``."""


def extract(
    truth: Paths,
    in1: Paths,
    in2: Paths = (),
    *,
    parameters: CorrectionParameters,
    rows: int,
    every: int,
    threads: int,
) -> tuple[Rows, NDArray[np.int8]]:
    """Record the positions on which the forests would decide.

    Args:
        truth: SAM, BAM or CRAM of the error-free reads (``art_illumina -ef``).
        in1: reads or first mates, FASTQ.
        in2: second mates.
        parameters: correction parameters; forests take no part.
        rows: most positions that are recorded.
        every: one in this number of candidate positions is recorded.
        threads: number of threads for all but the recording.

    Returns:
        The positions, and for each 1 where the consensus is right, otherwise 0.

    Raises:
        InputError: a file cannot be read, or changes meanwhile, or a read has no truth.
    """
    truth, in1, in2 = listed(truth), listed(in1), listed(in2)
    with unchanged(map(str, [*in1, *in2])):  # which are read twice
        rows_found = _record(in1, in2, parameters, rows, every, threads)
        rows_found = rows_found[np.argsort(rows_found[:, 1], kind="stable")]
        return _labelled(rows_found, truth, in1, in2, threads)


def _labelled(
    rows_found: Rows,
    truth: Sequence[str | Path],
    in1: Sequence[str | Path],
    in2: Sequence[str | Path],
    threads: int,
) -> tuple[Rows, NDArray[np.int8]]:
    """The positions whose truth is known, which ascend by read, and whether each is right."""
    labels = np.full(len(rows_found), UNKNOWN, dtype=np.int8)
    members = [in1, in2] if in2 else [in1]
    streams = [RecordStream(list(paths), threads) for paths in members]
    true = Counterparts(list(truth), group=len(members), what="true reads")
    done = 0
    while count := min(stream.left for stream in streams):
        count = true.available(count)
        batches = [stream.take(count) for stream in streams]
        mates = [np.full(count, i + 1 if in2 else 0, dtype=np.uint8) for i in range(len(batches))]
        names = [names_of(batch, mate) for batch, mate in zip(batches, mates, strict=True)]
        truths = true.take(names, [batch.path for batch in batches], batches[0].first_record)
        for member, (batch, table) in enumerate(zip(batches, truths, strict=True)):
            check_true_lengths(batch, table)
            data, start = unwrapped(batch)
            longest = int(batch.seq_len.max(initial=0))
            label(
                CODES,
                (data, start),
                (table.data, np.ascontiguousarray(table.seq_start)),
                np.ascontiguousarray(table.reverse),
                np.ascontiguousarray(batch.seq_len, dtype=np.int64),
                done * len(members) + member,
                len(members),
                np.empty((5, longest), dtype=np.uint8),
                np.empty((6, 2 * BAND + 1), dtype=np.int64),
                rows_found,
                labels,
            )
        done += count
    known = labels != UNKNOWN
    return rows_found[known], labels[known]


def _record(
    in1: Sequence[str | Path],
    in2: Sequence[str | Path],
    parameters: CorrectionParameters,
    rows: int,
    every: int,
    threads: int,
) -> Rows:
    lanes = pair_inputs(in1, in2)
    options = RunOptions(threads=threads)
    with (
        Progress(False) as progress,
        CorrectionOnCpu(parameters, options, "auto", progress) as run,
    ):
        run.read(lanes)
        if run.reads.reads == 0:
            raise InputError(in1[0], "it holds no reads", "give the simulated reads")
        run.fill_unknown()
        _, coverage = run.count()
        reads, parameters = run.reads, run.parameters
        tables = build_tables(reads, parameters.minhash, threads=threads)
    # Trees that change nothing: they only have what they would decide on described.
    forests = Forests(no_trees(0), no_trees(0), fixed_coverage(coverage))
    samples = Samples.allocate(rows, every)
    space = Workspace.allocate(
        reads.max_length, parameters.minhash.tables, parameters.margin, forests, samples
    )
    rules = observed_rules(reads, tables, parameters, coverage)
    anchors = anchors_in_bucket_order(reads, tables)
    done: Integer = 0
    while done < len(anchors) and samples.used[0] < rows:
        done, _, _ = cpu.correct_anchors(
            reads.arrays,
            reads.ambiguous,
            tables.arrays,
            quality_weights(reads.arrays.quality_bits, reads.levels),
            rules,
            anchors,
            done,
            space,
        )
    return samples.rows[: int(samples.used[0])]


@njit(nogil=True, cache=True)
def label(
    codes: NDArray[np.uint8],
    reads: tuple[NDArray[np.uint8], NDArray[np.int64]],
    truth: tuple[NDArray[np.uint8], NDArray[np.int64]],
    reverse: NDArray[np.bool_],
    lengths: NDArray[np.int64],
    first: int,
    step: int,
    scratch: NDArray[np.uint8],
    gap_rows: NDArray[np.int64],
    rows: NDArray[np.int32],
    labels: NDArray[np.int8],
) -> None:
    """Set the labels of the positions of some reads; ``rows`` are sorted by read.

    Args:
        codes: uint8[256], letter to code.
        reads: text, and where each read's bases start in it.
        truth: the same for the true reads.
        reverse: bool[n], whether the truth is stored as the reverse complement.
        lengths: int64[n], bases.
        first: number of the first of the reads.
        step: by how much their numbers grow.
        scratch: uint8[5, longest read].
        gap_rows: int64[6, 2 * BAND + 1].
        rows: the positions.
        labels: int8[rows], set where the truth is known.
    """
    row = np.searchsorted(rows[:, 1], first)
    for r in range(len(lengths)):
        read = first + r * step
        while row < len(rows) and rows[row, 1] < read:
            row += 1
        if row == len(rows):
            return
        if rows[row, 1] != read:
            continue
        mismatches = 0
        for p in range(lengths[r]):
            scratch[0, p] = codes[reads[0][reads[1][r] + p]]
            scratch[1, p] = oriented_code(codes, truth[0], truth[1][r], lengths[r], reverse[r], p)
            mismatches += scratch[0, p] != scratch[1, p]
        if has_indel(scratch[0], scratch[1], lengths[r], mismatches, scratch[2:], gap_rows):
            continue
        while row < len(rows) and rows[row, 1] == read:
            true = scratch[1, rows[row, 2]]
            if true != AMBIGUOUS:
                labels[row] = true == rows[row, 3]
            row += 1
