"""Error correction of reads by their k-mers (spectral alignment).

K-mers that occur often enough are solid; weak ones tell of errors. Read in this order: ``params``,
``kmers`` (a read, counts of k-mers, and the set of solid ones), ``rules``, ``cpu`` (all reads),
``cpu_run``, ``stage``; for GPUs ``gpu`` (counting, and the set), ``gpu_correct``,
``gpu_plan``, ``gpu_team`` (all steps), ``gpu_run``.
After Shi and others (2010) and Mahmood (2012).
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.spectrum.cpu_run import SpectrumCorrections
    from ngsgpu.spectrum.params import SpectrumParameters
    from ngsgpu.spectrum.stage import correct_files, correct_reads, plan_files
    from ngsgpu.spectrum.stats import SpectrumStatistics

__all__ = [
    "SpectrumCorrections",
    "SpectrumParameters",
    "SpectrumStatistics",
    "correct_files",
    "correct_reads",
    "plan_files",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
