import subprocess
import sys
from dataclasses import fields, replace
from typing import Any

import pytest

import ngsgpu
from ngsgpu import cli
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    METACACHE_CALLS,
    DatabaseParameters,
    EvidenceParameters,
    OutputRules,
    QueryParameters,
    SketchParameters,
)
from ngsgpu.cli.adapter import commands_below
from ngsgpu.cli.classification.options import calling
from ngsgpu.declared.options import option
from ngsgpu.declared.parameters import Options, arguments, parameters_of
from ngsgpu.errors import (
    DeviceMemoryError,
    HostMemoryError,
    InputError,
    OutputError,
    UnsuitableError,
    UsageError,
)
from tests.support import copies

HEAVY = (
    "numpy",
    "numba",
    "llvmlite",
    "pysam",
    "pyfastx",
    "isal",
    "rich",
    "jinja2",
    "cupy",
)
COMMANDS = sorted(cli.COMMANDS)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [copies.ngsgpu(), *arguments], capture_output=True, text=True, check=False
    )


def test_version():
    done = subprocess.run(
        [sys.executable, "-m", "ngsgpu", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"ngsgpu {ngsgpu.__version__}\n",
        "",
    )


def test_summaries_are_the_first_lines_of_the_help():
    """Those of the list, which is shown without loading the commands."""
    for name, command in commands_below(cli.app):
        if name in cli.COMMANDS and command.help is not None:
            assert cli.COMMANDS[name].summary == command.help.splitlines()[0]


def test_help_lists_the_commands():
    done = run("--help")
    assert done.returncode == 0
    for command in COMMANDS:
        assert command in done.stdout
    assert "3 too little memory of the host or GPU" in " ".join(done.stdout.split())


def test_help_imports_nothing_heavy():
    commands = [[], *([command] for command in COMMANDS)]
    script = (
        "import sys; from ngsgpu.cli import main\n"
        f"for command in {commands!r}:\n"
        "    status = main([*command, '--help'])\n"
        f"    heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    if status or heavy: sys.exit(f'{command} {status} {heavy}')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage:") == len(commands)


def test_importing_the_package_imports_nothing_heavy():
    script = (
        "import sys, ngsgpu\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "sys.exit(' '.join(heavy) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [["--no-such-option"], ["no-such-command"], ["doctor", "--foo"], ["doctor", "x"]]
)
def test_wrong_use_is_status_2(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("ngsgpu: error: ") and done.stderr.count("\n") == 1


def test_no_command_shows_the_help():
    done = run()
    assert done.returncode == 2
    assert "Usage:" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (UsageError("no"), 2, "ngsgpu: error: no\n"),
        (OutputError("disk full"), 1, "ngsgpu: error: disk full\n"),
        (HostMemoryError("more"), 3, "ngsgpu: error: more\n"),
        (DeviceMemoryError("more"), 3, "ngsgpu: error: more\n"),
        (UnsuitableError("too long"), 2, "ngsgpu: error: too long\n"),
        (
            InputError("a.fq", "no '@'", "mend it", record=1000, line=3997),
            2,
            "ngsgpu: error: a.fq, record 1,000, line 3,997: no '@'; mend it\n",
        ),
        (
            InputError("-", "empty", "send reads"),
            2,
            "ngsgpu: error: standard input: empty; send reads\n",
        ),
        (KeyboardInterrupt(), 130, "ngsgpu: interrupted\n"),
        (BrokenPipeError(), 1, ""),
    ],
)
def test_errors_are_one_line_and_a_status(monkeypatch, capsys, error, status, message):
    def fail(_):
        raise error

    monkeypatch.setattr(cli, "_run", fail)
    monkeypatch.setattr(cli.os, "dup2", lambda *_: None)
    assert cli.main(["doctor"]) == status
    assert capsys.readouterr().err == message


def test_faults_of_the_program_keep_their_traceback(monkeypatch):
    def fail(_):
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "_run", fail)
    with pytest.raises(ZeroDivisionError):
        cli.main([])


