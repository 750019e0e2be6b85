"""Nextflow modules in nf-core form; their tests are in ``nextflow_tests``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.derive import nextflow_tests
from scripts.derive.nextflow_meta import description
from scripts.derive.stages import ROOT, File, Stage, render

FOLDER = ROOT / "nextflow" / "modules" / "ngsgpu"


def files(known: tuple[Stage, ...]) -> dict[Path, str]:
    """The modules of all commands, by path."""
    made = {}
    for stage in known:
        folder, name = FOLDER / module_of(stage), module_of(stage)
        made[folder / "main.nf"] = _process(stage)
        made[folder / "meta.yml"] = description(name, stage, channels(stage), outputs(stage))
        made[folder / "environment.yml"] = render("environment.yml.j2", extra="")
        made[folder / "tests" / "main.nf.test"] = nextflow_tests.tests(stage)
        if stage.most_gpus != 0:
            made[folder / "environment.gpu.yml"] = render("environment.yml.j2", extra="[cuda12]")
            made[folder / "tests" / "main.gpu.nf.test"] = nextflow_tests.tests(stage, gpu=True)
            gpu = "process {\n    accelerator = 1\n}\n"
            made[folder / "tests" / "nextflow.gpu.config"] = gpu
    return made


def module_of(stage: Stage) -> str:
    """The name of a module."""
    return re.sub("[^a-z]", "", stage.name)


@dataclass(frozen=True)
class Output:
    """An output of a module.

    Attributes:
        name: as which it is emitted.
        pattern: of its files.
        files: that it is made of.
    """

    name: str
    pattern: str
    files: list[File]


def inputs(stage: Stage) -> list[File]:
    """The inputs of a module but the second mates, which come with the first."""
    left = stage.entry.get("not_in_nextflow", ())
    return [own for own in stage.inputs if own.parameter.name not in left and own.name != "r2"]


def channels(stage: Stage) -> list[list[File]]:
    """Inputs by channel: reads, or else the first input, with all that is optional; each other."""
    first, *others = sorted(inputs(stage), key=lambda own: own.name != "r1")
    optional = [own for own in others if not own.required]
    return [[first, *optional], *([own] for own in others if own.required)]


def outputs(stage: Stage) -> list[Output]:
    """What a module emits, in order."""
    groups: dict[str, list[File]] = {}
    for own in stage.outputs:
        if own.emit:
            groups.setdefault(own.emit, []).append(own)
    return [Output(name, _pattern(stage, group), group) for name, group in groups.items()]


def _pattern(stage: Stage, group: list[File]) -> str:
    names = [f"*.{own.suffix}" for own in group]
    if len(names) == 1:
        return names[0]
    if _mates(stage):
        return names[0].replace("_1.", "*.")
    # Of first and second mates: what they share, and a digit.
    return names[0].replace("_1.", "_{1,2}.")


def _mates(stage: Stage) -> bool:
    """Whether a module writes reads as it gets them, single or pairs."""
    return "out2" in stage.options


def _process(stage: Stage) -> str:
    left = [f'tuple val(meta), path("{own.pattern}")' for own in outputs(stage)]
    width = max(map(len, left))
    # Lines break between options, never before a value.
    shown = [f"{own.flag}\0{own.option.metavar}".strip("\0") for own in stage.others]
    further = textwrap.wrap(", ".join(shown), 96, break_on_hyphens=False)
    return render(
        "main.nf.j2",
        stage=stage,
        name=module_of(stage),
        mates=_mates(stage),
        channels=list(_channel_lines(stage)),
        outputs=[
            (f"{text:{width}}", own.name) for text, own in zip(left, outputs(stage), strict=True)
        ],
        further=[line.replace("\0", " ") for line in further],
        definitions=list(_definitions(stage)),
        arguments=list(_arguments(stage)),
        stubs=list(_stubs(stage)),
    )


def _channel_lines(stage: Stage) -> Iterator[str]:
    for number, channel in enumerate(channels(stage), 1):
        parts = [f"val(meta{number if number > 1 else ''})"]
        for own in channel:
            place = f"{own.name}{'' if own.folder else '*'}/*"
            staged = f", stageAs: '{place}'" if own.is_list else ""
            is_reads = own.name == "r1"
            parts.append(
                "path(reads, stageAs: 'input*/*')" if is_reads else f"path({own.name}{staged})"
            )
        if number == 1:
            parts += [f"val({own.name})" for own in stage.params if own.kind is int]
        yield f"tuple {', '.join(parts)}"


_ALL_READS = "def files = reads instanceof List ? reads : [reads]"
_PAIRS = '{ pair -> "-i ${pair[0]} -I ${pair[1]}" }'
_SINGLE = 'files.collect { file -> "-i ${file}" }'


def _definitions(stage: Stage) -> Iterator[str]:
    """Variables of the script."""
    names = {own.name for own in stage.inputs}
    if stage.pairs_only:
        yield f"def inputs = reads.collate(2).collect {_PAIRS}"
    elif "r2" in names:
        yield _ALL_READS
        yield "def inputs = meta.single_end"
        yield f"    ? {_SINGLE}"
        yield f"    : files.collate(2).collect {_PAIRS}"
    elif "r1" in names:
        yield _ALL_READS
        yield f"def inputs = {_SINGLE}"
    if _mates(stage):
        first, second = outputs(stage)[0].files
        single = first.suffix.replace("_1.", ".")
        yield "def outputs = meta.single_end"
        yield f'    ? "{first.flag} ${{prefix}}.{single}"'
        both = " ".join(f"{own.flag} ${{prefix}}.{own.suffix}" for own in (first, second))
        yield f'    : "{both}"'
    for own in inputs(stage):
        if own.name == "r1" or own.folder:
            continue
        if own.is_list:
            every = f"({own.name} instanceof List ? {own.name} : [{own.name}])"
            each = f'.collect {{ file -> "{own.flag} ${{file}}" }}' if own.flag else ""
            yield f"def {own.name}_files = {every}{each}"
        elif not own.required:
            yield f"def {own.name}_file = {own.name} ? \"{own.flag} ${{{own.name}}}\" : ''"
    if stage.most_gpus != 0:
        number = stage.most_gpus or "${task.accelerator.request}"
        quote = "'" if stage.most_gpus else '"'
        given = f"{quote}--backend cuda --gpus {number}{quote}"
        yield f"def device = task.accelerator ? {given} : '--backend cpu'"
    if "memory" in stage.options:
        yield "def memory = task.memory ? \"--memory ${task.memory.toMega()}M\" : ''"


def _arguments(stage: Stage) -> Iterator[str]:
    """Lines of the command."""
    shown = {own.parameter.name for own in inputs(stage)}
    for own in stage.files:
        inside = f"/{own.inside}" if own.inside else ""
        if own.name == "r1" and not own.written:
            yield "${inputs.join(' ')}"
        elif own.written and own.emit:
            if not (_mates(stage) and own.name in ("r1", "r2")):
                yield f"{own.flag} ${{prefix}}.{own.suffix}{inside}"
            elif own.name == "r1":
                yield "${outputs}"
        elif own.parameter.name not in shown:
            continue
        elif own.folder:
            yield own.name
        elif own.is_list:
            yield f"${{{own.name}_files.join(' ')}}"
        else:
            given = f"{own.flag} ${{{own.name}}}{inside}".strip()
            yield given if own.required else f"${{{own.name}_file}}"
    for parameter in stage.params:
        value = parameter.name if parameter.kind is int else "prefix"
        yield f"{parameter.flag} ${{{value}}}"
    devices = {"memory": " ${memory}", "backend": " ${device}"}
    resources = "".join(text for name, text in devices.items() if name in stage.options)
    if "threads" in stage.options:
        yield f"--threads ${{task.cpus}}{resources}"


def _stubs(stage: Stage) -> Iterator[str]:
    """Commands that make empty outputs."""
    for own in (file for output in outputs(stage) for file in output.files):
        path = f"${{prefix}}.{own.suffix}"
        if _mates(stage) and own.name in ("r1", "r2"):
            if own.name == "r1":
                yield "for side in ${sides.collect { side -> \"'${side}'\" }.join(' ')}; do"
                name = path.replace("_1.", "\\${side}.")
                yield f'    echo "" | gzip > {name}'
                yield "done"
        elif own.kind == "directory":
            yield f"mkdir {path}"
            yield f"touch {path}/{own.inside or 'manifest.json'}"
        elif own.is_gzipped:
            yield f'echo "" | gzip > {path}'
        else:
            yield f"touch {path}"
