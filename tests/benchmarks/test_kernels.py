import json
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.harness import document
from benchmarks.kernels import correction, models
from benchmarks.kernels.correction import CUPY_FUNCTIONS, Recorder, describe_kernel, main, table
from benchmarks.kernels.extension import load_of
from benchmarks.kernels.models import (
    EXTENSION_MODELS,
    INFLATE_MODELS,
    MODELS,
    QUERY_MODELS,
    ExtensionLoad,
    Load,
    QueryLoad,
    floor_seconds,
)
from ngsgpu.device.cuda import kernels as device_kernels
from ngsgpu.device.cuda.kernels import observed_launches

PACKAGE = Path(__file__).parents[2] / "ngsgpu"
LOAD = Load(
    file_bytes=23_000,
    reads=100,
    bases=10_000,
    kmer=20,
    hashes=48,
    quality_bits=8,
    found=6000,
    kept=4000,
)


def test_every_kernel_of_a_correction_has_a_model():
    kernels = {f"cupy.{name}" for name in ("argsort", "cumsum")}
    for part in ("io/gpu", "readset", "minhash", "correct"):
        for source in (PACKAGE / part).glob("*.cu"):
            # Of the extension, of gzip files, and of compressed outputs.
            if source.name in ("ends.cu", "inflate.cu", "deflate_reads.cu"):
                continue
            text = re.sub(r"__launch_bounds__\([^)]*\)", "", source.read_text())
            kernels.update(re.findall(r'extern "C" __global__ void\s+(\w+)\(', text))
    assert set(MODELS) == kernels
    assert {name for name in MODELS if "." in name} <= set(CUPY_FUNCTIONS)


def test_every_kernel_of_inflating_has_a_model():
    text = (PACKAGE / "io/gpu/inflate.cu").read_text()
    text = re.sub(r"__launch_bounds__\([^)]*\)", "", text)
    kernels = re.findall(r'extern "C" __global__ void\s+(\w+)\(', text)
    assert list(INFLATE_MODELS) == kernels


def test_every_kernel_of_a_query_has_a_model():
    kernels: set[str] = set()
    for name in ("query/query.cu", "query/longer.cu", "call/first_pass.cu", "outputs/reads.cu"):
        text = (PACKAGE / "classify" / name).read_text()
        text = re.sub(r"__launch_bounds__\((?:[^()]|\([^)]*\))*\)", "", text)
        kernels.update(re.findall(r'extern "C" __global__ void\s+(\w+)\(', text))
    assert set(QUERY_MODELS) == kernels
    load = QueryLoad(100, 20_000, 17_000, 3200, 5000, 2, 2000, 8000)
    # Two sectors a feature, one for four locations, two candidates and three numbers a query.
    moved, operations = QUERY_MODELS["find_candidates"](load)
    assert moved == 32 * (6400 + 1250) + 3200 + 1200
    assert operations == 115 * 17_000 + 40 * 3200 + 60 * 5000
    for model in QUERY_MODELS.values():
        assert all(value >= 0 for value in model(load))
    assert "floor_ms" in describe_kernel("write_table", 1, 1.0, load, QUERY_MODELS)


def test_every_kernel_of_an_extension_has_a_model():
    kernels = {"cupy.argsort"}
    for source in ("io/gpu/fastq.cu", "readset/fill.cu", "minhash/ends.cu", "extend/kernels.cu"):
        text = re.sub(r"__launch_bounds__\([^)]*\)", "", (PACKAGE / source).read_text())
        kernels.update(re.findall(r'extern "C" __global__ void\s+(\w+)\(', text))
    assert set(EXTENSION_MODELS) == kernels


def test_models_of_an_extension_by_hand(tmp_path):
    (tmp_path / "r1.fq").write_text("@a\n" * 5000)
    statistics = SimpleNamespace(
        parameters={
            "ends": {"kmer": 20, "hashes": 4, "window": 50},
            "quality_bits": 8,
            "step": 20,
        },
        reads={"total": 100, "bases": 10_000},
        pairs={"connected": 40},
        lengths={"bases": 12_000},
        tasks={
            "primary_iterations": 900,
            "auxiliary_iterations": 100,
            "auxiliary_tasks": 10,
            "candidates": 5000,
        },
    )
    load = load_of(statistics, [tmp_path / "r1.fq"] * 2)
    reading = Load(30_000, 100, 10_000, 20, 4, 8, 5000, 5000)
    assert load == ExtensionLoad(reading, 50, 20, 5, tasks=110, iterations=1000, gap_bases=4000)
    assert load.entries == 800
    # 81 k-mers of each start read and 20 of each iteration, by four functions.
    assert load.hashed == (110 * 81 + 20_000) * 4
    assert load.look_ups == load.hashed / 16
    # A read's planes are one sector.
    moved, operations = EXTENSION_MODELS["extend_pairs"](load)
    assert moved == 32 * (load.hashed / 8 + 5000) + 8000
    assert operations == 20 * load.hashed + 5000 * 90
    assert EXTENSION_MODELS["sign_ends"](load) == (4 * 3200 + 9 * 800, 20 * 31 * 800)
    assert EXTENSION_MODELS["cupy.argsort"](load)[0] == 5 * 24 * 800
    assert EXTENSION_MODELS["find_cells"](load) == (8 * 800 + 4 * 128, 50 * 128)
    for model in EXTENSION_MODELS.values():
        assert all(value >= 0 for value in model(load))


