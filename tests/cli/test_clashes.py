"""No command writes over what it reads, or two outputs to one place, however the file is named.

The options come from the commands' declarations; every output is tried with every input.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ngsgpu import cli
from ngsgpu.cli import app
from ngsgpu.cli.adapter import Command, commands_below
from ngsgpu.cli.files import checked_files
from ngsgpu.declared.options import option
from ngsgpu.declared.outputs import check_declared, only_declared
from ngsgpu.declared.parameters import parameters_of
from ngsgpu.declared.roles import Role
from ngsgpu.errors import UsageError
from ngsgpu.io.output.atomic import AtomicFile
from ngsgpu.io.output.folder import AtomicFolder
from tests.support import content

COMMANDS = {
    name: {parameter.name: parameter for parameter in command.parameters}
    for name, command in commands_below(app)
    if isinstance(command, Command)
}


def roles_of(command: str) -> dict[str, Role]:
    found = COMMANDS[command]
    return {name: own.role for name, own in found.items() if own.role not in (None, Role.NONE)}


FILES = [name for name in COMMANDS if roles_of(name)]


def test_text_that_may_name_a_file_says_so() -> None:
    """Otherwise a new option could overwrite an input."""

    def command(out: str | None = option(None, "FILE", "A new output.")) -> None:
        """Write something."""

    with pytest.raises(TypeError, match="out may name files"):
        parameters_of(command)


@pytest.mark.parametrize("undeclared", [AtomicFile, AtomicFolder])
def test_a_command_writes_only_what_it_declares(tmp_path: Path, undeclared: Any) -> None:
    given = [str(tmp_path / name) for name in ("a.fq", "{sample}.tsv", "folder")]
    with only_declared(given, [str(tmp_path / "prefix.")]):
        for name in ("a.fq", "x/../a.fq", "one.tsv", "folder", "folder/in", "prefix.hist"):
            check_declared(tmp_path / name)
        for name in ("a.fq.gz", "b.fq", "one.tsv2", "folder2", "prefix"):
            with pytest.raises(RuntimeError, match="no parameter of the command declares"):
                undeclared(tmp_path / name)
    check_declared(tmp_path / "b.fq")
    assert list(tmp_path.iterdir()) == []


INPUTS = (Role.READS, Role.READ, Role.DATABASE, Role.SHEET)
OUTPUTS = (Role.WRITTEN, Role.MULTIQC)


def as_it_is(path: Path) -> Path:
    return path


def roundabout(path: Path) -> Path:
    return path.parent / "." / ".." / path.parent.name / path.name


def symbolic(path: Path) -> Path:
    link = path.with_name("symbolic.json")
    link.symlink_to(path.name)
    return link


def through_folder(path: Path) -> Path:
    link = path.parent.with_name("linked")
    link.symlink_to(path.parent)
    return link / path.name


def hard(path: Path) -> Path:
    link = path.with_name("hard.json")
    link.hardlink_to(path)
    return link


def check_files(command: str, values: dict[str, Any]) -> None:
    with checked_files(command, list(COMMANDS[command].values()), values):
        pass


SPELLINGS = (as_it_is, roundabout, symbolic, through_folder, hard)


class World:
    """Arguments for a command, with a file for every option that has to be given."""

    def __init__(self, folder: Path, command: str) -> None:
        self.folder = folder / "folder"
        self.folder.mkdir(parents=True)
        self.command = command
        self.options = COMMANDS[command]
        self.values: dict[str, Path] = {}
        for name, own in self.options.items():
            if own.default is ...:
                self.values[name] = 1 if own.role is None else self.file(f"{name}.fq")

    def file(self, name: str) -> Path:
        path = self.folder / name
        path.write_text(f"content of {name}\n")
        return path

    def arguments(self) -> list[str]:
        found = self.command.split()
        for name, value in self.values.items():
            own = self.options[name]
            found += [str(value)] if own.option.is_argument else [own.flag, str(value)]
        return found

    def is_found(self, what: str) -> None:
        with pytest.raises(UsageError, match=f"is named as {what}"):
            check_files(self.command, self.values)

    def is_refused(self, capsys: pytest.CaptureFixture[str], what: str) -> None:
        before = content(self.folder.parent)
        assert cli.main(self.arguments()) == 2
        message = capsys.readouterr().err
        assert message.startswith("ngsgpu: error: ")
        assert f"is named as {what}" in message
        assert message.count("\n") == 1
        assert content(self.folder.parent) == before


def pairs_of(command: str, first: tuple[Role, ...], second: tuple[Role, ...]) -> list[Any]:
    roles = roles_of(command)
    return [
        (one, two)
        for one, role in roles.items()
        for two, other in roles.items()
        if role in first and other in second and one != two
    ]


def ending_of(command: str, output: str) -> str:
    """What the command adds to the name."""
    return ".ngsgpu_correction_mqc.json" if roles_of(command)[output] is Role.MULTIQC else ""


def clash(world: World, output: str, given: str, spelling: Callable[[Path], Path]) -> None:
    end = ending_of(world.command, output)
    world.values[given] = world.file(f"input{end}")
    if roles_of(world.command)[given] is Role.SHEET:
        world.values[given].write_text("sample\tfastq_1\none\tr.fq\n")
    world.values[output] = Path(str(spelling(world.values[given])).removesuffix(end))


@pytest.mark.parametrize("command", FILES)
def test_an_output_that_is_an_input(tmp_path: Path, command: str) -> None:
    pairs = pairs_of(command, OUTPUTS, INPUTS)
    for number, (output, given) in enumerate(pairs):
        world = World(tmp_path / str(number), command)
        clash(world, output, given, as_it_is)
        world.is_found("input and output")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("command", [name for name in FILES if pairs_of(name, OUTPUTS, INPUTS)])
def test_an_output_that_is_an_input_by_another_name(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    spelling: Callable[[Path], Path],
) -> None:
    output, _ = pairs_of(command, (Role.WRITTEN,), INPUTS)[0]
    for given in dict.fromkeys(given for _, given in pairs_of(command, OUTPUTS, INPUTS)):
        world = World(tmp_path / given, command)
        clash(world, output, given, spelling)
        world.is_refused(capsys, "input and output")


@pytest.mark.parametrize("command", FILES)
def test_an_output_that_is_in_a_folder_of_inputs(tmp_path: Path, command: str) -> None:
    for number, (output, given) in enumerate(pairs_of(command, OUTPUTS, (Role.READ,))):
        world = World(tmp_path / str(number), command)
        end = ending_of(command, output)
        inside = world.folder / "deep" / "deeper" / f"input{end}"
        inside.parent.mkdir(parents=True)
        inside.write_text("a part of the folder")
        world.values[given] = world.folder / "deep"
        world.values[output] = Path(str(inside).removesuffix(end))
        world.is_found("input and output")


@pytest.mark.parametrize("command", FILES)
def test_an_output_that_would_be_in_a_database(tmp_path: Path, command: str) -> None:
    for number, (output, given) in enumerate(pairs_of(command, OUTPUTS, (Role.DATABASE,))):
        world = World(tmp_path / str(number), command)
        world.values[given] = world.folder / "database"
        world.values[given].mkdir()
        world.values[output] = through_folder(world.values[given] / "new.tsv")
        with pytest.raises(UsageError, match="lies in the database"):
            check_files(command, world.values)


@pytest.mark.parametrize("command", FILES)
def test_two_outputs_that_are_one(tmp_path: Path, command: str) -> None:
    for number, (first, second) in enumerate(pairs_of(command, OUTPUTS[:1], OUTPUTS[:1])):
        world = World(tmp_path / str(number), command)
        world.values[first] = world.folder / "new"
        world.values[second] = roundabout(world.values[first])
        world.is_found("output twice")


@pytest.mark.parametrize("ending", ["extendedFrags.fastq", "hist", "notCombined_2.fastq"])
def test_names_that_flash_chooses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    world = World(tmp_path, "merge")
    world.values["in1"] = world.file(f"p.{ending}")
    world.values["in2"] = world.file("2.fq")
    world.values["flash_prefix"] = world.folder / "p"
    world.is_refused(capsys, "input and output")


@pytest.mark.parametrize("spelling", [spelling for spelling in SPELLINGS if spelling is not hard])
@pytest.mark.parametrize("command", FILES)
def test_an_input_that_an_option_names_twice(
    tmp_path: Path, command: str, spelling: Callable[[Path], Path]
) -> None:
    for name, role in roles_of(command).items():
        if role not in INPUTS or not COMMANDS[command][name].is_list:
            continue
        world = World(tmp_path / name, command)
        given = world.file("input.fq")
        if role is Role.DATABASE:
            given.unlink()
            given.mkdir()
        other = spelling(given)
        with pytest.raises(UsageError, match="is named as input twice"):
            check_files(command, {**world.values, name: [str(given), str(other)]})


@pytest.mark.parametrize("kept", ["union", "intersect", "subtract"])
def test_a_database_of_kmers_that_is_named_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: str
) -> None:
    (tmp_path / "r.fa").write_text(">r\nACGTTGCAACGTACGTAC\n")
    one, two = str(tmp_path / "a"), str(tmp_path / "." / ".." / tmp_path.name / "a")
    reads = ["-i", str(tmp_path / "r.fa"), "-k", "11", "-q"]
    assert cli.main(["kmers", "count", *reads, "-o", one]) == 0
    assert cli.main(["kmers", kept, one, two, "-o", str(tmp_path / "new")]) == 2
    assert "is named as input twice" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("arguments", [["h.fa", "h.fa"], ["h.fa", "-x", "h.fa"]])
def test_a_host_that_is_named_twice(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("h.fa").write_text(">h\nACGTTGCAACGTACGTACACGTTGCAACGTACGTAC\n")
    assert cli.main(["deplete-index", *arguments, "-o", "new.idx"]) == 2
    assert "h.fa: is named as input twice" in capsys.readouterr().err
    assert not Path("new.idx").exists()


@pytest.mark.parametrize("command", ["evaluate correction", "evaluate kmers", "evaluate mapped"])
def test_reads_before_and_after_may_be_the_same(tmp_path: Path, command: str) -> None:
    """What no correction would give."""
    world = World(tmp_path, command)
    world.values["in1"] = world.values["out1"] = world.file("same.fq")
    check_files(command, world.values)


SHEET = "sample\tfastq_1\na\t{0}/a.fq\nb\t{0}/b.fq\n"


@pytest.mark.parametrize(
    ("outputs", "what"),
    [
        ({"reads": "{sample}.fq"}, "input and output"),
        ({"reads": "{sample}.tsv", "biom": "b.fq"}, "input and output"),
        ({"biom": "sheet.tsv"}, "input and output"),
        ({"reads": "{sample}.tsv", "report": "{sample}.tsv"}, "output twice"),
        ({"reads": "{sample}.tsv", "biom": "b.tsv"}, "output twice"),
        ({"reads": "{sample}.tsv", "report": "{sample}{sample}.tsv"}, None),
    ],
)
def test_samples_of_a_sheet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outputs: dict[str, str], what: str | None
) -> None:
    world = World(tmp_path, "classify")
    for name in ("a.fq", "b.fq"):
        world.file(name)
    world.values["database"] = world.folder / "none"
    world.values["samples"] = world.folder / "sheet.tsv"
    world.values["samples"].write_text(SHEET.format(world.folder))
    world.values |= {name: world.folder / value for name, value in outputs.items()}
    if what is not None:
        world.is_refused(capsys, what)
        return
    assert cli.main(world.arguments()) == 2
    assert "is named as" not in capsys.readouterr().err


def test_the_name_of_a_single_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = World(tmp_path, "classify")
    world.values["in1"] = world.file("x.fq")
    world.values["maps"] = world.file("x.tsv")
    world.values["reads"] = world.folder / "{sample}.tsv"
    world.is_refused(capsys, "input and output")


@pytest.mark.parametrize("option", ["-o", "--write-study", "--methods", "--software"])
def test_files_of_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    """Those named in the manifest, and those found among the results."""
    results = tmp_path / "results"
    statistics = results / "s" / "correct" / "stats.json"
    statistics.parent.mkdir(parents=True)
    statistics.write_text("{}")
    study = tmp_path / "study.json"
    sample = {"name": "s", "files": {"correct": "results/s/correct/stats.json"}}
    study.write_text(
        json.dumps({"schema": "ngsgpu.study", "schema_version": 1, "samples": [sample]})
    )
    for given in ([str(study)], ["--results", str(results)]):
        options = ["-o", str(tmp_path / "report.html")] if option != "-o" else []
        assert cli.main(["report", *given, *options, option, str(statistics)]) == 2
        assert "is named as input and output" in capsys.readouterr().err
        assert statistics.read_text() == "{}"


def test_an_output_by_another_name(tmp_path: Path) -> None:
    """Commands may open what a link leads to."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with only_declared([str(tmp_path / "link/a.fq")], [str(tmp_path / "link/db")]):
        for name in ("link/a.fq", "real/a.fq", "link/db/part", "real/db/part"):
            check_declared(tmp_path / name)
        with pytest.raises(RuntimeError, match="no parameter of the command declares"):
            check_declared(tmp_path / "real/b.fq")


