"""Parameters of indexes and their queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from ngsgpu.errors import UsageError

Format = Literal["bwa", "fm", "bwt", "sa"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)


@dataclass(frozen=True, slots=True)
class QueryParameters:
    """Which matches are found.

    Attributes:
        min_length: bases of the shortest maximal match, 1 or more; that of ``bwa mem`` is 19.
        whole: only matches of whole reads, of any length.
        max_places: a match with more places is written without them.
    """

    min_length: int = 19
    whole: bool = False
    max_places: int = 20

    def __post_init__(self) -> None:
        if self.min_length < 1:
            raise UsageError(f"--min-length must be 1 or more, not {self.min_length}")
        if self.max_places < 0:
            raise UsageError(f"--max-places must be 0 or more, not {self.max_places}")


def check_format(name: str) -> Format:
    """Return the format with this name.

    Raises:
        UsageError: there is none.
    """
    for known in FORMATS:
        if name == known:
            return known
    raise UsageError(f"--format must be one of {', '.join(FORMATS)}, not {name!r}")
