"""Folders of our own for suffix arrays and FM indexes, and opening an index of either kind.

A folder has ``manifest.json`` with the sequences and checksums, and arrays that are mapped into
memory:

- ``fm``: ``words.npy`` and ``sample.npy`` (see ``ngsgpu.suffix.fm``), of both strands;
- ``bwt``: ``transform.npy``, uint8, the Burrows-Wheeler transform of ``text.npy`` with its end mark
  (byte 0) in place;
- ``sa``: ``places.npy``, the suffix array of ``text.npy``.

``text.npy`` has the sequences in upper case, each with a ``$`` behind it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError
from ngsgpu.io.output.folder import FolderKind
from ngsgpu.io.output.manifest import (
    FILES,
    MANIFEST,
    fields_of,
    is_count,
    is_text,
    opened_whole,
    read_manifest,
    save_manifest,
)
from ngsgpu.io.output.store import check_content, check_sizes, open_array, save_arrays
from ngsgpu.suffix import bwa
from ngsgpu.suffix.fm import FmIndex
from ngsgpu.suffix.places import SequencePlaces

FORMAT: Final = "ngsgpu index"
VERSION: Final = 1
COMMAND: Final = "ngsgpu index build"
KIND: Final = FolderKind(
    "an index of this format",
    FORMAT,
    frozenset(("words.npy", "sample.npy", "text.npy", "transform.npy", "places.npy")),
)
_SHAPE: Final = {
    "kind": is_text,
    "names": [is_text],
    "starts": [is_count],
    "primary?": is_count,
    "totals?": [is_count],
    "files": FILES,
}


def files_of_index(prefix: str | Path) -> list[Path]:
    """What an index is read from: the files of BWA, beside the sequences, or a folder."""
    if Path(prefix).is_dir():
        return [Path(prefix)]
    return [Path(prefix)] + [Path(f"{prefix}{ending}") for ending in (*bwa.ENDINGS, bwa.SUMS)]


def open_index(prefix: str | Path, threads: int = 1) -> tuple[FmIndex, SequencePlaces]:
    """Open an index of BWA's files, or a folder of format ``fm``.

    Raises:
        InputError: it is missing or damaged, or has no FM index.
    """
    if not Path(prefix).is_dir():
        return bwa.read_bwa(prefix, threads)
    return opened_whole([prefix], lambda: _open_folder(Path(prefix), threads))


def _open_folder(folder: Path, threads: int) -> tuple[FmIndex, SequencePlaces]:
    values = read_manifest(folder / MANIFEST, FORMAT, VERSION, _SHAPE, COMMAND)
    if values["kind"] != "fm":
        raise InputError(folder, f"has no FM index, but format {values['kind']}",
                         "build it with `ngsgpu index build --format fm`, or bwa")  # fmt: skip
    files = values["files"]
    with fields_of(folder / MANIFEST):
        totals = np.array(values["totals"], dtype=np.int64)
        primary = int(values["primary"])
        names = [name.encode("latin-1") for name in values["names"]]
        places = SequencePlaces(names, np.array(values["starts"], dtype=np.int64))
        if files.keys() != {"words.npy", "sample.npy"}:
            raise ValueError("its files are others")
    check_sizes(folder, files)
    arrays = {
        "words": open_array(folder, "words", np.uint32),
        "sample": open_array(folder, "sample", np.int64),
    }
    check_content(folder, files, arrays, threads)
    # A copy, as of BWA's files: what was checked here decides, even if the file is changed later.
    arrays["sample"] = arrays["sample"].copy()
    index = FmIndex(primary, totals, arrays["words"], arrays["sample"], str(folder))
    if not (index.is_consistent() and places.fit(len(index))):
        raise InputError(folder, "is damaged: its parts do not fit", f"run {COMMAND} again")
    return index, places


def save_index(
    folder: Path,
    kind: str,
    places: SequencePlaces,
    arrays: dict[str, NDArray[Any]],
    values: dict[str, Any],
    threads: int,
) -> None:
    """Write the files of a folder.

    Args:
        folder: where.
        kind: ``fm``, ``bwt`` or ``sa``.
        places: of the sequences.
        arrays: by their names.
        values: more of the manifest.
        threads: that write.

    Raises:
        OutputError: one cannot be written.
    """
    files = save_arrays(folder, arrays, threads)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "names": [name.decode("latin-1") for name in places.names],
        "starts": places.starts.tolist(),
        **values,
        "files": files,
    }
    save_manifest(folder / MANIFEST, manifest)
