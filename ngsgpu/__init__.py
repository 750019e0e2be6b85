"""Correct, extend, merge, classify and assemble Illumina short reads on GPUs and CPUs.

    import ngsgpu
    with ngsgpu.correct("R1.fastq.gz", "R2.fastq.gz") as pairs:
        pairs.save("C1.fastq.gz", "C2.fastq.gz")

``docs/recipes.md`` shows the functions and classes for programs, which ``ngsgpu.api`` defines.
Importing the package is cheap: these, Numba and CuPy are imported when they are first used. Each
algorithm has its own package (``ngsgpu.correct``, ...) with the same layout: ``params``, ``cpu``,
``gpu``, ``pipeline``, ``stats``. ``__init__.pyi`` is for type checkers.
"""

import sys

from ngsgpu._version import __version__

_STAGES = ("assemble", "classify", "correct", "deplete", "merge", "trim")
"""Packages that can be called, as the functions of the same names in ``ngsgpu.api``."""

__all__ = [
    "Call",
    "Calls",
    "Classifier",
    "KmerCounts",
    "Merged",
    "NamedSequences",
    "Pair",
    "Reads",
    "Record",
    "Result",
    "Writer",
    "__version__",
    "assemble",
    "chain",
    "classify",
    "correct",
    "count",
    "deplete",
    "merge",
    "open",
    "trim",
]

_Module = type(sys)


def _interface(name: str) -> object:
    """A function or class of ``ngsgpu.api``."""
    import importlib

    return getattr(importlib.import_module(f"{__name__}.api"), name)


class _Stage(_Module):
    """A package that can be called."""

    def __call__(self, *arguments: object, **named: object) -> object:
        """Call the function of the same name."""
        function = _interface(self.__name__.rpartition(".")[2])
        return function(*arguments, **named)


class _Package(_Module):
    """The package, whose interface is imported when it is used."""

    def __getattr__(self, name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _STAGES:
            import importlib

            return importlib.import_module(f"{__name__}.{name}")
        found = _interface(name)
        setattr(self, name, found)
        return found

    def __setattr__(self, name: str, value: object) -> None:
        if name in _STAGES and type(value) is _Module:  # bound by the import of the package
            value.__class__ = _Stage
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
