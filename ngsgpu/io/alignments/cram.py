"""CRAM to BAM by htslib, in a separate process.

htslib knows where references are (the header's ``UR``, ``REF_PATH``, ``REF_CACHE``), and reports
what goes wrong on standard error only. It decodes just the name, flags, bases and qualities, and
leaves out secondary and supplementary alignments.
"""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, cast

from ngsgpu.errors import InputError, without_control_characters

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


@contextmanager
def reference(path: str | None) -> Iterator[None]:
    """Decode the CRAM files that are opened in the block with a FASTA file as their reference."""
    global _reference
    before, _reference = _reference, path
    try:
        yield
    finally:
        _reference = before


class CramProcess:
    """A process that writes the reads of a CRAM file as BAM.

    Args:
        file: the CRAM file, from its beginning.
        below: its descriptor; a regular file is read through it instead.
        path: its name, for messages.
        version: major version of the format.
        threads: decoding threads.

    Attributes:
        output: pipe from which BAM is read.
    """

    def __init__(
        self, file: io.RawIOBase, below: int, path: str, *, version: int, threads: int
    ) -> None:
        self._path = path
        self._end = _ENDS.get(version, b"")
        self._tail = b""
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115  # see close()
        size = os.fstat(below).st_size
        is_regular = stat.S_ISREG(os.fstat(below).st_mode)
        if is_regular:
            self._tail = os.pread(below, _LONGEST_END, max(0, size - _LONGEST_END))
            os.lseek(below, 0, os.SEEK_SET)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, *_arguments(threads)],
            stdin=below if is_regular else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._messages,
            start_new_session=True,
            bufsize=0,
        )
        self.output = cast(io.FileIO, self._process.stdout)
        if not is_regular:
            threading.Thread(target=self._feed, args=(file,), daemon=True).start()

    def check_end(self) -> None:
        """Check that the process has written everything.

        Raises:
            EOFError: the file has no end.
            InputError: the file is damaged, or its reference was not found.
        """
        if self._process.wait() == 0:
            if not self._tail.endswith(self._end):
                raise EOFError
            return
        self._messages.seek(0)
        said = self._messages.read().decode(errors="replace")
        if any("reference" in line.lower() or "M5" in line for line in said.splitlines()):
            raise InputError(
                self._path,
                "the reference sequences of the CRAM file were not found",
                "give their FASTA file with --cram-reference, or set REF_PATH",
            )
        raise InputError(
            self._path,
            f"the CRAM data are damaged or end early ({_first_error(said)})",
            "copy or download the file again and compare its checksum",
        )

    def close(self) -> None:
        """End the process, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self.output.close()
        self._messages.close()

    def _feed(self, file: io.RawIOBase) -> None:
        """Write a stream to the process, and keep its last bytes."""
        stdin = cast(io.FileIO, self._process.stdin)
        with suppress(OSError, ValueError):
            while data := file.read(1 << 20):
                self._tail = (self._tail + data)[-_LONGEST_END:]
                view = memoryview(data)
                while view:
                    view = view[stdin.write(view) :]
        with suppress(OSError):
            stdin.close()


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
