"""``scripts/fuzz.py``: valid files, a few that are changed, and inputs that were findings once."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

import pytest

from ngsgpu.errors import InputError, NgsgpuError
from scripts import fuzz
from scripts.fuzz_targets import TARGETS, Target
from tests.attack.mutations import mutate

_CHANGED: Final = 10
_NUMBERS: Final = (b"1e999", b"1" + b"0" * 400, b'"1e999999999"', b'"1/0"', b"-1", b"NaN", b"[]")


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.filterwarnings("ignore")
def test_targets_accept_their_seeds_and_refuse_what_is_wrong(name: str, tmp_path: Path) -> None:
    target, source = TARGETS[name], random.Random(5)
    seeds = target.seeds()
    assert all(fuzz.try_input(target, data, tmp_path) for data in seeds)
    for _ in range(_CHANGED):
        fuzz.try_input(target, mutate(source.choice(seeds), source), tmp_path)


@pytest.mark.parametrize("number", _NUMBERS)
@pytest.mark.parametrize("key", ["gpus", "main", "chunks", "durations", "num_steps", "num_chunks"])
def test_strange_numbers_in_plans(key: str, number: bytes, tmp_path: Path) -> None:
    for data in TARGETS["plan"].seeds():
        values = json.loads(data)
        if key in values:
            values[key] = ["HERE"] * isinstance(values[key], list) or "HERE"
            text = json.dumps(values).encode().replace(b'"HERE"', number)
            fuzz.try_input(TARGETS["plan"], text, tmp_path)


def test_a_plan_of_endless_chunks_or_steps(tmp_path: Path) -> None:
    ours = TARGETS["plan"].seeds()[1]
    for key, value in (("chunks", [10**12, 1]), ("num_steps", 10**12)):
        text = json.dumps(json.loads(ours) | {key: value}).encode()
        with pytest.raises(InputError, match="is no transfer plan"):
            TARGETS["plan"].check(text, tmp_path)


@pytest.mark.parametrize(
    "text",
    [b'{"gpus": 1e999, "links": []}', b"GPU0 X NV-2\nGPU1 NV-2 X\n", b"GPU0 X NV0\nGPU1 NV0 X\n"],
)
def test_strange_numbers_in_topologies(text: bytes, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no topology"):
        TARGETS["topology"].check(text, tmp_path)


def test_a_forest_whose_trees_begin_anywhere(tmp_path: Path) -> None:
    """Roots that do not ascend asked for 32 GB of memory, and a base without bounds raised."""
    head, _, payload = TARGETS["forests"].seeds()[0].partition(b"\n")
    wild = b"\0\0\0\0" + b"\xff" * 4 + payload[8:]
    infinite = head.replace(b'"base": ', b'"base": 1e999, "was": ')
    for data in (head + b"\n" + wild, infinite + b"\n" + payload):
        with pytest.raises(InputError, match="holds no valid forests"):
            TARGETS["forests"].check(data, tmp_path)


def _unexpected(data: bytes, folder: Path) -> None:
    raise KeyError(data, folder)


def _silent(data: bytes, folder: Path) -> None:
    raise NgsgpuError("")


def test_what_counts_as_a_finding(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fuzz.try_input(Target(list, _unexpected), b"", tmp_path)
    with pytest.raises(AssertionError, match="without a message"):
        fuzz.try_input(Target(list, _silent), b"", tmp_path)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    words = ["--target", "plan", "--seconds", "1", "--corpus", str(tmp_path / "corpus")]
    output = tmp_path / "fuzz.json"
    assert fuzz.main([*words, "-o", str(output)]) == 0
    (found,) = json.loads(output.read_text())["targets"]
    assert found["target"] == "plan"
    assert found["inputs"] > 0
    assert found["finding"] == ""
