"""Trimming: adapters, poor ends and tails of one base are cut off, poor reads left out.

Read in this order: ``params`` (parameters), ``rules`` (their form for kernels), ``cuts`` (cutting
a read), ``overlap`` (of mates), ``filters`` (which reads are kept), ``records`` (in and out),
``cpu`` (all of a task), ``gpu`` and ``cuda/`` (the same on the device), ``duplicates``, ``detect``
and ``adapters`` (adapters that are not given), ``counts``, ``report`` (fastp's JSON), ``stats``,
``outputs``, ``stage`` (files to files). The method is fastp's (Chen et al. 2018), described in
``docs/trim.md``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.run.options import RunOptions
    from ngsgpu.trim.outputs import TrimOutputs
    from ngsgpu.trim.params import TrimParameters
    from ngsgpu.trim.stage import trim_files
    from ngsgpu.trim.stats import TrimStatistics

__all__ = ["RunOptions", "TrimOutputs", "TrimParameters", "TrimStatistics", "trim_files"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
