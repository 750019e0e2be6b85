"""Side-by-side measurements; each module is a script, run as ``python -m benchmarks.NAME``."""
