"""Minhash tables over a read set: reads that share a k-mer, and so may overlap.

Shared by correction and extension. ``cpu`` holds the parameters and the kernels, ``tables`` builds.
"""

from typing import TYPE_CHECKING

from ngsgpu.lazy import on_first_use

if TYPE_CHECKING:
    from ngsgpu.minhash.params import MinhashParameters
    from ngsgpu.minhash.tables import MinhashTables, build_tables

__all__ = ["MinhashParameters", "MinhashTables", "build_tables"]

__getattr__, __dir__ = on_first_use(__name__, __file__)
