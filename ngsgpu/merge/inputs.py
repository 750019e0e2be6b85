"""The files that pairs are read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import read_interleaved, read_pairs
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.merge.params import SAMPLED_PAIRS
from ngsgpu.merge.records import Mates


@dataclass(frozen=True, slots=True)
class PairInput:
    """Where the pairs of one lane are.

    Attributes:
        inputs: the files of first and second mates, or one file of both in turn.
    """

    inputs: tuple[str, ...]

    @property
    def interleaved(self) -> bool:
        """Whether mates alternate in the one file."""
        return len(self.inputs) == 1

    @property
    def is_regular(self) -> bool:
        """Whether all files can be opened again."""
        return all(Path(path).is_file() for path in self.inputs)

    def batches(
        self, *, threads: int, phred_offset: PhredOffset, chunk_bytes: int
    ) -> Iterator[tuple[Mates, Mates]]:
        """Yield the pairs in batches.

        Raises:
            InputError: a file cannot be read, or has no qualities.
        """
        if self.interleaved:
            for batch in read_interleaved(
                self.inputs[0], threads=threads, phred_offset=phred_offset, chunk_bytes=chunk_bytes
            ):
                yield _mates(batch, 0, 2), _mates(batch, 1, 2)
            return
        for first, second in read_pairs(
            *self.inputs, threads=threads, phred_offset=phred_offset, chunk_bytes=chunk_bytes
        ):
            yield _mates(first, 0, 1), _mates(second, 0, 1)


def plan_inputs(
    in1: Sequence[str | Path], in2: Sequence[str | Path], *, interleaved: bool
) -> list[PairInput]:
    """Bring the files of first and second mates together.

    Args:
        in1: files of first mates, or of interleaved mates.
        in2: files of second mates, as many, or none.
        interleaved: whether the files of ``in1`` hold both mates.

    Raises:
        UsageError: the numbers of files are inconsistent.
    """
    if not in1:
        raise UsageError("no reads given; name them with -i, and their mates with -I")
    if interleaved and in2:
        raise UsageError("--interleaved-in reads both mates from -i; omit -I")
    if not interleaved and not in2:
        raise UsageError(
            "merging needs both mates; give second mates with -I, or --interleaved-in "
            "if -i holds both"
        )
    if in2 and len(in1) != len(in2):
        raise UsageError(
            f"there are {len(in1)} files of first mates (-i) and {len(in2)} of second (-I); "
            "give one -I for each -i"
        )
    names = [str(path) for path in [*in1, *in2]]
    if names.count("-") > 1:
        raise UsageError("standard input (-) can be given only once")
    if interleaved:
        return [PairInput((str(path),)) for path in in1]
    return [PairInput((str(first), str(second))) for first, second in zip(in1, in2, strict=True)]


def _mates(batch: RecordBatch, first: int, step: int) -> Mates:
    if batch.qual_start is None:
        raise InputError(
            batch.path,
            "this is FASTA, but merging needs qualities",
            "give FASTQ files",
            record=1,
            line=1,
        )
    every = slice(first, None, step)
    return Mates(
        batch.data,
        np.ascontiguousarray(batch.header_start[every]),
        np.ascontiguousarray(batch.header_end[every]),
        np.ascontiguousarray(batch.seq_start[every]),
        np.ascontiguousarray(batch.qual_start[every]),
        np.ascontiguousarray(batch.seq_len[every]),
    )


def sample_lengths(
    batches: Iterator[tuple[Mates, Mates]],
) -> tuple[float, int, Iterator[tuple[Mates, Mates]]]:
    """Look at the first pairs.

    Args:
        batches: of pairs.

    Returns:
        Mean length and length of the longest of the first ``SAMPLED_PAIRS`` pairs' reads (0 if
        there are none), and all batches.
    """
    held: list[tuple[Mates, Mates]] = []
    left = SAMPLED_PAIRS
    bases = reads = longest = 0
    for mates in batches:
        held.append(mates)
        for mate in mates:
            lengths = mate.seq_len[:left]
            reads += len(lengths)
            bases += int(lengths.sum(dtype=np.int64))
            longest = max(longest, int(lengths.max(initial=0)))
        left = max(0, left - len(mates[0].seq_len))
        if left == 0:
            break
    return bases / max(1, reads), longest, chain(held, batches)
