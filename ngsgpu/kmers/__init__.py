"""Exact counts of canonical k-mers, in databases on the disk.

Read in this order: ``params``, ``cpu`` (the kernels), ``cpu_run`` (how a run uses them), ``long``
(k-mers of several words), ``database`` (its folder), ``count`` (making it), ``compare``
(intersections, differences, look-ups), ``text``, ``model`` (of the genome, by the histogram). See
``docs/kmers.md``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.kmers.compare import Kept, Lookup, combine
    from ngsgpu.kmers.count import count_files
    from ngsgpu.kmers.database import KmerDatabase, Source, open_database
    from ngsgpu.kmers.params import CountParameters

__all__ = [
    "CountParameters",
    "Kept",
    "KmerDatabase",
    "Lookup",
    "Source",
    "combine",
    "count_files",
    "open_database",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
