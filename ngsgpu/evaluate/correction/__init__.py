"""Corrected reads against the truth.

``result`` has the definitions, ``cpu`` the comparison, ``files`` goes from files to the result.
"""

from ngsgpu.evaluate.correction.files import evaluate_arrays, evaluate_correction
from ngsgpu.evaluate.correction.result import CorrectionEvaluation, Counts, ReadCounts

__all__ = [
    "CorrectionEvaluation",
    "Counts",
    "ReadCounts",
    "evaluate_arrays",
    "evaluate_correction",
]
