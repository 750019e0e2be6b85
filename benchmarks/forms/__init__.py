"""Our own commands on the same reads in every form; ``python -m benchmarks.forms``."""
