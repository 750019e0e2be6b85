"""Depletion: the reads of a host are taken out, or kept alone.

Read in this order: ``params`` (parameters), ``kmers`` (sampled k-mers), ``table`` (that holds a
host's), ``index`` (its file), ``parts`` (k-mers in memory or in a file) and ``build`` (making it),
``sets`` (making one of others), ``cpu`` (the kernels), ``kernels.cu`` and ``gpu`` (the same on a
GPU), ``stats``, ``stage`` (files to files). The method is described in ``docs/deplete.md``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.deplete.build import build_index, plan_index
    from ngsgpu.deplete.index import HostIndex, open_index
    from ngsgpu.deplete.params import DepletionParameters, IndexParameters
    from ngsgpu.deplete.sets import combine_indexes
    from ngsgpu.deplete.stage import deplete_files
    from ngsgpu.deplete.stats import DepletionStatistics
    from ngsgpu.run.options import RunOptions

__all__ = [
    "DepletionParameters",
    "DepletionStatistics",
    "HostIndex",
    "IndexParameters",
    "RunOptions",
    "build_index",
    "combine_indexes",
    "deplete_files",
    "open_index",
    "plan_index",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
