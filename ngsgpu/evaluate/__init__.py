"""Comparison of each stage's output with the truth.

One folder per stage, all with the same files: ``result`` (definitions, counts, JSON, tables),
``cpu`` (the comparison) and ``files`` (from files to the result). ``mapped`` compares
corrected and merged real reads with a reference, ``kmers`` the k-mers of reads before and after
correction. They share ``truth`` (the true reads) and ``output`` (common output).
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.evaluate.correction import (
        CorrectionEvaluation,
        Counts,
        ReadCounts,
        evaluate_arrays,
        evaluate_correction,
    )

__all__ = [
    "CorrectionEvaluation",
    "Counts",
    "ReadCounts",
    "evaluate_arrays",
    "evaluate_correction",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
