"""CRAM to BAM by htslib, in a separate process.

htslib knows where references are (the header's ``UR``, ``REF_PATH``, ``REF_CACHE``), and reports
what goes wrong on standard error only. It decodes just the name, flags, bases and qualities, and
leaves out secondary and supplementary alignments.

htslib checks the checksums of blocks that it decompresses, but not of uncompressed headers: a
changed byte there may say that no quality is stored. Version 3 has a checksum behind the header of
each container and behind each block [CRAM specification, sections 7 and 8], which are checked while
the bytes pass by.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Final, cast

from ngsgpu.errors import InputError, without_control_characters

_DEFINITION_BYTES: Final = 26
"""Magic, version and name of the file."""
_PIECE_BYTES: Final = 1 << 16

_Walk = Generator[int, bytes, None]
"""Asks for a number of bytes and is sent them."""


class CrcError(Exception):
    """A checksum is wrong."""


class CramChecksums:
    """Checks the containers and blocks of a version 3 file.

    Damage that makes other things of the bytes than containers is not looked for: htslib finds it.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._between = False
        self._walk = self._file()
        self._wanted = next(self._walk)

    @property
    def is_whole(self) -> bool:
        """Whether what was added ends behind a container."""
        return self._between and not self._held

    def add(self, data: bytes) -> None:
        """Check the next bytes of the file.

        Raises:
            CrcError: a checksum is wrong.
        """
        self._held += data
        at = 0
        while len(self._held) - at >= self._wanted:
            own = bytes(self._held[at : at + self._wanted])
            at += self._wanted
            self._wanted = self._walk.send(own)
        del self._held[:at]

    def _file(self) -> _Walk:
        """Walk through the containers and blocks of the file."""
        yield _DEFINITION_BYTES
        container = 0
        while True:
            container += 1
            header = _Checked()
            self._between = True
            start = yield from header.take(4)
            self._between = False
            size = int.from_bytes(start, "little")
            for _ in range(4):  # reference, position, span, records
                yield from header.number(4)
            for _ in range(2):  # records before, bases
                yield from header.number(8)
            blocks = yield from header.number(4)
            for _ in range((yield from header.number(4))):  # where slices begin
                yield from header.number(4)
            yield from header.end(f"the header of container {container:,}")
            for number in range(1, blocks + 1):
                block = _Checked()
                yield from block.take(2)
                yield from block.number(4)
                stored = yield from block.number(4)
                yield from block.number(4)
                yield from block.data(stored)
                yield from block.end(f"block {number:,} of container {container:,}")
                size -= block.read
            if size > 0:  # what is left free for a longer header
                yield from _Checked().data(size)


class _Checked:
    """Reads numbers, and adds up the checksum of what it reads."""

    def __init__(self) -> None:
        self.read = 0
        self._sum = 0

    def take(self, size: int) -> Generator[int, bytes, bytes]:
        """So many bytes."""
        own = (yield size) if size > 0 else b""
        self._sum = zlib.crc32(own, self._sum)
        self.read += size
        return own

    def data(self, size: int) -> Generator[int, bytes, None]:
        """The content of a block, which is not held as a whole."""
        for at in range(0, size, _PIECE_BYTES):
            yield from self.take(min(_PIECE_BYTES, size - at))

    def number(self, longest: int) -> Generator[int, bytes, int]:
        """A number of as many bytes more as its first has leading ones, ``longest`` at most."""
        (first,) = yield from self.take(1)
        more = min(8 - (first ^ 0xFF).bit_length(), longest)
        number = first & (0x7F >> more)
        rest = yield from self.take(more)
        if more < 4 or longest > 4:
            return number << 8 * more | int.from_bytes(rest)
        # Of the last of 32 bits, four are in the first byte, and four in the last.
        return (first & 15) << 28 | int.from_bytes(rest[:3]) << 4 | rest[3] & 15

    def end(self, what: str) -> Generator[int, bytes, None]:
        """The checksum behind what was read."""
        if int.from_bytes((yield 4), "little") != self._sum:
            raise CrcError(f"the checksum of {what} is wrong")
        self.read += 4


MAGIC: Final = b"CRAM"
_FIELDS: Final = 0x1 | 0x2 | 0x200 | 0x400
"""Name, flags, bases, qualities [htslib, SAM_QNAME and others]."""
_PROGRAM: Final = "import sys, pysam; pysam.view(*sys.argv[1:], catch_stdout=False)"
_MOST_THREADS: Final = 8