def test_a_reader_that_goes_away_is_no_crash():
    """As in ``ngsgpu gpu list | head -1``."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ngsgpu", "gpu", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in errors


def test_help_names_what_options_take():
    """Files are FILE, not the name of a Python type; defaults are shown."""
    for command in (["correct"], ["kmers", "spectrum"], ["evaluate", "correction"], ["report"]):
        text = run(*command, "--help").stdout
        assert "FILE" in text
        assert not any(f"<{kind}" in text for kind in ("str", "int", "list"))
    text = " ".join(run("correct", "--help").stdout.split())
    for default in ("auto", "8", "0", "(free memory)", "(1 if available)"):
        assert f"[default: {default}]" in text


def test_quiet_is_quiet(tmp_path):
    reads = tmp_path / "reads.fq"
    reads.write_text("@a\nACGTACGTACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIIIIIIIIIII\n")
    for options, spoken in ((["-q"], False), ([], True)):
        done = run("correct", *options, "-i", str(reads), "-o", str(tmp_path / "out.fq"))
        assert (done.returncode, done.stdout, bool(done.stderr)) == (0, "", spoken)


def test_the_first_start_says_that_it_compiles(monkeypatch, caplog, tmp_path):
    from ngsgpu.correct import correct_files
    from ngsgpu.run import progress

    caplog.set_level("INFO", logger="ngsgpu")
    reads = tmp_path / "reads.fq"
    reads.write_text("@a\nACGTACGTACGTACGTACGTACGTACGT\n+\nIIIIIIIIIIIIIIIIIIIIIIIIIIII\n")
    for compiled in (False, True):
        monkeypatch.setattr(progress, "has_compiled", lambda compiled=compiled: compiled)
        caplog.clear()
        correct_files([reads], [tmp_path / "out.fq"])
        assert ("compiling kernels" in caplog.text) != compiled


def test_options_of_calls() -> None:
    """What is not given has the values of the way in which species are judged."""

    def called(*, metacache: bool = False, **given: Any) -> tuple[QueryParameters, OutputRules]:
        evidence = {
            "species_identity": given.pop("species_identity", EvidenceParameters().species_identity)
        }
        rules = OutputRules(evidence=EvidenceParameters(**evidence))
        return calling(Options(QueryParameters, given), rules, metacache=metacache)

    assert called() == (CALLS_BY_EVIDENCE, OutputRules(evidence=EvidenceParameters()))
    assert called(species_identity=0.0) == (QueryParameters(), OutputRules())
    changed = {"insert_size": 700, "candidates": 3}
    assert called(**changed)[0] == replace(CALLS_BY_EVIDENCE, **changed)
    with pytest.raises(UsageError, match="`min_hits` needs `metacache`"):
        called(min_hits=7)
    changed |= {"min_hits": 7, "hit_difference": 0.5, "lowest": "species"}
    parameters, rules = called(metacache=True, **changed)
    assert parameters == replace(METACACHE_CALLS, **changed)
    assert rules.evidence.species_identity == 0


def test_groups_of_options() -> None:
    """Options of a group are those of the command, with the group's defaults."""
    seen: list[Any] = []

    def command(
        *,
        first: int = option(1, "N", "First."),
        rules: OutputRules,
        index: Options[DatabaseParameters],
        last: int = option(2, "N", "Last."),
    ) -> None:
        seen.append((first, rules, index.make(), last))

    shown = parameters_of(command)
    grouped = ("columns", "abundance_ranks", "coverage_share", *fields(EvidenceParameters))
    names = [own if isinstance(own, str) else own.name for own in grouped]
    sketch = [field.name for field in fields(SketchParameters)]
    others = [field.name for field in fields(DatabaseParameters) if field.name != "sketch"]
    assert [own.name for own in shown] == ["first", *names, *sketch, *others, "last"]
    values = {own.name: own.default for own in shown} | {"first": 3, "max_p_value": 0.5}
    command(**arguments(command, values | {"sketch": 9, "max_taxa": 4}, given=("sketch",)))
    rules = OutputRules(evidence=EvidenceParameters(max_p_value=0.5))
    assert seen == [(3, rules, DatabaseParameters(SketchParameters(sketch=9)), 2)]
