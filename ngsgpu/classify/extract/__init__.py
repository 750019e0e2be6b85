"""Reads of taxa: those records whose calls, in a table of a classification, are of some taxa.

Read ``params`` (which taxa), ``calls`` (the table, block by block), ``kernels`` and ``stage``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.classify.extract.params import ExtractionParameters
    from ngsgpu.classify.extract.stage import ExtractionStatistics, extract_files

__all__ = ["ExtractionParameters", "ExtractionStatistics", "extract_files"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
