"""Tests of the Nextflow modules, for nf-test.

The keys of a test in ``commands.toml``:

    name     of the test
    reads    ``pairs``, ``lanes`` (two, of pairs) or ``single``
    files    other inputs, by parameter: files of the test data
    needs    inputs that other modules make, by parameter: ``MODULE.out.NAME``
    assert   what holds of the outputs
"""

from __future__ import annotations

from typing import Any

from scripts.derive import nextflow
from scripts.derive.stages import File, Stage, render, stages

_VERSION = "process.out.versions_ngsgpu[0][1] == 'ngsgpu'"


def _file(name: str) -> str:
    return f"file(params.modules_testdata_base_path + '{name}', checkIfExists: true)"


_READS = {
    "pairs": [
        "[",
        f"    {_file('na12878_lane1_R1.fastq.gz')},",
        f"    {_file('na12878_lane1_R2.fastq.gz')}",
        "]",
    ],
    "lanes": [
        "[ 'lane1_R1', 'lane1_R2', 'lane2_R1', 'lane2_R2' ].collect { name ->",
        '    file(params.modules_testdata_base_path + "na12878_${name}.fastq.gz", '
        "checkIfExists: true)",
        "}",
    ],
    "single": [_file("na12878_lane1_R1.fastq.gz")],
}


def tests(stage: Stage, *, gpu: bool = False) -> str:
    """The tests of a module; of one on a GPU the first of them.

    Args:
        stage: its command.
        gpu: whether they run on a GPU.
    """
    first, *others = stage.entry["tests"]
    made = [_test(stage, first)]
    if not gpu:
        made += [_test(stage, own) for own in others]
        made.append(
            made[0] | {"name": f"{first['name']} - stub", "stub": True, "asserts": _all(stage)}
        )
    name = nextflow.module_of(stage)
    tags = sorted({name, *made[0]["setup"]})
    return render("nf.test.j2", name=name, gpu=gpu, tags=tags, tests=made)


def _all(stage: Stage) -> list[str]:
    return [f"process.out.{own.name}[0][1]" for own in nextflow.outputs(stage)]


def _test(stage: Stage, test: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": test["name"],
        "stub": False,
        "setup": _setup(test),
        "inputs": _inputs(stage, test),
        "asserts": [*test.get("assert", _all(stage)), _VERSION],
    }


def _setup(test: dict[str, Any]) -> dict[str, list[str]]:
    """Inputs of the modules that have to run first, in order."""
    made: dict[str, list[str]] = {}
    for source in test.get("needs", {}).values():
        name = source.partition(".")[0].lower()
        needed = next(own for own in stages() if nextflow.module_of(own) == name)
        its = needed.entry["tests"][0]
        made |= _setup(its) | {name: _inputs(needed, its)}
    return made


def _inputs(stage: Stage, test: dict[str, Any]) -> list[str]:
    lines = []
    for number, channel in enumerate(nextflow.channels(stage)):
        needed = test.get("needs", {}).get(channel[0].parameter.name)
        if needed:
            lines.append(f"input[{number}] = NGSGPU_{needed}")
            continue
        single = str(test.get("reads") == "single").lower()
        meta = f"[ id:'test', single_end:{single} ]" if "reads" in test else "[ id:'human' ]"
        parts = [[meta]]
        for own in channel:
            parts.append(_READS[test["reads"]] if own.name == "r1" else _other(own, test))
        if number == 0:
            parts += [["0"] for own in stage.params if own.kind is int]
        lines.append(f"input[{number}] = [")
        for place, part in enumerate(parts, 1):
            *before, last = part
            lines += [f"    {line}" for line in before]
            lines.append(f"    {last}" + ("," if place < len(parts) else ""))
        lines.append("]")
    return lines


def _other(file: File, test: dict[str, Any]) -> list[str]:
    name = test.get("files", {}).get(file.parameter.name)
    return [_file(name) if name else "[]"]
