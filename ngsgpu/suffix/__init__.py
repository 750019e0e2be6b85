"""Suffix arrays, and the indexes made of them: BWA's, the FM index, the Burrows-Wheeler transform.

Exact matches of reads are found in them (Schmidt 2022, chapter 5; Li 2012).
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.suffix.array import is_suffix_array, suffix_array
    from ngsgpu.suffix.build import build_index, plan_index
    from ngsgpu.suffix.check import is_index
    from ngsgpu.suffix.fm import FmIndex, fm_index
    from ngsgpu.suffix.params import FORMATS, Format, QueryParameters
    from ngsgpu.suffix.query.run import Searcher, query_files
    from ngsgpu.suffix.stats import IndexSummary, QuerySummary
    from ngsgpu.suffix.store import open_index

__all__ = [
    "FORMATS",
    "FmIndex",
    "Format",
    "IndexSummary",
    "QueryParameters",
    "QuerySummary",
    "Searcher",
    "build_index",
    "fm_index",
    "is_index",
    "is_suffix_array",
    "open_index",
    "plan_index",
    "query_files",
    "suffix_array",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
