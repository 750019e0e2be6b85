"""Correct, extend, merge, classify and assemble Illumina short reads on GPUs and CPUs.

Importing the package imports nothing heavy: neither Numba nor CuPy. Each algorithm lives in a
package of its own (``ngsgpu.correct``, ...), all with the same rooms: ``params``, ``cpu``,
``gpu``, ``pipeline``, ``stats``.
"""

from ngsgpu._version import __version__

__all__ = ["__version__"]
