"""Truth comparison: how many errors a stage mended, left and made.

Read ``result`` first (the definitions), then ``cpu`` (the comparison and the rule for indels),
``records`` and ``matching`` (the truth's files, and which record belongs to which read),
``correction`` (files to result) and ``table`` (what the command line prints); ``merging_result``
and ``merging`` are the same for merged reads.
"""

from ngsgpu.evaluate.correction import evaluate_arrays, evaluate_correction
from ngsgpu.evaluate.result import CorrectionEvaluation, Counts, ReadCounts

__all__ = [
    "CorrectionEvaluation",
    "Counts",
    "ReadCounts",
    "evaluate_arrays",
    "evaluate_correction",
]
