"""Where sequences are in the indexed text, of both strands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SequencePlaces:
    """Names and places of the sequences.

    Attributes:
        names: one for each sequence.
        starts: int64[n + 1], where they begin in the forward strand, and its size.
    """

    names: list[bytes]
    starts: NDArray[np.int64]

    def fit(self, size: int) -> bool:
        """Whether they are places in a text of both strands of this size."""
        return (
            len(self.starts) == len(self.names) + 1 > 1
            and int(self.starts[0]) == 0
            and 2 * int(self.starts[-1]) == size
            and bool((np.diff(self.starts) >= 0).all())
        )

    def locate(
        self, places: NDArray[np.int64], length: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Sequences and offsets of pieces of the text.

        Args:
            places: int64[m], where the pieces begin in the text of both strands.
            length: int64[m], their bases.

        Returns:
            The number of each one's sequence, -1 if it goes over an end; the offset of its lowest
            base in the sequence; and whether it is on the reverse strand.
        """
        size = int(self.starts[-1])
        reverse = places >= size
        low = np.where(reverse, 2 * size - places - length, places)
        number = np.searchsorted(self.starts, low, side="right") - 1
        inside = (low >= 0) & (low + length <= self.starts[np.minimum(number + 1, len(self.names))])
        inside &= ~((places < size) & (places + length > size))
        return np.where(inside, number, -1), low - self.starts[number], reverse
