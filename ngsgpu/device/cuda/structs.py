"""Kernel argument structs, each declared once, as a list of fields.

Both the launch arguments and the C++ declaration are generated from it::

    READS = Struct(__name__, "Reads", {"planes": "const uint64_t*", "quality_bits": "int64_t"})
    READS.on_device(planes=planes, quality_bits=8)

C++ includes the structs declared by ``ngsgpu/readset/gpu.py``, in their order, with
``#include "ngsgpu/readset/gpu.structs"``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

SUFFIX: Final = ".structs"
"""Of the headers that are made from declarations."""

_SCALARS: Final = {"uint8_t": "u1", "int32_t": "i4", "uint32_t": "u4", "int64_t": "i8",
                   "uint64_t": "u8", "float": "f4", "double": "f8"}  # fmt: skip
_OF_PYTHON: Final = {int: "int32_t", np.float32: "float", tuple[int, int, int]: "int32_t[3]",
                     tuple[int, int, int, int, int, int, int, int]: "int32_t[8]"}  # fmt: skip


class Struct:
    """A struct with the layout of C++.

    Args:
        module: name of the declaring module, ``__name__``.
        name: its name in C++.
        fields: the C++ type of each field; pointers, ``_SCALARS`` and arrays of these.

    Attributes:
        dtype: the layout as a NumPy type.
    """

    def __init__(self, module: str, name: str, fields: Mapping[str, str]) -> None:
        self.module, self.name, self.fields = module, name, dict(fields)
        self.dtype = np.dtype([(own, *_kind(kind)) for own, kind in fields.items()], align=True)

    @property
    def definition(self) -> str:
        """The struct in C++."""
        fields = (re.sub(r"^([^[]+)(.*)", rf"    \1 {own}\2;\n", kind)
                  for own, kind in self.fields.items())  # fmt: skip
        return f"struct {self.name} {{\n{''.join(fields)}}};\n"

    def pack(self, **values: Any) -> NDArray[np.void]:
        """One struct on the host.

        Args:
            **values: all fields; CuPy arrays, addresses or None for pointers.

        Raises:
            TypeError: a field is missing or unknown.
            OverflowError: a number does not fit its field.
        """
        if values.keys() != self.fields.keys():
            raise TypeError(f"{self.name}: {sorted(values.keys() ^ self.fields.keys())}")
        record = np.zeros(1, self.dtype)
        for own, value in values.items():
            record[own] = _address(value) if self.fields[own].endswith("*") else value
        return record

    def on_device(self, **values: Any) -> Any:
        """One struct as CuPy uint8 on the current GPU, for a kernel; see ``pack``."""
        import cupy

        return cupy.asarray(self.pack(**values).view(np.uint8))

    def unpack(self, content: Any) -> dict[str, Any]:
        """The fields of a struct in a NumPy array or buffer."""
        record = np.frombuffer(content, self.dtype, 1)
        return {own: record[own][0].tolist() for own in self.fields}


def fields_of(rules: type[NamedTuple]) -> dict[str, str]:
    """Fields of a struct with the contents of a named tuple of numbers."""
    return {own: _OF_PYTHON[kind] for own, kind in get_type_hints(rules).items()}


def declarations(header: str) -> str:
    """The C++ text of a header such as ``ngsgpu/readset/gpu.structs``."""
    module = import_module(header.removesuffix(SUFFIX).replace("/", "."))
    own = [one for one in vars(module).values()
           if isinstance(one, Struct) and one.module == module.__name__]  # fmt: skip
    guard = re.sub(r"\W", "_", header).upper()
    text = "\n".join(one.definition for one in own)
    integers = '#include "ngsgpu/sequence/hashing.cuh"\n'
    return f"#ifndef {guard}\n#define {guard}\n{integers}\n{text}\n#endif\n"


def _kind(kind: str) -> tuple[Any, ...]:
    """The arguments of NumPy's for a C++ type."""
    if kind.endswith("*"):
        return (np.uint64,)
    scalar, _, count = kind.rstrip("]").partition("[")
    return (_SCALARS[scalar], (int(count),)) if count else (_SCALARS[scalar],)


def _address(value: Any) -> int:
    if value is None:
        return 0
    return int(value if isinstance(value, int | np.integer) else value.data.ptr)
