"""Minhash tables over a read set: reads that share a k-mer, and so may overlap.

Shared by correction and extension. ``params`` says what can be chosen, ``tables`` builds, ``cpu``
holds the kernels.
"""

from ngsgpu.minhash.params import MinhashParameters
from ngsgpu.minhash.tables import MinhashTables, build_tables

__all__ = ["MinhashParameters", "MinhashTables", "build_tables"]
