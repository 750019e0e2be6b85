"""Classification from files to files, against plain Python; it depends on nothing it should not."""

from __future__ import annotations

import gzip
import random
import shutil
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

import pytest

from ngsgpu.classify.database.build import build_database, build_partition
from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.plan import plan_database
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    METACACHE_CALLS,
    DatabaseParameters,
    EvidenceParameters,
    OutputRules,
    PartitionRequest,
    QueryParameters,
)
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import SampleOutputs, one_sample, read_samples
from ngsgpu.errors import InputError, UsageError
from ngsgpu.run.options import RunOptions
from tests.support import DATA
from tests.support.classify.oracle import Oracle
from tests.support.classify.runs import (
    QUERY,
    contents,
    expected_rows,
    misread,
    outputs_in,
    rows,
    run,
    shown,
    single,
)
from tests.support.classify.world import SKETCH, World


@pytest.mark.parametrize("parameters", QUERY)
def test_single_reads(
    world: World, database: Database, tmp_path: Path, backend: str, parameters: QueryParameters
):
    options = RunOptions(backend=backend)  # type: ignore[arg-type]
    sample = single(world.fasta("s.fa", world.reads))
    got = run(database, sample, tmp_path / "o", parameters, options)
    assert shown(got["reads.tsv"]) == expected_rows(
        world, [[read] for read in world.reads], parameters
    )


@pytest.mark.parametrize("parameters", QUERY[:4])
def test_pairs_in_two_files_and_interleaved(
    world: World, database: Database, tmp_path: Path, backend: str, parameters: QueryParameters
):
    options = RunOptions(backend=backend)  # type: ignore[arg-type]
    first, second = world.reads[0::2], world.reads[1::2]
    one = world.fastq("p1.fq", first, "/1")
    two = world.fastq("p2.fq", second, "/2")
    inside = world.folder / "both.fq"
    records = [path.read_text().split("@r")[1:] for path in (one, two)]
    inside.write_text("".join("@r" + r for pair in zip(*records, strict=True) for r in pair))
    pairs = one_sample([str(one)], [str(two)], interleaved=False, name="own")
    got = run(database, pairs, tmp_path / "pairs", parameters, options)
    both = one_sample([str(inside)], [], interleaved=True, name="own")
    assert run(database, both, tmp_path / "both", parameters, options) == got
    queries = [list(pair) for pair in zip(first, second, strict=True)]
    assert shown(got["reads.tsv"]) == expected_rows(world, queries, parameters)


@pytest.mark.parametrize(
    ("threads", "units_per_task", "chunk_bytes"), [(1, 7, 1 << 20), (3, 1, 700), (2, 64, 5000)]
)
def test_result_does_not_depend_on_threads_and_chunks(
    world: World,
    database: Database,
    tmp_path: Path,
    backend: str,
    threads: int,
    units_per_task: int,
    chunk_bytes: int,
):
    sample = single(world.fasta("t.fa", world.reads))
    rules = OutputRules(evidence=EvidenceParameters(0.94))
    expected = run(database, sample, tmp_path / "a", rules=rules)
    options = RunOptions(
        threads=threads,
        units_per_task=units_per_task,
        chunk_bytes=chunk_bytes,
        backend=backend,  # type: ignore[arg-type]
    )
    assert run(database, sample, tmp_path / "b", options=options, rules=rules) == expected


@pytest.mark.parametrize("number", [1, 2, 5, 16])
@pytest.mark.parametrize("parameters", [QUERY[2], QUERY[3]])
def test_any_number_of_partitions_gives_the_same(
    world: World, database: Database, tmp_path: Path, number: int, parameters: QueryParameters
):
    sample = single(world.fasta(f"parts{number}.fa", world.reads))
    expected = run(database, sample, tmp_path / "whole", parameters)
    planned = plan_database(
        world.references,
        tmp_path / "db",
        parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy,
        maps=[world.map],
        request=PartitionRequest(number=number),
    )
    write_manifest(planned)
    for partition in reversed(range(number)):
        build_partition(open_database(tmp_path / "db"), partition)
    cut = open_database(tmp_path / "db")
    assert len(cut.partitions) == number
    assert run(cut, sample, tmp_path / "cut", parameters) == expected

    def candidates(rules: OutputRules) -> list[Path]:
        files = []
        for partition in range(number):
            files.append(tmp_path / f"{rules.evidence.by_model}-{partition}.cand")
            classifier = Classifier(
                open_database(tmp_path / "db"),
                parameters,
                partitions=[partition],
                rules=rules,
                options=RunOptions(units_per_task=5 + partition),
            )
            classifier.classify([sample], SampleOutputs(candidates=str(files[-1])))
        return files

    by_calls = candidates(OutputRules())
    by_model = candidates(OutputRules(evidence=EvidenceParameters(0.94)))
    for rules, files, others in (
        (OutputRules(), by_calls, by_model),
        (OutputRules(coverage_share=0.2), by_calls, by_model),
        (OutputRules(evidence=EvidenceParameters(0.94)), by_model, by_calls),
    ):
        with pytest.raises(InputError, match="other rules of calls"):
            Classifier(cut, parameters, partitions=[], rules=rules).merge(
                others, outputs_in(tmp_path / "merged")
            )
        merger = Classifier(cut, parameters, partitions=[], rules=rules)
        merger.merge(files[::-1], outputs_in(tmp_path / "merged"))
        whole = run(database, sample, tmp_path / "whole", parameters, rules=rules)
        assert contents(tmp_path / "merged") == whole


