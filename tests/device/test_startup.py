"""CuPy is made ready in a thread while others import it."""

import ast
from pathlib import Path

import pytest

import ngsgpu

PACKAGE = Path(ngsgpu.__file__).parent


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PACKAGE.rglob("*.py")) if "cupy" in path.read_text()],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_cupy_is_imported_whole_and_first(path):
    # "from cupy.cuda import x" locks cupy.cuda and then waits for cupy. A thread that is importing
    # cupy waits for cupy.cuda meanwhile, and Python hands out half of a module to one of them.
    imported = [
        name
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    assert [name for name in imported if name.startswith(("cupy.", "cupy_backends"))] == []
