"""Unitigs: the compacted de Bruijn graph of counted k-mers.

Read in this order: ``params``, ``graph`` (k-mers and their neighbours), ``chains`` (unitigs and
links), ``text`` (FASTA and GFA), ``pipeline``. See ``docs/unitigs.md``.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.assemble.chains import Unitigs, find_unitigs
    from ngsgpu.assemble.graph import Graph, graph_of
    from ngsgpu.assemble.params import UnitigParameters
    from ngsgpu.assemble.pipeline import write_unitigs
    from ngsgpu.assemble.stats import UnitigSummary

__all__ = [
    "Graph",
    "UnitigParameters",
    "UnitigSummary",
    "Unitigs",
    "find_unitigs",
    "graph_of",
    "write_unitigs",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
