"""Comparison of each stage's output with the truth.

A folder a stage, all with the same files: ``result`` (definitions, counts, JSON, tables), ``cpu``
(the comparison) and ``files`` (from files to the result). They share ``truth`` (what is known of
the reads) and ``output`` (what all of them write).
"""

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
