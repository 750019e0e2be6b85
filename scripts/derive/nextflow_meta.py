"""``meta.yml`` of a Nextflow module: its channels, described for nf-core."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from scripts.derive.as_yaml import Quoting, dump
from scripts.derive.stages import File, Stage, meaning

if TYPE_CHECKING:
    from scripts.derive.nextflow import Output

_HEAD = (
    "# yaml-language-server: $schema=https://raw.githubusercontent.com/nf-core/modules/master/"
    "modules/meta-schema.json\n"
)
_EDAM = {
    "reads": (1930, "FASTQ"),
    "fastq": (1930, "FASTQ"),
    "fasta": (1929, "FASTA"),
    "tsv": (3475, "TSV"),
    "json": (3464, "JSON"),
    "gfa": (3975, "GFA 1"),
    "bedgraph": (3583, "bedgraph"),
    "biom": (3746, "BIOM"),
}
"""Formats of EDAM by kind of file."""

_PATTERNS = {"reads": "*.{fastq,fq}{,.gz,.bz2,.xz}", "fasta": "*.{fasta,fa,fna}{,.gz}"}
_READS = "FASTQ files; pairs as `[ R1, R2 ]`, several lanes as `[ R1, R2, R1, R2 ]`"
_SAMPLE = ("sample", "[ id:'sample1', single_end:false ]")
_REFERENCE = ("reference", "[ id:'refseq' ]")
_VERSION = {
    "${task.process}": {"type": "string", "description": "The name of the process"},
    "ngsgpu": {"type": "string", "description": "The name of the tool"},
    "ngsgpu --version | sed 's/ngsgpu //'": {
        "type": "eval",
        "description": "The expression to obtain the version of the tool",
    },
}


def description(name: str, stage: Stage, channels: list[list[File]], outputs: list[Output]) -> str:
    """``meta.yml`` of a module.

    Args:
        name: of the module.
        stage: its command.
        channels: inputs.
        outputs: what it emits.
    """
    gpu = stage.most_gpus != 0
    tool = {
        "description": "Correct, merge, extend and classify Illumina short reads on CPUs and GPUs, "
        "with identical output",
        "homepage": "https://pypi.org/project/ngsgpu",
        "documentation": "https://pypi.org/project/ngsgpu",
        **({"doi": stage.entry["doi"][-1]} if stage.entry["doi"] else {}),
        "licence": ["MIT"],
        "identifier": "",
    }
    main = _meta("meta", _REFERENCE if channels[0][0].kind == "fasta" else _SAMPLE)
    version = [{key: value} for key, value in _VERSION.items()]
    content = {
        "name": f"ngsgpu_{name}",
        "description": stage.summary.rstrip(".") + (", on CPUs or GPUs" if gpu else ""),
        "keywords": [*stage.entry["keywords"], *(["gpu"] if gpu else [])],
        "tools": [{"ngsgpu": tool}],
        "input": [_channel(stage, number, own, main) for number, own in enumerate(channels, 1)],
        "output": {own.name: [[main, _output(own)]] for own in outputs}
        | {"versions_ngsgpu": [version]},
        "topics": {"versions": [version]},
        "authors": ["@ngsgpu"],
        "maintainers": ["@ngsgpu"],
    }
    text = dump(content, Quoting)
    text = re.sub(r"^(?=(input|output|topics|authors):)", "\n", text, flags=re.MULTILINE)
    formats = dict(_EDAM.values())
    return _HEAD + re.sub(
        r'(edam: "\S+format_)(\d+)"', lambda own: f"{own[0]} # {formats[int(own[2])]}", text
    )


def _meta(name: str, about: tuple[str, str]) -> dict[str, Any]:
    text = f"Groovy Map containing {about[0]} information\ne.g. `{about[1]}`\n"
    return {name: {"type": "map", "description": text}}


def _channel(
    stage: Stage, number: int, files: list[File], main: dict[str, Any]
) -> list[dict[str, Any]]:
    meta = main if number == 1 else _meta(f"meta{number}", (files[0].name, "[ id:'refseq' ]"))
    values = [own for own in stage.params if own.kind is int and number == 1]
    return [
        meta,
        *({_name(own): _input(own)} for own in files),
        *({own.name: {"type": "integer", "description": meaning(own)}} for own in values),
    ]


def _name(file: File) -> str:
    return "reads" if file.name == "r1" else file.name


def _input(file: File) -> dict[str, Any]:
    text = _READS if file.name == "r1" else file.meaning
    text = text.rstrip(".") + ("" if file.required or file.name == "r1" else "; [] for none")
    return _described(file, text, _PATTERNS.get(file.kind, "*"))


def _output(output: Output) -> dict[str, Any]:
    text = " ".join(own.meaning for own in output.files).rstrip(".")
    return {output.pattern: _described(output.files[0], text, output.pattern)}


def _described(file: File, text: str, pattern: str) -> dict[str, Any]:
    if file.kind == "directory":
        return {"type": "directory", "description": text, "pattern": pattern}
    known = _EDAM.get(file.kind)
    edam = [{"edam": f"http://edamontology.org/format_{known[0]}"}] if known else []
    return {"type": "file", "description": text, "pattern": pattern, "ontologies": edam}
