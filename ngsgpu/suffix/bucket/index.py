"""The FM index of a text of bases, from its suffixes bucket by bucket.

A bucket are the suffixes from one to another. Its bounds are taken from some suffixes that are
sorted first, so that buckets are of about one size in any text. Each bucket leaves the bases in
front of its suffixes and a sample of their places; joined, they are the transform.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.plan import gpu_memory
from ngsgpu.device.team import Team, free_unused, here, limited_gpu_memory
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.suffix.bucket.cover import Cover, cover_stride, cover_tables, difference_cover
from ngsgpu.suffix.bucket.plan import BucketPlan, plan_buckets
from ngsgpu.suffix.bucket.sort import sorted_suffixes
from ngsgpu.suffix.bucket.text import KERNELS, PackedText, pack_text
from ngsgpu.suffix.fm import BLOCK, SAMPLED, FmIndex, word_count
from ngsgpu.suffix.gpu import rank_by_doubling


def rank_cover(text: PackedText, period: int) -> Cover:
    """Rank the suffixes at the places of a difference cover.

    They are sorted by a period of letters and named by that; the names of a class, one after the
    other, are then a text, whose suffixes prefix doubling ranks.
    """
    import cupy

    residues = difference_cover(period)
    stride = cover_stride(text.size, period)
    blank = Cover(None, cupy.asarray(cover_tables(period)), period, stride)

    def take() -> tuple[Any, Any]:
        classes = [cupy.arange(first, text.size, period, dtype=cupy.int64) for first in residues]
        places = cupy.concatenate(classes)
        keys = cupy.empty(len(places), dtype=cupy.uint64)
        count = np.int64(len(places))
        KERNELS.launch_threads("first_keys", len(places), *text.arguments(), places, count, keys)
        return places, keys

    places = sorted_suffixes(text, blank, take)
    count = np.int64(len(places))
    marks = cupy.empty(len(places), dtype=cupy.uint8)
    KERNELS.launch_threads(
        "mark_names", len(places), *text.arguments(), np.int64(period), places, count, marks
    )
    indices = cupy.empty(len(places), dtype=cupy.uint32)
    KERNELS.launch_threads(
        "cover_indices",
        len(places),
        blank.tables,
        np.int64(period),
        np.int64(stride),
        places,
        count,
        indices,
    )
    del places
    ranks = cupy.zeros(len(residues) * stride, dtype=cupy.uint32)
    # Suffixes that are not longer than a period have separate names, so that those which go on
    # with equal names never run over the end of their class.
    rank_by_doubling(marks, indices, ranks, known=1)
    return Cover(ranks, blank.tables, period, stride)


_PART: Final = 128
"""Places that a thread looks at when a bucket is taken, as in ``kernels.cu``."""

_BOUNDS: Final = 1 << 12
"""Suffixes from which the bounds of buckets are taken."""

_WORD_ROWS: Final = 16


@dataclass(frozen=True, slots=True)
class Bucket:
    """Consecutive suffixes in their order.

    Attributes:
        low: the first one; -1 for the first of all.
        high: the one behind the last; -1 for the end.
        first_row: row of the first one.
        count: how many.
    """

    low: int
    high: int
    first_row: int
    count: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Result of a bucket.

    Attributes:
        first: word of the rows at which it begins.
        rows: CuPy uint32, the bases in front, 16 rows in a word.
        primary: row of the whole text; -1 if it is in another bucket.
    """

    first: int
    rows: Any
    primary: int


