"""A warning where long reads are given to what is made for short ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from ngsgpu.io.inputs import ReadFiles

LONG: Final = 1000
"""Mean bases of reads from which on they are taken for long ones: those of Illumina, also merged or
extended to their fragments, have fewer."""

_LOG = logging.getLogger("ngsgpu")


def warn_of_long_reads(
    reads: int, bases: int, lanes: Sequence[ReadFiles], work: str, remedy: str
) -> None:
    """Warn if reads are long.

    Args:
        reads: their number, of all of them or the first ones.
        bases: of these.
        lanes: their files.
        work: what is made for short reads.
        remedy: what to do with long ones.
    """
    if bases < LONG * max(1, reads):
        return
    file = (lanes[0].given or lanes[0].inputs)[0]
    others = sum(len(lane.inputs) for lane in lanes) - 1
    _LOG.warning(
        "%s%s: the reads have %s bases on average, and %s is for short reads (%s is the limit); %s",
        file,
        f" and {others} more" if others else "",
        f"{bases // max(1, reads):,}",
        work,
        f"{LONG:,}",
        remedy,
    )
