"""Makes the forms in which people have reads: BGZF, gzip, zstd and BAM, of a pair of FASTQ files.

All cores work on all files at the same time, and no program of others is needed. Levels are those
of the programs that such files come from: ``gzip`` (6, one member a file), ``bgzip`` (6), ``zstd``
(3, one frame with a checksum); BAM is compressed little (level 1), as what is piped through.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from isal import isal_zlib

from benchmarks.harness.datasets import MATES
from benchmarks.harness.measuring import apart
from ngsgpu.io.compress.bgzf import BLOCK_BYTES, EOF_BLOCK, deflate
from ngsgpu.io.compress.zstd import library as zstd

PLAIN: Final = "plain"
BAM: Final = "bam"
ENDINGS: Final = {PLAIN: "", "bgzf": ".gz", "gz": ".gz", "zst": ".zst", BAM: ".gz"}
"""Forms, and the endings of FASTQ files of them; a program that reads BAM writes BGZF."""

LEVEL: Final = 6
ZSTD_LEVEL: Final = 3
PIECE_BYTES: Final = 64 << 20
WINDOW_BYTES: Final = 32 << 10
"""As far as deflate looks back."""
BGZF_BYTES: Final = 256 * BLOCK_BYTES
COPY_BYTES: Final = 4 << 20
_GZIP_HEADER: Final = bytes.fromhex("1f8b0800000000000003")

Pair = tuple[Path, Path]
T = TypeVar("T")


def form_paths(form: str, pair: Pair, folder: Path) -> tuple[Path, ...]:
    """Where a form of a pair of files is: two files, or one of BAM."""
    if form == PLAIN:
        return pair
    if form == BAM:
        return (folder / form / "reads.bam",)
    return tuple(folder / form / f"{mate}{ENDINGS[form]}" for mate in MATES)


def make_forms(sets: Sequence[tuple[Pair, Path]], forms: Iterable[str], threads: int) -> None:
    """Make forms of pairs of plain files; those that are there and not older are kept.

    Args:
        sets: pairs, and the folder of the forms of each.
        forms: of ``ENDINGS``.
        threads: how many work at a time.
    """
    forms = list(forms)
    with ThreadPoolExecutor(threads) as pool:
        makers: list[Callable[[], None]] = []
        for pair, folder in sets:
            for form in forms:
                targets = form_paths(form, pair, folder)
                if form == PLAIN or all(_is_newer(target, pair) for target in targets):
                    continue
                targets[0].parent.mkdir(parents=True, exist_ok=True)
                if form == BAM:
                    makers.append(partial(apart, _import, pair, targets[0], threads))
                    continue
                makers += [
                    partial(_write, form, source, target, pool, threads)
                    for source, target in zip(pair, targets, strict=True)
                ]
        with ThreadPoolExecutor(max(1, len(makers))) as writers:
            for made in [writers.submit(maker) for maker in makers]:
                made.result()


def write_first(pair: Pair, pairs: int, folder: Path) -> Pair:
    """Write the first pairs of two plain files to files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    first = (folder / MATES[0], folder / MATES[1])
    for source, target in zip(pair, first, strict=True):
        with source.open("rb") as reads, target.open("wb") as few:
            few.writelines(islice(reads, 4 * pairs))
    return first


def _is_newer(target: Path, pair: Pair) -> bool:
    made = target.stat().st_mtime_ns if target.exists() else -1
    return all(source.stat().st_mtime_ns <= made for source in pair)


def _import(pair: Pair, target: Path, threads: int) -> None:
    """Write unaligned BAM, as ``samtools import`` does."""
    import pysam

    new = target.with_name(f"{target.name}.new")
    words = ["-1", pair[0], "-2", pair[1], "-O", "bam,level=1", "-@", threads, "-o", new]
    pysam.fqimport(*map(str, words), catch_stdout=False)
    new.rename(target)


def _write(form: str, source: Path, target: Path, pool: ThreadPoolExecutor, threads: int) -> None:
    """Write a compressed form of a file, whole or not at all."""
    new = target.with_name(f"{target.name}.new")
    with new.open("wb") as out:
        if form == "zst":
            write_zstd(source, out, threads)
        else:
            {"gz": write_gzip, "bgzf": write_bgzf}[form](source, out, pool, threads)
    new.rename(target)


def write_gzip(source: Path, out: BinaryIO, pool: ThreadPoolExecutor, ahead: int) -> None:
    """One member, of pieces that were deflated apart, each with what lies before it as history."""
    size = source.stat().st_size
    crc = 0
    out.write(_GZIP_HEADER)
    places = range(0, max(size, 1), PIECE_BYTES)
    for body, part, length in _in_order(pool, partial(_deflated, source, size), places, ahead):
        out.write(body)
        crc = isal_zlib.crc32_combine(crc, part, length)
    out.write(struct.pack("<II", crc, size & 0xFFFFFFFF))


def _deflated(source: Path, size: int, start: int) -> tuple[bytes, int, int]:
    """A piece of a deflate stream that ends with a whole byte; CRC and size of what it holds."""
    history = min(start, WINDOW_BYTES)
    data = memoryview(_read(source, start - history, history + PIECE_BYTES))
    known = {"zdict": data[:history]} if history else {}
    deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, **known)
    piece = data[history:]
    last = start + PIECE_BYTES >= size
    body = deflater.compress(piece) + deflater.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return body, isal_zlib.crc32(piece), len(piece)


def write_bgzf(source: Path, out: BinaryIO, pool: ThreadPoolExecutor, ahead: int) -> None:
    """Blocks, and the empty one that ends a file."""
    places = range(0, source.stat().st_size, BGZF_BYTES)
    for blocks in _in_order(
        pool, lambda start: deflate(_read(source, start, BGZF_BYTES), LEVEL), places, ahead
    ):
        out.write(blocks)
    out.write(EOF_BLOCK)


def write_zstd(source: Path, out: BinaryIO, threads: int) -> None:
    """One frame with a checksum, compressed by threads of the library."""
    kinds = zstd.CompressionParameter
    options = {
        kinds.compression_level: ZSTD_LEVEL,
        kinds.nb_workers: threads,
        kinds.checksum_flag: 1,
    }
    with source.open("rb") as reads, zstd.open(out, "wb", options=options) as packed:
        while block := reads.read(COPY_BYTES):
            packed.write(block)


def _read(source: Path, start: int, size: int) -> bytes:
    with source.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[int], T], places: Iterable[int], ahead: int
) -> Iterator[T]:
    """Results of a function in order, computed by a pool, so many ahead of the one that is used."""
    waiting: deque[Future[T]] = deque()
    for place in places:
        waiting.append(pool.submit(function, place))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
