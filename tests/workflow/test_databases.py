"""Databases and batches: what is classified again after a change, and what is not."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from ngsgpu.classify.database.database import open_database
from ngsgpu.cli import main
from tests.support.workflow import ROOT, Snakemake, jobs

DATA = ROOT / ".test" / "data"
MORE = ("--configfile", "config/config.yaml", "more.yaml")
CLASSIFYING = ("list_samples", "classify_partition", "merge_candidates")


def write_sheets(study: Path, samples: str, databases: str) -> None:
    (study / "samples.csv").write_text("sample,fastq_1,fastq_2\n" + samples)
    (study / "databases.csv").write_text(databases)


def make_genomes(folder: Path) -> None:
    """Four pieces of the test study's reference, 2 kb each."""
    with gzip.open(DATA / "chr20_8kb.fasta.gz", "rt") as file:
        bases = "".join(file.read().splitlines()[1:])
    folder.mkdir()
    for number in range(4):
        piece = bases[2000 * number : 2000 * (number + 1)]
        (folder / f"g{number}.fna").write_text(f">g{number}\n{piece}\n")


@pytest.fixture
def classified(study: Path) -> Path:
    """Two samples and a database of two partitions, and nothing else than classification."""
    make_genomes(study / "genomes")
    for number in (1, 2):
        for mate in (1, 2):
            shutil.copy(
                DATA / f"na12878_lane{number}_R{mate}.fastq.gz", study / f"{number}_{mate}.gz"
            )
    write_sheets(
        study,
        "a,1_1.gz,1_2.gz\nb,2_1.gz\n",
        "database,references,partitions\nown,genomes,2\n",
    )
    (study / "config" / "config.yaml").write_text(
        "samples: samples.csv\ndatabases: databases.csv\nclassify: {threads: 1}\n"
        "correct: {enabled: false}\nassemble: {enabled: false}\n"
    )
    return study


def calls(name: str, database: str = "own") -> str:
    return f"results/{name}/classify/{database}/{name}.reads.tsv.gz"


def run(snakemake: Snakemake, *arguments: str) -> str:
    result = snakemake("--cores", "2", *arguments)
    assert result.returncode == 0, result.stdout
    return result.stdout


