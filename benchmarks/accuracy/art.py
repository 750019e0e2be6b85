"""Pairs drawn by ART, without insertions and deletions, so that each base has its true one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

_NO_INDELS: Final = [
    word for option in ("-ir", "-ir2", "-dr", "-dr2") for word in (option, "0")
]  # fmt: skip


def draw_pairs(profile: str, source: str, name: str, folder: Path, *options: object) -> None:
    """Write NAME1.fq and NAME2.fq in a folder.

    Args:
        profile: of ART's own, or the prefix of two files of one, with their folder.
        source: FASTA in the folder.
        name: prefix of what is written.
        folder: where.
        *options: lengths, coverage and the like.
    """
    kind = ["-ss", profile]
    if "/" in profile:
        kind = ["-1", f"{profile}R1.txt", "-2", f"{profile}R2.txt"]
    words = [*kind, "-p", "-na", "-q", *_NO_INDELS, *map(str, options), "-i", source, "-o", name]
    subprocess.run(["art_illumina", *words], cwd=folder, check=True, capture_output=True)
