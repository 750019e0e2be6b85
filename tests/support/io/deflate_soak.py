"""Compresses the same texts again and again in memory that changes, and compares the bytes.

By hand: ``python -m tests.support.io.deflate_soak 1000000``.
"""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, bgzf_blocks
from ngsgpu.io.compress.deflate import compressed
from ngsgpu.io.compress.reads.blocks import reads_blocks
from tests.support.io.gzip_files import fastq_text

_MODULE = "tests.support.io.deflate_soak"
GROUP = 16 * BLOCK_BYTES
LEVELS = (1, 1, 1, 1, 1, 1, 2, 3, 4, 6)
BLOCKS = 17 * len(LEVELS) + 30
"""Blocks and short streams of one round."""


def texts() -> list[bytes]:
    """For each of ``LEVELS`` a group of reads and a shorter block; a seventh is random bytes."""
    rng = random.Random(1)
    text = fastq_text(rng, 2 * GROUP // 200)
    cut = [rng.randrange(len(text) - GROUP - 5000) for _ in LEVELS]
    noise = rng.randbytes(BLOCK_BYTES)
    return [
        text[at : at + GROUP - BLOCK_BYTES] + (noise if number % 7 == 6 else text[:BLOCK_BYTES])
        + text[: 100 + 400 * number]
        for number, at in enumerate(cut)
    ]  # fmt: skip


def digests(rounds: int, seed: int) -> set[str]:
    """Digests of all that some rounds make, each after the memory was used for something else."""
    kept = texts()
    rng = np.random.default_rng(seed)
    found = set()
    for _ in range(rounds):
        digest = hashlib.sha256()
        for text, level in zip(kept, LEVELS, strict=True):
            used = [rng.integers(0, 256, int(n), np.uint8) for n in rng.integers(1, 1 << 19, 8)]
            # Other bytes are before and after, and the address has another remainder.
            at = int(rng.integers(1, 200))
            held = rng.integers(0, 256, len(text) + 400, np.uint8)
            held[at : at + len(text)] = np.frombuffer(text, np.uint8)
            view = held.data[at : at + len(text)]
            del used
            digest.update(bgzf_blocks(view, level))
            digest.update(reads_blocks(view, level))
            for size in (7, 248, 4000):
                digest.update(compressed(view[:size], level))
        found.add(digest.hexdigest())
    return found


def soak(blocks: int, rounds: int, processes: int = 2) -> tuple[int, set[str]]:
    """Run processes of several rounds; the blocks that were made, and all digests."""
    runs = -(-blocks // (rounds * BLOCKS))

    def run(seed: int) -> list[str]:
        settings = {
            **os.environ,
            "MALLOC_PERTURB_": str(seed % 256),
            "MALLOC_ARENA_MAX": str(1 + seed % 3),
            "NGSGPU_SOAK": "x" * (seed * 37 % 5000),
        }
        command = [sys.executable, "-m", _MODULE, "--rounds", str(rounds), str(seed)]
        return subprocess.check_output(command, env=settings, text=True).split()

    with ThreadPoolExecutor(processes) as pool:
        found = {digest for digests in pool.map(run, range(runs)) for digest in digests}
    return runs * rounds * BLOCKS, found


if __name__ == "__main__":
    if sys.argv[1] == "--rounds":
        print(*digests(int(sys.argv[2]), int(sys.argv[3])))
    else:
        count, different = soak(int(sys.argv[1]), rounds=25)
        print(f"{count} blocks, {len(different)} digest(s)")
