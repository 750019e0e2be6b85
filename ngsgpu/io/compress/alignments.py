"""BAM and CRAM as formats of compression: what they hold is read as FASTQ text."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Final

from ngsgpu.io.alignments import bam, cram
from ngsgpu.io.compress.bgzf import ERRORS as BGZF_ERRORS
from ngsgpu.io.compress.bgzf import MAGIC as BGZF_MAGIC
from ngsgpu.io.compress.bgzf import BgzfStream, is_bgzf
from ngsgpu.io.compress.stream import Compression, Opened

_LOOKED_AT: Final = 1 << 16


class _Converted(Opened):
    """The BAM file that a CRAM file is turned to; an ``Opened`` file for BGZF's stream."""

    def __init__(self, file: Opened) -> None:
        self._file = file
        self._process = cram.CramProcess(
            file, file.path, version=file.peek(5)[-1], threads=file.threads
        )
        super().__init__(self._process.output, file.path, file.threads)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer with a single read; 0 at the end."""
        count = super().readinto(buffer)
        if count == 0 and len(buffer) > 0:
            self._process.check_end()
        return count

    def close(self) -> None:
        """End the process and close the CRAM file."""
        self._process.close()
        self._file.close()
        super().close()


def is_alignments(path: str) -> bool:
    """Whether a file that can be opened again is BAM or CRAM."""
    if not Path(path).is_file():
        return False
    with Opened(io.FileIO(path), path, threads=1) as file:
        return BAM.matches(file) or CRAM.matches(file)


def _is_bam(file: Opened) -> bool:
    if not is_bgzf(file.peek(18)):
        return False
    return _inflated_start(file.peek(_LOOKED_AT), len(bam.MAGIC)) == bam.MAGIC


def _inflated_start(members: bytes, size: int) -> bytes:
    """The first ``size`` bytes that a gzip file inflates to; fewer if it is damaged."""
    start = b""
    while members and len(start) < size:
        inflater = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            start += inflater.decompress(members, size - len(start))
        except zlib.error:
            break
        members = inflater.unused_data
    return start


def _bam_stream(file: Opened) -> bam.BamStream:
    return bam.BamStream(BgzfStream(file, must_end=True), file.path, file.threads)


def _cram_stream(file: Opened) -> bam.BamStream:
    return _bam_stream(_Converted(file))


_ERRORS: Final[tuple[type[Exception], ...]] = (bam.BamError, *BGZF_ERRORS)
BAM: Final = Compression("bam", "BAM", (BGZF_MAGIC,), _bam_stream, _ERRORS, (".bam",), _is_bam)
CRAM: Final = Compression("cram", "CRAM", (cram.MAGIC,), _cram_stream, _ERRORS, (".cram",))

ALIGNMENTS: Final = (BAM.name, CRAM.name)
"""Names of the formats whose text is made here, and has no lines in the file."""
