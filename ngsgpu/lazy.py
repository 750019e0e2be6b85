"""Names of a package that are imported when they are first used.

A package lists what it offers as imports that only type checkers read, so that importing one of its
modules does not import all of them::

    if TYPE_CHECKING:
        from ngsgpu.deplete.build import build_index, plan_index
    __all__ = ["build_index", "plan_index"]
    __getattr__, __dir__ = on_first_use(__name__, __file__)
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def on_first_use(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: its name.
        file: its source, with the imports under ``if TYPE_CHECKING``.
    """

    @functools.cache
    def modules() -> dict[str, str]:
        """The module of each name."""
        return {
            name.asname or name.name: node.module
            for block in ast.parse(Path(file).read_text(encoding="utf-8")).body
            if isinstance(block, ast.If)
            for node in block.body
            if isinstance(node, ast.ImportFrom) and node.module is not None
            for name in node.names
        }

    def get(name: str) -> Any:
        if name.startswith("__") or name not in modules():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(modules()[name]), name)
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules()})

    return get, names
