"""Files between the steps of training: recorded positions, and fitted forests."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.forests.forest import FEATURES, Forest
from ngsgpu.errors import InputError
from ngsgpu.io.output.atomic import write_texts
from ngsgpu.train.extract import Rows


def save_samples(path: str | Path, group: str, rows: Rows, labels: NDArray[np.int8]) -> None:
    """Write positions of reads of one organism, the ``group``."""
    _write(path, {"group": np.array(group), "rows": rows, "labels": labels})


def load_samples(path: str | Path) -> tuple[str, Rows, NDArray[np.int8]]:
    """Read what ``save_samples`` wrote.

    Raises:
        InputError: it is another file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            return str(file["group"]), file["rows"], file["labels"]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(
            path, f"it holds no samples ({error})", "run ngsgpu train extract"
        ) from error


def select(kind: str, rows: Rows, labels: NDArray[np.int8]) -> tuple[Rows, NDArray[np.int8]]:
    """Features and labels of the positions of a forest."""
    own = rows[:, 0] == list(FEATURES).index(kind)
    return rows[own, 4 : 4 + len(FEATURES[kind])], labels[own]


def save_forests(path: str | Path, forests: dict[str, Forest], document: dict[str, Any]) -> None:
    """Write fitted forests and what was measured, for ``ngsgpu train export``."""
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
        InputError: it is another file.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            forests = {}
            for kind in FEATURES:
                head = json.loads(str(file[f"{kind}_head"]))
                forests[kind] = Forest(kind, file[f"{kind}_roots"], file[f"{kind}_nodes"], **head)
            return forests, json.loads(str(file["document"]))
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(path, f"it holds no forests ({error})", "run ngsgpu train fit") from error
