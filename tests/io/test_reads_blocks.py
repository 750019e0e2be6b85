"""The encoder for reads makes BGZF that any reader inflates, the same whatever is around."""

from __future__ import annotations

import ctypes
import gzip
import heapq
import mmap
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, EOF_BLOCK, bgzf_blocks
from ngsgpu.io.compress.formats import packing_of
from ngsgpu.io.compress.reads import blocks as module
from ngsgpu.io.compress.reads import symbols
from ngsgpu.io.compress.reads.blocks import LEAST_BYTES, reads_blocks
from ngsgpu.io.compress.reads.codes import CODE_WORDS, MOST_BITS, code_lengths
from tests.support.io.read_texts import KINDS, read_text


@pytest.fixture(autouse=True)
def short_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have short data encoded as well."""
    monkeypatch.setattr(module, "LEAST_BYTES", 1)


def split_blocks(data: bytes) -> list[bytes]:
    """The blocks of BGZF; all are whole."""
    blocks = []
    while data:
        size = struct.unpack_from("<H", data, 16)[0] + 1
        blocks.append(data[:size])
        data = data[size:]
    return blocks


def check(data: bytes) -> list[bytes]:
    """Encode, inflate and compare; the blocks."""
    made = split_blocks(bytes(reads_blocks(data, 1)))
    texts = [zlib.decompress(block, 31) for block in made]
    assert b"".join(texts) == data
    assert all(len(text) == BLOCK_BYTES for text in texts[:-1])
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_any_text(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    size = rng.choice((1, 40, 5000, BLOCK_BYTES - 1, BLOCK_BYTES, 5 * BLOCK_BYTES + 1, 400_000))
    check(read_text(kind, rng, size))


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_depends_on_its_bytes_alone(kind: str) -> None:
    """Not on what is before, behind or beside it, nor on its address."""
    rng = random.Random(kind)
    text = read_text(kind, rng, 4 * BLOCK_BYTES)
    together = check(text)
    for number, block in enumerate(together):
        own = text[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]
        assert check(own) == [block]
        beside = rng.randbytes(BLOCK_BYTES)
        assert check(beside + own + beside)[1] == block
        held = np.full(BLOCK_BYTES + 99, 65, dtype=np.uint8)
        at = rng.randrange(99)
        held[at : at + BLOCK_BYTES] = np.frombuffer(own, dtype=np.uint8)
        assert reads_blocks(held.data[at : at + BLOCK_BYTES], 1) == block


def test_threads_do_not_change_bytes() -> None:
    texts = [read_text(kind, random.Random(kind), 3 * BLOCK_BYTES) for kind in KINDS]
    alone = [bytes(reads_blocks(text, 1)) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            together = pool.map(lambda text: bytes(reads_blocks(text, 1)), texts)
            assert list(together) == alone


LINES = st.lists(
    st.one_of(
        st.text("ACGTN", max_size=60),
        st.text("ACGT", min_size=16, max_size=40),
        st.text("F:,#I", max_size=60).map(lambda text: text * 4),
        st.sampled_from(["", "+", "@", ">", "@r:1:22 1:N:0", "@r:1:333 1:N:0", ">r:1", "+r:1"]),
        st.text(st.characters(max_codepoint=255), max_size=20),
    ),
    max_size=60,
)  # fmt: skip


@settings(max_examples=300)
@given(LINES, st.integers(1, 40), st.sampled_from(["\n", "\r\n"]))
@example(["A" * 300] * 3, 300, "\n")
@example(["ACGT" * 8] * 5, 1000, "\n")
def test_any_lines(lines: list[str], times: int, end: str) -> None:
    text = end.join(lines).encode("latin-1") * times
    if text:
        check(text)


@given(st.binary(min_size=1, max_size=300), st.integers(1, 300))
def test_any_bytes(data: bytes, times: int) -> None:
    check(data * times)
    # As a sequence, as far as the encoder looks.
    check((b"\nACGTACGTACGTACGT" + data) * times)


def test_what_would_be_too_long_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which takes a smaller limit: no text is known of which more would be made than it has."""
    monkeypatch.setattr(module, "MOST_STREAM_BYTES", 40_000)
    text = read_text("illumina", random.Random(1), BLOCK_BYTES)
    blocks = check(text + read_text("noise", random.Random(1), BLOCK_BYTES + 9))
    assert [len(block) > BLOCK_BYTES for block in blocks] == [False, True, False]
    assert len(blocks[1]) == BLOCK_BYTES + 5 + 26


@pytest.mark.parametrize("kind", ["table", "short lines"])
def test_other_text_is_left_to_libdeflate(kind: str) -> None:
    text = read_text(kind, random.Random(1), 2 * BLOCK_BYTES)
    assert reads_blocks(text, 1) == bgzf_blocks(text, 1)


