"""Tests stand apart: they import the package and ``tests.support``, never each other."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
# A program of several files that CI runs, and its tests.
PROGRAM = "tests.attack"


def imported(path: Path) -> set[str]:
    """Modules and packages below ``tests`` that a file imports, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "tests"}


def test_no_test_imports_a_test() -> None:
    for path in sorted(TESTS.rglob("*.py")):
        folder = path.relative_to(TESTS).parts[0]
        for name in imported(path):
            allowed = name.startswith("tests.support")
            allowed |= folder == "attack" and name.startswith(PROGRAM)
            assert allowed and ".test_" not in name, f"{path} imports {name}"
