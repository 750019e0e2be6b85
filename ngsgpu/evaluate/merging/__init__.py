"""Merged reads against the fragments they come from.

``result`` has the definitions, ``cpu`` the comparison, ``files`` goes from files to the result.
"""

from ngsgpu.evaluate.merging.files import evaluate_merging
from ngsgpu.evaluate.merging.result import MergingEvaluation

__all__ = ["MergingEvaluation", "evaluate_merging"]
