"""Types of what kernels take and return; Numba itself looks at values, not at annotations."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Integer: TypeAlias = "int | np.integer[Any]"
"""A number, counted by Python or taken from an array."""
