"""A GPU compresses reads to the bytes of the CPU."""

from __future__ import annotations

import gzip
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES
from ngsgpu.io.compress.packing import BGZF_PIECE_BYTES
from ngsgpu.io.compress.reads.blocks import LEAST_BYTES, reads_blocks
from ngsgpu.io.gpu.deflate_reads import ReadsPacker
from ngsgpu.io.output.writer import OutputSet
from tests.support.io.gzip_files import fastq_text
from tests.support.io.read_texts import KINDS, read_text


@pytest.fixture(scope="module")
def packer() -> ReadsPacker:
    return ReadsPacker(4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(10))
def test_bytes_of_the_cpu(packer: ReadsPacker, kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} {seed}")
    text = read_text(kind, rng, rng.randrange(LEAST_BYTES, BGZF_PIECE_BYTES + 1))
    assert bytes(packer.pack(text, 1)) == bytes(reads_blocks(text, 1))


def test_last_blocks_of_any_size(packer: ReadsPacker) -> None:
    text = read_text("illumina", random.Random(1), BGZF_PIECE_BYTES)
    for size in (BGZF_PIECE_BYTES, 9 * BLOCK_BYTES, *range(9 * BLOCK_BYTES + 1, 600_000, 997)):
        assert bytes(packer.pack(text[:size], 1)) == bytes(reads_blocks(text[:size], 1))


def test_several_threads() -> None:
    texts = [read_text(kind, random.Random(kind), LEAST_BYTES + 7) for kind in KINDS] * 8
    packer = ReadsPacker(3)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda text: bytes(packer.pack(text, 1)), texts))
    packer.close()
    assert made == [bytes(reads_blocks(text, 1)) for text in texts]


def test_outputs(tmp_path: Path) -> None:
    """Files whose blocks a packer makes are those of the CPU."""
    text = fastq_text(random.Random(1), 20_000)
    found = []
    for name, packs in (("cpu", False), ("gpu", True)):
        path = tmp_path / f"{name}.fq.gz"
        with OutputSet([path], threads=4) as outputs:
            if packs:
                outputs.pack_by(ReadsPacker(4))
            outputs.write(0, text)
        found.append(path.read_bytes())
    assert found[0] == found[1]
    assert gzip.decompress(found[1]) == text
