"""Correct, extend, merge, classify and assemble Illumina short reads on GPUs and CPUs.

    import ngsgpu
    with ngsgpu.correct("R1.fastq.gz", "R2.fastq.gz") as pairs:
        pairs.save("C1.fastq.gz", "C2.fastq.gz")

``docs/recipes.md`` shows the functions and classes for programs, which ``ngsgpu.api`` defines.
Importing the package is cheap: these, Numba and CuPy are imported when they are first used. Each
algorithm has its own package (``ngsgpu.correct``, ...) with the same layout: ``params``, ``cpu``,
``gpu``, ``stage``, ``stats``. ``__init__.pyi`` is for type checkers.
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
    # A package that can be called. It has the signature of the function, and describes that first.

    def __call__(self, *arguments: object, **named: object) -> object:
        """Call the function of the same name."""
        return self._function(*arguments, **named)

    @property
    def _function(self) -> object:
        return _interface(self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> object:
        """The signature of the function."""
        import inspect

        return inspect.signature(self._function)

    @property
    def __doc__(self) -> str:
        """What ``help`` shows: the function, and the package."""
        import inspect

        first, _, rest = (inspect.getdoc(self._function) or "").partition("\n\n")
        call = f"{self.__name__}{inspect.signature(self._function)}"
        return f"{first}\n\n{call}\n\n{rest}\n\nThe package:\n\n{vars(self)['__doc__']}"


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
