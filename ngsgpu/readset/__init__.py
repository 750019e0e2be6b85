"""All reads of a run in memory: packed bases, qualities, lengths, and who is whose mate."""

from ngsgpu.readset.readset import ReadArrays, ReadSet, ReadSetBuilder, UnknownBases

__all__ = ["ReadArrays", "ReadSet", "ReadSetBuilder", "UnknownBases"]
