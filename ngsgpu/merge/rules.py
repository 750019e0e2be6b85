"""Parameters of merging in the form of the kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Rules(NamedTuple):
    """What the kernels compare with.

    The last ones are those of overlaps by likelihood: ``density`` is in 1024ths, evidence in
    ``qualities.UNIT``, and ``contained`` tells whether a read may lie within the other one.
    """

    min_overlap: int
    max_overlap: int
    max_mismatch_density: np.float32
    outward: int
    min_outward: int
    phred_offset: int
    prefer_first: int
    never_ambiguous: int
    mask_ties: int
    correct_only: int
    likelihood: int
    density: int
    accept: int
    lead: int
    strong: int
    clear: int
    clearer: int
    certain: int
    related: int
    contained: int
    most_match: int
    most_mismatch: int
