"""Corrected and merged real reads against a reference, by the alignments of the raw reads.

``result`` has the definitions, ``files`` goes from files to the result: ``aligner`` aligns the raw
reads, ``pileup`` counts bases by position, ``sites`` calls variant sites from them, ``compare``
compares corrected reads and ``fragments`` merged ones.
"""

from ngsgpu.evaluate.mapped.files import evaluate_mapped_reads
from ngsgpu.evaluate.mapped.result import MappedEvaluation
from ngsgpu.evaluate.mapped.sites import Thresholds

__all__ = ["MappedEvaluation", "Thresholds", "evaluate_mapped_reads"]
