"""What paths lead to: streams, descriptors of this process, files named twice, temporary files."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, TypeAlias

from ngsgpu.ending import defer_signals
from ngsgpu.errors import InputError, UsageError, output_error

if TYPE_CHECKING:
    # Commands check their files before they lease a GPU; NumPy is imported while CUDA starts.
    import numpy as np
    from numpy.typing import NDArray

_MAX_LINKS: Final = 40
_MANIFEST: Final = b'{\n "format": "ngsgpu '
"""How the manifest of a database or an index begins."""

WRITTEN: Final = ".gz", ".zst", ".bz2", ".xz"
"""Endings of outputs that are compressed."""
_UNWRITTEN: Final = (".bam", ".cram", ".sam", ".lz4", ".lzma", ".lz", ".z", ".zip", ".7z", ".sra")

Identity = tuple[object, ...]

Paths: TypeAlias = str | Path | Sequence[str | Path]
"""One path, or several. A single one counts as a list of one, wherever a list is asked for."""


def listed(paths: Paths) -> list[str | Path]:
    """One path or several as a list."""
    return [paths] if isinstance(paths, str | Path) else list(paths)


def own_descriptor(path: str | Path, *, standard: int) -> int | None:
    """The descriptor of this process behind a path such as ``/dev/stdout`` or ``/dev/fd/3``.

    Args:
        path: the path; links in it are followed.
        standard: descriptor for ``-``.
    """
    if str(path) == "-":
        return standard
    own = re.compile(rf"/proc/{os.getpid()}(/task/[0-9]+)?/fd")
    place = Path(path)
    for _ in range(_MAX_LINKS):
        folder = os.path.realpath(place.parent)
        if place.name.isdecimal() and own.fullmatch(folder):
            return int(place.name)
        try:
            place = folder / (Path(folder) / place.name).readlink()
        except OSError:
            return None
    return None


def read_at(file: RawIOBase, data: NDArray[np.uint8], offset: int) -> int:
    """Fill an array with the bytes of a file from an offset on; safe among threads.

    Args:
        file: the open file.
        data: array to fill, uint8.
        offset: first byte in the file.

    Returns:
        How many there were; fewer than asked for where the file ends.

    Raises:
        OSError: the disk fails.
    """
    view, done = data.data, 0
    while done < len(view) and (count := os.preadv(file.fileno(), [view[done:]], offset + done)):
        done += count
    return done


class FileIdentity(NamedTuple):
    """What changes when a file is replaced or written to.

    Attributes:
        device: number of its file system.
        inode: its number there.
        size: bytes, as stored.
        modified: when it was last written, ns.
    """

    device: int
    inode: int
    size: int
    modified: int


def identify(file: int | str) -> FileIdentity:
    """The identity of a file, from its descriptor or path."""
    info = os.stat(file)  # noqa: PTH116  # descriptors, too
    return FileIdentity(info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns)


def changed(path: str) -> InputError:
    """The error for a file that changed after it was first read."""
    return InputError(
        path,
        "the file changed during the run",
        "run again when no other program writes to it",
    )


class Watched:
    """An opened input, which has to stay the same file with the same content while it is read.

    Streams are not watched.

    Args:
        path: its name; ``-`` is standard input.
        file: its descriptor, open as long as it is watched.

    Attributes:
        identity: of the file when it was opened; None: it is a stream.
    """

    def __init__(self, path: str, file: int) -> None:
        self._path = path
        self._file = file
        is_regular = stat.S_ISREG(os.fstat(file).st_mode)
        self.identity = identify(file) if is_regular else None

    def check(self) -> None:
        """Check that what has been read since it was opened is one version of the file.

        Raises:
            InputError: the file was written to, replaced or removed.
        """
        if self.identity is None:
            return
        try:
            same = all(
                identify(one) == self.identity for one in (self._file, self._path) if one != "-"
            )
        except OSError:
            same = False
        if not same:
            raise changed(self._path)


def is_stream(path: str | Path) -> bool:
    """Whether writes cannot be withdrawn: standard output, a pipe, a device."""
    if own_descriptor(path, standard=1) is not None:
        return True
    try:
        return not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return False


def temporary_place() -> Path:
    """The folder of temporary files: ``$TMPDIR``, or as for ``tempfile``.

    That tries folders by writing a file to each, which stays there if the process is killed.
    """
    if tempfile.tempdir is not None:
        return Path(os.fsdecode(tempfile.tempdir))
    own = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    for name in (*filter(None, own), "/tmp", "/var/tmp", "/usr/tmp"):
        place = Path(name).absolute()
        if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
            return place
    return Path.cwd()


def nameless_file() -> BinaryIO:
    """Open a file for reading and writing in the folder of temporary files, without a name.

    Raises:
        OutputError: that is not possible there.
    """
    place = temporary_place()
    try:
        with defer_signals():  # where there is no O_TMPFILE, it has a name for a moment
            return tempfile.TemporaryFile(dir=place)
    except OSError as error:
        raise output_error(place, error) from error


def check_distinct(
    inputs: Sequence[str | Path],
    outputs: Sequence[str | Path] = (),
    *,
    also_read: Iterable[str | Path] = (),
    databases: Iterable[str | Path] = (),
) -> None:
    """Check that no file is named twice among the inputs and outputs of a run.

    Links are resolved, ``-`` and descriptors count as their targets. ``/dev/null`` and other
    devices may be named repeatedly. No output may lie in another one, a folder, or in any database
    or index of ngsgpu.

    Args:
        inputs: files of reads, each to be read once.
        outputs: files to be written.
        also_read: other input files, which may be named more than once; a directory stands for all
            files in it, on its file system.
        databases: folders in which no output may lie either.

    Raises:
        UsageError: a file is named twice, or lies where it must not; states in which roles.
    """
    check_apart(outputs, databases)
    seen: dict[Identity, tuple[str, str]] = {}
    for path in inputs:
        _enter(seen, path, "input")
    for path in outputs:
        _enter(seen, path, "output")
    written = {key: name for key, (role, name) in seen.items() if role == "output"}
    for path in also_read:
        for own in (str(path), *_contents_among(written, path)):
            if (key := _identity(own, 0)) in written:
                raise _clash(written[key], "input and output", own)


def check_apart(outputs: Sequence[str | Path], databases: Iterable[str | Path] = ()) -> None:
    """Check that no output lies in another one, or in a folder that is read as a whole.

    Args:
        outputs: files and folders to be written.
        databases: such folders; those with a manifest of ngsgpu are found.

    Raises:
        UsageError: one does.
    """
    folders = {Path(os.path.realpath(path)): f"the database {path}" for path in databases}
    folders |= {Path(os.path.realpath(path)): f"the output {path}" for path in outputs}
    for path in outputs:
        for above in Path(os.path.realpath(path)).parents:
            if above not in folders and _has_manifest(above):
                folders[above] = f"the database {above}"
            if above in folders:
                raise UsageError(f"{path}: lies in {folders[above]}; choose another name")


def _has_manifest(folder: Path) -> bool:
    place = folder / "manifest.json"
    try:
        if not place.is_file():
            return False
        with place.open("rb") as file:
            return file.read(len(_MANIFEST)) == _MANIFEST
    except OSError:
        return False


def _enter(seen: dict[Identity, tuple[str, str]], path: str | Path, role: str) -> None:
    key = _identity(path, 0 if role == "input" else 1)
    if key is None:
        return
    if key in seen:
        earlier_role, earlier = seen[key]
        what = f"{role} twice" if role == earlier_role else f"{earlier_role} and {role}"
        raise _clash(str(path), what, earlier)
    seen[key] = (role, str(path))


def _clash(path: str, what: str, other: str) -> UsageError:
    shown = {"-": "standard input or output"}
    also = f" (also as {shown.get(other, other)})" if other != path else ""
    return UsageError(f"{shown.get(path, path)}: is named as {what}{also}; give different files")


def _contents_among(written: Mapping[Identity, str], folder: str | Path) -> Iterator[str]:
    """What may be one of the outputs in a folder, on its file system.

    Only outputs that exist can be there, so the folder is mostly not looked at.
    """
    present = [name for name in written.values() if os.path.exists(name)]  # noqa: PTH110
    if not present or not os.path.isdir(folder):  # noqa: PTH112
        return
    here = Path(os.path.realpath(folder))
    yield from (name for name in present if here in Path(os.path.realpath(name)).parents)
    numbers = {os.stat(name).st_ino for name in present}  # noqa: PTH116
    waiting, device = [os.fspath(folder)], os.stat(folder).st_dev  # noqa: PTH116
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:  # what vanishes is no output
            for entry in entries:
                if entry.is_symlink() or entry.inode() in numbers:
                    yield entry.path
                elif entry.is_dir() and entry.stat().st_dev == device:
                    waiting.append(entry.path)


def _identity(path: str | Path, standard: int) -> Identity | None:
    """Something that is equal for two names of the same file; None if it need not differ."""
    number = own_descriptor(path, standard=standard)
    try:
        info = Path(path).stat() if number is None else os.fstat(number)
    except OSError:
        return None if number is not None else _identity_of_new(path)
    if any(kind(info.st_mode) for kind in (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISDIR)):
        return (info.st_dev, info.st_ino)
    # A terminal may be both ends.
    return ("-", number) if str(path) == "-" else None


def _identity_of_new(path: str | Path) -> Identity:
    """By folder and name, for the folder may have several names as well.

    A path may lead through a folder that is not there yet, and back to a file that is.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.exists():
            info = target.stat()
            return (info.st_dev, info.st_ino)
        info = target.parent.stat()
    except OSError:
        return (str(target),)
    return (info.st_dev, info.st_ino, target.name)


def refuse_unwritten(path: str | Path) -> None:
    """Refuse an output whose name promises a format that is not written.

    Raises:
        UsageError: names the formats that are.
    """
    name = str(path).lower()
    if own := next((ending for ending in _UNWRITTEN if name.endswith(ending)), None):
        raise UsageError(
            f"{path}: {own} is not written here; choose a name that ends in "
            f"{', '.join(WRITTEN)}, or another one for plain text"
        )
