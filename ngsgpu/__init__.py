"""Correct, extend, merge, classify and assemble Illumina short reads on GPUs and CPUs.

Importing the package is cheap: it loads neither Numba nor CuPy. Each algorithm has its own package
(``ngsgpu.correct``, ...) with the same layout: ``params``, ``cpu``, ``gpu``, ``pipeline``,
``stats``.
"""

from ngsgpu._version import __version__

__all__ = ["__version__"]
