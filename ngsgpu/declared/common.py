"""Parameters that several stages share."""

from __future__ import annotations

from typing import Annotated

from ngsgpu.declared.options import RESEARCH, flag, option

QualityBits = Annotated[
    int,
    option(
        ...,
        "8|2|1|0",
        "Bits stored per quality; fewer need less memory, 0 ignores qualities.",
        choices=(8, 2, 1, 0),
        group=RESEARCH,
    ),
]
Mask = Annotated[bool, flag("Write N where a base would be changed.", "--mask", default=...)]
SetQuality = Annotated[
    bool,
    flag(
        "Set the qualities of changed bases: Q20 (of N: Q2), or the lower one of the nearest "
        "unchanged bases if that is less.",
        "--quality",
        default=...,
    ),
]
