"""Galaxy tools, one for each command.

Directories (databases, indexes, taxonomies) are data sets of Galaxy as tar archives. Outputs that a
job can do without are chosen by the user. Threads come from the job, and so does the GPU.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from ngsgpu.declared.parameters import Parameter
from scripts.derive.stages import ROOT, File, Stage, meaning, render, table

FOLDER = ROOT / "packaging" / "galaxy"

_FORMATS = {
    "fastq": "fastqsanger",
    "fasta": "fasta",
    "json": "json",
    "tsv": "tabular",
    "gfa": "gfa1",
    "bedgraph": "bedgraph",
    "biom": "biom1",
    "paf": "paf",
    "text": "txt",
    "report": "txt",
    "data": "data",
    "directory": "tgz",
}
"""Galaxy's formats by kind of file."""

_SELECTED = ' selected="true"'
_FASTQ = "fastqsanger,fastqsanger.gz"
_READS = f"{_FASTQ},fasta,fasta.gz"


# Samples are named after their reports.
_LINK_REPORTS = [
    "#import re",
    "#for $file in $reports",
    "    #set $name = $file.element_identifier.split('.')[0]",
    "    #set $sample = re.sub('[^A-Za-z0-9_-]', '_', $name)",
    "    ln -s '$file' '${sample}.kraken2.report.txt' &&",
    "#end for",
]


def files(known: tuple[Stage, ...]) -> dict[Path, str]:
    """The tools of all commands, and what they share, by path."""
    made = {FOLDER / f"ngsgpu_{tool_of(stage)}.xml": _tool(stage) for stage in known}
    return made | {FOLDER / "macros.xml": render("macros.xml.j2")}


def tool_of(stage: Stage) -> str:
    """The name of a tool behind ``ngsgpu_``."""
    return re.sub("[ -]", "_", stage.name)


def left_out() -> dict[str, str]:
    """Why options are not in Galaxy's forms."""
    reasons: dict[str, str] = table()["galaxy_leaves_out"]
    return reasons


def options(stage: Stage) -> list[Parameter]:
    """The options of a tool's form."""
    return [own for own in stage.others if own.name not in left_out()]


def name_of(parameter: Parameter) -> str:
    """The name that Galaxy makes of an option."""
    return parameter.flag.lstrip("-").replace("-", "_")


def _tool(stage: Stage) -> str:
    shown = _shown(stage)
    optional = [own for own in shown if own.written and _is_chosen(own)]
    outputs = [
        {"name": own.name, "path": _path(own), "format": _format(own), "filter": _filter(own)}
        for own in shown
        if own.written
    ]
    return render(
        "tool.xml.j2",
        id=tool_of(stage),
        name=stage.name,
        summary=stage.summary.rstrip("."),
        command=list(_command(stage)),
        inputs=[_input(stage, own) for own in shown if not own.written],
        fields=[_field(own, "sample" if own.kind is str else "0") for own in stage.params],
        chosen=optional,
        free=any(own.required for own in shown if own.written),
        options=[_field(own, _default(own)) for own in options(stage)],
        outputs=outputs,
        test=_test(stage, shown, outputs, optional),
        help=_help(stage),
        doi=stage.entry["doi"],
    )


def _shown(stage: Stage) -> list[File]:
    """The files of a tool; reads are what it has to get."""
    left = stage.entry.get("not_in_galaxy", ())
    return [
        dataclasses.replace(own, required=own.required or own.parameter.name == "in1")
        for own in stage.files
        if own.parameter.name not in left
    ]


def _writes_fastq(stage: Stage) -> bool:
    return any(own.written and own.kind == "fastq" for own in _shown(stage))


def _is_chosen(file: File) -> bool:
    """Whether the user chooses an output; second mates come with the first."""
    return not file.required and file.name != "r2"


def _filter(file: File) -> str:
    """When there is an output."""
    if file.name == "r2":
        return "in2"
    return f"written and '{file.name}' in written" if _is_chosen(file) else ""


def _format(file: File) -> str:
    known = _FORMATS[file.kind]
    return f"{known}.gz" if file.is_gzipped and file.kind in ("fastq", "fasta") else known


def _path(file: File) -> str:
    """Where the command writes; tables in Galaxy are never compressed."""
    if file.kind == "directory":
        return f"{file.name}.tar.gz"
    end = file.suffix.partition(".")[2] or file.suffix
    return f"{file.name}.{end if _format(file).endswith('.gz') else end.removesuffix('.gz')}"


def _input(stage: Stage, file: File) -> dict[str, str]:
    """A data set that is read."""
    known = _FORMATS.get(file.kind, "data")
    if file.kind == "reads":
        known = _FASTQ if _writes_fastq(stage) else _READS
    elif file.kind == "fasta":
        known = "fasta,fasta.gz"
    named = _named(file)
    several = ' multiple="true"' if file.is_list else ""
    several += "" if file.required else ' optional="true"'
    label = {"in1": "Reads or first mates", "in2": "Second mates"}.get(file.parameter.name)
    text = file.meaning + (" A tar archive of the directory." if file.kind == "directory" else "")
    return {
        "attributes": f'{named} format="{known}"{several}',
        "label": label or _label(_variable(file)),
        "help": text,
    }


def _named(file: File) -> str:
    """The attribute that names the parameter of an input."""
    return f'argument="{file.flag}"' if file.flag else f'name="{file.name}"'


def _variable(file: File) -> str:
    return name_of(file.parameter) if file.flag else file.name


