"""Merging of overlapping pairs: both reads of a short fragment become one longer read.

Read in this order: ``params`` (parameters), ``qualities`` (tables of what two bases say),
``overlap`` and ``likelihood`` (finding the overlap, as FLASH or by likelihood), ``sample`` (what
the first pairs teach), ``records`` (bytes of reads, records in and out),
``cpu`` (the kernel), ``kernels.cu`` and ``gpu`` (the same on a GPU), ``outputs`` (files),
``stats``, ``stage`` (files to files). The method is described in ``docs/merge.md``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.merge.outputs import MergeOutputs
    from ngsgpu.merge.params import MergeParameters
    from ngsgpu.merge.stage import merge_files
    from ngsgpu.merge.stats import MergeStatistics
    from ngsgpu.run.options import RunOptions

__all__ = ["MergeOutputs", "MergeParameters", "MergeStatistics", "RunOptions", "merge_files"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
