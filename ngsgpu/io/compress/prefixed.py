"""A raw file whose first bytes were already read for format detection."""

from __future__ import annotations

import io


class Prefixed(io.RawIOBase):
    """Gives ``head``, then the rest of ``raw``.

    Args:
        head: bytes that were read from ``raw``.
        raw: the file; closed with this one.
    """

    def __init__(self, head: bytes, raw: io.RawIOBase) -> None:
        self._head = head
        self._raw = raw

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer with a single read; 0 at the end."""
        if self._head:
            size = min(len(buffer), len(self._head))
            buffer[:size] = self._head[:size]
            self._head = self._head[size:]
            return size
        count: int | None = self._raw.readinto(buffer)
        return count or 0

    def close(self) -> None:
        """Close the file below, too."""
        self._raw.close()
        super().close()
