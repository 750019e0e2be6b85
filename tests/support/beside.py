"""What another process may do between two calls of the operating system."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def beside(work: Callable[[], object], deed: Callable[[int], object]) -> int:
    """Do some work, and something else after each of its calls of the operating system.

    Args:
        work: what is done; calls that it makes in other threads are not seen.
        deed: what is done between two calls of it; it is given their number, from 0.

    Returns:
        How many calls there were.
    """
    calls = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        if event == "c_return" and getattr(argument, "__module__", None) in ("posix", "io"):
            sys.setprofile(None)
            deed(calls)
            calls += 1
            sys.setprofile(look)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls
