"""Parameters of trimming, drawn at random."""

from __future__ import annotations

import random
from typing import Any

from ngsgpu.trim import TrimParameters
from tests.support.trim.world import ADAPTERS

CHOICES: dict[str, list[Any]] = {
    "adapter_sequence": ["auto", ADAPTERS[0], "AGATCGG", "GGACT"],
    "adapter_sequence_r2": ["auto", "auto", ADAPTERS[1]],
    "disable_adapter_trimming": [False, False, True],
    "trim_front1": [0, 0, 3, 40],
    "trim_tail1": [0, 0, 2, 30],
    "trim_front2": [None, 0, 5],
    "trim_tail2": [None, 0, 1],
    "max_len1": [0, 0, 45],
    "max_len2": [None, 0, 30],
    "trim_poly_g": [False, True],
    "poly_g_min_len": [10, 3],
    "trim_poly_x": [False, True],
    "poly_x_min_len": [10, 4],
    "cut_front": [False, False, True],
    "cut_tail": [False, False, True],
    "cut_right": [False, False, True],
    "cut_window_size": [4, 1, 9],
    "cut_mean_quality": [20, 28, 5],
    "cut_front_window_size": [None, 2],
    "cut_tail_mean_quality": [None, 30],
    "cut_right_window_size": [None, 6],
    "disable_quality_filtering": [False, False, True],
    "qualified_quality_phred": [15, 25],
    "unqualified_percent_limit": [40, 10],
    "n_base_limit": [5, 0],
    "average_qual": [0, 0, 22],
    "disable_length_filtering": [False, True],
    "length_required": [15, 1, 40],
    "length_limit": [0, 0, 50],
    "low_complexity_filter": [False, True],
    "complexity_threshold": [30, 60],
    "correction": [False, True],
    "overlap_len_require": [30, 10],
    "overlap_diff_limit": [5, 0, 12],
    "overlap_diff_percent_limit": [20, 29, 0],
}


def chosen(rng: random.Random) -> TrimParameters:
    given = {name: rng.choice(values) for name, values in CHOICES.items()}
    return TrimParameters(disable_trim_poly_g=not given["trim_poly_g"], **given)
