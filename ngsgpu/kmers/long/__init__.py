"""Counting k-mers of several words on the CPU: the kernels (``superkmers``), then ``cpu_run``."""
