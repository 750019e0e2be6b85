"""Inflate files and deflate them again: the least that a command from .gz to .gz has to do.

    python -m benchmarks.harness.repack r1.fq.gz r2.fq.gz -o o1.fq.gz o2.fq.gz -t 16

With the readers and writers of the product, level 1, without looking at the text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from ngsgpu.io.compress.source import Source
from ngsgpu.io.output.writer import OutputSet

_CHUNK: Final = 1 << 22


def repack(inputs: list[Path], outputs: list[Path], threads: int) -> None:
    """Copy the text of files to others, a chunk of each in turn, as a command of pairs does."""
    with OutputSet(outputs, threads=threads, compression_level=1) as written:
        own = max(1, threads // len(inputs))
        sources = [Source(path, threads=own, chunk_bytes=_CHUNK) for path in inputs]
        copied = [source.chunks() for source in sources]
        going = set(range(len(inputs)))
        while going:
            for index in sorted(going):
                chunk = next(copied[index], None)
                if chunk is None:
                    going.discard(index)
                else:
                    written.write(index, chunk.data)


def main() -> int:
    """Copy the files."""
    parser = argparse.ArgumentParser(prog="repack", description="Inflate files, deflate them.")
    parser.add_argument("inputs", type=Path, nargs="+")
    parser.add_argument("-o", "--outputs", type=Path, nargs="+", required=True)
    parser.add_argument("-t", "--threads", type=int, default=1)
    settings = parser.parse_args()
    repack(settings.inputs, settings.outputs, settings.threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
