"""A text of bases in GPU memory, two bits each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.pinned import to_device

KERNELS: Final = KernelModule("ngsgpu.suffix.bucket")

_WORD: Final = 32
"""Bases of a word."""

_CHUNK: Final = 1 << 26
"""Bases that are copied to the GPU at a time; a multiple of ``_WORD``."""


@dataclass(frozen=True)
class PackedText:
    """A text on the current GPU.

    Attributes:
        words: CuPy uint64, the bases, the first in the highest bits; A behind the end, up to the
            end of the word after the last.
        size: bases.
    """

    words: Any
    size: int

    def arguments(self) -> tuple[Any, Any]:
        """What kernels take."""
        return self.words, np.int64(self.size)


def text_bytes(size: int) -> int:
    """GPU memory of a text, by its number of bases."""
    return 8 * (-(-size // _WORD) + 2)


def pack_text(codes: NDArray[np.uint8], *, both_strands: bool) -> PackedText:
    """Pack a text.

    Args:
        codes: uint8[n], 0 to 3.
        both_strands: whether the reverse complement of ``codes`` follows them.
    """
    import cupy

    size = len(codes) * (2 if both_strands else 1)
    words = cupy.zeros(text_bytes(size) // 8, dtype=cupy.uint64)
    for at in range(0, len(codes), _CHUNK):
        part = to_device(codes[at : at + _CHUNK])
        KERNELS.launch_threads(
            "pack_letters", -(-len(part) // _WORD), part, np.int64(len(part)), words[at // _WORD :]
        )
    if both_strands:
        KERNELS.launch_threads("turn_text", len(codes) // _WORD + 1, words, np.int64(len(codes)))
    return PackedText(words, size)
