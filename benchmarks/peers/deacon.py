"""deacon, which takes out a host's reads by minimizers: its commands, and what it says of a run.

Its own parameters are used (k 31, w 15, two minimizers and 1 % of them).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.harness.measuring import BenchmarkError, answer, find_program, version_in

DEACON: Final = "deacon"


def is_here() -> bool:
    """Whether it can be found."""
    try:
        find_program(DEACON)
    except BenchmarkError:
        return False
    return True


def version() -> str:
    """The version of the one that is here."""
    return version_in(answer(DEACON, "--version"))


def index_command(sequences: Path, index: Path, threads: int) -> list[str]:
    """Write the index of one file."""
    return [DEACON, "index", "build", str(sequences), "-o", str(index), "-t", str(threads), "-q"]


def freeze_command(index: Path, frozen: Path) -> list[str]:
    """Write an index as a binary fuse filter, which is smaller."""
    return [DEACON, "index", "freeze", str(index), "-o", str(frozen)]


def deplete_command(
    index: Path, reads: Sequence[Path], outputs: Sequence[Path], summary: Path, threads: int
) -> list[str]:
    """Write the reads or pairs, of one or two files, that are not the index's."""
    options = ["-s", str(summary), "-t", str(threads), "-q"]
    written = [word for pair in zip(("-o", "-O"), map(str, outputs), strict=False) for word in pair]
    return [DEACON, "filter", "-d", str(index), *map(str, reads), *written, *options]


def taken_out(summary: Path) -> int:
    """Reads that were taken out, both mates of a pair counted."""
    return int(json.loads(summary.read_text())["seqs_removed"])


def own_seconds(summary: Path) -> float:
    """The time from its index in memory to the end."""
    return float(json.loads(summary.read_text())["time"])
