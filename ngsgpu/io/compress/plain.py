"""Files that are not compressed."""

from __future__ import annotations

from typing import Final

from ngsgpu.io.compress.stream import Compression

PLAIN: Final = Compression("plain", "plain", lambda file: True, lambda file: file)
