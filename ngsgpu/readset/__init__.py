"""All reads of a run in memory: packed bases, qualities, lengths, and who is whose mate."""

from ngsgpu.readset.readset import AmbiguousBases, ReadArrays, ReadSet, ReadSetBuilder

__all__ = ["AmbiguousBases", "ReadArrays", "ReadSet", "ReadSetBuilder"]
