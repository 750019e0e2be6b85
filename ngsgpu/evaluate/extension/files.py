"""Extended reads against the truth: the sequence between the reads of a pair, and around them.

For simulated pairs the positions of both reads are known, so the true gap is a piece of the
reference; the two are compared by their edit distance, as in Kallenborn (2024), section 9.3. For
real pairs see ``mapped``.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.evaluate.extension.cpu import compare_pairs, positions_of
from ngsgpu.evaluate.extension.positions import TruePairs, read_true_pairs
from ngsgpu.evaluate.extension.result import ExtensionEvaluation
from ngsgpu.evaluate.truth.matching import hashes_of, names_of
from ngsgpu.evaluate.truth.reference import read_reference
from ngsgpu.evaluate.truth.streams import unwrapped
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.reader import read_batches
from ngsgpu.sequence.codec import CODES


def evaluate_extension(
    truth: Sequence[str | Path], reference: str | Path, extended: Sequence[str | Path]
) -> ExtensionEvaluation:
    """Compare extended reads of simulated pairs with the truth.

    Args:
        truth: SAM, BAM or CRAM of the error-free reads.
        reference: FASTA they were simulated from.
        extended: extended reads, named like their pairs. Positions of both reads in a header
            (``read1=A-B read2=C-D``) are used, otherwise the reads are assumed at both ends.

    Raises:
        InputError: a file cannot be read, or an extended read belongs to no pair.
    """
    genome = read_reference(reference)
    pairs = read_true_pairs(truth, genome)
    result = ExtensionEvaluation(pairs=len(pairs.hashes))
    for path in extended:
        for batch in read_batches(path):
            rows = _rows(batch, pairs)
            compared = np.zeros((len(batch), 5), dtype=np.int64)
            data, starts = unwrapped(batch)
            compare_pairs(
                CODES[data], starts, batch.seq_len, positions_of(batch), rows, pairs, genome.codes,
                genome.start, compared,
            )  # fmt: skip
            result.add(compared, batch.seq_len.astype(np.int64))
    return result


def _rows(batch: RecordBatch, pairs: TruePairs) -> NDArray[np.int64]:
    """Row of each record's pair."""
    names = names_of(batch, np.ones(len(batch), dtype=np.uint8))
    hashes = hashes_of(names.data, names.start, names.end)
    rows = np.searchsorted(pairs.hashes, hashes).astype(np.int64)
    rows[rows == len(pairs.hashes)] = 0
    unknown = (
        np.flatnonzero(pairs.hashes[rows] != hashes) if len(pairs.hashes) else np.arange(len(batch))
    )
    if len(unknown):
        record = int(unknown[0])
        raise InputError(
            batch.path,
            f"read {batch.name(record)} is not among the true pairs",
            "give the truth of these reads",
            record=batch.first_record + record + 1,
        )
    return rows
