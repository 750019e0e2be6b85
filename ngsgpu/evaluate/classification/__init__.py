"""Read classifications against the truth, and abundances against a sample's composition.

``result`` has the definitions; ``calls`` reads the classifiers' outputs, ``tally`` counts them by
origin, ``composition`` compares abundances and profiles, ``files`` goes from files to the result.
"""

from ngsgpu.evaluate.classification.files import DEFAULT_RANKS, evaluate_classification
from ngsgpu.evaluate.classification.result import ClassificationEvaluation

__all__ = ["DEFAULT_RANKS", "ClassificationEvaluation", "evaluate_classification"]
