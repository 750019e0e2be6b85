"""Files between the steps of training: recorded positions, and fitted forests."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.forests.features import MOST_FEATURES
from ngsgpu.correct.forests.forest import FEATURES, Forest
from ngsgpu.errors import InputError, unreadable
from ngsgpu.io.output.atomic import write_texts
from ngsgpu.io.output.manifest import parse_json
from ngsgpu.train.extract import Rows


def save_samples(path: str | Path, group: str, rows: Rows, labels: NDArray[np.int8]) -> None:
    """Write positions of reads of one organism, the ``group``.

    Args:
        path: file to write.
        group: name of the organism.
        rows: positions with their features, int32[n, 4 + MOST_FEATURES].
        labels: whether the base is right, int8[n].
    """
    _write(path, {"group": np.array(group), "rows": rows, "labels": labels})


def load_samples(path: str | Path) -> tuple[str, Rows, NDArray[np.int8]]:
    """Read what ``save_samples`` wrote.

    Raises:
        InputError: it cannot be read, is damaged, or is another file.
    """
    with _read(path, "samples", "extract") as arrays:
        rows, labels = arrays["rows"], arrays["labels"]
        shape = len(labels), 4 + MOST_FEATURES
        if rows.dtype != np.int32 or labels.dtype != np.int8 or rows.shape != shape:
            raise ValueError("those of another version")
        return str(arrays["group"]), rows, labels


def select(kind: str, rows: Rows, labels: NDArray[np.int8]) -> tuple[Rows, NDArray[np.int8]]:
    """Features and labels of the positions of a forest.

    Args:
        kind: name of the forest.
        rows: positions with their features.
        labels: label of each position.
    """
    own = rows[:, 0] == list(FEATURES).index(kind)
    return rows[own, 4 : 4 + len(FEATURES[kind])], labels[own]


def save_forests(path: str | Path, forests: dict[str, Forest], document: dict[str, Any]) -> None:
    """Write fitted forests and what was measured, for ``ngsgpu train export``.

    Args:
        path: file to write.
        forests: fitted forests by kind.
        document: description of the training and its measurements.
    """
    arrays: dict[str, Any] = {"document": np.array(json.dumps(document))}
    for kind, forest in forests.items():
        head = {name: getattr(forest, name) for name in ("link", "base", "threshold", "sure")}
        arrays |= {
            f"{kind}_roots": forest.roots,
            f"{kind}_nodes": forest.nodes,
            f"{kind}_head": np.array(json.dumps(head)),
        }
    _write(path, arrays)


def _write(path: str | Path, arrays: dict[str, Any]) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_texts({path: content.getvalue()})


def load_forests(path: str | Path) -> tuple[dict[str, Forest], dict[str, Any]]:
    """Read what ``save_forests`` wrote.

    Raises:
        InputError: it cannot be read, is damaged, or is another file.
    """
    with _read(path, "forests", "fit") as arrays:
        forests = {}
        for kind in FEATURES:
            head = parse_json(str(arrays[f"{kind}_head"]))
            forests[kind] = Forest(kind, arrays[f"{kind}_roots"], arrays[f"{kind}_nodes"], **head)
        return forests, parse_json(str(arrays["document"]))


@contextmanager
def _read(path: str | Path, what: str, step: str) -> Iterator[dict[str, NDArray[Any]]]:
    """The arrays of a file, and InputError from all that fails while they are used."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            yield dict(file.items())
    except MemoryError:
        raise
    except Exception as error:  # what NumPy, zipfile and zlib raise for damage has no common base
        raise InputError(
            path, f"it holds no {what} ({error})", f"run ngsgpu train {step} again"
        ) from error
