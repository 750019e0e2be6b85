"""Types of kernel arguments and results; Numba itself ignores annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Integer: TypeAlias = "int | np.integer[Any]"
"""A number, counted by Python or taken from an array."""
