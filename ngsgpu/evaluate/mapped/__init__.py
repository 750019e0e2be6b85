"""Corrected and merged real reads against a reference, by the alignments of the raw reads.

``result`` has the definitions, ``files`` goes from files to the result: ``aligner`` aligns the raw
reads, ``pileup`` counts bases by position, ``sites`` calls variant sites from them, ``compare``
compares corrected reads and ``fragments`` merged ones.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.evaluate.mapped.files import evaluate_mapped_reads
    from ngsgpu.evaluate.mapped.params import Thresholds
    from ngsgpu.evaluate.mapped.result import MappedEvaluation

__all__ = ["MappedEvaluation", "Thresholds", "evaluate_mapped_reads"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
