"""Files of steps, and what is wrong with them, said before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.chains.steps import Step, presets, read_steps, steps_of, with_settings
from ngsgpu.errors import InputError, UsageError
from tests.support.commands import Commands
from tests.support.io.records import write
from tests.support.protocol import make_pairs, write_mates

TOML = """
steps = ["trim", "deplete", "final"]
[deplete]
index = "host.idx"
keep = true
[final]
command = "correct"
hashes = 8
"""
YAML = """
steps:
  - trim
  - deplete: {index: host.idx, keep: true}
  - final: {command: correct, hashes: 8}
"""
STEPS = [
    Step("trim", "trim"),
    Step("deplete", "deplete", {"index": "host.idx"}, True),
    Step("final", "correct", {"hashes": 8}),
]


@pytest.mark.parametrize(("name", "text"), [("a.toml", TOML), ("a", TOML), ("a.yaml", YAML)])
def test_a_file_of_steps(tmp_path: Path, name: str, text: str) -> None:
    assert read_steps(str(write(tmp_path / name, text.encode()))) == STEPS


def test_steps_by_name_with_settings() -> None:
    """Which replace what a file says; an option named several times has all values."""
    own = with_settings(STEPS, ["final.hashes=4", "deplete.keep=false", "trim.a-b=1", "trim.a-b=2"])
    assert own == [
        Step("trim", "trim", {"a_b": ["1", "2"]}),
        Step("deplete", "deplete", {"index": "host.idx"}, False),
        Step("final", "correct", {"hashes": "4"}),
    ]
    typed = with_settings(STEPS[:1], ["trim.arguments=-l 20", "trim.arguments='-3' -o 'a b.fq'"])
    assert typed == [Step("trim", "trim", arguments=("-l", "20", "-3", "-o", "a b.fq"))]
    assert with_settings(typed, ["trim.k=1"])[0].arguments == typed[0].arguments
    assert steps_of(["trim", "merge"]) == [Step("trim", "trim"), Step("merge", "merge")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps = []", "the list of steps is empty"),
        ("trim = 1", "lists no steps"),
        ("steps = 'trim'", "lists no steps"),
        ("steps = [1]", "1 is no step"),
        ("steps = ['trim', 'trim']", "two steps are called 'trim'"),
        ("steps = ['../trim']", "cannot be the name of a step"),
        ("steps = ['trim']\n[correct]\nk = 1", "there is no step 'correct'"),
        ("steps = ['trim']\n[trim]\nkeep = 3", "'keep' true or false"),
        ("steps = ['trim']\n[trim]\narguments = 3", "'arguments' is text"),
        ("steps = ['trim']\n[trim]\narguments = '\"'", "close all quotes"),
        ("steps = ['trim'\n", "is not what its name says"),
    ],
)
def test_a_file_that_describes_no_chain(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "a.toml", text.encode())
    with pytest.raises(InputError, match=said) as caught:
        read_steps(str(path))
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("text", ["steps: [trim", "\t- a", "!!python/object:os.system {}", "- a"])
def test_yaml_that_is_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        read_steps(str(write(tmp_path / "a.yaml", text.encode())))


@pytest.mark.parametrize("setting", ["trim", "trim=1", "=1", "correct.k=1"])
def test_settings_that_are_none(setting: str) -> None:
    with pytest.raises(UsageError, match=r"STEP\.OPTION=VALUE|there is no step"):
        with_settings(steps_of(["trim"]), [setting])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--steps", "trim,corect"], "'corect' cannot be a step"),
        (["--steps", "trim,report"], "'report' cannot be a step"),
        (["--steps", "merge,correct"], "step correct: there are single reads beside pairs"),
        (["--steps", "correct", "--set", "correct.covrage=3"], "did you mean 'coverage'?"),
        (["--steps", "correct", "--set", "correct.coverage=-3"], "step correct: --coverage must"),
        (["--steps", "correct", "--set", "correct.hashes=many"], "step correct: "),
        (["--steps", "correct", "--set", "correct.in1=a.fq"], "is the chain's to give"),
        (["--steps", "correct", "--set", "correct.arguments=-i a.fq"], "'in1' is the chain's"),
        (["--steps", "correct", "--set", "correct.arguments=--covrage 3"], "step correct: No such"),
        (["--steps", "correct", "--set", "correct.arguments=a.fq"], "'a.fq' in its arguments"),
        (["--steps", "trim", "--set", "trim.cut_tail=perhaps"], "is true or false"),
        (["--steps", "trim,deplete"], "step deplete: Missing option"),
        (["--steps", "kmers", "--set", "kmers.keep=true"], "it writes no reads"),
        (["--steps", "correct", "--set", "correct.stats=../1.fq"], "named as input and output"),
        (["--steps", "correct", "--set", "correct.stats=ngsgpu.log"], "output twice"),
        (["chain.toml", "--steps", "trim"], "give a file of steps, or their names"),
        ([], "give a file of steps, or their names"),
        (["nothing.toml"], "name a file of steps, or one of: isolate"),
    ],
)
def test_what_cannot_run_is_said_before_anything_runs(
    ngsgpu: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = write_mates(tmp_path / "reads", *make_pairs(count=20)[1:])
    first.rename(tmp_path / "1.fq")
    done = ngsgpu("run", *words, "-i", "1.fq", "-I", second, "-o", "out")
    assert done.status == 2
    assert said in done.error
    assert not (tmp_path / "out").exists()


def test_single_reads_are_not_merged(ngsgpu: Commands, tmp_path: Path) -> None:
    (reads,) = write_mates(tmp_path / "reads", make_pairs(count=20)[1])
    done = ngsgpu("run", "--steps", "trim,merge", "-i", reads, "-o", tmp_path / "out")
    assert done.status == 2
    assert done.error == "step merge: it needs pairs"


def test_chains_that_come_with_the_program_are_chains() -> None:
    assert presets() == ["isolate"]
    assert [step.name for step in read_steps("isolate")] == ["trim", "correct", "merge", "assemble"]
