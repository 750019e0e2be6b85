"""Blocks of whole lines, and the table of names."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.text import lines
from ngsgpu.io.text.keys import KeyTable
from ngsgpu.io.text.lines import read_line_blocks
from tests.support.properties import examples


@given(
    text=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r\n", b"d" * 9]), max_size=40).map(
        b"".join
    ),
    size=st.integers(1, 30),
)
@examples(80)
def test_blocks_are_the_file(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, size: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "text"
    path.write_bytes(text)
    blocks = list(read_line_blocks(path, block_bytes=size))
    whole = text if text.endswith(b"\n") or not text else text + b"\n"
    assert b"".join(block.data.tobytes() for block in blocks) == whole
    line = 0
    for block in blocks:
        assert block.data[-1] == 10
        assert block.first_line == line
        assert block.lines == block.data.tobytes().count(b"\n") > 0
        assert block.line_number(0) == line + 1
        assert block.line_number(len(block.data) - 1) == line + block.lines
        line += block.lines


def test_compressed_and_missing_files(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    (block,) = read_line_blocks(path)
    assert block.data.tobytes() == b"a\nb\n"
    with pytest.raises(InputError, match="no such file"):
        list(read_line_blocks(tmp_path / "nothing"))


def test_endless_lines_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 20)
    path = tmp_path / "text"
    path.write_bytes(b"short\n" + b"x" * 50 + b"\n")
    with pytest.raises(InputError, match="line 2: the line is longer than 20 bytes"):
        list(read_line_blocks(path, block_bytes=8))


names = st.lists(st.text("aB1._-", max_size=5).map(str.encode), max_size=20)


def spans(words: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    ends = np.cumsum(lengths)
    return np.frombuffer(b"".join(words), dtype=np.uint8), ends - lengths, ends


@given(keys=names, wanted=names)
@examples(100)
def test_names_are_found_as_in_a_dictionary(keys: list[bytes], wanted: list[bytes]) -> None:
    table = KeyTable.of(keys)
    assert len(table) == len(keys)
    first: dict[bytes, int] = {}
    for number, key in enumerate(keys):
        first.setdefault(key, number)
    assert table.find(*spans(wanted)).tolist() == [first.get(word, -1) for word in wanted]

    def longest(word: bytes) -> int:
        for end in range(len(word), -1, -1):
            is_cut = end == len(word) or not word[end : end + 1].isalnum()
            if is_cut and word[:end] in first:
                return first[word[:end]]
        return -1

    assert table.find_beginnings(*spans(wanted)).tolist() == [longest(word) for word in wanted]
