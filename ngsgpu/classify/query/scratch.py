"""Arrays that a thread uses again for its next task, so that their memory is not mapped anew."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MOST_BYTES: Final = 4 << 20
"""Of an array that is kept; larger ones, of very long reads, are given back."""


class Scratch(threading.local):
    """Arrays by name; each thread has others."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def array(self, name: str, size: int, kind: type[np.generic]) -> NDArray[Any]:
        """An array with any contents, until the thread asks for the name again.

        Args:
            name: what it is used for.
            size: elements.
            kind: of the elements; always the same for a name.
        """
        known = self._kept.get(name)
        if known is None or len(known) < size:
            known = np.empty(size + size // 8, dtype=kind)
            if known.nbytes <= _MOST_BYTES:
                self._kept[name] = known
        return known[:size]
