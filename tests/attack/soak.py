"""The same work again: other threads, less memory, and rubbish in memory nobody has written to."""

from __future__ import annotations

import ctypes
import random
from typing import Final

from tests.attack.arena import Arena, Verdict
from tests.attack.world import COMMANDS

_FILL: Final = -6  # M_PERTURB of mallopt(3): what is allocated and what is freed is filled
_LARGEST_ON_THE_HEAP: Final = -3  # M_MMAP_THRESHOLD: pages of the kernel would be zero
_THREADS: Final = (1, 2, 3, 5)
_LIMITS: Final = (None, None, "700M", "2G")
_LIMITED: Final = ("correct", "extend", "db")


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Run a command in memory full of rubbish; its outputs must not depend on anything."""
    command = source.choice(COMMANDS)
    threads, pattern = source.choice(_THREADS), source.randrange(1, 256)
    is_limited = command.arguments[0] in _LIMITED and "-t" in command.arguments
    limit = source.choice(_LIMITS) if is_limited else None
    with arena.case(command, name) as case:
        arguments = command.placed(case.folder)
        if "-t" in arguments:
            arguments[arguments.index("-t") + 1] = str(threads)
        if limit is not None:
            arguments += ["--memory", limit]

        def fill_memory() -> None:
            libc = ctypes.CDLL(None)
            libc.mallopt(_LARGEST_ON_THE_HEAP, 1 << 25)
            libc.mallopt(_FILL, pattern)

        ending = case.run(arguments, prepare=fill_memory)
        what = f"{command.name}: {threads} threads, {limit} of memory, filled with {pattern}"
        if ending.status != 0:
            return Verdict(what, "failed", f"exit status {ending.status}: {ending.stderr[-300:]}")
        problem = case.succeeded()
        if problem:
            # It may not happen again: what was written is worth more than how to try.
            problem += f"; kept in {arena.keep(case)}"
        return Verdict(what, "same", problem)