def left(snakemake: Snakemake, *targets: str) -> list[int]:
    """Jobs that are left to do: sheets of batches, partitions searched, samples called."""
    counted = jobs(run(snakemake, "--dry-run", "--quiet", "rules", "--", *targets))
    assert "correct_pairs" not in counted
    return [counted.get(rule, 0) for rule in CLASSIFYING]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_is_classified_again(snakemake: Snakemake, classified: Path) -> None:
    both = (calls("a"), calls("b"))
    assert left(snakemake, *both) == [1, 2, 2]
    # Interrupted after one partition: what is there is kept.
    run(snakemake, "--", "results/databases/own/candidates/0001/0000")
    assert left(snakemake, *both) == [0, 1, 2]
    run(snakemake, "--", *both)
    before = {path: (classified / path).stat().st_mtime_ns for path in both}
    assert left(snakemake, *both) == [0, 0, 0]

    # A sample more, even before the others; it alone is classified.
    write_sheets(
        classified,
        "c,1_2.gz\na,1_1.gz,1_2.gz\nb,2_1.gz\n",
        "database,references,partitions\nown,genomes,2\n",
    )
    every = (*both, calls("c"))
    assert left(snakemake, *every) == [1, 2, 1]
    run(snakemake, "--", *every)
    assert {path: (classified / path).stat().st_mtime_ns for path in both} == before

    # Other reads of a sample, and calls that were deleted: its fellows stay.
    (classified / "2_1.gz").touch()
    assert left(snakemake, *every) == [1, 2, 1]
    # Not only newer but others, still to be trimmed.
    before_change = (classified / "2_1.gz").read_bytes()
    shutil.copy(classified / "1_2.gz", classified / "2_1.gz")
    assert left(snakemake, *every) == [1, 2, 1]
    (classified / "2_1.gz").write_bytes(before_change)
    os.utime(classified / "2_1.gz", (0, 0))
    assert left(snakemake, *every) == [0, 0, 0]
    (classified / calls("a")).unlink()
    assert left(snakemake, *every) == [1, 2, 1]
    assert left(snakemake, calls("b"), calls("c")) == [0, 0, 0]

    # A sample less: nothing to do for the others.
    write_sheets(
        classified,
        "c,1_2.gz\nb,2_1.gz\n",
        "database,references,partitions\nown,genomes,2\n",
    )
    assert left(snakemake, calls("b"), calls("c")) == [0, 0, 0]

    # Another database: all together, once for each partition.
    (classified / "genomes" / "g0.fna").touch()
    run(snakemake, "--", "results/databases/own/partitions/0000.json")
    assert left(snakemake, calls("b"), calls("c"))[2] == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_new_genome_is_added(snakemake: Snakemake, classified: Path) -> None:
    new = classified / "genomes" / "g3.fna"
    new.rename(classified / "later.fna")
    targets = [f"results/databases/own/partitions/000{number}.json" for number in (0, 1)]
    run(snakemake, "--", *targets)
    database = classified / "results" / "databases" / "own" / "db"
    log = classified / "logs" / "plan_database" / "own.log"
    first = (database / "partition-0000-0001" / "entries.npy").stat()

    (classified / "later.fna").rename(new)
    run(snakemake, "--", *targets)
    assert "adding 1 of 4 references" in log.read_text()
    same = (database / "partition-0000-0001" / "entries.npy").stat()
    assert (same.st_ino, same.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert [path.name for path in sorted(database.glob("partition-*"))] == [
        "partition-0000-0001",
        "partition-0001-0002",
    ]
    assert "Nothing to be done" in run(snakemake, "--dry-run", "--", *targets)

    new.unlink()
    run(snakemake, "--", *targets)
    assert "g3.fna is no longer among its references" in log.read_text()


def tree(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in [folder, *folder.rglob("*")])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_partitions_and_databases_elsewhere_give_the_same_calls(
    snakemake: Snakemake, classified: Path
) -> None:
    shared = classified / "shared disk" / "db"
    genomes = str(classified / "genomes")
    assert main(["db", "build", genomes, "-d", str(shared), "--partitions", "3"]) == 0
    for path in [shared, *shared.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = tree(shared)
    write_sheets(
        classified,
        "a,1_1.gz,1_2.gz\n",
        "database,references,path,partitions\n"
        "one,genomes,,1\nthree,genomes,,3\nelsewhere,,shared disk/db,\n",
    )
    names = ("one", "three", "elsewhere")
    (classified / "more.yaml").write_text("database: {verify: true}\n")
    run(snakemake, *MORE, "--", *(calls("a", own) for own in names))
    first, *others = [(classified / calls("a", own)).read_bytes() for own in names]
    assert others == [first, first]
    assert tree(shared) == before
    for path in [shared, *shared.rglob("*")]:
        path.chmod(0o755)


@pytest.mark.slow
def test_a_database_of_a_size(snakemake: Snakemake, classified: Path) -> None:
    write_sheets(
        classified,
        "b,2_1.gz\n",
        "database,references,partitions,max_size\nown,genomes,1,530K\n",
    )
    run(snakemake, "--", calls("b"))
    found = classified / "results/databases/own/db"
    assert open_database(found).parameters.sketch.is_thin
    assert sum(file.stat().st_size for file in found.rglob("*") if file.is_file()) <= 530 << 10


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("x,,", "line 2: give the references of a database to build, or the path of one"),
        ("x,genomes,there", "line 2: give the references of a database to build, or the path"),
        ("x,,nowhere", "line 2, column path: there is no database in 'nowhere'"),
        ("x,,genomes", "line 2, column path: there is no database in 'genomes'"),
        ("x,,other", "'other' is no database of ngsgpu"),
        ("x,,other,64G", "line 2, column max_size: the database in 'other' has its own"),
        ("x,genomes,,64 GB", "line 2, column max_size: '64 GB' is not right"),
    ],
)
def test_bad_databases_elsewhere(
    snakemake: Snakemake, classified: Path, row: str, said: str
) -> None:
    (classified / "other").mkdir()
    (classified / "other" / "manifest.json").write_text("{}")
    write_sheets(classified, "a,1_1.gz\n", f"database,references,path,max_size\n{row}\n")
    result = snakemake("--dry-run")
    assert result.returncode == 1 and said in result.stdout


def test_partition_that_was_not_built_elsewhere(snakemake: Snakemake, classified: Path) -> None:
    folder = classified / "half"
    assert main(["db", "plan", str(classified / "genomes"), "-d", str(folder)]) == 0
    write_sheets(classified, "a,1_1.gz\n", "database,path\nhalf,half\n")
    result = snakemake("--cores", "2", "--", "results/databases/half/plan.json")
    assert result.returncode == 1 and "a partition of the database is not built" in result.stdout
    assert not (classified / "results/databases/half/plan.json").exists()


