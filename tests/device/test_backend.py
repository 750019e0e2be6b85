import doctest
import importlib.util
import subprocess

import pytest

from ngsgpu.device import backend, gpus
from ngsgpu.device.backend import Backend, choose_backend, missing_for_cuda
from ngsgpu.device.gpus import gpus_of_driver, parse_gpus, visible_gpus
from ngsgpu.errors import UsageError
from tests.support.device import TABLE

OLD_TABLE = "0, GPU-1, Tesla K80, 11441, 11441, 3.7, 440.33.01, 00000000:04:00.0\n"


@pytest.fixture
def machine(monkeypatch):
    """Pose as a machine with given GPUs (None: no driver) and with or without CuPy."""

    def pose(table: str | None, cupy: bool = True, visible: str | None = None):
        found = None if table is None else parse_gpus(table)
        monkeypatch.setattr(gpus, "gpus_of_driver", lambda: found)
        monkeypatch.setattr(backend, "gpus_of_driver", lambda: found)
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if cupy else None)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        if visible is not None:
            monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    return pose


def test_table_is_read():
    first, second = parse_gpus(TABLE)
    assert first.name == "NVIDIA H200"
    assert (first.memory, second.free) == (143771 << 20, 100 << 20)
    assert (first.capability, first.cuda) == ((9, 0), 13)


def test_odd_tables_are_survived():
    odd = "0, GPU-1, GRID, [N/A], [Unknown Error], [N/A], [N/A], [N/A]\n"
    odd += "Unable to determine\n\n1, 2\n"
    (gpu,) = parse_gpus(odd)
    assert (gpu.memory, gpu.capability, gpu.cuda) == (0, None, None)
    assert parse_gpus("") == ()
    assert parse_gpus(OLD_TABLE)[0].cuda is None


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        (None, [0, 1]),
        ("", []),
        ("1", [1]),
        ("1,0", [1, 0]),
        (" 0 , 1 ", [0, 1]),
        ("0,7,1", [0]),
        ("-1", []),
        ("NoDevFiles", []),
        ("GPU-a9b2", [1]),
        ("GPU-zzz,0", []),
        ("MIG-12ab", [0]),
    ],
)
def test_visible_devices_as_cuda_reads_them(machine, visible, indices):
    machine(TABLE, visible=visible)
    assert [gpu.index for gpu in visible_gpus()] == indices


def answer_with(monkeypatch, tmp_path, script: str):
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    gpus_of_driver.cache_clear()
    try:
        return gpus_of_driver()
    finally:
        gpus_of_driver.cache_clear()


def test_driver_is_asked(monkeypatch, tmp_path):
    found = answer_with(monkeypatch, tmp_path, f"printf '{TABLE}'".replace("\n", "\\n"))
    assert found is not None
    assert [gpu.index for gpu in found] == [0, 1]


def test_driver_without_gpus(monkeypatch, tmp_path):
    assert answer_with(monkeypatch, tmp_path, "echo No devices were found; exit 6") == ()


def test_driver_that_fails(monkeypatch, tmp_path):
    script = "echo NVIDIA-SMI has failed because it could not communicate; exit 9"
    assert answer_with(monkeypatch, tmp_path, script) is None


def test_driver_that_hangs(monkeypatch, tmp_path):
    def hang(*_, timeout, **__):
        raise subprocess.TimeoutExpired("nvidia-smi", timeout)

    monkeypatch.setattr(subprocess, "run", hang)
    assert answer_with(monkeypatch, tmp_path, "sleep 100") is None


@pytest.mark.parametrize(
    ("pose", "message"),
    [
        ({"table": None}, "no NVIDIA driver.*install the driver"),
        ({"table": ""}, "sees no GPU.*nvidia-smi"),
        ({"table": TABLE, "visible": ""}, "CUDA_VISIBLE_DEVICES"),
        ({"table": TABLE, "cupy": False}, r"CuPy is not installed; pip install '\.\[cuda13\]'"),
        (
            {"table": TABLE.replace("580", "550"), "cupy": False},
            r"pip install '\.\[cuda12\]'",
        ),
        ({"table": OLD_TABLE, "cupy": False}, r"\.\[cuda12\].*\.\[cuda13\]"),
    ],
)
def test_cuda_says_what_is_missing_and_auto_takes_the_cpu(machine, pose, message):
    machine(**pose)
    with pytest.raises(UsageError, match=message) as caught:
        choose_backend("cuda")
    assert "\n" not in str(caught.value)
    chosen = choose_backend("auto")
    assert (chosen.name, chosen.gpus) == ("cpu", ())


def test_more_gpus_than_there_are(machine):
    machine(TABLE)
    with pytest.raises(UsageError, match="3 GPUs are asked for and 2"):
        choose_backend("cuda", 3)
    assert choose_backend("auto", 3).name == "cpu"


def test_gpus_are_taken_in_order(machine):
    machine(TABLE, visible="1,0")
    assert [gpu.index for gpu in choose_backend("cuda").gpus] == [1]
    assert [gpu.index for gpu in choose_backend("auto", 2).gpus] == [1, 0]
    assert missing_for_cuda(2) is None


def test_asking_for_the_cpu_never_looks_for_gpus(monkeypatch):
    def refuse():
        raise AssertionError

    monkeypatch.setattr(backend, "gpus_of_driver", refuse)
    assert choose_backend("cpu", 4) == Backend("cpu", (), "as asked for")
    assert choose_backend("auto", 0).name == "cpu"


def test_contradictions():
    with pytest.raises(UsageError, match="at least 1"):
        choose_backend("cuda", 0)
    with pytest.raises(UsageError, match="0 or more"):
        choose_backend("auto", -1)
    with pytest.raises(UsageError, match="auto, cpu or cuda"):
        choose_backend("tpu")  # type: ignore[arg-type]


def test_examples():
    assert doctest.testmod(gpus).failed == 0
