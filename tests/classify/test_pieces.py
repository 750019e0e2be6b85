"""Files of references, read in pieces for a GPU."""

from __future__ import annotations

import gc
import gzip
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.classify.sketch.gpu_references import PieceReader
from ngsgpu.device import pinned
from ngsgpu.io.gpu.feed import IrregularInputError


class Copied:
    """An event that is over."""

    done = True

    def synchronize(self) -> None:
        """Nothing is waited for."""


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 8, 100])
def test_files_are_closed_wherever_reading_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, missing: bool
) -> None:
    """What stays open is an error of the test, see ``filterwarnings``."""
    monkeypatch.setattr(pinned, "pinned_empty", lambda size: np.empty(size, dtype=np.uint8))
    files = [tmp_path / f"{number}.fa" for number in range(5)]
    texts = [f">s{number}\n{'ACGT' * 70}\n".encode() for number in range(5)]
    for number, (path, text) in enumerate(zip(files, texts, strict=True)):
        path.write_bytes(gzip.compress(text) if number == 3 else text)
    if missing:
        files[-1].unlink()
    read = b""
    with ThreadPoolExecutor(2) as pool:
        buffers = pinned.PinnedPool(100, 8)
        reader = PieceReader([*map(str, files)], pool, buffers, 2)
        try:
            with closing(reader.pieces()) as pieces:
                for piece in islice(pieces, count):
                    read += piece.data.tobytes()
                    reader.release(piece, Copied())
        except IrregularInputError:
            assert missing
        reader.close()
    gc.collect()
    assert b"".join(texts).startswith(read)
    assert missing or count < 100 or read == b"".join(texts)
