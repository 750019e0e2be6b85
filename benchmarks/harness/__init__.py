"""Data sets, processes measured, and tables: what all benchmarks share."""
