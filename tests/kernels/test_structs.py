"""Structs that kernels take lie in the compiler's memory as they do in NumPy's."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ngsgpu.align import rules as align_rules
from ngsgpu.device.cuda.compiler import ROOT, Target, compile_source, fingerprint
from ngsgpu.device.cuda.structs import SUFFIX, Struct, fields_of
from ngsgpu.errors import DeviceError
from ngsgpu.extend import rules as extend_rules
from ngsgpu.readset import gpu as readset_gpu

DECLARES = re.compile(r"^\w+(: Final)? = Struct\(", re.MULTILINE)
MODULES = [
    import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    for path in sorted((ROOT / "ngsgpu").rglob("*.py"))
    if DECLARES.search(path.read_text())
]
TARGET = Target("sm_90")


def structs(module: ModuleType) -> list[Struct]:
    return [one for one in vars(module).values() if isinstance(one, Struct)]


def header(module: str) -> str:
    return module.replace(".", "/") + SUFFIX


def test_every_header_is_declared_and_included() -> None:
    included = re.compile(r'#include "(ngsgpu/[^"]*\.structs)"')
    sources = [*(ROOT / "ngsgpu").rglob("*.cu"), *(ROOT / "ngsgpu").rglob("*.cuh")]
    found = {name for path in sources for name in included.findall(path.read_text())}
    assert found == {header(module.__name__) for module in MODULES}


def test_kernel_files_declare_none_that_they_take() -> None:
    """What a kernel gets by address is declared in Python; C++ has only its own variables."""
    names = {one.name for module in MODULES for one in structs(module)}
    for path in [*(ROOT / "ngsgpu").rglob("*.cu"), *(ROOT / "ngsgpu").rglob("*.cuh")]:
        text = path.read_text()
        for name in names:
            taken = f"const {name}*" in text or f" {name}* found" in text
            assert not (taken and f"struct {name} {{" in text), (path, name)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_offsets(module: ModuleType, tmp_path: Path) -> None:
    lines = [f'#include "{header(module.__name__)}"']
    for struct in structs(module):
        if struct.module != module.__name__:
            continue
        assert struct.dtype.fields is not None
        lines.append(f"static_assert(sizeof({struct.name}) == {struct.dtype.itemsize});")
        for name, (kind, offset, *_) in struct.dtype.fields.items():
            field = f"{struct.name}, {name}"
            lines.append(f"static_assert(__builtin_offsetof({field}) == {offset});")
            size = f"sizeof({struct.name}::{name})"
            lines.append(f"static_assert({size} == {kind.itemsize});")
    assert len(lines) > 3
    source = tmp_path / "offsets.cu"
    source.write_text("\n".join(lines) + '\nextern "C" __global__ void none() {}\n')
    assert compile_source(source, TARGET, warnings_are_errors=True)
    source.write_text(source.read_text().replace(") == ", ") == 1 + ", 1))
    with pytest.raises(DeviceError, match="static assertion failed"):
        compile_source(source, TARGET)


MIXED = Struct(__name__, "Mixed", {
    "count": "int32_t", "words": "const uint64_t*", "bins": "int32_t[3]", "share": "float",
    "small": "uint8_t", "last": "int64_t",
})  # fmt: skip


def test_what_is_packed_is_unpacked() -> None:
    values = {"count": -1, "words": 1 << 63, "bins": (1, 2, 3), "share": np.float32(0.25),
              "small": 255, "last": 1 << 40}  # fmt: skip
    packed = MIXED.pack(**values)
    assert packed.nbytes == 48
    assert MIXED.unpack(packed) == values | {"bins": [1, 2, 3]}
    assert MIXED.unpack(MIXED.pack(**values | {"words": None}))["words"] == 0
    assert "    int32_t bins[3];\n" in MIXED.definition
    assert "    const uint64_t* words;\n" in MIXED.definition


def test_wrong_values_are_refused() -> None:
    values = dict.fromkeys(MIXED.fields, 1)
    with pytest.raises(TypeError, match="'bins'"):
        MIXED.pack(**{name: 1 for name in values if name != "bins"})
    with pytest.raises(TypeError, match="'other'"):
        MIXED.pack(**values, other=1)
    with pytest.raises(OverflowError):
        MIXED.pack(**values | {"count": 1 << 31})


def test_rules_are_as_they_are_in_python() -> None:
    for module, rules in ((align_rules, align_rules.Rules), (extend_rules, extend_rules.Rules)):
        assert list(module.RULES.fields) == list(rules._fields) == list(fields_of(rules))


def test_changed_fields_change_the_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ROOT / "ngsgpu" / "readset" / "kernels.cu"
    before = fingerprint(source, TARGET)
    fields = readset_gpu.READS.fields | {"more": "int64_t"}
    monkeypatch.setattr(readset_gpu, "READS", Struct(readset_gpu.__name__, "Reads", fields))
    assert fingerprint(source, TARGET) != before


def test_a_header_of_no_module(tmp_path: Path) -> None:
    source = tmp_path / "kernels.cu"
    source.write_text('#include "ngsgpu/nowhere.structs"\n')
    with pytest.raises(DeviceError, match=r"includes ngsgpu/nowhere\.structs, which cannot"):
        compile_source(source, TARGET)
