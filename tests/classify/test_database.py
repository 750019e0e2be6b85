"""Databases on disk: what is refused, and that no change goes unnoticed."""

from __future__ import annotations

import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.database import open_database
from ngsgpu.classify.database.info import verify_database
from ngsgpu.classify.database.plan import plan_database
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.params import METACACHE_CALLS, DatabaseParameters, PartitionRequest
from ngsgpu.cli import main
from ngsgpu.errors import OUT_OF_MEMORY, InputError, NgsgpuError, UsageError
from ngsgpu.io.output.manifest import parse_json, sealed
from tests.support import DATA
from tests.support.classify.runs import expected_rows, run, shown, single
from tests.support.classify.world import SKETCH, WINDOWS, World, more_references

PARAMETERS = DatabaseParameters(SKETCH)


def test_verify_finds_any_flipped_byte(copy: Path):
    files, damaged = verify_database(copy)
    assert damaged == []
    paths = [path for path in sorted(copy.rglob("*")) if path.is_file()]
    assert files == len(paths)
    for path in paths:
        whole = path.read_bytes()
        for at in sorted({0, 9, len(whole) // 3, len(whole) // 2, len(whole) - 1}):
            if at < len(whole):
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
                try:
                    found = verify_database(copy)[1]
                except InputError as error:
                    found = [str(error)]
                assert len(found) == 1, (path, at)
                assert path.name in found[0] or path.parent.name in found[0]
        path.write_bytes(whole)
    assert verify_database(copy)[1] == []


def test_databases_that_were_cut_short_are_refused(copy: Path):
    for path in sorted(copy.rglob("*.npy")):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(InputError, match=r"was cut short; build the database again"):
            open_database(copy).load_partition(0)
        path.unlink()
        with pytest.raises(InputError, match="part of the database is missing"):
            open_database(copy).load_partition(0)
        path.write_bytes(whole)


def edited(copy: Path, name: str, value: object) -> None:
    path = copy / "manifest.json"
    values = json.loads(path.read_text())
    values[name] = value
    path.write_text(json.dumps(values, indent=1) + "\n")


def test_other_versions_and_formats_are_refused(copy: Path, tmp_path: Path):
    with pytest.raises(InputError, match="there is no ngsgpu classification database here"):
        open_database(tmp_path)
    edited(copy, "version", 99)
    with pytest.raises(InputError, match="is of version 99 and this program reads version 2"):
        open_database(copy)
    edited(copy, "version", 1)
    edited(copy, "generation", 7)
    with pytest.raises(InputError, match="the manifest was changed or damaged"):
        open_database(copy)
    (copy / "manifest.json").write_text("{}")
    with pytest.raises(InputError, match="is not the manifest of"):
        open_database(copy)
    (copy / "manifest.json").write_text('{"format": ')
    with pytest.raises(InputError, match="the manifest is damaged"):
        open_database(copy)


def test_two_taxonomies_are_refused(world: World, copy: Path, tmp_path: Path):
    other = tmp_path / "tax"
    shutil.copytree(world.taxonomy, other)
    with (other / "nodes.dmp").open("a") as nodes, (other / "names.dmp").open("a") as names:
        nodes.write("99\t|\t20\t|\tspecies\t|\n")
        names.write("99\t|\tnew\t|\t\t|\tscientific name\t|\n")
    more = tmp_path / "more.fa"
    more.write_text(">more\n" + "ACGTTGCAAC" * 20 + "\n")
    with pytest.raises(InputError, match="is not the taxonomy the database was built with"):
        add_references(copy, [more], taxonomy=other)
    build_database(
        world.references, tmp_path / "b", parameters=PARAMETERS, taxonomy=other, maps=[world.map]
    )
    mixed = next(copy.glob("taxonomy-*"))
    shutil.rmtree(mixed)
    shutil.copytree(next((tmp_path / "b").glob("taxonomy-*")), mixed)
    with pytest.raises(InputError):
        open_database(copy)


def test_partitions_of_another_database_are_refused(world: World, copy: Path, tmp_path: Path):
    build_database(world.references[:1], tmp_path / "b", parameters=PARAMETERS)
    shutil.rmtree(copy / "partition-0000-0001")
    with pytest.raises(InputError, match="partition 0 is not built yet"):
        open_database(copy).load_partition(0)
    assert "is not built yet" in verify_database(copy)[1][0]
    shutil.copytree(tmp_path / "b" / "partition-0000-0001", copy / "partition-0000-0001")
    with pytest.raises(InputError, match="belongs to another database"):
        open_database(copy).load_partition(0)


BAD = [
    ("", "the file contains no sequence"),
    (">a\n>b\nACGT\n", "record 1: the sequence 'a' has no bases"),
    (">a\nACGTACGTAC\n>b\n", "record 2: the sequence 'b' has no bases"),
    (">a x\nACGT\n>a y\nACGT\n", "record 2: the name 'a' is already used"),
    (">a\nMKVLAAGIVGLLLAQWERTY\n", "is not a nucleotide code .*; this may be protein"),
    ("ACGT\n", "neither"),
    (">\nACGT\n", "record 1"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_bad_references_are_refused(tmp_path: Path, text: str, message: str):
    path = tmp_path / "bad.fa"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        build_database([path], tmp_path / "db", parameters=PARAMETERS)
    assert not (tmp_path / "db").exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.fa"]


def test_truncated_references_are_refused(tmp_path: Path):
    whole = (DATA / "genomes/escherichia_coli__IAI39.fna.gz").read_bytes()
    (tmp_path / "cut.fa.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        build_database([tmp_path / "cut.fa.gz"], tmp_path / "db")


def test_a_name_in_two_files_is_refused(world: World, tmp_path: Path):
    again = tmp_path / "again.fa"
    again.write_text(f">{world.names[3]}\nACGTACGT\n")
    with pytest.raises(InputError, match=r"is already used, in .*ref1\.fna"):
        build_database([*world.references, again], tmp_path / "db", parameters=PARAMETERS)


def test_directories_of_references(world: World, tmp_path: Path):
    for number, path in enumerate(world.references):
        folder = tmp_path / f"refs/{2 - number}"
        folder.mkdir(parents=True)
        shutil.copy(path, folder)
    (tmp_path / "refs/readme.txt").write_text("not a genome")
    planned = plan_database([tmp_path / "refs"], tmp_path / "db", parameters=PARAMETERS)
    files = [Path(path).name for path in planned.targets.files]
    assert files == ["ref2.fna", "ref1.fna", "ref0.fna"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="contains no file ending in"):
        plan_database([tmp_path / "empty"], tmp_path / "db")
    with pytest.raises(UsageError, match="named twice"):
        plan_database([world.references[0]] * 2, tmp_path / "db")


def test_changed_references_are_noticed(world: World, tmp_path: Path):
    own = tmp_path / "ref.fna"
    shutil.copy(world.references[0], own)
    planned = plan_database([own], tmp_path / "db", parameters=PARAMETERS)
    write_manifest(planned)
    own.write_text(own.read_text() + "ACGT\n")
    status = main(["db", "build", "-d", str(tmp_path / "db"), "--only-partition", "0", "-q"])
    assert status == 2
    assert not (tmp_path / "db/partition-0000-0001").exists()


def test_partition_memory(world: World, tmp_path: Path):
    whole = plan_database(world.references, tmp_path / "a", parameters=PARAMETERS)
    assert len(whole.partitions) == 1
    budget = (8 << 16) + 10 * SKETCH.most_features(40)
    planned = plan_database(
        world.references,
        tmp_path / "b",
        parameters=PARAMETERS,
        request=PartitionRequest(bytes=budget),
    )
    assert len(planned.partitions) > 2
    assert max(partition.windows for partition in planned.partitions) <= 40
    with pytest.raises(UsageError, match="the longest reference sequence alone takes"):
        plan_database(
            world.references, tmp_path / "c", parameters=PARAMETERS,
            request=PartitionRequest(bytes=1000),
        )  # fmt: skip
    with pytest.raises(UsageError, match="cannot fill 18 partitions"):
        plan_database(
            world.references, tmp_path / "d", parameters=PARAMETERS,
            request=PartitionRequest(number=18),
        )  # fmt: skip


def test_commands(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    where = str(tmp_path / "db")
    sketch = ["--kmer", "10", "--sketch", "8", "--window", "60"]
    tax = ["--taxonomy", str(world.taxonomy), "--map", str(world.map)]
    refs = list(map(str, world.references))
    assert main(["db", "plan", *refs, "-d", where, *sketch, *tax, "--partitions", "2", "-q"]) == 0
    assert "partition\ttargets" in capsys.readouterr().out
    for number in "01":
        assert main(["db", "build", "-d", where, "--only-partition", number, "-q", "-t1"]) == 0
    assert main(["db", "verify", "-d", where]) == 0
    assert main(["db", "info", "-d", where]) == 0
    assert "without taxon     1\n" in capsys.readouterr().out
    assert main(["db", "info", "-d", where, "--unmapped"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("NC_000007.1\t")
    reads = str(world.fasta("cli.fa", world.reads))
    whole, merged = tmp_path / "whole.tsv", tmp_path / "merged.tsv"
    assert main(["classify", "-d", where, "-i", reads, "-o", str(whole), "-q"]) == 0
    files = []
    for number in "01":
        files.append(str(tmp_path / f"{number}.cand"))
        part = ["--only-partition", number, "--candidates", files[-1]]
        assert main(["classify", "-d", where, "-i", reads, *part, "-q"]) == 0
    assert main(["classify-merge", *files, "-d", where, "-o", str(merged), "-q"]) == 0
    assert merged.read_bytes() == whole.read_bytes()
    direct = ["classify", "--references", refs[0], "-i", reads, "-o", str(merged), "-q"]
    assert main(direct) == 0
    flipped = next((tmp_path / "db").rglob("entries.npy"))
    data = flipped.read_bytes()
    flipped.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    capsys.readouterr()
    assert main(["db", "verify", "-d", where]) == 2
    assert "the content has changed" in capsys.readouterr().out


def test_memory_that_does_not_suffice_is_refused(
    world: World, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    own = tmp_path / "own.fa"
    own.write_text(">own\n" + "ACGTTGCAAC" * 20 + "\n")
    refs, where = [str(path) for path in world.references], str(tmp_path / "db")
    assert main(["db", "plan", *refs, "-d", str(tmp_path / "planned"), "-q"]) == 0
    for size in ("1K", "190M"):
        for command in (
            ["build", *refs, "-d", where],
            ["build", "-d", str(tmp_path / "planned"), "--only-partition", "0"],
            ["add", str(own), "-d", str(copy)],
        ):
            assert main(["db", *command, "--memory", size, "-t1", "-q"]) == OUT_OF_MEMORY
            error = capsys.readouterr().err
            found = re.search(r"takes .* of memory and .* may be used; .*--memory (\d+)M", error)
            assert found is not None, error
            assert 200 < int(found[1]) < 230
            assert error.count("\n") == 1
    assert not (tmp_path / "db").exists()
    assert main(["db", "build", *refs, "-d", where, "--memory", "230M", "-t1", "-q"]) == 0


def test_partitions_that_take_too_much_memory_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    source = random.Random(3)
    for number in range(4):
        text = "".join(source.choices("ACGT", k=1_000_000))
        (tmp_path / f"{number}.fa").write_text(f">{number}\n{text}\n")
    refs = [str(tmp_path / f"{number}.fa") for number in range(4)]
    command = ["db", "build", *refs, "-d", str(tmp_path / "db"), "-t1", "-q", "--memory", "230M",
               "--backend", "cpu"]  # fmt: skip
    assert main(command) == OUT_OF_MEMORY
    error = capsys.readouterr().err
    assert "building partition 0 takes" in error
    assert "try about 3 partitions, or --memory" in error
    assert not (tmp_path / "db").exists()
    assert main([*command, "--partitions", "4"]) == 0
    assert open_database(tmp_path / "db").built() == [0, 1, 2, 3]


def test_a_taxonomy_that_fits_nothing_is_refused(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    refs = [str(path) for path in world.references]
    tax = ["--taxonomy", str(world.taxonomy)]
    other, foreign = tmp_path / "other.tsv", tmp_path / "foreign.tsv"
    other.write_text("NC_999999.1\t21\n")
    foreign.write_text(f"{world.names[0]}\t777\n")
    reads = str(world.fasta("none.fa", world.reads[:3]))
    for maps, why in (
        ([], "no header has a taxid, and no --map was given"),
        (["--map", str(other)], "looked up as NC_000000.1, NC_000000, "),
        (["--map", str(other)], "the taxonomy has 10 taxa, 2 (Bacteria), "),
        (["--map", str(foreign)], "foreign.tsv and the headers give them no taxid"),
    ):
        for command in (
            ["db", "build", *refs, "-d", str(tmp_path / "db"), "-t1"],
            ["db", "plan", *refs, "-d", str(tmp_path / "db"), "-t1"],
            ["classify", *[f"--references={ref}" for ref in refs], "-i", reads, "-o",
             str(tmp_path / "o"), "--backend", "cpu"],
        ):  # fmt: skip
            assert main([*command, *tax, *maps, "-q"]) == 2
            error = capsys.readouterr().err
            assert "none of 17 reference sequences (first 'NC_000000.1') has a taxon" in error
            assert why in error
            assert not (tmp_path / "db").exists()
            assert not (tmp_path / "o").exists()


def test_sequences_without_a_taxon_are_counted(
    world: World, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    said = "1 of 17 reference sequences have no taxon"
    tax = ["--taxonomy", str(world.taxonomy), "--map", str(world.map)]
    refs = [str(path) for path in world.references]
    where = str(tmp_path / "db")
    assert main(["db", "plan", *refs, "-d", where, *tax, "-t1"]) == 0
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert main(["db", "build", *refs, "-d", where, *tax, "-t1"]) == 0
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert json.loads((tmp_path / "db/manifest.json").read_text())["targets"]["without_taxon"] == 1
    reads, stats = str(world.fasta("few.fa", world.reads[:3])), tmp_path / "stats.json"
    direct = ["classify", *[f"--references={ref}" for ref in refs], *tax, "-i", reads]
    assert main([*direct, "--stats", str(stats), "--backend", "cpu"]) == 0
    assert said in capsys.readouterr().err.splitlines()[-1]
    assert json.loads(stats.read_text())["database"]["without_taxon"] == 1
    more = tmp_path / "more.fa"
    more.write_text(">more\n" + "ACGTTGCAAC" * 20 + "\n")
    foreign = ["db", "add", str(more), "-d", str(copy), "-t1"]
    assert main([*foreign, "--map", str(world.map)]) == 2
    assert "none of 1 reference sequences (first 'more') has a taxon" in capsys.readouterr().err
    assert len(open_database(copy).targets) == 17
    assert main(foreign) == 0
    assert "2 of 18 reference sequences have no taxon" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["classify", "-i", "x.fq", "-o", "y"], "give a database with -d"),
        (["classify", "-d", "db", "-o", "y"], "give reads with -i"),
        (["classify", "-d", "db", "-i", "x.fq"], "no output given"),
        (["classify", "-d", "no", "-i", "x", "-o", "y"], "there is no ngsgpu classification"),
        (["classify", "-d", "db", "-i", "x", "--only-partition", "0"], "go together"),
        (["classify", "-d", "d", "-i", "x", "-o", "y", "--confidence", "2"], "--confidence"),
        (["db", "build", "x.fa"], "give the database with -d"),
        (["db", "build", "-d", "d", "x.fa", "--only-partition", "1"], "give only -d"),
        (["db", "build", "-d", "d", "--only-partition", "1", "--kmer", "12"], "give only -d"),
        (["db", "build", "-d", "d", "x.fa", "--max-locations", "many"], "must be all or a number"),
        (["db", "build", "-d", "d", "nothing.fa"], "no such file"),
        (["db", "plan", "-d", "d", "x.fa", "--kmer", "17"], "--kmer must be from 4 to 16"),
    ],
)
def test_wrong_use(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") <= 3


def test_nothing_is_left_behind_when_writing_fails(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    build_database(world.references[:1], tmp_path / "db", parameters=PARAMETERS)
    monkeypatch.setattr("ngsgpu.io.output.store.os.pwrite", full)
    with pytest.raises(NgsgpuError, match="the disk is full"):
        build_database(world.references, tmp_path / "db", parameters=PARAMETERS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["db"]
    assert len(open_database(tmp_path / "db").targets) == 3


def test_databases_of_older_versions_are_read_and_added_to(world: World, tmp_path: Path):
    """They have features of windows; what they have stays."""
    path, parameters = tmp_path / "db", DatabaseParameters(WINDOWS)
    build_database(
        world.references, path, parameters=parameters, taxonomy=world.taxonomy, maps=[world.map]
    )
    for manifest in path.rglob("manifest.json"):
        manifest.write_text(sealed({**parse_json(manifest.read_text()), "version": 1}))
    old = open_database(path)
    assert old.parameters == parameters
    assert old.parameters.sketch.features == "windows"
    sample = single(world.fasta("s.fa", world.reads))
    windows = replace(world, oracle=replace(world.oracle, sketch=WINDOWS))
    expected = expected_rows(windows, [[read] for read in world.reads], METACACHE_CALLS)
    assert shown(run(old, sample, tmp_path / "o", METACACHE_CALLS)["reads.tsv"]) == expected
    add_references(path, more_references(tmp_path, 1))
    assert open_database(path).parameters == parameters
    assert verify_database(path)[1] == []
