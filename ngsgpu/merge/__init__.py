"""Merging of overlapping pairs: both reads of a short fragment become one longer read (FLASH).

Read in this order: ``params`` (parameters, and merging two bases and their qualities),
``overlap`` (finding the overlap), ``records`` (bytes of reads, records in and out),
``cpu`` (the kernel), ``cpu_run`` (batches on threads), ``kernels.cu`` and ``gpu`` (the same on a
GPU), ``outputs`` (files), ``pipeline`` (files to files), ``stats``. The method is
described in ``docs/merge.md``.
"""

from ngsgpu.merge.outputs import MergeOutputs
from ngsgpu.merge.params import MergeParameters
from ngsgpu.merge.pipeline import merge_files
from ngsgpu.merge.stats import MergeStatistics
from ngsgpu.run.options import RunOptions

__all__ = ["MergeOutputs", "MergeParameters", "MergeStatistics", "RunOptions", "merge_files"]
