"""Messages name parameters to Python users, and options to those of the shell."""

from __future__ import annotations

import ast
import functools
import inspect
import logging
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

import ngsgpu as package
import ngsgpu.api
from ngsgpu import cli
from ngsgpu.cli.adapter import Command, as_typed, commands_below, options_named
from ngsgpu.correct import correct_files
from ngsgpu.declared.options import option
from ngsgpu.declared.parameters import parameters_of
from ngsgpu.declared.roles import Reads
from ngsgpu.declared.values import as_options
from ngsgpu.errors import InputError, UsageError
from tests.support.commands import Commands

ROOT = Path(package.__file__).parent
SHELLS = {"cli", "report", "workflow"}
"""Rooms that speak to users of commands, in messages or pages."""

_OPTION = re.compile(r"(?<![\w-])(--[a-z]|-[iIoOdk]\b)")
_COMMAND = re.compile(r"`[a-z]+ [^`]*`|pip install --upgrade")
_ARGUMENT = re.compile(r"-\S+")
_NAMED = re.compile(r"`([a-z_][a-z0-9_]*)(?:=([^`]*))?`")
_LITERAL = re.compile(r"'[^']*'|[0-9]+|\{\}|%d|%\.[0-9]g")
_DECLARING = {"option", "flag", "argument", "value", "Option", "Format", "Tool"}

OPTIONS = {"gpu_memory": "--gpu-memory", "backend": "--backend", "in1": "-i", "hashes": "--hashes"}


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        ("raise `gpu_memory`, or use `backend='cpu'`", "raise --gpu-memory, or use --backend cpu"),
        ("try `hashes=2`, or `gpu_memory='16G'`", "try --hashes 2, or --gpu-memory 16G"),
        ("name reads with `in1`; `in1='-'` is a stream", "name reads with -i; -i - is a stream"),
        ("see `ngsgpu db info --targets`, or `samtools`", None),
        ("`other` and `other=1` are of another command", None),
        ("`` `hashes `gpu_memory =2` ``", None),
    ],
)
def test_parameters_become_options(message: str, typed: str | None) -> None:
    assert as_options(message, OPTIONS) == (typed or message)


def test_a_message_names_familiar_options_by_one_letter() -> None:
    shown = {
        own.name: own.shown
        for name in ("correct:correct", "merge:merge", "unitigs:unitigs", "kmers:histo")
        for own in parameters_of(_function(name))
    }
    assert [shown[name] for name in ("in1", "in2", "out1", "out2", "out", "database")] == [
        "-i", "-I", "-o", "-O", "-o", "-d",
    ]  # fmt: skip
    assert [shown[name] for name in ("threads", "kmer", "min_overlap", "gfa")] == [
        "--threads", "--kmer", "--min-overlap", "--gfa",
    ]  # fmt: skip


def _function(place: str) -> Any:
    from importlib import import_module

    module, _, name = place.partition(":")
    return getattr(import_module(f"ngsgpu.cli.stages.{module}"), name)


def test_python_and_the_shell_read_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ngsgpu: Commands
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("1.fq").write_text("@a\nACGT\n+\n####\n")
    with pytest.raises(UsageError) as error:
        correct_files(["1.fq", "2.fq"], ["1c.fq"], in2=["3.fq"], out2=["3c.fq"])
    assert str(error.value) == (
        "there are 2 files of first mates (`in1`) and 1 of second (`in2`); give one `in2` for each "
        "`in1`"
    )
    words = ["-i", "1.fq", "-i", "2.fq", "-I", "3.fq", "-o", "1c.fq", "-O", "3c.fq"]
    assert ngsgpu("correct", *words).error.strip() == (
        "there are 2 files of first mates (-i) and 1 of second (-I); give one -I for each -i"
    )
    with pytest.raises(InputError) as fault:
        correct_files(["1.fq"], ["1c.fq"], phred_offset=64)
    assert str(fault.value).endswith("; give `phred_offset=33` or omit the option")
    done = ngsgpu("correct", "-i", "1.fq", "-o", "1c.fq", "--phred-offset", "64")
    assert done.error.strip().endswith("; give --phred-offset 33 or omit the option")


def test_the_file_that_an_error_names_is_no_parameter() -> None:
    def fail(
        *, in1: Annotated[list[Reads] | None, option(None, "FILE", "Reads.", "-i")] = None
    ) -> None:
        """Refuse them."""
        raise InputError("`in1`", "it is no `in1`", "give another `in1`", line=7)

    own = Command("fail", fail)
    with pytest.raises(InputError) as error, own.make_context("fail", []) as made:
        own.invoke(made)
    assert str(error.value) == "`in1`, line 7: it is no -i; give another -i"
    assert error.value.args == (str(error.value),)


def test_log_lines_of_all_threads_name_the_options_of_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cli._log_to_stderr()
    logger = logging.getLogger("ngsgpu.somewhere")
    with options_named(parameters_of(_function("merge:merge"))):
        work = threading.Thread(target=lambda: logger.warning("raise `max_overlap=%d`", 9))
        work.start()
        work.join()
        assert capsys.readouterr().err == "ngsgpu: raise --max-overlap 9\n"
        assert as_typed("`interleaved_in` and `hashes`") == "--interleaved-in and --hashes"
    assert as_typed("`interleaved_in` and `hashes`") == "`interleaved_in` and --hashes"


def test_the_core_names_no_options() -> None:
    found = [
        f"{place}: {text}"
        for place, text in _messages()
        if _OPTION.search(_COMMAND.sub("", text)) and not _ARGUMENT.fullmatch(text)
    ]
    assert not found, "name parameters in backticks instead:\n" + "\n".join(found)


def test_what_the_core_names_in_backticks_are_parameters() -> None:
    known = {
        own.name for _, found in commands_below(cli.app) for own in getattr(found, "parameters", ())
    }
    named = [(place, *own) for place, text in _messages() for own in _NAMED.findall(text)]
    assert len(named) > 150
    of_functions = {
        name
        for own in map(vars(ngsgpu.api).get, ngsgpu.api.__all__)
        if inspect.isfunction(own)
        for name in inspect.signature(own).parameters
    }
    wrong = [
        own
        for own in named
        if (own[1] not in known or (own[2] and not _LITERAL.fullmatch(own[2])))
        and not ("ngsgpu/api/" in own[0] and own[1] in of_functions)
    ]
    assert not wrong, "\n".join(map(str, wrong))


@functools.cache
def _messages() -> list[tuple[str, str]]:
    return list(_found_messages())


def _found_messages() -> Iterator[tuple[str, str]]:
    """Texts in the code of the core, with their places; values in them become ``{}``."""
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).parts[0] in SHELLS:
            continue
        pending: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.JoinedStr):
                parts = (
                    own.value if isinstance(own, ast.Constant) else "{}" for own in node.values
                )
                yield f"{path}:{node.lineno}", "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{path}:{node.lineno}", node.value
            elif not _is_documentation(node):
                pending += ast.iter_child_nodes(node)


def _is_documentation(node: ast.AST) -> bool:
    """Whether it is a docstring, or declares an option and its help."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _DECLARING
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
