"""What nvidia-smi prints."""

from __future__ import annotations

TABLE = """\
0, GPU-8f1c3d5e-0000, NVIDIA H200, 143771, 143167, 9.0, 580.82.07
1, GPU-a9b2c4d6-0000, NVIDIA H200, 143771, 100, 9.0, 580.82.07
"""
