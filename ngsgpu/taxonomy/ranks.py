"""Ranks of taxa: names and codes."""

from __future__ import annotations

import re
from typing import Final

from ngsgpu.errors import UsageError

RANKS: Final = (
    "sequence", "form", "variety", "subspecies", "species", "subgenus", "genus", "subtribe",
    "tribe", "subfamily", "family", "suborder", "order", "subclass", "class", "subphylum",
    "phylum", "subkingdom", "kingdom", "domain", "root",
)  # fmt: skip
"""MetaCache's ranks from lowest to highest; reference sequences have their own rank."""

NO_RANK: Final = 255
"""Rank of nodes outside ``RANKS`` (NCBI's "no rank", "clade", "strain" and so on)."""

RANK_CODES: Final = {name: code for code, name in enumerate(RANKS)}

SEQUENCE: Final = RANK_CODES["sequence"]
SPECIES: Final = RANK_CODES["species"]
GENUS: Final = RANK_CODES["genus"]
FAMILY: Final = RANK_CODES["family"]
ROOT: Final = RANK_CODES["root"]


_ABOVE_DOMAINS: Final = re.compile(r"R[0-9]*|-?")
_DOMAINS: Final = frozenset((2, 2157, 2759, 10239))
"""NCBI's Bacteria, Archaea, Eukaryota and Viruses."""


def kraken_code(code: str, taxid: int) -> str:
    """The rank's code in a line of a Kraken report, but ``D`` for NCBI's domains.

    Kraken 2 has no letter for their ranks since these are "domain" and "acellular root" (R1, R2).
    """
    return "D" if taxid in _DOMAINS and _ABOVE_DOMAINS.fullmatch(code) else code


def rank_name(rank: int) -> str:
    """A rank in words; "no rank" for ``NO_RANK``."""
    return RANKS[rank] if rank < len(RANKS) else "no rank"


def rank_code(name: str) -> int:
    """Index of a rank by its name.

    Raises:
        UsageError: unknown rank.
    """
    if name not in RANKS:
        raise UsageError(f"unknown rank {name!r}; choose from {', '.join(RANKS)}")
    return RANKS.index(name)
