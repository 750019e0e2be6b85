"""Measurements, as scripts: ``python -m benchmarks.FOLDER.NAME``.

``peers`` measures whole programs side by side, ``accuracy`` what parameters and rules are worth,
``kernels`` single kernels on a GPU; ``harness`` is what they share. Results are in ``results``.
"""
