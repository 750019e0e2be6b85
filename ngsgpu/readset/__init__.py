"""All reads of a run in memory: packed bases, qualities, lengths and pairing."""

from ngsgpu.readset.cpu import ReadArrays
from ngsgpu.readset.readset import AmbiguousBases, ReadSet, ReadSetBuilder

__all__ = ["AmbiguousBases", "ReadArrays", "ReadSet", "ReadSetBuilder"]
