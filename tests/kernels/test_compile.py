"""Every kernel compiles for old and new GPUs without a warning; no GPU or driver is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.device.cuda.compiler import Target, compile_source, known_architectures, target_for
from ngsgpu.device.cuda.kernels import KernelModule, all_modules, architectures_to_check
from ngsgpu.errors import DeviceError, UsageError

MODULES = all_modules()


def test_there_are_kernels() -> None:
    assert {"ngsgpu.correct.kernels", "ngsgpu.minhash.kernels"} <= {one.name for one in MODULES}


# By position, so that collecting the tests does not already need NVRTC.
@pytest.mark.parametrize("which", range(4), ids=["sm_75", "sm_80", "sm_90", "newest"])
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_compiles(module: KernelModule, which: int) -> None:
    architecture = architectures_to_check()[which]
    assert module.checked(architecture)[:4] == b"\x7fELF"


def test_older_compiler_than_the_gpu_makes_ptx() -> None:
    newest = known_architectures()[-1]
    assert target_for(newest).architecture == f"sm_{newest}"
    assert target_for(newest + 5).architecture == f"compute_{newest}"
    assert b".version" in MODULES[0].compile_for(f"compute_{newest}")
    with pytest.raises(DeviceError, match=r"compute capability 3\.5; install CuPy for an older"):
        target_for(35)


def test_bundled_libraries_are_found(tmp_path: Path) -> None:
    source = tmp_path / "kernels.cu"
    source.write_text(
        "#include <cub/block/block_radix_sort.cuh>\n"
        "#include <cuda/std/cstdint>\n"
        'extern "C" __global__ void sort(cuda::std::uint32_t* keys) {\n'
        "    using Sort = cub::BlockRadixSort<cuda::std::uint32_t, 128, 1>;\n"
        "    __shared__ typename Sort::TempStorage storage;\n"
        "    cuda::std::uint32_t mine[1] = {keys[threadIdx.x]};\n"
        "    Sort(storage).Sort(mine);\n"
        "    keys[threadIdx.x] = mine[0];\n"
        "}\n"
    )
    assert compile_source(source, Target("sm_90"), warnings_are_errors=True)


@pytest.mark.parametrize(
    ("code", "message"),
    [("int unused; unused", "does not compile for sm_90.*kernels.cu"),
     ("int unused;", "compiles for sm_90 with warnings.*unused")],
)  # fmt: skip
def test_faults_are_shown_as_the_compiler_words_them(
    tmp_path: Path, code: str, message: str
) -> None:
    source = tmp_path / "kernels.cu"
    source.write_text(f'extern "C" __global__ void kernel() {{ {code} }}\n')
    with pytest.raises(DeviceError, match=f"(?s){message}"):
        compile_source(source, Target("sm_90"), warnings_are_errors=True)


def test_a_warning_does_not_stop_a_run(tmp_path: Path) -> None:
    source = tmp_path / "kernels.cu"
    source.write_text('extern "C" __global__ void kernel() { int unused; }\n')
    assert compile_source(source, Target("sm_90"))


def test_misspelt_architecture() -> None:
    with pytest.raises(UsageError, match="'90' is not a CUDA architecture such as sm_90"):
        MODULES[0].compile_for("90")
