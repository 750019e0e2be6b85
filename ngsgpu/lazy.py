"""Names of a package that are imported when they are first used, and what others register.

A package lists what it offers as imports that only type checkers read, so that importing one of its
modules does not import all of them::

    if TYPE_CHECKING:
        from ngsgpu.deplete.build import build_index, plan_index
    __all__ = ["build_index", "plan_index"]
    __getattr__, __dir__ = on_first_use(__name__, __file__)
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
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
        import ast

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


def registered(group: str) -> Iterator[tuple[str, str, Any]]:
    """Entry points of a group, of all packages: name, place, and what it is.

    Of one that cannot be loaded, the last is the exception.
    """
    # Most often there is none, and importlib.metadata takes longer to import than it takes to see.
    if not any(b"[%s]" % group.encode() in text for text in _entry_points()):
        return
    from importlib.metadata import entry_points

    for point in sorted(entry_points(group=group)):
        try:
            yield point.name, point.value, point.load()
        except Exception as error:  # a package that is broken must not stop the command
            yield point.name, point.value, error
        except SystemExit as end:
            yield point.name, point.value, ImportError(f"it ends the program ({end})")


def _entry_points() -> Iterator[bytes]:
    """Files of entry points of all packages that are installed in folders."""
    for folder in dict.fromkeys(sys.path):
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                path = os.path.join(folder, name, "entry_points.txt")  # noqa: PTH118  # faster
                with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
                    yield file.read()
