"""Parameters of indexes and their queries."""

from __future__ import annotations

from typing import Final, Literal, get_args

from ngsgpu.declared.options import flag, option
from ngsgpu.declared.values import parameters

Format = Literal["bwa", "fm", "bwt", "sa"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)


@parameters
class QueryParameters:
    """Which matches are found; the shortest one of ``bwa mem`` is 19 bases, too."""

    min_length: int = option(19, "N", "Bases of the shortest match.", least=1)
    whole: bool = flag("Only matches of whole reads, of any length.", "--whole")
    max_places: int = option(20, "N", "A match with more places is written without them.", least=0)
