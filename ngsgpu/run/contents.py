"""How many reads files have: counted, or of large files about, from their sizes and beginnings.

A run that cannot fit is refused by that before it reads for minutes, and ``--dry-run`` answers in
seconds. What the beginning of a file says of the rest is right within some percent, so only what
is clearly too large is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from isal import isal_zlib

from ngsgpu.io.compress.members import ERRORS
from ngsgpu.io.compress.source import is_compressed, unpacked_size
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.readset.qualities import SeenScores
from ngsgpu.run.options import Contents, RunOptions, chunk_bytes_within

COUNTED_BYTES: Final = 1 << 28
"""Text of a lane up to which its reads are counted."""

SAMPLED_BYTES: Final = 1 << 25
"""Text of a larger lane from which they are estimated."""

_SAMPLERS: Final = 2
_HEAD_BYTES: Final = 1 << 21
_GZIP: Final = b"\x1f\x8b"


def text_size(path: str | Path) -> int:
    """Bytes of a file's text, about; of gzip by its first bytes, of other formats by its size."""
    try:
        size = Path(path).stat().st_size
        with Path(path).open("rb") as file:
            data = head = file.read(_HEAD_BYTES)
    except OSError:
        return 0
    if not head.startswith(_GZIP):
        return unpacked_size(path)
    text = 0
    with contextlib.suppress(*ERRORS):
        while data:
            inflater = isal_zlib.decompressobj(wbits=31)
            text += len(inflater.decompress(data))
            data = inflater.unused_data
    return size * text // len(head)


def lanes_text(lanes: Sequence[ReadFiles]) -> int:
    """Bytes of the text of all files, about."""
    return sum(text_size(path) for lane in lanes for path in lane.inputs)


def contents_of(
    lanes: Sequence[ReadFiles],
    options: RunOptions,
    phred_offset: PhredOffset,
    counted_bytes: int = COUNTED_BYTES,
) -> Contents:
    """Contents of inputs: exact where no lane is large.

    Args:
        lanes: the inputs; no streams.
        options: threads and memory.
        phred_offset: of the qualities.
        counted_bytes: text of a lane up to which its reads are counted.

    Raises:
        InputError: an input cannot be read.
    """
    reads = bases = longest = inflated = 0
    estimated = False
    seen = SeenScores(64 if phred_offset == 64 else 33)
    for lane in lanes:
        text = lanes_text([lane])
        most = None if text <= counted_bytes else min(SAMPLED_BYTES, counted_bytes)
        found = _begin_of(lane, options, phred_offset, most, seen)
        factor = 1.0
        if most is not None and found.inflated >= most:
            factor, estimated = max(1.0, text / found.inflated), True
        reads += round(factor * found.reads)
        bases += round(factor * found.bases)
        longest = max(longest, found.longest)
        if any(map(is_compressed, lane.inputs)):
            inflated += round(factor * found.inflated)
    return Contents(
        reads,
        bases,
        longest,
        lanes[0].paired,
        estimated=estimated,
        inflated=inflated,
        quality_bits=seen.bits,
    )


def _begin_of(
    lane: ReadFiles,
    options: RunOptions,
    phred_offset: PhredOffset,
    most: int | None,
    seen: SeenScores,
) -> Contents:
    """Contents of the first bytes of a lane, at least ``most`` if it has them; ``inflated``: all.

    Raises:
        InputError: the lane cannot be read.
    """
    reads = bases = longest = text = 0
    chunk_bytes = chunk_bytes_within(options.budget, options.chunk_bytes)
    threads = options.threads
    if most is not None:
        # More threads would inflate far more than is looked at.
        chunk_bytes, threads = min(chunk_bytes, max(1, most // 8)), min(threads, _SAMPLERS)
    batches = lane.batches(threads=threads, phred_offset=phred_offset, chunk_bytes=chunk_bytes)
    for mates in batches:
        for batch in mates:
            reads += len(batch)
            seen.add(batch)
            bases += int(batch.seq_len.sum(dtype=np.int64))
            longest = max(longest, int(batch.seq_len.max(initial=0)))
            text += len(batch.text)
        if most is not None and text >= most:
            break
    return Contents(reads, bases, longest, lane.paired, inflated=text)
