"""Minhash tables over a read set: reads that share a k-mer, and so may overlap.

Shared by correction and extension. ``cpu`` holds the parameters and the kernels, ``tables`` builds.
"""

from ngsgpu.minhash.cpu import MinhashParameters
from ngsgpu.minhash.tables import MinhashTables, build_tables

__all__ = ["MinhashParameters", "MinhashTables", "build_tables"]
