"""Snakemake wrappers, in the form of the Snakemake wrapper repository.

The keys of an example in ``commands.toml``:

    rule       its name
    folder     of its outputs
    wildcard   in their names; ``sample`` by default
    extra      further options
    only       its files; all by default
    files      paths of some of them
    needs      commands that make some of them first, by entry
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.derive.as_yaml import dump
from scripts.derive.stages import ROOT, File, Stage, meaning, render, stages

FOLDER = ROOT / "wrappers" / "ngsgpu"

MEMORY = "* `resources: mem_mb=N` is the memory budget of the run.\n"
GPUS = """\
* `resources: gpu={number}` runs the job on {gpus}, which ngsgpu leases, so that jobs of one machine
  never share a GPU; start Snakemake with `--resources gpu=N` to limit their number. Without it, the
  job runs on the CPU. The output is the same.
"""


def files(known: tuple[Stage, ...]) -> dict[Path, str]:
    """The wrappers of all commands, by path."""
    made = {}
    for stage in known:
        folder = FOLDER / folder_of(stage)
        made[folder / "wrapper.py"] = _formatted(_code(stage))
        made[folder / "meta.yaml"] = _description(stage)
        made[folder / "environment.yaml"] = render("environment.yaml.j2")
        made[folder / "test" / "Snakefile"] = _examples(stage)
    return made


def folder_of(stage: Stage) -> str:
    """The folder of a wrapper."""
    return str(stage.entry.get("wrapper", stage.name.replace(" ", "-")))


def _code(stage: Stage) -> str:
    values = []
    for file in stage.files:
        side = "snakemake.output" if file.written else "snakemake.input"
        value = f"{side}.{file.name}" if file.required else f'{side}.get("{file.name}")'
        values.append((file.flag, f'f"{{{value}}}/{file.inside}"' if file.inside else value))
    for own in stage.params:
        value = f'snakemake.params.get("{own.name}")'
        if own.name in stage.entry.get("required", ()):
            value = f"str(snakemake.params.{own.name})"
        values.append((own.flag, value))
    given = {
        "threads": "--threads {snakemake.threads}",
        "memory": "{memory}",
        "backend": "{device}",
    }
    return render(
        "wrapper.py.j2",
        stage=stage,
        values=values,
        bare=any(not flag for flag, _ in values),
        folders=[file.name for file in stage.outputs if file.inside],
        resources="".join(f" {text}" for name, text in given.items() if name in stage.options),
    )


def _formatted(code: str) -> str:
    """Code as the wrapper repository formats it."""
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--quiet",
        "--stdin-filename",
        f"{FOLDER}/wrapper.py",
        "-",
    ]
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=True)
    return done.stdout


def _description(stage: Stage) -> str:
    """What the wrapper takes, as YAML."""
    params = {own.name: meaning(own) for own in stage.params}
    others = ", ".join(f"`{own.flag}`" for own in stage.others)
    more = f"further options of `ngsgpu {stage.call}`: {others}" if others else "further options"
    notes = MEMORY * ("memory" in stage.options)
    if stage.most_gpus != 0:
        number, gpus = (1, "one GPU") if stage.most_gpus == 1 else ("N", "N GPUs")
        notes += GPUS.format(number=number, gpus=gpus)
    content = {
        "name": f"ngsgpu {stage.call}",
        "description": stage.summary + "\n",
        "url": "https://pypi.org/project/ngsgpu",
        "authors": ["The ngsgpu developers"],
        "input": {file.name: _meaning(file) for file in stage.inputs},
        "output": {file.name: _meaning(file) for file in stage.outputs},
        "params": params | {"extra": more},
    } | ({"notes": notes} if notes else {})
    return dump(content)


def _meaning(file: File) -> str:
    text = file.meaning
    if file.is_list:
        one, many = ("directory", "directories") if file.kind == "directory" else ("file", "files")
        text += f" A {one}, or a list of {many}."
    if file.kind == "directory" and file.written:
        text += " A `directory()`."
    return text + ("" if file.required else " Optional.")


def _examples(stage: Stage) -> str:
    """Rules that try the wrapper, behind rules that make what they need."""
    rules: dict[str, dict[str, Any]] = {}
    for example in stage.entry["examples"]:
        needs = {known.name: known for known in stages() if known.name in example.get("needs", {})}
        for name, needed in needs.items():
            path = stage.file(example["needs"][name]).example
            rule = needed.entry["examples"][0] | {"only": _essential(needed), "extra": ""}
            rule["files"] = {needed.main.parameter.name: path}
            own = _rule(needed, rule)
            rules[own["name"]] = own | {"shown": False}
        own = _rule(stage, example)
        rules[own["name"]] = own
    return render("Snakefile.j2", rules=list(rules.values()))


def _essential(stage: Stage) -> list[str]:
    """Parameters of files that a job must name, of second mates, and of the main output."""
    return [
        file.parameter.name
        for file in stage.files
        if file.required or file.name == "r2" or file is stage.main
    ]


def _rule(stage: Stage, example: dict[str, Any]) -> dict[str, Any]:
    shown = [
        own for own in stage.files if "only" not in example or own.parameter.name in example["only"]
    ]
    wildcard = "{" + example.get("wildcard", "sample") + "}"
    stem = f"{example['folder']}/{wildcard}"
    paths = {}
    for own in shown:
        path = f"{stem}{own.example}" if own.written else own.example
        paths[own.parameter.name] = example.get("files", {}).get(own.parameter.name, path)
    params = [f"{own.name}={_value(own.kind)}," for own in stage.params]
    if example.get("extra"):
        params.append(f"extra={json.dumps(example['extra'])},")
    wild = next((own for own in (wildcard, "{sample}") if own in str(paths)), "")
    return {
        "name": example["rule"],
        "inputs": list(_lines(shown, paths, written=False)),
        "outputs": list(_lines(shown, paths, written=True)),
        "log": f"{example['rule']}/{wild}".rstrip("/"),
        "options": stage.options,
        "params": params,
        "wrapper": folder_of(stage),
        "shown": True,
    }


def _value(kind: type) -> str:
    return '"{sample}"' if kind is str else "0"


def _lines(shown: list[File], paths: dict[str, Any], *, written: bool) -> Iterator[str]:
    for own in shown:
        if own.written is not written:
            continue
        if own.name == "r1" and not written:
            yield "# a file, or a list of the files of several lanes"
        value = json.dumps(paths[own.parameter.name])
        if own.written and own.kind == "directory":
            value = f"directory({value})"
        yield f"{own.name}={value}," + ("" if own.required else "  # optional")
