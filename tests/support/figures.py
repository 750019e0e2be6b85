"""Figures of reports: those of the same values are drawn once."""

from __future__ import annotations

import functools
import importlib
import pickle
import pkgutil
from collections.abc import Callable
from typing import Any

import pytest
from matplotlib.figure import Figure

import ngsgpu.report
from ngsgpu.report import drawing

Draw = Callable[..., str]


class Kept:
    """Figures by what they were drawn of."""

    def __init__(self) -> None:
        self.is_used = True
        self._figures: dict[tuple[str, bytes], str] = {}

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Let all modules of the report ask here before they draw."""
        instead: dict[Draw, Draw] = {}
        for found in pkgutil.walk_packages(ngsgpu.report.__path__, "ngsgpu.report."):
            module = importlib.import_module(found.name)
            for name, own in vars(module).copy().items():
                if getattr(own, "__code__", None) is _DRAW:
                    patch.setattr(module, name, instead.setdefault(own, self._asking(own)))

    def _asking(self, draw: Draw) -> Draw:
        @functools.wraps(draw)
        def ask(*args: Any, **kwargs: Any) -> str:
            if not self.is_used:
                return draw(*args, **kwargs)
            asked = f"{draw.__module__}.{draw.__qualname__}", pickle.dumps((args, kwargs))
            if asked not in self._figures:
                self._figures[asked] = draw(*args, **kwargs)
            return self._figures[asked]

        return ask


def leave_empty(patch: pytest.MonkeyPatch, kept: Kept) -> None:
    """Draw nothing into the figures that are made from now on, and keep none of them."""
    patch.setattr(kept, "is_used", False)
    patch.setattr(Figure, "savefig", lambda figure, file, **how: file.write("<svg></svg>"))


_DRAW = drawing.fragment_lengths.__code__  # of all functions that the decorator has made
