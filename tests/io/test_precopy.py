"""Inputs are copied to their outputs in the background, and nothing is left behind on failure."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import InputError, OutputError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output import edits
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.edits import Edits, EditStyle, load_kernels
from ngsgpu.io.output.patch import write_patched
from ngsgpu.io.output.precopy import Precopy
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.jit import Kernel
from tests.support.io.layouts import layouts_of
from tests.support.io.records import fastq, reads, write


@pytest.fixture(params=[False, True], autouse=True)
def in_memory(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files on a disk, and the same as if they were in memory."""
    monkeypatch.setattr(AtomicFile, "is_in_memory", request.param)


def lanes_of(*paths: Path) -> list[ReadFiles]:
    return [ReadFiles((str(path),), (0,)) for path in paths]


def test_lanes_follow_one_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ngsgpu.io.output.precopy.COPIED_AT_ONCE", 1000)
    content = [fastq(reads(100)), fastq(reads(30)), b""]
    files = [write(tmp_path / f"{i}.fq", text) for i, text in enumerate(content)]
    out = tmp_path / "out.fq"
    lanes = lanes_of(*files)
    with OutputSet([out], threads=8) as outputs:
        with Precopy(layouts_of(lanes), [(0,)] * 3, outputs, 8) as precopy:
            copied = precopy.finish()
        whole = b"".join(content)
        assert copied[0].mapped(len(whole)).tobytes() == whole
        copied[0].mapped(1, 1)[0] = ord("X")
    assert out.read_bytes() == b"@X" + b"".join(content)[2:]


def test_outputs_that_cannot_be_mapped_are_left_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "in.fq", fastq(reads(100)))
    layouts = layouts_of(lanes_of(file))
    with (
        OutputSet([tmp_path / "out.fq.gz"]) as outputs,
        Precopy(layouts, [(0,)], outputs, 8) as one,
    ):
        assert one.finish() == {}
    monkeypatch.setattr(AtomicFile, "free_space", lambda self: 0)
    with OutputSet([tmp_path / "out.fq"]) as outputs, Precopy(layouts, [(0,)], outputs, 8) as two:
        # What is in memory has all its pages.
        assert list(two.finish()) == [0] * AtomicFile.is_in_memory


def test_a_changed_input_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "in.fq", fastq(reads(100)))
    layouts = layouts_of(lanes_of(file))
    write(file, fastq(reads(99)))
    with (
        pytest.raises(InputError, match="the file changed during the run"),
        OutputSet([tmp_path / "out.fq"]) as outputs,
        Precopy(layouts, [(0,)], outputs, 8) as precopy,
    ):
        precopy.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["in.fq"]


def test_a_full_disk_is_told_and_what_waits_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ngsgpu.io.output.precopy.COPIED_AT_ONCE", 100)
    file = write(tmp_path / "in.fq", fastq(reads(1000)))
    layouts = layouts_of(lanes_of(file))

    def no_space(fd: int, *what: object) -> int:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "pwrite", no_space)
    monkeypatch.setattr(os, "posix_fallocate", no_space)
    with (
        pytest.raises(OutputError, match="the disk is full"),
        OutputSet([tmp_path / "out.fq"]) as outputs,
        Precopy(layouts, [(0,)], outputs, 8) as precopy,
    ):
        precopy.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["in.fq"]


@pytest.mark.parametrize("highest", [0, 70])
def test_kernels_that_are_loaded_are_those_that_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, highest: int
) -> None:
    kernels = {name: getattr(edits, name) for name in ("replace_bases", "set_qualities")}
    kernels = {name: Kernel(one.function, one.options) for name, one in kernels.items()}
    for name, kernel in kernels.items():
        monkeypatch.setattr(edits, name, kernel)
    style = EditStyle(highest_quality=highest)
    load_kernels(1 << 20, 1, style)
    loaded = {name: kernel.dispatcher().signatures[:] for name, kernel in kernels.items()}
    assert [len(loaded["replace_bases"]), len(loaded["set_qualities"])] == [1, int(highest > 0)]
    layouts = layouts_of(lanes_of(write(tmp_path / "in.fq", fastq(reads(100)))))
    some = Edits(np.arange(100), np.ones(100, np.uint16), np.ones(100, np.uint32))
    with (
        OutputSet([tmp_path / "out.fq"]) as outputs,
        Precopy(layouts, [(0,)], outputs, 8) as precopy,
    ):
        where = layouts, [(0,)], outputs, some
        copied = precopy.finish()
        write_patched(*where, paired=False, max_length=200, copied=copied, style=style)
    assert {name: kernel.dispatcher().signatures for name, kernel in kernels.items()} == loaded
