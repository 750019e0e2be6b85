"""One line for what the command line does not take, with what it takes instead.

Words of other programs (fastp, FLASH, Kraken 2, KMC, bwa, SPAdes) get the name that it has here.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Final

import click

_SAME: Final = {
    "--db": ("-d",),
    "--index": ("-d",),
    "--R1": ("-i",),
    "--r1": ("-i",),
    "--read1": ("-i",),
    "--reads": ("-i",),
    "--input": ("-i",),
    "--in": ("-i",),
    "-1": ("-i",),
    "--pe1-1": ("-i",),
    "--R2": ("-I",),
    "--r2": ("-I",),
    "--read2": ("-I",),
    "-2": ("-I",),
    "--output": ("-o",),
    "--out": ("-o",),
    "--output-prefix": ("--flash-prefix", "-o"),
    "--unmerged": ("--unmerged1",),
    "--use-mpa-style": ("--mpa",),
    "--minimum-hit-groups": ("--min-hits",),
    "--min-len": ("--length-required",),
    "--minlen": ("--min-contig", "--length-required"),
    "--kmer-size": ("--kmer", "--kmers"),
    "--cpus": ("--threads",),
    "--cores": ("--threads",),
    "--nproc": ("--threads",),
    "--num-threads": ("--threads",),
    "-p": ("--threads",),
    "-@": ("--threads",),
    "--ram": ("--memory",),
    "--mem": ("--memory",),
    "--gpu": ("--gpus",),
    "--device": ("--backend",),
    "--phred33": ("--phred-offset",),
    "--phred64": ("--phred-offset",),
    "--exclude": ("--min-count",),
}
"""Options of other programs, and ours that do the same, the first that the command has."""

_PAIRS: Final = "give first mates with -i and second mates with -I"
_SENTENCES: Final = {
    "--paired": _PAIRS,
    "--pe": _PAIRS,
    "--outdir": "name each output by its own option, a folder before it if you like",
    "--out-dir": "name each output by its own option, a folder before it if you like",
    "--output-dir": "name each output by its own option, a folder before it if you like",
    "--html": "`ngsgpu report` writes a page of all results of a study",
    "--stdout": "give -o - to write to standard output",
    "--gzip-compressed": "leave it out: compression is found from the file",
    "--bzip2-compressed": "leave it out: compression is found from the file",
    "--fastq-input": "leave it out: the format is found from the file",
    "--fasta-input": "leave it out: the format is found from the file",
    "--use-names": "leave it out: names are always written",
    "--memory-mapping": "`ngsgpu db serve` keeps a database open between runs",
    "--verbose": "leave it out: -q silences messages",
}
"""What to do instead of an option of another program."""

_MINIMUM_COUNT: Final = re.compile(r"-ci(\d+)")
"""KMC's."""

_PROGRAMS: Final = {
    "fastp": "trim",
    "cutadapt": "trim",
    "qc": "adapters",
    "care": "correct",
    "lighter": "correct",
    "carex": "extend",
    "flash": "merge",
    "hostile": "deplete",
    "kraken2": "classify",
    "metacache": "classify",
    "kraken2-build": "db build",
    "build": "db build",
    "bracken": "classify",
    "kmc": "kmers count",
    "count": "kmers count",
    "jellyfish": "kmers count",
    "bcalm": "unitigs",
    "spades": "assemble",
    "shovill": "assemble",
    "megahit": "assemble",
    "bwa": "index query",
    "snakemake": "workflow init",
    "multiqc": "report",
    "help": "--help",
}
"""Commands by what others call them."""


def one_line(error: click.ClickException, words: Iterable[str]) -> str:
    """What is wrong with a command line, and what to write instead.

    Args:
        error: what click raised.
        words: of the command line.
    """
    context = error.ctx if isinstance(error, click.UsageError) else None
    message = error.format_message().rstrip(".")
    if context is None:
        return f"{message[:1].lower()}{message[1:]}"
    path = context.command_path
    if isinstance(error, click.NoSuchOption):
        known = [name for own in context.command.params for name in own.opts if name[0] == "-"]
        typed = _typed(error.option_name, words)
        hint = _hint(typed, known) or f"`{path} --help` lists its options"
        return f"{path} has no option {typed}; {hint}"
    if message.startswith("Got unexpected extra argument"):
        extra = message.partition("(")[2].rstrip(")")
        takes_reads = any("-i" in own.opts for own in context.command.params)
        hint = "give reads with -i, second mates with -I" if takes_reads else f"see `{path} --help`"
        return f"{path} takes nothing without an option, such as {extra!r}; {hint}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        name = error.param.make_metavar(context)
        if isinstance(error.param, click.Option):
            name = max(error.param.opts, key=len)
        return f"{path} needs {name}; see `{path} --help`"
    return f"{path}: {message[:1].lower()}{message[1:]}"


def no_command(path: str, word: str, known: Iterable[str]) -> str:
    """What to say about a command that there is not.

    Args:
        path: what was typed before.
        word: that names none.
        known: commands.
    """
    known = [*known]
    if path == "ngsgpu" and (own := _PROGRAMS.get(word.lower())) is not None:
        return f"ngsgpu has no command {word!r}; `ngsgpu {own}` does that"
    if "build" in known and "." in word:
        return f"{path} has no command {word!r}; did you mean `{path} build {word}`?"
    near = difflib.get_close_matches(word, known, 1)
    if near:
        return f"{path} has no command {word!r}; did you mean {near[0]}?"
    if len(known) < 10:
        return f"{path} has no command {word!r}; it has {', '.join(known)}"
    return f"{path} has no command {word!r}; `{path} --help` lists all"


def _typed(name: str, words: Iterable[str]) -> str:
    """The word of which click names the first letter, such as -ci2."""
    if name.startswith("--"):
        return name
    last = name[-1]
    whole = (own for own in words if own[:1] == "-" and own[:2] != "--" and last in own[1:])
    return next(whole, name)


def _hint(typed: str, known: list[str]) -> str | None:
    for same in _SAME.get(typed, ()):
        if same in known:
            return f"it is {same} here"
    if (found := _MINIMUM_COUNT.fullmatch(typed)) and "--min-count" in known:
        return f"it is --min-count {found[1]} here"
    if (sentence := _SENTENCES.get(typed)) is not None and ("-I" not in sentence or "-I" in known):
        return sentence
    near = difflib.get_close_matches(typed, known, 1)
    return f"did you mean {near[0]}?" if near else None
