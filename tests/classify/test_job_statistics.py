"""Statistics of jobs that build or search one partition."""

from __future__ import annotations

import json

import pytest

from ngsgpu.cli import main
from ngsgpu.errors import OutputError
from ngsgpu.io.output.atomic import AtomicFile
from tests.support import content
from tests.support.classify.world import make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = make_world(tmp_path_factory.mktemp("job"))
    world.fastq("reads.fq", [world.sequences[0][:150]])
    return world


def statistics(path):
    return json.loads(path.read_text())


def test_partitions_and_candidates(world):
    folder = world.folder
    database = str(folder / "db")
    cpu = ["--threads", "1", "--backend", "cpu", "-q"]
    assert (
        main(["db", "plan", *map(str, world.references), "-d", database, "--partitions", "2", "-q"])
        == 0
    )
    built = []
    for number in range(2):
        stats = folder / f"build{number}.json"
        build = ["db", "build", "-d", database, "--only-partition", str(number), *cpu]
        assert main([*build, "--stats", str(stats)]) == 0
        built.append(statistics(stats))
    assert [one["built"]["partitions"] for one in built] == [[0], [1]]
    assert sum(one["built"]["targets"] for one in built) == len(world.sequences)
    assert sum(one["built"]["bases"] for one in built) == sum(map(len, world.sequences))
    classify = ["classify", "-d", database, "-i", str(folder / "reads.fq"), *cpu]
    found = ["--only-partition", "0", "--candidates", str(folder / "{sample}.cand")]
    assert main([*classify, *found, "--stats", str(folder / "{sample}.json")]) == 0
    searched = statistics(folder / "reads.json")
    assert searched["queries"] == {"total": 1, "paired": False, "bases": 150}
    with_stats = (folder / "reads.cand").read_bytes()
    assert main([*classify, *found]) == 0
    assert (folder / "reads.cand").read_bytes() == with_stats
    for one in [*built, searched]:
        job = one["job"]
        assert (one["backend"], job["gpus"], job["lease"], job["waited_s"]) == ("cpu", [], None, 0)
        assert job["started"] <= job["ended"]
        assert job["host"]
        # Where the work was done, and why there.
        assert one["device"] == "1 CPU threads (as asked for)"


def test_whole_database(world):
    stats = world.folder / "all.json"
    build = ["db", "build", str(world.references[0]), "-d", str(world.folder / "whole")]
    assert main([*build, "--backend", "cpu", "-q", "--stats", str(stats)]) == 0
    assert statistics(stats)["built"]["partitions"] == [0]
    assert statistics(stats)["schema"] == "ngsgpu.db_build"


def test_statistics_that_cannot_be_written_are_reported_before_the_work(world, capsys):
    build = ["db", "build", str(world.references[0]), "-d", str(world.folder / "none")]
    assert main([*build, "--backend", "cpu", "-q", "--stats", "/nowhere/stats.json"]) == 1
    assert "/nowhere" in capsys.readouterr().err
    assert not (world.folder / "none").exists()


@pytest.mark.parametrize("what", ["new", "older", "partition"])
def test_statistics_and_what_they_are_about_appear_together(world, tmp_path, monkeypatch, what):
    database, stats = tmp_path / "db", tmp_path / "build.json"
    cpu = ["--threads", "1", "--backend", "cpu", "-q"]
    build = ["db", "build", "-d", str(database), *cpu]
    references = [str(path) for path in world.references]
    if what == "older":
        assert main([*build, references[0]]) == 0
    if what == "partition":
        assert main(["db", "plan", *references, "-d", str(database), "-q"]) == 0
        build += ["--only-partition", "0"]
    else:
        build += references
    stats.write_text("older")
    before = content(tmp_path)
    rename = AtomicFile.rename

    def fail(file):
        if str(file.path) == str(stats):
            raise OutputError(f"{file.path}: cannot be renamed")
        rename(file)

    monkeypatch.setattr(AtomicFile, "rename", fail)
    assert main([*build, "--stats", str(stats)]) == 1
    assert content(tmp_path) == before
    monkeypatch.undo()
    assert main([*build, "--stats", str(stats)]) == 0
    assert statistics(stats)["schema"] == "ngsgpu.db_build"
    assert main(["db", "verify", "-d", str(database)]) == 0