def test_models_by_hand():
    assert (LOAD.entries, LOAD.words, LOAD.plane_bytes) == (4800, 2, 3200)
    # 81 k-mers a read, 48 functions in 3 passes.
    assert MODELS["sign_reads"](LOAD) == (3 * 3200 + 43_200, 20 * 8100 * 48)
    # 40 bits of key are 5 digits, 12 bytes an entry in and out.
    assert MODELS["cupy.argsort"](LOAD)[0] == 5 * 24 * 4800
    assert MODELS["correct_anchors"](LOAD) == (
        48_000 + 3200 + 10_000 + 4400,
        6000 * 90 + 4000 * 40 * 4,
    )
    for model in MODELS.values():
        assert all(value >= 0 for value in model(LOAD))


def test_floor_is_the_longer_of_both(monkeypatch):
    monkeypatch.setattr(models, "BYTES_PER_SECOND", 100)
    monkeypatch.setattr(models, "OPERATIONS_PER_SECOND", 10)
    assert floor_seconds(200, 10) == 2
    assert floor_seconds(200, 50) == 5


def test_load_of_a_run(tmp_path):
    (tmp_path / "r1.fq").write_text("@a\n")
    statistics = SimpleNamespace(
        parameters={"minhash": {"kmer": 20, "hashes": 48}, "quality_bits": 2},
        reads={"total": 5, "bases": 500},
        candidates={"found": 7, "kept": 6},
    )
    load = Load.of(statistics, [tmp_path / "r1.fq"] * 2)
    assert load == Load(6, 5, 500, 20, 48, 2, 7, 6)
    assert load.quality_bytes == 125


class Event:
    """A CUDA event whose time is the number of events recorded before."""

    clock = 0

    def record(self, stream):
        self.stream, self.at = stream, Event.clock
        Event.clock += 1

    def synchronize(self):
        pass


def test_launches_are_recorded_and_added_up():
    recorder = Recorder(Event, lambda begin, end: end.at - begin.at)
    with recorder.launch("one", "stream"):
        pass
    with recorder.launch("two"):
        Event.clock += 3
    sort = recorder.timed("cupy.sort", sorted)
    assert sort([2, 1], reverse=True) == [2, 1]
    with recorder.launch("one"):
        pass
    assert recorder.totals() == {"one": (2, 2), "two": (1, 4), "cupy.sort": (1, 1)}


def test_launches_can_be_observed():
    seen = []

    def observe(kernel, stream):
        seen.append(kernel)
        return nullcontext()

    with pytest.raises(KeyError), observed_launches(observe):
        assert device_kernels._observer is observe
        raise KeyError
    assert device_kernels._observer is None


def test_table():
    lines = [
        describe_kernel("mark_shared", 48, 0.5, LOAD),
        describe_kernel("new_one", 1, 2.0, LOAD) | {"extra": 1},
    ]
    assert lines[0]["bytes"] == 12 * 4800
    told = table({"kernels": lines, "time_s": {"read": 1.0, "total": 2.0}}).splitlines()
    assert told[2].startswith("| `mark_shared` | 48 | 0.00 | 0.0 | 0.00 | 0.50 | ")
    assert told[3] == "| `new_one` | 1 | - | - | - | 2.00 | - |"
    assert told[-1] == "all of these 2.5 ms; stages in seconds: read 1.00, total 2.00"


def test_from_files_to_table(tmp_path, monkeypatch, capsys):
    statistics = SimpleNamespace(
        parameters={"minhash": {"kmer": 20, "hashes": 48}, "quality_bits": 8},
        reads={"total": 5, "bases": 500},
        candidates={"found": 7, "kept": 6},
        time_s={"total": 1.0},
    )
    monkeypatch.setattr(correction, "missing_for_cuda", lambda: None)
    totals = {"sign_reads": (3, 1.23456)}
    monkeypatch.setattr(correction, "measure_kernels", lambda files, threads: (statistics, totals))
    monkeypatch.setattr(document, "describe_machine", lambda: {"cpu": "x"})
    files = [str(tmp_path / f"r{mate}.fq") for mate in (1, 2)]
    for file in files:
        Path(file).write_text("@a\n")
    output = tmp_path / "new" / "out.json"
    assert main([*files, "--name", "S", "-o", str(output)]) == 0
    written = json.loads(output.read_text())
    assert written["kernels"][0]["measured_ms"] == 1.2346
    assert written["load"]["file_bytes"] == 6
    assert capsys.readouterr().out == table(written)


def test_without_a_gpu(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(correction, "missing_for_cuda", lambda: "no GPU was found")
    assert main(["a.fq", "b.fq", "-o", str(tmp_path / "out.json")]) == 2
    assert "no GPU was found" in capsys.readouterr().err
