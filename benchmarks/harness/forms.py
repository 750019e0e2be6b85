"""Makes the forms in which people have reads: BGZF, gzip, zstd and BAM, of plain FASTQ files.

All cores work on all files at the same time, and no program of others is needed. Levels are those
of the programs that such files come from: ``gzip`` (6, one member a file) and ``zstd`` (3, one
frame with a checksum). BGZF and BAM are compressed less (4 and 1), which saves half of the time.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TypeVar

from isal import isal_zlib

from benchmarks.harness.datasets import MATES
from benchmarks.harness.measuring import BenchmarkError, apart
from ngsgpu.io.compress.bgzf_blocks import BLOCK_BYTES, EOF_BLOCK, bgzf_blocks

if TYPE_CHECKING or sys.version_info < (3, 14):
    from backports import zstd
else:
    from compression import zstd

PLAIN: Final = "plain"
GZIP: Final = "gz"
BAM: Final = "bam"
ENDINGS: Final = {PLAIN: "", "bgzf": ".gz", GZIP: ".gz", "zst": ".zst", BAM: ".gz"}
"""Forms, and the endings of FASTQ files of them; a program that reads BAM writes BGZF."""

GZIP_LEVEL: Final = 6
BGZF_LEVEL: Final = 4
ZSTD_LEVEL: Final = 3
PIECE_BYTES: Final = 64 << 20
WINDOW_BYTES: Final = 32 << 10
"""As far as deflate looks back."""
BGZF_BYTES: Final = 256 * BLOCK_BYTES
COPY_BYTES: Final = 4 << 20
_GZIP_HEADER: Final = bytes.fromhex("1f8b0800000000000003")

Files = tuple[Path, ...]
"""Reads, or first and second mates."""
T = TypeVar("T")


def form_paths(form: str, files: Files, folder: Path) -> Files:
    """Where a form of files is: as many files, or one of BAM."""
    if form == PLAIN:
        return files
    if form == BAM:
        return (folder / form / "reads.bam",)
    return tuple(folder / form / f"{mate}{ENDINGS[form]}" for mate in MATES[: len(files)])


def make_forms(sets: Sequence[tuple[Files, Path]], forms: Iterable[str], threads: int) -> None:
    """Make forms of plain files; what is there already, of the same files, is kept.

    Args:
        sets: files, and the folder of the forms of each.
        forms: of ``ENDINGS``.
        threads: how many work at a time.

    Raises:
        BenchmarkError: the files cannot be made BAM.
    """
    forms = [form for form in forms if form != PLAIN]
    with ThreadPoolExecutor(threads) as pool:
        makers: list[Callable[[], None]] = []
        for folder, files in {folder: files for files, folder in sets}.items():
            _forget_others(files, folder)
            for form in forms:
                targets = form_paths(form, files, folder)
                targets[0].parent.mkdir(exist_ok=True)
                if all(target.exists() for target in targets):
                    continue
                if form == BAM:
                    makers.append(partial(apart, _import, files, targets[0], threads))
                    continue
                makers += [
                    partial(_write, form, source, target, pool, threads)
                    for source, target in zip(files, targets, strict=True)
                ]
        with ThreadPoolExecutor(max(1, len(makers))) as writers:
            for made in [writers.submit(maker) for maker in makers]:
                made.result()


def _forget_others(files: Files, folder: Path) -> None:
    """Remove forms that were made of other files, or of these before they changed."""
    states = [(path.resolve(), path.stat()) for path in files]
    now = json.dumps([[str(path), state.st_size, state.st_mtime_ns] for path, state in states])
    noted = folder / "sources.json"
    if not noted.exists() or noted.read_text() != now:
        for form in ENDINGS:
            shutil.rmtree(folder / form, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        noted.write_text(now)


def write_first(files: Files, reads: int, folder: Path) -> Files:
    """Write the first reads of plain FASTQ files to files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    first = tuple(folder / mate for mate in MATES[: len(files)])
    for source, target in zip(files, first, strict=True):
        with source.open("rb") as lines, target.open("wb") as few:
            few.writelines(islice(lines, 4 * reads))
    return first


def _import(files: Files, target: Path, threads: int) -> None:
    """Write unaligned BAM, as ``samtools import`` does."""
    import pysam

    new = target.with_name(f"{target.name}.new")
    reads = ["-1", files[0], "-2", files[1]] if len(files) == 2 else ["-0", files[0]]
    words = [*reads, "-O", "bam,level=1", "-@", threads, "-o", new]
    try:
        pysam.fqimport(*map(str, words), catch_stdout=False)
    except pysam.utils.SamtoolsError as error:
        raise BenchmarkError(f"{target.name}: {error}") from error
    new.rename(target)


def _write(form: str, source: Path, target: Path, pool: ThreadPoolExecutor, threads: int) -> None:
    """Write a compressed form of a file, whole or not at all."""
    new = target.with_name(f"{target.name}.new")
    if form == "zst":
        write_zstd(source, new, threads)
    else:
        with new.open("wb") as out:
            {GZIP: write_gzip, "bgzf": write_bgzf}[form](source, out, pool, threads)
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
    kind = (GZIP_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY)
    deflater = zlib.compressobj(*kind, data[:history]) if history else zlib.compressobj(*kind)
    piece = data[history:]
    last = start + PIECE_BYTES >= size
    body = deflater.compress(piece) + deflater.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)
    return body, isal_zlib.crc32(piece), len(piece)


def write_bgzf(source: Path, out: BinaryIO, pool: ThreadPoolExecutor, ahead: int) -> None:
    """Blocks, and the empty one that ends a file."""
    places = range(0, source.stat().st_size, BGZF_BYTES)
    for blocks in _in_order(
        pool, lambda start: bgzf_blocks(_read(source, start, BGZF_BYTES), BGZF_LEVEL), places, ahead
    ):
        out.write(blocks)
    out.write(EOF_BLOCK)


def write_zstd(source: Path, target: Path, threads: int) -> None:
    """One frame with a checksum, compressed by threads of the library."""
    kinds = zstd.CompressionParameter
    options: dict[int, int] = {
        kinds.compression_level: ZSTD_LEVEL,
        kinds.nb_workers: threads,
        kinds.checksum_flag: 1,
    }
    with source.open("rb") as reads, zstd.open(target, "wb", options=options) as packed:
        while block := reads.read(COPY_BYTES):
            packed.write(block)


def read_zstd(path: Path) -> bytes:
    """What a .zst file holds."""
    with zstd.open(path, "rb") as packed:
        return bytes(packed.read())


def _read(source: Path, start: int, size: int) -> bytes:
    with source.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _in_order(
    pool: ThreadPoolExecutor, function: Callable[[int], T], places: Iterable[int], ahead: int
) -> Iterator[T]:
    """Results of a function in order, computed by a pool, ``ahead`` of the one that is used."""
    waiting: deque[Future[T]] = deque()
    for place in places:
        waiting.append(pool.submit(function, place))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