@pytest.mark.parametrize("level", [2, 6, 12])
def test_other_levels_are_left_to_libdeflate(level: int) -> None:
    text = read_text("illumina", random.Random(1), 2 * BLOCK_BYTES)
    assert reads_blocks(text, level) == bgzf_blocks(text, level)


def test_short_data_are_left_to_libdeflate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    text = read_text("illumina", random.Random(1), LEAST_BYTES)
    assert reads_blocks(text[1:], 1) == bgzf_blocks(text[1:], 1)
    assert reads_blocks(text, 1) != bgzf_blocks(text, 1)


def test_outputs_are_made_so() -> None:
    packing = packing_of("out.fq.gz")
    assert packing is not None
    text = read_text("illumina", random.Random(1), packing.piece_bytes)
    made = packing.pack(text, 1)
    assert made == reads_blocks(text, 1)
    assert gzip.decompress(bytes(made) + EOF_BLOCK) == text


def test_what_repeats_is_copied() -> None:
    """Sizes of some kinds of reads, relative to libdeflate's: none is much larger."""
    for kind, most in {"illumina": 1.0, "sra": 1.0, "amplicons": 1.0, "fasta": 0.95}.items():
        text = read_text(kind, random.Random(1), 8 * BLOCK_BYTES)
        assert len(reads_blocks(text, 1)) <= most * len(bgzf_blocks(text, 1)), kind


@given(st.lists(st.integers(0, 5000), min_size=2, max_size=286), st.integers(9, 15))
@example([1, 1, *(round(1.6**k) for k in range(24))], MOST_BITS)
@example([1] * 286, 9)
def test_codes_are_complete_and_optimal(counts: list[int], limit: int) -> None:
    lengths = np.empty(len(counts), dtype=np.int64)
    code_lengths(np.array(counts), limit, lengths, np.empty(CODE_WORDS, dtype=np.int64))
    used = [(count, int(length)) for count, length in zip(counts, lengths, strict=True) if count]
    assert [bool(length) for length in lengths] == [count > 0 for count in counts]
    if len(used) < 2:
        assert [length for _, length in used] in ([], [1])
        return
    assert sum(2.0**-length for _, length in used) == 1
    assert all(length <= limit for _, length in used)
    best, longest = huffman([count for count, _ in used])
    if longest <= limit:
        assert sum(count * length for count, length in used) == best


def huffman(counts: list[int]) -> tuple[int, int]:
    """Bits of all symbols in a code without a limit, and its longest word among the flattest."""
    heap = [(count, 0) for count in counts]
    heapq.heapify(heap)
    bits = 0
    while len(heap) > 1:
        (first, depth), (second, other) = heapq.heappop(heap), heapq.heappop(heap)
        bits += first + second
        heapq.heappush(heap, (first + second, 1 + max(depth, other)))
    return bits, heap[0][1]


def test_symbols_of_lengths_and_distances() -> None:
    """As RFC 1951 lists them."""
    assert symbols.LENGTH_FIRST.tolist() == [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
        131, 163, 195, 227, 258,
    ]  # fmt: skip
    assert symbols.LENGTH_EXTRA.tolist() == [
        *[0] * 8, *[1] * 4, *[2] * 4, *[3] * 4, *[4] * 4, *[5] * 4, 0,
    ]  # fmt: skip
    assert symbols.DISTANCE_FIRST.tolist() == [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
        2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
    ]  # fmt: skip
    for distance in range(1, symbols.WINDOW + 1):
        symbol = symbols.distance_symbol.function(distance)
        more = distance - symbols.DISTANCE_FIRST[symbol]
        assert 0 <= more < 1 << symbols.DISTANCE_EXTRA[symbol]
    for length in range(3, 259):
        symbol = symbols.LENGTH_SYMBOL[length]
        assert 0 <= length - symbols.LENGTH_FIRST[symbol] < 1 << symbols.LENGTH_EXTRA[symbol]


@pytest.mark.parametrize("rest", [0, 1, 63, 64, 65])
def test_nothing_is_read_behind_the_text(rest: int) -> None:
    """Which ends with a page that no other follows."""
    size = BLOCK_BYTES + rest
    pages = mmap.mmap(-1, (-(-size // mmap.PAGESIZE) + 1) * mmap.PAGESIZE)
    whole = np.frombuffer(pages, dtype=np.uint8)
    end = len(whole) - mmap.PAGESIZE
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    assert protect(whole.ctypes.data + end, mmap.PAGESIZE, 0) == 0
    text = read_text("illumina", random.Random(1), size)
    whole[end - size : end] = np.frombuffer(text, dtype=np.uint8)
    assert bytes(reads_blocks(whole.data[end - size : end], 1)) == bytes(reads_blocks(text, 1))
