"""Exact matches of reads: the search in an FM index, and lines of PAF."""
