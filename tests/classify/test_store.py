"""Arrays in files, and their checksums."""

from __future__ import annotations

import io
from pathlib import Path
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.io.output.store import ArrayFile, joined_checksum, save_arrays
from tests.support.properties import examples


@examples(50)
@given(st.lists(st.binary(max_size=300), max_size=12))
def test_joined_checksums(parts: list[bytes]) -> None:
    """Of few strings, and of so many that arrays are used."""
    assert joined_checksum([*map(crc32, parts)], [*map(len, parts)]) == crc32(b"".join(parts))


def test_files_are_those_of_numpy(tmp_path: Path) -> None:
    array = np.arange(1000, dtype=np.uint32).reshape(-1, 2)
    expected = io.BytesIO()
    np.save(expected, array)
    files = save_arrays(tmp_path, {"a": array, "none": np.zeros(0, np.int64)}, threads=2)
    assert (tmp_path / "a.npy").read_bytes() == expected.getvalue()
    pieces = ArrayFile(tmp_path, "b", np.uint32, array.shape)
    flat = array.reshape(-1).view(np.uint8)
    for begin in (3000, 0, 1500):
        pieces.put(begin, flat[begin : begin + 1500])
    size = len(expected.getvalue())
    assert pieces.close() == {"bytes": size, "crc32": crc32(expected.getvalue())}
    assert files["a.npy"] == {"bytes": size, "crc32": crc32(expected.getvalue())}
