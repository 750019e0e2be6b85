"""What the help shows, and what is said about words of other programs."""

from __future__ import annotations

import shlex

import click
import pytest

from ngsgpu import cli
from ngsgpu.cli.adapter import Command, commands_below
from ngsgpu.cli.help import group_of, in_order
from ngsgpu.declared.options import INPUT, RESEARCH, RUN

LARGE = ("trim", "classify", "merge", "correct")
HINTS = [
    ("trimm", "did you mean trim?"),
    ("corect -i a.fq", "did you mean correct?"),
    ("fastp", "`ngsgpu trim` does that"),
    ("kraken2 --db x", "`ngsgpu classify` does that"),
    ("index ref.fa", "did you mean `ngsgpu index build ref.fa`?"),
    ("db biuld", "did you mean build?"),
    ("classify --db x", "it is -d here"),
    ("classify --paired", "give first mates with -i and second mates with -I"),
    ("classify R1.fq", "'R1.fq'; give reads with -i, second mates with -I"),
    ("classify --use-mpa-style", "it is --mpa here"),
    ("classify --gzip-compressed", "leave it out: compression is found from the file"),
    ("classify --memory-mapping", "`ngsgpu db serve` keeps a database open"),
    ("correct --R1 a.fq", "it is -i here"),
    ("correct -1 a.fq", "it is -i here"),
    ("merge -2 a.fq", "it is -I here"),
    ("correct --covrage 3", "did you mean --coverage?"),
    ("correct --outdir x", "name each output by its own option"),
    ("assemble --cpus 4", "it is --threads here"),
    ("assemble --outdir x", "name each output by its own option"),
    ("assemble --minlen 200", "it is --min-contig here"),
    ("merge --html x", "`ngsgpu report` writes a page"),
    ("merge --stdout", "give -o - to write to standard output"),
    ("kmers count -ci2", "it is --min-count 2 here"),
    ("correct -i", "requires an argument"),
    ("db stats", "ngsgpu db stats needs --database"),
]


@pytest.mark.parametrize(("words", "hint"), HINTS)
def test_words_of_other_programs_get_a_hint_in_one_line(
    capsys: pytest.CaptureFixture[str], words: str, hint: str
) -> None:
    assert cli.main(shlex.split(words)) == 2
    said = capsys.readouterr().err
    assert said.startswith("ngsgpu: error: ") and said.count("\n") == 1
    assert hint in said


def test_hints_name_options_that_the_command_has() -> None:
    from ngsgpu.cli.hints import _PROGRAMS, _SAME

    commands = dict(commands_below(cli.app))
    assert {name for name in _PROGRAMS.values() if name[0] != "-"} <= commands.keys()
    known = {own for _, found in commands_below(cli.app) for p in found.params for own in p.opts}
    assert {own for same in _SAME.values() for own in same} <= known
    assert not _SAME.keys() & {"-i", "-I", "-o", "-d"}


@pytest.mark.parametrize("name", LARGE)
def test_many_options_are_in_groups_files_first_and_research_last(name: str) -> None:
    command = dict(commands_below(cli.app))[name]
    assert isinstance(command, Command)
    groups = [*in_order(map(group_of, command.parameters))]
    assert groups[0] == INPUT and RUN in groups[-2:]
    assert groups[-1] in (RUN, RESEARCH)
    sizes = [sum(group_of(own) == group for own in command.parameters) for group in groups]
    assert max(sizes) < 22


@pytest.mark.parametrize("columns", [80, 120])
def test_summaries_are_whole_and_lines_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    cli.main(["--help"])
    shown = capsys.readouterr().out
    words = " ".join(shown.split())
    assert all(entry.summary in words for entry in cli.COMMANDS.values())
    assert max(map(len, shown.splitlines())) <= columns


def test_examples_and_names_of_options_are_on_one_line() -> None:
    for name, found in commands_below(cli.app):
        shown = found.get_help(found.context_class(found, info_name=name, terminal_width=78))
        assert not any(line.rstrip().endswith("-") and "--" in line.split()[-1]
                       for line in shown.splitlines())  # fmt: skip
        for line in (found.help or "").splitlines():
            command = line[line.find("ngsgpu ") :]
            if ":   " in line and command.startswith("ngsgpu "):
                assert command in shown, name


def test_each_line_of_help_stands_alone() -> None:
    for name, found in commands_below(cli.app):
        for own in found.params:
            text = own.help if isinstance(own, click.Option) else None
            first = (text or "Show").split()[0]
            assert first not in ("Its", "Their", "How", "See"), (name, own.name, text)
            assert not (text or "").startswith(("The same for", "The same in")), (name, own.name)
