"""Files mapped into memory, which others may cut or change meanwhile.

A read beyond the end of a file that was cut after it had been mapped raises SIGBUS, which would end
the process at once. The handler of this module puts zeros in the place of what is gone and notes
the file; ``check_mapped`` then refuses the run in an ordinary way. It is called before outputs get
their names and as a run advances. Kernels that read mapped files stay within their arrays whatever
these hold, so zeros lead to wrong results, which are never written, but to nothing worse.

SIGBUS arises from a read of a mapped page and from nothing else here, so, unlike other signals, it
does not interrupt an allocation or a lock of the interpreter, and its handler may be Python.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import stat
import sys
import threading
import weakref
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ngsgpu.errors import InputError

_SMALL: Final = 1 << 12
_CUT: Final = "was cut short while it was read"
_REMEDY: Final = "build or copy it again, and run again"
_FAULT_ADDRESS: Final = 16
"""Where ``siginfo_t`` has the address that was read (Linux, 64 bits)."""

_SIGNAL_INFO: Final = 4
_MASK_BYTES: Final = 128
_IN_PLACE: Final = 0x10 | mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS  # MAP_FIXED


@dataclass(slots=True, weakref_slot=True)
class _Mapping:
    """A file that is mapped.

    Attributes:
        path: its name.
        pages: the mapping.
        begin: its first address.
        end: end of its addresses.
        state: of the file when it was mapped.
        run: in which it was mapped.
        is_cut: whether a read came behind the end of the file.
    """

    path: str
    pages: weakref.ref[mmap.mmap]
    begin: int
    end: int
    state: os.stat_result
    run: int
    is_cut: bool = False


class _Action(ctypes.Structure):
    """``struct sigaction`` of Linux."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * _MASK_BYTES),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


_mappings: dict[int, _Mapping] = {}
"""By the identity of the mapping; removed with it."""
_noted: list[str] = []
"""Files of which something was gone when it was read."""
_run = 0
_lock = threading.Lock()
_installed: list[Any] = []


def map_file(
    path: str | Path,
    file: FileIO,
    dtype: DTypeLike,
    shape: tuple[int, ...],
    offset: int = 0,
) -> NDArray[Any]:
    """Map a part of an open file as an array; changes stay in memory.

    A small part is read instead.

    Args:
        path: name of the file, for messages.
        file: the file.
        dtype: of the elements.
        shape: of the array.
        offset: of its first byte.

    Raises:
        OSError: it cannot be read.
        ValueError: the file is shorter.
    """
    kind = np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    state = os.fstat(file.fileno())
    if state.st_size < offset + size:
        raise ValueError(f"it has {state.st_size:,} bytes")
    if size < _SMALL:  # and what has no bytes cannot be mapped
        content = bytearray(os.pread(file.fileno(), size, offset))
        if len(content) < size:
            raise ValueError(_CUT)
        return np.frombuffer(content, dtype=kind).reshape(shape)
    # Copied on writing: like arrays in memory to Numba, which else compiles kernels once more.
    first = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    pages = mmap.mmap(file.fileno(), offset - first + size, access=mmap.ACCESS_COPY, offset=first)
    array = np.frombuffer(pages, dtype=kind, count=prod(shape), offset=offset - first)
    begin = array.ctypes.data - (offset - first)
    _watch(_Mapping(str(path), weakref.ref(pages), begin, begin + len(pages), state, _run))
    pages.madvise(mmap.MADV_WILLNEED)
    return array.reshape(shape)


def begin_run() -> None:
    """Have later checks look only at files that are mapped from now on."""
    global _run
    _run += 1
    _noted.clear()


def adopt_mapped() -> None:
    """Have later checks look also at files that were mapped before this run."""
    for mapping in _live():
        mapping.run = _run


def check_mapped() -> None:
    """Refuse to go on if a file that the run has mapped was cut or changed since.

    It says so once of each file: what is done next does not depend on it.

    Raises:
        InputError: names the file.
    """
    check_reads()
    for mapping in _live():
        if mapping.run == _run and (cause := _change(mapping)) is not None:
            mapping.run -= 1  # said once
            raise InputError(mapping.path, cause, _REMEDY)


def check_reads() -> None:
    """Refuse to go on if a part of a mapped file was gone when it was read; takes no time.

    It says so once; ``check_mapped`` still sees the file.

    Raises:
        InputError: names the file.
    """
    if _noted:
        first = _noted[0]
        _noted.clear()
        raise InputError(first, _CUT, _REMEDY)


def _live() -> list[_Mapping]:
    with _lock:
        return list(_mappings.values())


def _change(mapping: _Mapping) -> str | None:
    """Change of a file since it was mapped; None: there was none."""
    pages = mapping.pages()
    if pages is None:
        return None
    try:
        size = pages.size()
    except (OSError, ValueError):  # closed
        return None
    known = mapping.state
    if mapping.is_cut or size < known.st_size:
        return _CUT
    with suppress(OSError, ValueError):  # without a name it can only be cut
        now = Path(mapping.path).stat()
        if os.path.samestat(now, known) and (now.st_size, now.st_mtime_ns) != (
            known.st_size, known.st_mtime_ns,
        ):  # fmt: skip
            return "was changed while it was read"
    return None


def _watch(mapping: _Mapping) -> None:
    pages = mapping.pages()
    key = id(pages)
    with _lock:
        _install()
        _mappings[key] = mapping
    weakref.finalize(pages, _mappings.pop, key, None).atexit = False


def _install() -> None:
    """Handle SIGBUS, once in a process, where its structures are known."""
    if _installed or sys.platform != "linux" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return
    kind = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    handler = kind(_on_fault)
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    )  # fmt: skip
    before = _Action()
    _installed.extend((libc, before, handler))
    action = _Action(ctypes.cast(handler, ctypes.c_void_p), flags=_SIGNAL_INFO)
    libc.sigaction(signal.SIGBUS, ctypes.byref(action), ctypes.byref(before))


def _on_fault(number: int, info: int, context: int) -> None:
    """Put zeros in the place of what is gone of a mapped file.

    For another fault the handler before this one is put back, to which the same read leads next.
    """
    del number, context
    address = ctypes.c_uint64.from_address(info + _FAULT_ADDRESS).value
    libc, before, _ = _installed
    for mapping in list(_mappings.values()):
        if mapping.begin <= address < mapping.end:
            page = address // mmap.PAGESIZE * mmap.PAGESIZE
            rights = mmap.PROT_READ | mmap.PROT_WRITE
            libc.mmap(page, mapping.end - page, rights, _IN_PLACE, -1, 0)
            mapping.is_cut = True
            _noted.append(mapping.path)
            return
    libc.sigaction(signal.SIGBUS, ctypes.byref(before), None)


def open_regular(path: str | Path) -> FileIO:
    """Open a file for reading; unlike a plain ``open``, waits for nobody if it is a pipe.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is a folder, a pipe or a device.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ValueError("it is no regular file")
    return FileIO(file)