_ENDS: Final = {
    2: bytes.fromhex("0b000000ffffffff0fe0454f460000000001000001000606010001000100"),
    3: bytes.fromhex(
        "0f000000ffffffff0fe0454f4600000000010005bdd94f0001000606010001000100ee63014b"
    ),
}
"""The container that ends a file, by the format's major version [CRAM specification, section 9]."""
_LONGEST_END: Final = max(map(len, _ENDS.values()))

_reference: str | None = None
_shown: str | None = None


@contextmanager
def reference(path: str | None, shown: str | None = None) -> Iterator[None]:
    """Decode the CRAM files that are opened in the block with a FASTA file as their reference.

    Args:
        path: the file, beside which htslib looks for its index, and writes it if there is none.
        shown: its name in messages.
    """
    global _reference, _shown
    before, _reference, _shown = (_reference, _shown), path, shown or path
    try:
        yield
    finally:
        _reference, _shown = before


class CramProcess:
    """A process that writes the reads of a CRAM file as BAM.

    Args:
        file: the CRAM file, from its beginning.
        path: its name, for messages.
        version: major version of the format.
        threads: decoding threads.

    Attributes:
        output: pipe from which BAM is read.
    """

    def __init__(self, file: io.RawIOBase, path: str, *, version: int, threads: int) -> None:
        self._path = path
        self._end = _ENDS.get(version, b"")
        self._tail = b""
        self._checksums = CramChecksums() if version == 3 else None
        self._fault: Exception | None = None
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115  # see close()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *_arguments(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,
            bufsize=0,
        )
        self.output = cast(io.FileIO, self._process.stdout)
        self._feeder = threading.Thread(target=self._feed, args=(file,), daemon=True)
        self._feeder.start()

    def check_end(self) -> None:
        """Check that the process has written everything.

        Raises:
            EOFError: the file has no end.
            OSError: the file cannot be read.
            InputError: the file is damaged, or its reference was not found.
        """
        status = self._process.wait()
        self._feeder.join()
        if isinstance(self._fault, OSError):
            raise self._fault
        if status == 0:
            if self._fault is not None:
                raise self._damaged(str(self._fault))
            whole = self._checksums is None or self._checksums.is_whole
            if not whole or not self._tail.endswith(self._end):
                raise EOFError
            return
        self._messages.seek(0)
        said = self._messages.read().decode(errors="replace")
        if any("reference" in line.lower() or "M5" in line for line in said.splitlines()):
            where = "" if _shown is None else f" in {_shown}"
            raise InputError(
                self._path,
                f"the reference sequences of the CRAM file were not found{where}",
                "give their FASTA file with `cram_reference`, or set REF_PATH",
            )
        raise self._damaged(_first_error(said))

    def _damaged(self, how: str) -> InputError:
        return InputError(
            self._path,
            f"the CRAM data are damaged or end early ({how})",
            "copy or download the file again and compare its checksum",
        )

    def close(self) -> None:
        """End the process, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        # A stream may have nothing more to give, and then its reader goes on waiting.
        self._feeder.join(timeout=1.0)
        self.output.close()
        self._messages.close()

    def _feed(self, file: io.RawIOBase) -> None:
        """Write the file to the process, check its checksums, and keep its last bytes."""
        stdin = cast(io.FileIO, self._process.stdin)
        try:
            while data := file.read(1 << 20):
                self._tail = (self._tail + data)[-_LONGEST_END:]
                self._check(data)
                with memoryview(data) as view:
                    at = 0
                    while at < len(view):
                        at += stdin.write(view[at:])
        except (BrokenPipeError, ValueError):  # it ended, or this end is being closed
            pass
        except OSError as error:
            self._fault = error
        finally:
            with suppress(OSError):
                stdin.close()

    def _check(self, data: bytes) -> None:
        if self._checksums is None:
            return
        try:
            self._checksums.add(data)
        except CrcError as error:
            self._fault = error
            self._checksums = None


def _arguments(threads: int) -> list[str]:
    """Of ``samtools view``, from standard input to standard output."""
    arguments = ["-u", "-F", "0x900", "--no-PG", "-@", str(min(threads, _MOST_THREADS))]
    arguments += ["--input-fmt-option", f"required_fields={_FIELDS}"]
    if _reference is not None:
        arguments += ["-T", _reference]
    return [*arguments, "-o", "-", "-"]


def _first_error(said: str) -> str:
    """The first line that htslib wrote, which is the cause of the others."""
    lines = [line.strip() for line in said.splitlines() if line.startswith("[E::")]
    message = lines[0].partition("] ")[2] if lines else "samtools view failed"
    return without_control_characters(message)
