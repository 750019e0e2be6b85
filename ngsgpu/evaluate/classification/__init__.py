"""Calls of reads against the truth, and abundances against a sample's composition.

``result`` has the definitions; ``calls`` reads what classifiers write, ``tally`` counts it by
origin, ``composition`` compares abundances, ``files`` goes from files to the result.
"""

from ngsgpu.evaluate.classification.files import DEFAULT_RANKS, evaluate_classification
from ngsgpu.evaluate.classification.result import ClassificationEvaluation

__all__ = ["DEFAULT_RANKS", "ClassificationEvaluation", "evaluate_classification"]