def fm_index_by_buckets(
    codes: NDArray[np.uint8],
    *,
    both_strands: bool = True,
    limit: int | None = None,
    gpus: int = 1,
    plan: BucketPlan | None = None,
) -> FmIndex:
    """The FM index of a text of bases, made on GPUs; see ``fm_index``.

    Args:
        codes: uint8[n], 0 to 3.
        both_strands: whether the reverse complement of ``codes`` follows them in the text.
        limit: memory that may be used on each GPU, in bytes; None: free memory.
        gpus: how many share the buckets, the current one and those after it.
        plan: sizes of buckets and cover; None: by the memory. Does not affect the result.

    Raises:
        DeviceMemoryError: the text does not fit.
        DeviceError: CUDA fails.
    """
    size = len(codes) * (2 if both_strands else 1)
    with limited_gpu_memory(limit, gpus), cuda_errors("making the FM index on the GPU"):
        team = Team(gpus)
        if plan is None:
            plan = plan_buckets(size, min(team.each(lambda _: gpu_memory(limit).budget)))
        text = pack_text(codes, both_strands=both_strands)
        cover = rank_cover(text, plan.period)
        buckets = _buckets_of(text, cover, plan)
        sample = np.empty(size // SAMPLED + 1, dtype=np.int64)
        pieces = _by_team(team, text, cover, buckets, sample)
        del cover
        sample[0] = -1
        rows, primary = _joined(text, pieces)
        del text
        return _index_of(rows, size, primary, sample)


def _buckets_of(text: PackedText, cover: Cover, plan: BucketPlan) -> list[Bucket]:
    """Cut the suffixes into buckets, each of at most ``plan.most``."""
    if text.size <= plan.most:
        return [Bucket(-1, -1, 1, text.size)]
    bounds = _bounds(text, cover)
    share = max(1, plan.aim * (len(bounds) - 1) // text.size)
    pending = [(at, min(at + share, len(bounds) - 1)) for at in range(0, len(bounds) - 1, share)][
        ::-1
    ]
    buckets: list[Bucket] = []
    row = 1
    while pending:
        begin, end = pending.pop()
        low, high = bounds[begin], bounds[end]
        count = int(_part_counts(text, cover, low, high).sum(dtype=np.int64))
        if count <= plan.most:
            buckets.append(Bucket(low, high, row, count))
            row += count
        elif end - begin > 1:
            middle = (begin + end) // 2
            pending += [(middle, end), (begin, middle)]
        else:
            raise DeviceMemoryError(
                f"the suffixes cannot be cut into buckets of at most {plan.most:,}; raise "
                "`gpu_memory`, or use `backend='cpu'`"
            )
    return buckets


def _bounds(text: PackedText, cover: Cover) -> list[int]:
    """Some suffixes in their order, between -1 for the first and -1 for the end of all."""
    import cupy

    chosen = np.unique(np.random.default_rng(1).integers(0, text.size, _BOUNDS))

    def take() -> tuple[Any, Any]:
        places = cupy.asarray(chosen.astype(np.int64))
        keys = cupy.empty(len(places), dtype=cupy.uint64)
        count = np.int64(len(places))
        KERNELS.launch_threads("first_keys", len(places), *text.arguments(), places, count, keys)
        return places, keys

    return [-1, *sorted_suffixes(text, cover, take).get().tolist(), -1]


def _part_counts(text: PackedText, cover: Cover, low: int, high: int) -> Any:
    """Number of a bucket's suffixes in each part of the text, CuPy uint32."""
    import cupy

    parts = -(-text.size // _PART)
    counts = cupy.empty(parts, dtype=cupy.uint32)
    bounds = np.int64(low), np.int64(high)
    KERNELS.launch_threads(
        "count_bucket", parts, *text.arguments(), *cover.arguments(), *bounds, counts
    )
    return counts


def _by_team(
    team: Team,
    text: PackedText,
    cover: Cover,
    buckets: list[Bucket],
    sample: NDArray[np.int64],
) -> list[Piece]:
    """The pieces of all buckets, each on the GPU that made it."""
    import cupy

    # Copies to the other GPUs are made from what has been written.
    cupy.cuda.get_current_stream().synchronize()
    lock = threading.Lock()
    waiting = buckets[::-1]

    def copies(member: int) -> tuple[PackedText, Cover]:
        own = Cover(here(cover.ranks), here(cover.tables), cover.period, cover.stride)
        return PackedText(here(text.words), text.size), own

    inputs = team.each(copies)

    def work(member: int) -> list[Piece]:
        done = []
        while True:
            with lock:
                if not waiting:
                    break
                bucket = waiting.pop()
            done.append(_piece_of(*inputs[member], bucket, sample))
        cupy.cuda.get_current_stream().synchronize()
        return done

    return [piece for own in team.at_once(work, waiting.clear) for piece in own]


def _piece_of(
    text: PackedText, cover: Cover, bucket: Bucket, sample: NDArray[np.int64]
) -> Piece:  # fmt: skip
    """Sort a bucket; write its places into the sample."""

    def take() -> tuple[Any, Any]:
        import cupy

        ends = cupy.cumsum(_part_counts(text, cover, bucket.low, bucket.high), dtype=cupy.int64)
        places = cupy.empty(bucket.count, dtype=cupy.int64)
        keys = cupy.empty(bucket.count, dtype=cupy.uint64)
        bounds = np.int64(bucket.low), np.int64(bucket.high)
        KERNELS.launch_threads(
            "take_bucket",
            len(ends),
            *text.arguments(),
            *cover.arguments(),
            *bounds,
            ends,
            places,
            keys,
        )
        return places, keys

    free_unused()
    places = sorted_suffixes(text, cover, take)
    return packed_piece(text, places, bucket.first_row, sample)


def packed_piece(
    text: PackedText, places: Any, first_row: int, sample: NDArray[np.int64]
) -> Piece:  # fmt: skip
    """Bases in front of sorted suffixes; the sample gets its share of their places."""
    import cupy

    end = first_row + len(places)
    first = first_row // _WORD_ROWS
    rows = cupy.empty(-(-end // _WORD_ROWS) - first, dtype=cupy.uint32)
    begin_sample, end_sample = -(-first_row // SAMPLED), -(-end // SAMPLED)
    own = cupy.empty(end_sample - begin_sample, dtype=cupy.int64)
    primary = cupy.full(1, -1, dtype=cupy.int64)
    KERNELS.launch_threads(
        "pack_rows",
        len(rows),
        *text.arguments(),
        places,
        np.int64(len(places)),
        np.int64(first_row),
        rows,
        own,
        primary,
    )
    sample[begin_sample:end_sample] = own.get()
    return Piece(first, rows, int(primary[0]))


def _joined(text: PackedText, pieces: list[Piece]) -> tuple[Any, int]:
    """All rows, CuPy uint32, 16 in a word; and that of the whole text. Empties the list."""
    import cupy

    rows = cupy.zeros(text.size // _WORD_ROWS + 1, dtype=cupy.uint32)
    last = cupy.full(1, text.size, dtype=cupy.int64)
    pieces.append(packed_piece(text, last, 0, np.empty(1, dtype=np.int64)))
    primary = -1
    while pieces:
        piece = pieces.pop()
        primary = max(primary, piece.primary)
        # Where pieces meet in a word, each has zeros for the rows of the other.
        rows[piece.first : piece.first + len(piece.rows)] |= here(piece.rows)
    return rows, primary


def _index_of(rows: Any, size: int, primary: int, sample: NDArray[np.int64]) -> FmIndex:
    import cupy

    free_unused()
    blocks = -(-size // BLOCK)
    words = cupy.zeros(word_count(size), dtype=cupy.uint32)
    counts = cupy.empty((4, blocks), dtype=cupy.uint32)
    KERNELS.launch_threads(
        "fill_blocks", blocks, rows, np.int64(size), np.int64(primary), words, counts
    )
    del rows
    before = cupy.empty((4, blocks), dtype=cupy.int64)
    for base in range(4):
        before[base] = cupy.cumsum(counts[base], dtype=cupy.int64)
    KERNELS.launch_threads("write_counts", 4 * (blocks + 1), before, np.int64(size), words)
    totals = np.concatenate([[0], np.cumsum(before[:, -1].get())]).astype(np.int64)
    return FmIndex(primary, totals, words.get(), sample)