def test_large_inputs_ask_for_more(snakemake: Snakemake, classified: Path) -> None:
    with (classified / "large.fastq").open("wb") as file:
        file.truncate(10_000_000_000)
    write_sheets(classified, "a,large.fastq\n", "database,references\nown,genomes\n")
    more = classified / "more.yaml"
    # How large trimmed reads are is known when they are there.
    untrimmed = "trim: {enabled: false}\n"
    more.write_text(f"correct: {{enabled: true}}\n{untrimmed}")
    said = run(snakemake, "--dry-run", *MORE, "--", "results/a/correct/reads.fastq.gz")
    assert "mem_mb=40000" in said and "runtime=240" in said
    own = "correct: {enabled: true, mem_mb: 50000, runtime: 7, threads: 2}\n"
    more.write_text(own + untrimmed)
    said = run(snakemake, "--dry-run", *MORE, "--", "results/a/correct/reads.fastq.gz")
    assert "mem_mb=50000" in said and "runtime=100" in said


def test_reads_of_a_batch_may_be_still_to_come(snakemake: Snakemake, classified: Path) -> None:
    """Corrected reads are no input of the search: new or deleted ones are not there."""
    more = classified / "more.yaml"
    more.write_text(
        "classify: {threads: 1, reads: corrected}\ncorrect: {enabled: true, mem_mb: 1000}\n"
    )
    # Interrupted as soon as the database was planned.
    run(snakemake, *MORE, "--", "results/databases/own/plan.json")
    said = run(snakemake, *MORE, "--dry-run", "--", calls("b"))
    assert jobs(said)["classify_partition"] == 2
    run(snakemake, *MORE, "--", calls("b"))

    said = run(snakemake, *MORE, "--dry-run", "--", calls("a"), calls("b"))
    assert jobs(said)["merge_candidates"] == 1
    every = (calls("a"), calls("b"), "results/b/correct/reads.fastq.gz")
    shutil.rmtree(classified / "results" / "b" / "correct")
    said = run(snakemake, *MORE, "--dry-run", "--", *every)
    assert jobs(said)["correct_single"] == 1
    run(snakemake, *MORE, "--", *every)
    assert all((classified / path).exists() for path in every)


def test_more_partitions_than_the_plan_has_yet(snakemake: Snakemake, classified: Path) -> None:
    run(snakemake, "--", "results/databases/own/plan.json")
    write_sheets(classified, "b,2_1.gz\n", "database,references,partitions\nown,genomes,3\n")
    assert left(snakemake, calls("b")) == [1, 3, 1]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sources_that_are_only_touched_settle(snakemake: Snakemake, classified: Path) -> None:
    """Snakemake compares checksums of small files, and then makes no new plan of the database."""
    shutil.copytree(DATA / "taxonomy", classified / "taxonomy")
    taxon = (classified / "taxonomy" / "nodes.dmp").read_text().split("\t")[0]
    (classified / "map.tsv").write_text(f"g0\t{taxon}\n")
    write_sheets(
        classified,
        "b,2_1.gz\n",
        "database,references,taxonomy,map,partitions\nown,genomes,taxonomy,map.tsv,2\n",
    )
    run(snakemake, "--", calls("b"))
    for source in ("genomes/g0.fna", "taxonomy/nodes.dmp", "map.tsv"):
        (classified / source).touch()
        run(snakemake, "--", calls("b"))
        assert left(snakemake, calls("b")) == [0, 0, 0], source

    genome = classified / "genomes" / "g0.fna"
    name, bases = genome.read_text().splitlines()
    genome.write_text(f"{name}\n{bases[::-1]}\n")
    assert left(snakemake, calls("b")) == [1, 2, 1]
    run(snakemake, "--", calls("b"))
    assert left(snakemake, calls("b")) == [0, 0, 0]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_server_for_all_batches(snakemake: Snakemake, classified: Path) -> None:
    """It opens each partition once, its jobs take no CPU, and it ends with them."""
    both = (calls("a"), calls("b"))
    run(snakemake, "--", *both)
    expected = [gzip.decompress((classified / path).read_bytes()) for path in both]
    (classified / "more.yaml").write_text("classify: {server: true, batch: 1, threads: 2}\n")
    shutil.rmtree(classified / "results")
    said = run(snakemake, *MORE, "--", *both)
    assert jobs(said)["serve_partition"] == 2 and jobs(said)["classify_partition"] == 4
    assert [gzip.decompress((classified / path).read_bytes()) for path in both] == expected
    assert not list((classified / "results/databases/own/served").glob("*"))
    for partition in ("0000", "0001"):
        log = (classified / f"logs/serve_partition/own/{partition}.log").read_text()
        assert "ready: " in log and "error" not in log
    assert not jobs(run(snakemake, "--dry-run", "--quiet", "rules", *MORE, "--", *both))