def test_all_at_once_and_part_by_part_build_the_same_database(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    common = {
        "parameters": DatabaseParameters(SKETCH, max_locations=3),
        "taxonomy": world.taxonomy,
        "maps": [world.map],
        "request": PartitionRequest(number=3),
    }
    build_database(world.references, tmp_path / "one", **common)  # type: ignore[arg-type]
    monkeypatch.setattr("ngsgpu.classify.database.build.fits_at_once", lambda *_: False)
    build_database(
        world.references,
        tmp_path / "two",
        options=RunOptions(threads=3),
        **common,  # type: ignore[arg-type]
    )
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*"))
    assert files == sorted(
        path.relative_to(tmp_path / "two") for path in (tmp_path / "two").rglob("*")
    )
    for file in files:
        if (tmp_path / "one" / file).is_file():
            assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize(
    "parameters",
    [
        DatabaseParameters(SKETCH),
        DatabaseParameters(SKETCH, max_locations=2),
        DatabaseParameters(SKETCH, max_locations=2, remove_overfull=True),
        DatabaseParameters(SKETCH, ambiguous_rank="genus"),
    ],
)
def test_adding_to_the_last_partition_is_building_at_once(
    world: World, tmp_path: Path, parameters: DatabaseParameters
):
    common = {"parameters": parameters, "taxonomy": world.taxonomy, "maps": [world.map]}
    build_database(world.references, tmp_path / "whole", **common)  # type: ignore[arg-type]
    build_database(world.references[:1], tmp_path / "grown", **common)  # type: ignore[arg-type]
    for path in world.references[1:]:
        add_references(
            tmp_path / "grown",
            [path],
            taxonomy=world.taxonomy,
            maps=[world.map],
            into_last=True,
        )
    whole = open_database(tmp_path / "whole")
    grown = open_database(tmp_path / "grown")
    assert grown.digest == whole.digest
    one, two = whole.load_partition(0).index, grown.load_partition(0).index
    for name in ("directory", "entries", "locations"):
        assert (getattr(one, name) == getattr(two, name)).all()
    assert len(list((tmp_path / "grown").iterdir())) == 4


def test_adding_partitions_does_not_touch_the_others(
    world: World, database: Database, tmp_path: Path, backend: str
):
    common = {"taxonomy": world.taxonomy, "maps": [world.map]}
    path = tmp_path / "grown"
    build_database(
        world.references[:1],
        path,
        parameters=DatabaseParameters(SKETCH),
        **common,  # type: ignore[arg-type]
    )
    old = (path / "partition-0000-0001" / "entries.npy").stat().st_mtime_ns
    shutil.copytree(path, tmp_path / "on_cpu")
    new = add_references(
        path,
        world.references[1:],
        maps=[world.map],
        request=PartitionRequest(number=3),
        options=RunOptions(threads=2, backend=backend),
    )
    assert next(planned.targets for planned in new.partitions) == 3
    assert len(new.partitions) == 4
    assert (path / "partition-0000-0001" / "entries.npy").stat().st_mtime_ns == old
    sample = single(world.fasta("grown.fa", world.reads))
    assert run(open_database(path), sample, tmp_path / "a") == run(database, sample, tmp_path / "b")
    if backend == "cuda":
        add_references(
            tmp_path / "on_cpu",
            world.references[1:],
            maps=[world.map],
            request=PartitionRequest(number=3),
            options=RunOptions(backend="cpu"),
        )
        assert files_of(path) == files_of(tmp_path / "on_cpu")
    with pytest.raises(InputError, match="is already used, in the database"):
        add_references(path, world.references[:1])


def files_of(folder: Path) -> dict[str, bytes]:
    """Content of all files by their paths in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("number", [1, 2, 5, 16])
def test_references_in_memory(world: World, database: Database, tmp_path: Path, number: int):
    there = build_database(
        world.references,
        None,
        parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy,
        maps=[world.map],
        request=PartitionRequest(number=number),
    )
    sample = single(world.fasta("m.fa", world.reads))
    assert run(there, sample, tmp_path / "a") == run(database, sample, tmp_path / "b")


def test_without_a_taxonomy_calls_are_sequences(world: World, tmp_path: Path):
    there = build_database(world.references, None, parameters=DatabaseParameters(SKETCH))
    got = run(there, single(world.fasta("n.fa", world.reads)), tmp_path / "a")
    assert {row[2] for row in rows(got["reads.tsv"])} == {"sequence", "no rank"}


@pytest.mark.parametrize("ties", ["first", "ambiguous"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_ties_without_a_taxonomy(
    world: World, tmp_path: Path, backend: str, ties: str, partitions: int
):
    """The first of equal targets, whatever partition it is in; sequences 0 and 8 are equal."""
    there = build_database(
        world.references,
        None,
        parameters=DatabaseParameters(SKETCH),
        request=PartitionRequest(number=partitions),
    )
    bare = replace(world, oracle=Oracle(world.sequences, [{} for _ in world.sequences], SKETCH))
    exact = [world.sequences[8][at : at + 100] for at in range(0, 900, 50)]
    for parameters in (QueryParameters(ties=ties), replace(METACACHE_CALLS, ties=ties)):
        sample = single(world.fasta("t.fa", [*exact, *world.reads]))
        options = RunOptions(backend=backend)  # type: ignore[arg-type]
        got = run(there, sample, tmp_path, parameters, options)
        expected = expected_rows(bare, [[read] for read in [*exact, *world.reads]], parameters)
        assert shown(got["reads.tsv"]) == expected
        found = rows(got["reads.tsv"])[: len(exact)]
        assert {row[2] for row in found} == {"sequence" if ties == "first" else "no rank"}
        if ties == "first":
            targets = {row[5] for row in found}
            assert world.names[0] in targets
            assert world.names[8] not in targets


def test_ties_with_a_taxonomy_are_lifted(world: World, database: Database, tmp_path: Path):
    sample = single(world.fasta("x.fa", world.reads))
    for parameters in (QueryParameters(), METACACHE_CALLS):
        either = [
            run(database, sample, tmp_path / ties, replace(parameters, ties=ties))
            for ties in ("first", "ambiguous")
        ]
        assert either[0] == either[1]


def test_many_samples_with_one_database(world: World, database: Database, tmp_path: Path):
    one = world.fastq("m1.fq", world.reads[:60])
    two = world.fastq("m2.fq", world.reads[60:120])
    sheet = tmp_path / "samples.tsv"
    sheet.write_text(
        "# comment\nsample\tfastq_1\tfastq_2\treference\n"
        f"a\t{one}\t\t\nb\t{one}\t{two}\nc\t{one}\nc\t{two}\t\tx.fa\n"
    )
    outputs = SampleOutputs(
        reads=f"{tmp_path}/{{sample}}.tsv",
        report=f"{tmp_path}/{{sample}}.kraken2.report.txt",
        biom=str(tmp_path / "all.biom"),
    )
    samples = read_samples(sheet)
    done = Classifier(database).classify(samples, outputs)
    assert [statistics.queries["total"] for statistics in done] == [60, 60, 120]
    for sample in samples:
        alone = run(database, replace(sample, name="own"), tmp_path / sample.name)
        assert alone["reads.tsv"] == (tmp_path / f"{sample.name}.tsv").read_bytes()
    assert (tmp_path / "all.biom").exists()
    with pytest.raises(UsageError, match=r"put \{sample\} into the name"):
        Classifier(database).classify(samples, SampleOutputs(reads=str(tmp_path / "x.tsv")))


def test_merged_pairs_beside_those_that_stayed(
    world: World, database: Database, tmp_path: Path, backend: str
):
    """A sample may have lanes of single reads and of pairs, from files and from candidates."""
    options = RunOptions(backend=backend)  # type: ignore[arg-type]
    rules = OutputRules(evidence=EvidenceParameters(0))
    merged = world.fastq("merged.fq", world.reads[:40])
    mates = [world.fastq(f"u{mate}.fq", world.reads[40:80], f"/{mate}") for mate in (1, 2)]
    sheet = tmp_path / "samples.tsv"
    sheet.write_text(f"sample\tfastq_1\tfastq_2\nown\t{merged}\t\nown\t{mates[0]}\t{mates[1]}\n")
    (sample,) = read_samples(sheet)
    both = run(database, sample, tmp_path / "both", options=options, rules=rules)
    parts = [
        run(database, replace(sample, lanes=(lane,)), tmp_path / f"{number}", options=options,
            rules=rules)
        for number, lane in enumerate(sample.lanes)
    ]  # fmt: skip
    for file in ("reads.tsv", "kraken.txt"):
        apart = [part[file].splitlines() for part in parts]
        head = 1 if file == "reads.tsv" else 0
        assert both[file].splitlines() == apart[0] + apart[1][head:]
    files = []
    for number in range(len(database.partitions)):
        files.append(tmp_path / f"{number}.cand")
        Classifier(database, partitions=[number], options=options).classify(
            [sample], SampleOutputs(candidates=str(files[-1]))
        )
    merger = Classifier(database, partitions=[], rules=rules)
    done = merger.merge(files, outputs_in(tmp_path / "merged"))
    assert contents(tmp_path / "merged") == both
    assert done.queries["paired"] and done.queries["total"] == 80


@pytest.mark.parametrize("mark", ["\t", ","])
def test_sheets_of_spreadsheets(tmp_path: Path, mark: str):
    """A byte order mark, Windows' line ends, columns of one's own, commas."""
    rows = (("sample", "note", "fastq_1", "fastq_2"), ("a", "", "x 1.fq", "y.fq"), ("b", "", "z"))
    sheet = tmp_path / "s.csv"
    sheet.write_text("\ufeff" + "".join(mark.join(row) + "\r\n" for row in rows))
    assert [sample.lanes[0].inputs for sample in read_samples(sheet)] == [
        ("x 1.fq", "y.fq"),
        ("z",),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must name the columns"),
        ("sample\tfastq_1\n", "lists no samples"),
        ("sample\tfastq_1\na b\tx.fq\n", "line 2: 'a b' is not a valid"),
        ("sample\tfastq_1\n#\na\t\n", "line 3: fastq_1 is empty"),
    ],
)
def test_bad_sheets(tmp_path: Path, text: str, message: str):
    sheet = tmp_path / "s.tsv"
    sheet.write_text(text)
    with pytest.raises(InputError, match=message):
        read_samples(sheet)


def test_coverage_filter_leaves_reads_out(world: World, database: Database, tmp_path: Path):
    sample = single(world.fasta("c.fa", world.reads))
    plain = rows(run(database, sample, tmp_path / "a")["reads.tsv"])
    rules = OutputRules(coverage_share=0.5)
    covered = rows(run(database, sample, tmp_path / "c", rules=rules)["reads.tsv"])
    assert len({row[5] for row in covered}) < len({row[5] for row in plain})


@pytest.mark.parametrize("share", [0.0, 1e-7])
def test_what_is_looked_at_twice_may_go_through_a_file(
    world: World,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
):
    """All of it, or what memory of a few kilobytes does not hold."""
    sample = single(world.fasta("twice.fa", world.reads))
    rules = OutputRules(coverage_share=0.2)
    expected = run(database, sample, tmp_path / "a", rules=rules)
    monkeypatch.setattr("ngsgpu.classify.run.two_pass.SHARE_OF_MEMORY", share)
    options = RunOptions(threads=2, units_per_task=4)
    assert run(database, sample, tmp_path / "b", rules=rules, options=options) == expected


def test_candidate_files_that_do_not_belong_together(
    world: World, database: Database, tmp_path: Path
):
    there = build_database(
        world.references,
        tmp_path / "db",
        parameters=DatabaseParameters(SKETCH),
        request=PartitionRequest(number=2),
    )
    long, short = world.fasta("l.fa", world.reads), world.fasta("k.fa", world.reads[:-1])
    other = world.fasta("o.fa", [*world.reads[:-1], world.reads[-1] + "A"])
    files: dict[tuple[str, int], Path] = {}
    for path, partition in product((long, short, other), range(2)):
        files[path.stem, partition] = tmp_path / f"{path.stem}{partition}.cand"
        Classifier(there, partitions=[partition]).classify(
            [single(path)], SampleOutputs(candidates=str(files[path.stem, partition]))
        )
    merger = Classifier(there, partitions=[])
    outputs = SampleOutputs(reads=str(tmp_path / "merged.tsv"))

    def refused(names: list[tuple[str, int]], message: str, with_: Classifier = merger) -> None:
        with pytest.raises((InputError, UsageError), match=message):
            with_.merge([files[name] for name in names], outputs)

    refused([("l", 0), ("k", 1)], "has fewer reads than")
    refused([("l", 0), ("o", 1)], "has other reads than")
    refused([("l", 0)], "candidates of partition 1 are missing")
    refused([("l", 0), ("k", 0)], "is of partition 0, as is")
    refused([("l", 0), ("l", 1)], "another database", Classifier(database, partitions=[]))
    merger3 = Classifier(there, QueryParameters(candidates=3), partitions=[])
    refused([("l", 0), ("l", 1)], "another `candidates`", merger3)
    whole = files["l", 1].read_bytes()
    for cut in (len(whole) - 4, len(whole) // 2, 20):
        files["l", 1].write_bytes(whole[:cut])
        refused([("l", 0), ("l", 1)], "truncated|not a candidate file|damaged")
    files["l", 1].write_bytes(whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:])
    refused([("l", 0), ("l", 1)], "damaged")
    assert not (tmp_path / "merged.tsv").exists()


def test_long_reads(tmp_path: Path, backend: str):
    """Reads of nanopores, up to 100 kb: called if it is said how many errors they have."""
    source = random.Random(3)
    genomes = {name: "".join(source.choices("ACGT", k=110_000)) for name in "ab"}
    (tmp_path / "g.fa").write_text("".join(f">{name}\n{own}\n" for name, own in genomes.items()))
    reads = [
        (name, misread(own[start : start + length], errors, source))
        for name, own in genomes.items()
        for start, length in ((0, 100_000), (5_000, 9_000), (60_000, 2_000))
        for errors in (0.02, 0.1)
    ]
    text = "".join(f">{name}{i}\n{read}\n" for i, (name, read) in enumerate(reads))
    (tmp_path / "r.fa").write_text(text)
    database = build_database([tmp_path / "g.fa"], None)
    rules = OutputRules(evidence=EvidenceParameters(read_errors=0.1))
    options = RunOptions(backend=backend)  # type: ignore[arg-type]
    table = run(
        database, single(tmp_path / "r.fa"), tmp_path / "o", CALLS_BY_EVIDENCE, options, rules
    )["reads.tsv"]
    assert [row[3] for row in rows(table)] == [name for name, _ in reads]


@pytest.mark.parametrize(
    ("errors", "stated", "length"), [(0.2, 0.2, 6000), (0.005, None, 6000), (0.05, 0.05, 2000)]
)
def test_read_errors_of_long_reads(
    tmp_path: Path, world: World, backend: str, errors: float, stated: float | None, length: int
) -> None:
    """Reads with many errors are called as their species if these are stated."""
    source = random.Random(4)
    genomes = {"NC_000000.1": 21, "NC_000004.1": 31}
    texts = {name: "".join(source.choices("ACGT", k=50_000)) for name in genomes}
    (tmp_path / "g.fa").write_text("".join(f">{name}\n{own}\n" for name, own in texts.items()))
    starts = [(name, source.randrange(40_000)) for name in texts for _ in range(30)]
    reads = [misread(texts[name][at : at + length], errors, source) for name, at in starts]
    (tmp_path / "r.fa").write_text("".join(f">r{i}\n{own}\n" for i, own in enumerate(reads)))
    database = build_database(
        [tmp_path / "g.fa"], None, taxonomy=world.taxonomy, maps=[world.map]
    )  # fmt: skip
    rules = OutputRules(evidence=EvidenceParameters(read_errors=stated))
    table = run(
        database, single(tmp_path / "r.fa"), tmp_path / "o", CALLS_BY_EVIDENCE,
        RunOptions(backend=backend), rules,  # type: ignore[arg-type]
    )["reads.tsv"]  # fmt: skip
    right = sum(
        (row[2], row[5]) == ("species", name)
        for row, (name, _) in zip(rows(table), starts, strict=True)
    )
    assert right >= 59


def test_amplicons(tmp_path: Path, backend: str):
    """Real 16S reads of mouse guts are of no species of Streptococcus; those of one of them are."""
    names = ("mitis__NCTC_12261", "pneumoniae__NCTC7465", "suis__SRD478")
    files = [DATA / f"genomes/streptococcus_{name}.fna.gz" for name in names]
    with gzip.open(files[-1], "rt") as file:
        suis = "".join(line.strip() for line in file if line[0] != ">")
    # From the primer of V4 on, as in the reads.
    start = suis.index("GTGCCAGCAGCCGCGGTAA")
    source = random.Random(5)
    own = [misread(suis[start : start + 250], 0.005, source) for _ in range(100)]
    with gzip.open(DATA / "reads/merge_16S_v4_miseqsop_F3D0_R1.fastq.gz", "rt") as file:
        gut = [line.strip() for line in islice(file, 1, 1200, 4)]
    database = build_database(
        files, None, taxonomy=DATA / "taxonomy/bacteria",
        maps=[DATA / "taxonomy/bacteria/seqid2taxid.tsv"],
    )  # fmt: skip
    options = RunOptions(backend=backend)  # type: ignore[arg-type]

    def calls(reads: list[str], genome_share: float) -> list[tuple[str, str]]:
        (tmp_path / "r.fa").write_text("".join(f">r{i}\n{read}\n" for i, read in enumerate(reads)))
        rules = OutputRules(evidence=EvidenceParameters(genome_share=genome_share))
        table = run(
            database, single(tmp_path / "r.fa"), tmp_path / "o", CALLS_BY_EVIDENCE, options, rules
        )["reads.tsv"]
        return [(row[1], row[2]) for row in rows(table)]

    assert "species" not in {rank for _, rank in calls(gut, 0)}
    assert {*calls(own, 0)} == {("1307", "species")}
    both = calls(own + gut, 0)
    assert sum(taxid == "1307" for taxid, _ in both[:100]) >= 80
    assert {taxid for taxid, rank in both if rank == "species"} == {"1307"}
    # One gene is not a species, unless reads are amplicons.
    assert "species" not in {rank for _, rank in calls(own, 0.5)}
