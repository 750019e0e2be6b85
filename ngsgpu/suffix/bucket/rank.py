"""Ranks of the suffixes at the places of a difference cover, by which all others are compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from ngsgpu.suffix.bucket.cover import Cover, cover_stride, cover_tables, difference_cover
from ngsgpu.suffix.bucket.sort import sorted_suffixes
from ngsgpu.suffix.bucket.text import KERNELS, PackedText
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