def test_outputs_that_a_command_names_itself(tmp_path: Path) -> None:
    """An index beside its reference, and partitions of a database that a link leads to."""
    for name, bases in (
        ("a", "ACGTTGCAAGCTTAGGCTAACCGTATGCC" * 9),
        ("b", "GATTACACCGGTTAACATCGA" * 9),
    ):
        (tmp_path / f"{name}.fa").write_text(f">{name}\n{bases}\n")
    first, second = str(tmp_path / "a.fa"), str(tmp_path / "b.fa")
    assert cli.main(["index", "build", first, "-q"]) == 0
    assert (tmp_path / "a.fa.bwt").exists()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    database = str(tmp_path / "link" / "db")
    assert cli.main(["db", "build", first, "-d", database, "-q"]) == 0
    assert cli.main(["db", "add", second, "-d", database, "-q"]) == 0


FASTA = ">s\n" + "ACGTTGCAAGCTTACGGATCCATTAGCCATGCAAGTCAGTCATTACGGACTTAGC" * 9 + "\n"


@pytest.mark.parametrize(
    "words",
    [
        "db thin -d DB --fraction 0.5 -o DB/x",
        "db thin -d DB --fraction 0.5 -o link/below/x",
        "db build r.fa -d DB/x",
        "db plan r.fa -d DB/x",
        "kmers count -i r.fa -o K/x",
        "kmers count -i r.fa -o o --stats K/x",
        "index build r.fa -o IDX/x",
        "index build r.fa -o IDX/x --format fm",
        "index query IDX -i r.fa -o IDX/x",
        "deplete-index r.fa -o K/x",
        "trim -i r.fq -o DB/targets-0001/x",
        "merge -i r.fq --interleaved-in --flash-prefix DB/x",
        "workflow init DB/x",
    ],
)
def test_no_output_lies_in_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    """Of whatever kind, and whether the command reads it or not."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.fa").write_text(FASTA)
    (tmp_path / "r.fq").write_text("@a\nACGT\n+\nIIII\n")
    for made in (
        "db build r.fa -d DB", "kmers count -i r.fa -o K", "index build r.fa -o IDX --format fm",
    ):  # fmt: skip
        assert cli.main([*made.split(), "-q", "-t", "1"]) == 0
    (tmp_path / "link").symlink_to("DB")
    before = content(tmp_path)
    capsys.readouterr()
    assert cli.main(words.split()) == 2
    assert "lies in the database" in capsys.readouterr().err
    assert content(tmp_path) == before
