"""Extended reads against the truth, or against their alignments.

``result`` has the definitions; ``positions`` provides the truth, ``cpu`` compares; ``files`` is for
simulated pairs, ``mapped`` for real ones.
"""

from ngsgpu.evaluate.extension.files import evaluate_extension
from ngsgpu.evaluate.extension.mapped import evaluate_mapped
from ngsgpu.evaluate.extension.result import ExtensionEvaluation

__all__ = ["ExtensionEvaluation", "evaluate_extension", "evaluate_mapped"]
