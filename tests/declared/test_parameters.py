"""Parameters declared once: options, values and arguments follow from the declaration."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import FrozenInstanceError, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu import cli
from ngsgpu.cli.adapter import Command, commands_below
from ngsgpu.declared.options import Option, argument, flag, option, value
from ngsgpu.declared.parameters import Options, arguments, parameters_of
from ngsgpu.declared.roles import Reads, Role, Text, Written
from ngsgpu.declared.values import as_options, check_value, parameters
from ngsgpu.errors import UsageError

Threads = Annotated[int, option(..., "N", "Threads.", "-t", "--threads", least=1)]


@parameters
class Inner:
    """Within another one."""

    kmer: int = option(20, "K", "k-mer length.", least=8, most=32)


@parameters
class Outer:
    """Of a stage."""

    inner: Inner = field(default_factory=Inner)
    depth: float | None = option(None, "X", "Depth.", word="auto", above=0)
    kind: Literal["a", "b"] = option("a", "a|b", "Kind.")
    lengths: tuple[int, ...] = option((1, 2), "N,N", "Lengths.", most=9)
    margin: int = value(3, "Only from Python.", least=0)
    is_quick: bool = value(False, "Only from Python.")
    threads: Threads = 4

    def __post_init__(self) -> None:
        if self.kind == "b" and self.depth is None:
            raise UsageError("`kind` b needs `depth`")


def command(
    *,
    in1: list[Reads] | None = option(None, "FILE", "Reads.", "-i", "--in1"),
    out: Written = option(..., "FILE", "Output.", "-o", "--out"),
    names: Annotated[list[Text], argument(..., "NAMES...")],
    outer: Outer,
    quiet: bool = flag("Quiet.", "-q", "--quiet"),
) -> Any:
    """Do something."""
    return in1, out, names, outer, quiet


def test_what_is_declared():
    found = {own.name: own for own in parameters_of(command)}
    assert list(found) == [
        "in1", "out", "names", "kmer", "depth", "kind", "lengths", "threads", "quiet",
    ]  # fmt: skip
    assert (found["in1"].role, found["in1"].is_list, found["in1"].flag) == (
        Role.READS,
        True,
        "--in1",
    )
    assert (found["out"].role, found["out"].default) == (Role.WRITTEN, ...)
    assert (found["names"].flag, found["names"].option.is_argument) == ("NAMES...", True)
    assert (found["kmer"].names, found["kmer"].default) == (("--kmer",), 20)
    assert found["in1"].names == ("-i", "--in1") and found["names"].names == ()
    assert [own.name for own in parameters_of(command, without="outer")][2:4] == ["names", "quiet"]
    assert (found["kind"].option.choices, found["kind"].role) == (("a", "b"), Role.NONE)
    assert (found["lengths"].is_tuple, found["lengths"].kind) == (True, int)
    assert (found["threads"].flag, found["threads"].default) == ("--threads", 4)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], Outer()),
        (["--kmer", "31"], Outer(inner=Inner(kmer=31))),
        (["--depth", "2.5", "--kind", "b"], Outer(depth=2.5, kind="b")),
        (["--depth", "auto", "--lengths", "3,4,5"], Outer(lengths=(3, 4, 5))),
        (["-t", "2", "--kmer", "8"], Outer(threads=2, inner=Inner(kmer=8))),
    ],
)
def test_the_command_line_gives_the_dataclass(words, expected):
    own = Command("do", command)
    with own.make_context(
        "do", [*words, "-i", "r.fq", "-i", "s.fq", "-o", "o.fq", "x", "y"]
    ) as made:
        assert own.invoke(made) == (["r.fq", "s.fq"], "o.fq", ["x", "y"], expected, False)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inner": {"kmer": 7}}, "`kmer` must be from 8 to 32, not 7"),
        ({"depth": 0}, "`depth` must be auto or above 0, not 0"),
        ({"depth": math.nan}, "`depth` must be auto or above 0, not nan"),
        ({"kind": "c"}, "`kind` must be a or b, not c"),
        ({"lengths": (1, 10)}, "`lengths` must be at most 9, not 10"),
        ({"margin": -1}, "`margin` must be 0 or more, not -1"),
        ({"threads": 0}, "`threads` must be 1 or more, not 0"),
        ({"kind": "b"}, "`kind` b needs `depth`"),
    ],
)
def test_python_and_the_command_line_refuse_with_one_message(given, message):
    with pytest.raises(UsageError) as error:
        Outer(**{**given, "inner": Inner(**given.get("inner", {}))})
    assert str(error.value) == message
    if "margin" in given:
        return  # it has no option
    flat = {name: own for name, own in (given | given.get("inner", {})).items() if name != "inner"}
    words = []
    for name, own in flat.items():
        words += [f"--{name}", ",".join(map(str, own)) if isinstance(own, tuple) else str(own)]
    run = Command("do", command)
    with (
        pytest.raises(UsageError) as error,
        run.make_context("do", [*words, "-o", "o", "x"]) as made,
    ):
        run.invoke(made)
    flags = {own.name: own.flag for own in parameters_of(command)}
    assert str(error.value) == as_options(message, flags)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": "3"}, "`depth` must be a number, not '3'"),
        ({"margin": 2.0}, "`margin` must be a whole number, not 2.0"),
        ({"lengths": [1, "2"]}, "`lengths` must be a whole number, not '2'"),
        ({"is_quick": 1}, "`is_quick` must be True or False, not 1"),
    ],
)
def test_values_of_another_type_are_refused(given, message):
    with pytest.raises(UsageError) as error:
        Outer(**given)
    assert str(error.value) == message


def test_numbers_may_be_of_numpy():
    made = Outer(depth=np.float32(2), margin=np.int8(3), is_quick=np.bool_(True))
    assert (made.depth, made.margin, made.is_quick) == (2, 3, True)


def test_a_dataclass_of_parameters_is_frozen_and_says_what_it_holds():
    assert "kmer: k-mer length." in (Inner.__doc__ or "")
    with pytest.raises(FrozenInstanceError):
        Inner().kmer = 9  # type: ignore[misc]


def test_what_was_given_is_told_from_defaults():
    def chosen(*, outer: Options[Outer]) -> Any:
        """Choose."""
        return outer

    values = {"kmer": 9, "depth": None, "kind": "a", "lengths": (1,), "threads": 4}
    options = arguments(chosen, values, {"kmer", "threads"})["outer"]
    assert options.given == {"kmer": 9, "threads": 4}
    assert options.make(margin=7) == Outer(inner=Inner(kmer=9), margin=7)


def test_a_name_is_declared_one_way():
    def twice(*, inner: Inner, kmer: int = option(5, "K", "Another.")) -> None:
        """Declare it twice."""

    with pytest.raises(TypeError, match="kmer is declared in two ways"):
        parameters_of(twice)

    def undeclared(*, kmer: int = 5) -> None:
        """Forget it."""

    with pytest.raises(TypeError, match="kmer is no option"):
        parameters_of(undeclared)


LIMIT = st.none() | st.integers(-5, 5)


@given(st.integers(-8, 8) | st.floats(-8, 8), LIMIT, LIMIT, LIMIT, LIMIT)
def test_ranges(number, least, most, above, below):
    inside = (
        (least is None or number >= least)
        and (most is None or number <= most)
        and (above is None or number > above)
        and (below is None or number < below)
    )
    try:
        check_value("x", number, Option("", least=least, most=most, above=above, below=below))
    except UsageError:
        assert not inside
    else:
        assert inside


@given(st.text())
def test_messages_become_the_command_lines(text):
    assert as_options(text.replace("`", ""), {"x": "--x"}) == text.replace("`", "")
    assert as_options("`x` and `y`", {"x": "--x"}) == "--x and `y`"


def test_defaults_are_in_their_ranges():
    """Of every option of every command; and every default is what the stage's class has."""
    for name, found in commands_below(cli.app):
        for own in getattr(found, "parameters", ()):
            if own.default is not ...:
                check_value(f"{name} {own.name}", own.default, own.option)


@pytest.mark.parametrize(
    "module",
    ["declared.parameters", "declared.values", "declared.outputs", "correct.params", "merge.params",
     "extend.params", "spectrum.params", "deplete.params", "kmers.params", "assemble.params",
     "assemble.contigs.params", "suffix.params", "train.params", "evaluate.mapped.params"],
)  # fmt: skip
def test_declarations_import_nothing_heavy(module):
    """The command line imports them before a GPU is leased."""
    script = f"import sys, ngsgpu.{module}\nassert not {{'numpy', 'numba'}} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True)
