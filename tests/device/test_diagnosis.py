import doctest
import json
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.compiled import has_compiled
from ngsgpu.device import backend, diagnosis, gpus, inventory
from ngsgpu.device.gpus import parse_gpus
from ngsgpu.device.inventory import Tool, can_write, find_tools, find_version, kernel_cache
from ngsgpu.device.memory import Memory
from tests.support.device import TABLE

GIB = 1 << 30


def executable(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def a_tool(*programs: str) -> Tool:
    return Tool("Tool", programs, "does things", "--version", "tool", "tool")


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("SPAdes genome assembler v3.15.5", "3.15.5"),
        (
            "\n    ====ART====\n   ART_Illumina (2008-2016)\n  Q Version 2.5.8 (June 6, 2016)",
            "2.5.8",
        ),
        ("QUAST v5.2.0\n", "5.2.0"),
        ("Kraken version 2.1.2\nCopyright 2013-2021, D. Wood", "2.1.2"),
        ("conda 24.7.1", "24.7.1"),
        ("9.27.1", "9.27.1"),
        ("mytool 1.2.dev3", "1.2.dev3"),
        ("usage: tool [options]", None),
        ("", None),
    ],
)
def test_find_version(text, version):
    assert find_version(text) == version


def test_tools_are_asked(tmp_path, monkeypatch):
    executable(tmp_path / "two", "echo tool 2.0 >&2; exit 3")
    executable(tmp_path / "mute", "exit 1")
    executable(tmp_path / "broken", "").write_text("#!/no/such/interpreter\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    tools = [a_tool("one", "two"), a_tool("mute"), a_tool("broken"), a_tool("absent")]
    found = find_tools(tools)
    assert [(each.path and Path(each.path).name, each.version) for each in found] == [
        ("two", "2.0"),
        ("mute", None),
        ("broken", None),
        (None, None),
    ]


def test_a_tool_that_hangs_is_found_without_version(tmp_path, monkeypatch):
    executable(tmp_path / "slow", "exec /bin/sleep 60")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(inventory, "PATIENCE_SECONDS", 0.2)
    (found,) = find_tools([a_tool("slow")])
    assert found.path
    assert found.version is None


def test_tools_beside_python_are_found(tmp_path, monkeypatch):
    program = executable(tmp_path / "bin" / "beside", "echo 1.0")
    monkeypatch.setattr(inventory.sys, "executable", str(tmp_path / "bin" / "python"))
    assert find_tools([a_tool("beside")])[0].path == str(program)


def test_every_tool_has_a_remedy():
    assert all(tool.remedy for tool in inventory.TOOLS)
    spades = next(tool for tool in inventory.TOOLS if tool.name == "SPAdes")
    assert spades.remedy == "apt install spades or conda install -c conda-forge -c bioconda spades"


def test_cache_of_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("NGSGPU_CACHE_DIR", str(tmp_path / "not" / "there" / "yet"))
    cache = kernel_cache()
    assert (cache.where, cache.files, cache.writable) == ("NGSGPU_CACHE_DIR", 0, True)
    assert not has_compiled()
    monkeypatch.delenv("NGSGPU_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "ngsgpu" / "kernels"
    folder.mkdir(parents=True)
    (folder / "ngsgpu.correct-sm_90-0123").write_bytes(b"12345")
    (folder / "someone's file").write_bytes(b"not a kernel")
    assert not has_compiled()
    (folder / "cpu.ngsgpu.correct.cpu.f-0123").write_bytes(b"123")
    assert has_compiled()
    cache = kernel_cache()
    assert (cache.path, cache.where, cache.files, cache.size, cache.writable) == (
        str(folder), "user cache", 2, 8, True
    )  # fmt: skip


def test_a_folder_in_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    assert not can_write(tmp_path / "file" / "folder")


@pytest.fixture
def machine(monkeypatch):
    """Pose as a machine without tools, with given GPUs, memory and libraries."""

    def pose(table: str | None = None, available: int = 8 * GIB, cupy: str | None = None):
        found = None if table is None else parse_gpus(table)
        for module in (gpus, backend, diagnosis):
            monkeypatch.setattr(module, "gpus_of_driver", lambda: found)
        monkeypatch.setattr(diagnosis, "memory", lambda: Memory(16 * GIB, available, None))
        monkeypatch.setattr(inventory, "cupy_version", lambda: cupy)
        monkeypatch.setattr(inventory, "find_tools", list)
        monkeypatch.setattr(diagnosis, "import_module", lambda name: None)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return pose


def test_doctor_without_gpu(machine, capsys):
    machine()
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "none (no NVIDIA driver): the CPU is used, the output is the same to the byte" in text
    assert "8.0 GiB available of 16.0 GiB" in text
    assert text.endswith("\nReady to correct reads.\n")


def test_doctor_with_gpus(machine, capsys, monkeypatch):
    machine(TABLE)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "0: NVIDIA H200, 139.8 GiB free of 140.4 GiB, compute capability 9.0" in text
    assert "driver 580.82.07 (CUDA 13), hidden by CUDA_VISIBLE_DEVICES" in text
    assert "pip install '.[cuda13]'" in text


def test_doctor_in_a_machine_too_small(machine, capsys):
    machine(available=1 << 20)
    assert main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["can_correct"] is False
    assert "1.0 MiB of memory" in found["problems"][0]


def test_doctor_with_a_library_that_does_not_work(machine, capsys, monkeypatch):
    machine()

    def broken(name):
        if name in ("numba", "pysam"):
            raise ImportError("Numba needs\nNumPy 1.0")

    monkeypatch.setattr(diagnosis, "import_module", broken)
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "numba cannot be imported (Numba needs NumPy 1.0); pip install --upgrade numba" in text
    assert "Reads cannot be corrected here." in text
    # Other commands need pysam, correction does not.
    assert text.index("pysam cannot be imported") < text.index("Problems")


def test_doctor_json(machine, capsys):
    machine(TABLE, cupy="cupy-cuda13x 14.2.0")
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema_version"] == 1
    assert found["versions"]["CuPy"] == "cupy-cuda13x 14.2.0"
    assert found["gpus"][1]["capability"] == [9, 0]
    assert found["gpus"][1]["visible"] is True
    assert [cache["kind"] for cache in found["caches"]] == ["ngsgpu", "CuPy"]
    assert found["memory"] == {"total": 16 * GIB, "available": 8 * GIB, "limit": None}


def test_doctor_on_this_machine():
    found = diagnosis.diagnose()
    assert diagnosis.as_text(found).count("\n") > 20
    assert json.dumps(diagnosis.as_dict(found))
    assert len(found.tools) == len(inventory.TOOLS)


def test_examples():
    assert doctest.testmod(inventory).failed == 0
