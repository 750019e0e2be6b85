"""References with mutated copies, for large databases."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

CHANGED: Final = 0.01
"""Share of the bases of a copy that are drawn again, and may be the same."""

_BASES: Final = np.frombuffer(b"ACGT", dtype=np.uint8)


def records_of(path: Path) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Name and letters of each sequence of a FASTA file, plain or gzip."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    for record in content.split(b">")[1:]:
        header, _, body = record.partition(b"\n")
        letters = np.frombuffer(body.replace(b"\n", b""), dtype=np.uint8)
        yield header.split()[0].decode(), letters


def mutated(
    letters: NDArray[np.uint8], source: np.random.Generator, changed: float = CHANGED
) -> NDArray[np.uint8]:
    """Letters of a copy."""
    own = letters.copy()
    places = source.random(len(own), dtype=np.float32) < changed
    own[places] = source.choice(_BASES, int(places.sum()))
    return own


def write_copies(
    references: Sequence[Path],
    copies: int,
    folder: Path,
    *,
    changed: float = CHANGED,
    number: int = 0,
) -> list[Path]:
    """Write each reference as a plain file, and mutated copies of it as separate files.

    The copies do not depend on the number of processors.

    Args:
        references: FASTA files, plain or gzip.
        copies: of each.
        folder: where to.
        changed: share of a copy's bases that are drawn again.
        number: of the round; later ones have further copies, and not the references themselves.

    Returns:
        The files.
    """

    def write(reference: int) -> list[Path]:
        source = np.random.default_rng([1 + number, reference])
        records = list(records_of(references[reference]))
        targets = []
        first = number * copies + 1
        for copy in [*([] if number else [0]), *range(first, first + copies)]:
            targets.append(folder / f"{references[reference].name.split('.')[0]}_{copy}.fna")
            with targets[-1].open("wb") as out:
                for name, letters in records:
                    own = letters if copy == 0 else mutated(letters, source, changed)
                    label = name if copy == 0 else f"copy{copy}_{name}"
                    out.write(f">{label}\n".encode() + own.tobytes() + b"\n")
        return targets

    with ThreadPoolExecutor() as pool:
        return [path for paths in pool.map(write, range(len(references))) for path in paths]
