"""Docstrings say what each parameter is, where a function that others call has three or more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

REFERENCE = re.compile(r"\b([Aa]rg(ument)?s (are|as|of|in)|[Ss]ee|[Aa]s|of) ``")
"""A docstring whose parameters are those of another function, which it names."""

NOT_CALLED = re.compile(r"ngsgpu/cli/|ngsgpu/chains/command\.py")
"""Commands: their options have help texts."""

DRIVERS = re.compile(
    r"/(stage|pipeline|gpu_run|cpu_run|gpu_plan)\.py|ngsgpu/(run|io/compress|correct/params\.py)"
)
"""Modules that hand on the parameters of a stage, which its dataclasses describe."""


PLAIN = re.compile(r"njit|overload")
"""Decorators of kernels, and of signatures that another function describes."""


def functions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Public functions, and methods of public classes, but for Numba's kernels."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from functions(node.body, f"{node.name}.")
        elif (
            isinstance(node, ast.FunctionDef)
            and not node.name.startswith("_")
            and not any(PLAIN.search(ast.unparse(own)) for own in node.decorator_list)
        ):
            yield prefix + node.name, node


def parameters(node: ast.FunctionDef) -> list[str]:
    taken = node.args
    names = [own.arg for own in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def is_described(node: ast.FunctionDef) -> bool:
    text = ast.get_docstring(node) or ""
    if "Args:" in text or REFERENCE.search(text):
        return True
    return all(re.search(rf"\b{name}\b", text) for name in parameters(node))


def test_parameters_are_described() -> None:
    paths = sorted((ROOT / "ngsgpu").rglob("*.py"))
    trees = {path: ast.parse(path.read_text()) for path in paths}
    uses: dict[str, set[Path]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                for own in node.names:
                    uses.setdefault(own.name, set()).add(path)
            elif isinstance(node, ast.Attribute):
                uses.setdefault(node.attr, set()).add(path)
    # A method that overrides another one has its parameters.
    described = {
        name.partition(".")[2]
        for tree in trees.values()
        for name, node in functions(tree.body)
        if "." in name and "Args:" in (ast.get_docstring(node) or "")
    }
    missing = [
        f"{place}:{node.lineno}: {name}({', '.join(parameters(node))})"
        for path, tree in trees.items()
        if not NOT_CALLED.search(place := str(path.relative_to(ROOT))) and not DRIVERS.search(place)
        for name, node in functions(tree.body)
        if len(parameters(node)) >= 3
        and uses.get(node.name, set()) - {path}
        and name.partition(".")[2] not in described
        and not is_described(node)
    ]
    assert not missing, "\n".join(missing)
