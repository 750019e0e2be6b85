"""Files of compiled kernels, those for GPUs and those for CPUs, kept for a user.

Names contain a hash of everything that the code depends on, so an entry is right wherever it is
found: installations, environments and checkouts share them, and nothing has to be cleared after
an update. An entry appears at once or not at all, and one that was damaged is not read.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Final

_DIGEST_BYTES: Final = 32
_UNUSED_SECONDS: Final = 90 * 24 * 3600


def cache_folder() -> Path | None:
    """Folder of compiled kernels, which may not exist yet.

    ``$NGSGPU_CACHE_DIR``, else ``ngsgpu`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``; None for
    a user without a home.
    """
    if own := os.environ.get("NGSGPU_CACHE_DIR"):
        return Path(own) / "kernels"
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "ngsgpu" / "kernels"
    try:
        home = Path.home()
    except RuntimeError:  # a user without an entry in passwd, as in some containers
        return None
    return home / ".cache" / "ngsgpu" / "kernels"


def read(path: Path) -> bytes | None:
    """An entry's content; None if there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def keep(path: Path, code: bytes) -> None:
    """Write an entry at once or not at all.

    Raises:
        OSError: there is no place for it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beginning = f".{path.name}."
    _remove_abandoned(path.parent, beginning)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=beginning, delete=False) as file:
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(hashlib.sha256(code).digest() + code)
            file.flush()
            with contextlib.suppress(FileNotFoundError):  # removed before it was locked
                Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _remove_abandoned(folder: Path, beginning: str) -> None:
    """Remove what processes that were killed left of an entry: files that nobody has locked."""
    for path in folder.glob(f"{glob.escape(beginning)}*"):
        with contextlib.suppress(OSError), path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def remove_old(folder: Path, beginning: str) -> None:
    """Remove what no version wrote in the last 90 days, of entries whose names begin alike."""
    oldest = time.time() - _UNUSED_SECONDS
    for path in folder.glob(f"{beginning}*"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < oldest:
                path.unlink()
