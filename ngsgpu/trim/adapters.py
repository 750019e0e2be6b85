"""Adapters as fastp 0.23.2 knows them, for ``--fastp``; and sequencers with two colours.

``known_adapters.fa`` holds the adapters; most are from Stephen Turner's collection
(https://github.com/stephenturner/adapters). Without ``--fastp``, adapters are those that
``ngsgpu.run.adapters`` finds.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

TWO_COLOURED: Final = re.compile(rb"@(NS|NB|NDX|A0)")
"""How names of reads begin that are from NextSeq 500, 550 and 550Dx, or NovaSeq 6000."""

_NEWER: Final = re.compile(rb"@(LH|VH|VL|MN|FS|SH)\w*:")
"""The same of NovaSeq X, NextSeq 1000 and 2000, MiniSeq, iSeq and MiSeq i100, which fastp 0.23.2
does not know; with the colon, since accession numbers of sequences begin with MN, too."""


@cache
def known_adapters() -> dict[str, str]:
    """Names of kits' adapters by sequence, sorted by sequence."""
    lines = files("ngsgpu.trim").joinpath("known_adapters.fa").read_text("ascii").split("\n")
    sequences = dict(zip(lines[1::2], (line[1:] for line in lines[::2]), strict=False))
    return dict(sorted(sequences.items()))


def begin_of_known(sequence: str) -> str:
    """The shortest known adapter with which ``sequence`` begins; empty if there is none.

    The first by sequence is the shortest, as all of them begin ``sequence``.
    """
    return next((known for known in known_adapters() if sequence.startswith(known)), "")


def may_be_known(begin: str) -> bool:
    """Whether what begins so may begin with a known adapter."""
    return any(begin.startswith(known) or known.startswith(begin) for known in known_adapters())


def is_two_coloured(name: bytes, *, as_fastp: bool) -> bool:
    """Whether a read is from a sequencer in which no signal reads as G, by its name with ``@``."""
    return bool(TWO_COLOURED.match(name) or (not as_fastp and _NEWER.match(name)))