def _label(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _default(parameter: Parameter) -> str:
    """The value of a field of the form before it is changed; empty if it holds none."""
    default = parameter.default
    # Where the help says otherwise, the value depends on other options.
    if default in (None, ...) or (parameter.option.shown_default and parameter.kind is not bool):
        return ""
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _field(parameter: Parameter, value: str) -> str:
    """An option of the form, as XML; one without a value may be left empty."""
    option, text = parameter.option, meaning(parameter)
    if not value and (option.shown_default or option.word):
        text += f" Default: {option.shown_default or option.word}."
    name = f"argument={quoteattr(parameter.flag)}"
    texts = f"label={quoteattr(_label(name_of(parameter)))} help={quoteattr(text)}"
    if parameter.kind is bool:
        values = f'truevalue="{parameter.flag}" falsevalue="" checked="{value.lower()}"'
        return f'<param {name} type="boolean" {values} {texts}/>'
    empty = "" if value else ' optional="true"'
    if option.choices:
        choices = "".join(
            f'<option value="{own}"{_SELECTED * (str(own) in value.split(","))}>{own}</option>'
            for own in option.choices
        )
        several = ' multiple="true"' * parameter.is_tuple
        return f'<param {name} type="select"{several}{empty} {texts}>{choices}</param>'
    given = f" value={quoteattr(value)}" if value else empty
    kind = {int: "integer", float: "float"}.get(parameter.kind, "text")
    # Galaxy's numbers can be left empty, but hold no word: text where the word says something else.
    if parameter.is_tuple or (option.word and (value or option.shown_default)):
        return f'<param {name} type="text"{given} {texts}/>'
    return f'<param {name} type="{kind}"{given}{_range(parameter)} {texts}/>'


def _range(parameter: Parameter) -> str:
    option = parameter.option
    limits = {
        "min": option.above if option.least is None else option.least,
        "max": option.below if option.most is None else option.most,
    }
    return "".join(f' {name}="{own}"' for name, own in limits.items() if own is not None)


def _command(stage: Stage) -> Iterator[str]:
    """The lines of the command, for Cheetah."""
    shown = _shown(stage)
    for own in shown:
        if own.kind == "directory" and not own.written:
            place = f"'{own.name}_in'"
            unpack = f"tar -xf '${_variable(own)}' -C {place} --strip-components=1 &&"
            yield from _if(own, [f"mkdir {place} &&", unpack])
        elif own.kind == "report":
            yield from _LINK_REPORTS
        elif own.inside:
            yield f"mkdir '{own.name}' &&"
    yield f"ngsgpu {stage.call}"
    for own in shown:
        yield from _argument(own)
    for parameter in stage.params:
        yield f"    {parameter.flag} '${name_of(parameter)}'"
    for parameter in options(stage):
        value = f"$options.{name_of(parameter)}"
        if parameter.kind is bool:
            yield f"    {value}"
        else:
            # An option with its default's value is none that was given.
            unchanged = tuple(dict.fromkeys(("", "None", _default(parameter))))
            yield f"#if str({value}) not in {unchanged}"
            yield f"    {parameter.flag} '{value}'"
            yield "#end if"
    if "threads" in stage.options:
        yield "    --threads \\${GALAXY_SLOTS:-1}"
    if "memory" in stage.options:
        yield "    --memory \\${GALAXY_MEMORY_MB:-8192}M"
    for own in shown:
        if own.written and own.kind == "directory":
            yield from _if(own, [f"    && tar -czf '{_path(own)}' '{own.name}'"])


def _argument(file: File) -> Iterator[str]:
    flag = f"{file.flag} " if file.flag else ""
    if file.written:
        path = file.name if file.kind == "directory" else _path(file)
        inside = f"/{file.inside}" if file.inside else ""
        yield from _if(file, [f"    {flag}'{path}{inside}'"])
    elif file.kind == "report":
        yield f"    {flag}*.kraken2.report.txt"
    elif file.kind == "directory":
        inside = f"/{file.inside}" if file.inside else ""
        yield from _if(file, [f"    {flag}'{file.name}_in{inside}'"])
    elif file.is_list:
        yield from _if(
            file, [f"#for $file in ${_variable(file)}", f"    {flag}'$file'", "#end for"]
        )
    else:
        yield from _if(file, [f"    {flag}'${_variable(file)}'"])


def _if(file: File, lines: list[str]) -> Iterator[str]:
    """Lines for when a file is given or wanted."""
    condition = f"${_variable(file)}"
    if file.written:
        condition = "$in2" if file.name == "r2" else f"'{file.name}' in str($written).split(',')"
    if file.required:
        yield from lines
    else:
        yield f"#if {condition}"
        yield from lines
        yield "#end if"


def _test(
    stage: Stage, shown: list[File], outputs: list[dict[str, Any]], optional: list[File]
) -> dict[str, Any]:
    inputs = [(_variable(own), own.data, _type(own)) for own in shown if not own.written]
    wanted = [own.name for own in optional if own.name != "fasta"]
    expected = [own for own in outputs if own["filter"] in ("", "in2") or own["name"] in wanted]
    return {"inputs": inputs, "written": ",".join(wanted), "outputs": expected}


def _type(file: File) -> str:
    """The format of a data set of the test."""
    known = {"reads": "fastqsanger.gz", "fasta": "fasta.gz"}
    return known.get(file.kind) or _FORMATS[file.kind]


def _help(stage: Stage) -> str:
    """A command's help as reStructuredText: examples are code."""
    parts: list[str] = []
    for paragraph in (stage.command.help or "").split("\n\n"):
        if re.match(r"(\w[\w ]*:)?\s*(.*\| )?ngsgpu .* -", paragraph):
            parts.append(f"    {paragraph.strip()}")
            if len(parts) == 1 or not parts[-2].startswith("    "):
                parts.insert(-1, "::")
        else:
            parts.append(" ".join(paragraph.split()).replace("`", "``"))
    return "\n\n".join(parts)
