"""Eulerian assembly of error-free reads, as GPU-Euler does it (Mahmood 2012, chapter 3).

Read in this order: ``params``, ``graph`` (vertices and edges as arrays), ``tour`` (each edge's
successor), ``contigs`` (walking), ``pipeline``. See ``docs/euler.md``.

Every step but the spanning tree works on all vertices or edges at once, with arrays only, so that a
GPU can do the same.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.assemble.euler.contigs import Contigs, find_contigs, write_contigs
    from ngsgpu.assemble.euler.graph import EulerGraph, euler_graph
    from ngsgpu.assemble.euler.params import EulerParameters
    from ngsgpu.assemble.euler.pipeline import EulerStatistics, assemble_euler
    from ngsgpu.assemble.euler.tour import (
        assign_successors,
        circuit_graph,
        find_components,
        spanning_tree,
        swipe,
    )

__all__ = [
    "Contigs",
    "EulerGraph",
    "EulerParameters",
    "EulerStatistics",
    "assemble_euler",
    "assign_successors",
    "circuit_graph",
    "euler_graph",
    "find_components",
    "find_contigs",
    "spanning_tree",
    "swipe",
    "write_contigs",
]

__getattr__, __dir__ = on_first_use(__name__, __file__)
