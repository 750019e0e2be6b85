"""Databases and calls from the GPU are those of the CPU, byte for byte."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.classify.call.model import SampleModel
from ngsgpu.classify.call.posterior import Weights
from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.targets import Labels
from ngsgpu.classify.formats import Format, formats
from ngsgpu.classify.outputs.reads import ReadTableWriter
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    KEEP_ALL,
    METACACHE_CALLS,
    DatabaseParameters,
    EvidenceParameters,
    OutputRules,
    PartitionRequest,
    QueryParameters,
    SketchParameters,
)
from ngsgpu.classify.run import gpu_run
from ngsgpu.classify.run.gpu_run import GpuSampleRun
from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import Sample, SampleOutputs, one_sample
from ngsgpu.run.options import RunOptions
from tests.support import DATA
from tests.support.classify.world import SKETCH, TAXA, World, make_world, mutated


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"), genome=3000, reads=900)


def build(
    world: World, path: Path | None, backend: str, *, taxonomy: bool = True, **more: Any
) -> Database:
    own = more.pop("map", world.map)
    return build_database(
        more.pop("references", world.references),
        path,
        parameters=more.pop("parameters", DatabaseParameters(SKETCH)),
        taxonomy=world.taxonomy if taxonomy else None,
        maps=[own] if taxonomy else [],
        options=RunOptions(threads=2, backend=backend),  # type: ignore[arg-type]
        **more,
    )


def same_files(one: Path, two: Path) -> None:
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    for file in files:
        assert (one / file).read_bytes() == (two / file).read_bytes(), file


PARAMETERS = [
    DatabaseParameters(SKETCH),
    DatabaseParameters(SketchParameters()),
    DatabaseParameters(SketchParameters(sketch=21)),
    DatabaseParameters(SketchParameters(10, stride=700, smer=9), max_locations=KEEP_ALL),
    DatabaseParameters(SketchParameters(16, 32, 127, 112), max_locations=2),
    DatabaseParameters(SketchParameters(12, 16, 300, 100), max_locations=3, remove_overfull=True),
    DatabaseParameters(SketchParameters(4, 20, 90, 90)),
    DatabaseParameters(SketchParameters(5, 1, 33, 7), max_locations=KEEP_ALL),
    DatabaseParameters(SKETCH, ambiguous_rank="species"),
    DatabaseParameters(SketchParameters(fraction=0.25)),
    DatabaseParameters(SketchParameters(12, 16, 300, 100, 0.7), max_locations=3),
    DatabaseParameters(replace(SKETCH, fraction=0.01)),
]


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("partitions", [1, 3])
def test_databases(world: World, tmp_path: Path, parameters: DatabaseParameters, partitions: int):
    request = PartitionRequest(number=partitions)
    for backend in ("cpu", "cuda"):
        build(world, tmp_path / backend, backend, parameters=parameters, request=request)
    same_files(tmp_path / "cpu", tmp_path / "cuda")


def test_keys_with_very_many_locations(world: World, tmp_path: Path):
    text = tmp_path / "repeat.fa"
    text.write_text(">repeat\n" + "ACGTTGCATC" * 200_000 + "\n>other\n" + "AC" * 500 + "\n")
    for backend in ("cpu", "cuda"):
        build(
            world,
            tmp_path / backend,
            backend,
            references=[text],
            parameters=DatabaseParameters(SketchParameters(10, 4, 20, 5), max_locations=KEEP_ALL),
            taxonomy=False,
        )
    same_files(tmp_path / "cpu", tmp_path / "cuda")


def classify(
    database: Database,
    sample: Sample,
    folder: Path,
    backend: str,
    parameters: QueryParameters | None = None,
    rules: OutputRules | None = None,
    **more: Any,
) -> dict[str, bytes]:
    folder.mkdir(exist_ok=True)
    names = ["reads", "kraken_reads", "report", "abundance", "coverage"]
    if rules is not None and rules.evidence.species_identity > 0:
        names.append("evidence")
    outputs = SampleOutputs(**{name: str(folder / name) for name in names})
    options = RunOptions(threads=3, backend=backend, **more)  # type: ignore[arg-type]
    classifier = Classifier(database, parameters, rules=rules, options=options)
    assert classifier.options.backend == backend
    classifier.classify([sample], outputs)
    return {name: (folder / name).read_bytes() for name in names}


QUERIES = [
    QueryParameters(),
    METACACHE_CALLS,
    QueryParameters(min_hits=1, candidates=32, insert_size=400),
    QueryParameters(lowest="species", candidates=3),
    QueryParameters(lowest="genus", min_hits=1, candidates=1),
]


@pytest.mark.parametrize("parameters", QUERIES)
@pytest.mark.parametrize("layout", ["single", "pairs", "interleaved", "fasta"])
@pytest.mark.parametrize("partitions", [1, 4])
def test_calls(
    world: World, tmp_path: Path, parameters: QueryParameters, layout: str, partitions: int
):
    database = build(world, tmp_path / "db", "cpu", request=PartitionRequest(number=partitions))
    sample = sample_of(world, layout)
    one = classify(database, sample, tmp_path / "cpu_out", "cpu", parameters)
    two = classify(open_database(tmp_path / "db"), sample, tmp_path / "gpu_out", "cuda", parameters)
    assert two == one


class OwnLines:
    """The table of reads, as a format without a kernel."""

    def __init__(self, labels: Labels, columns: tuple[str, ...]) -> None:
        self._table = ReadTableWriter(labels, columns)
        self.header, self.text = self._table.header, self._table.text


@pytest.mark.parametrize("identity", [0.0, 0.94])
@pytest.mark.parametrize("layout", ["single", "pairs", "fasta"])
def test_lines_that_no_kernel_makes(
    world: World, tmp_path: Path, layout: str, identity: float, monkeypatch: pytest.MonkeyPatch
):
    own = Format("own", "reads", f"{__name__}:OwnLines", "Calls.")
    monkeypatch.setitem(formats(), "own", own)
    files = {name: str(tmp_path / name) for name in ("own", "reads", "kraken_reads")}
    rules = OutputRules(evidence=EvidenceParameters(identity))
    options = RunOptions(threads=3, backend="cuda")
    classifier = Classifier(build(world, None, "cpu"), rules=rules, options=options)
    classifier.classify([sample_of(world, layout)], SampleOutputs(**files))
    assert (tmp_path / "own").read_bytes() == (tmp_path / "reads").read_bytes()


@pytest.mark.parametrize("fraction", [0.7, 0.25, 0.06])
@pytest.mark.parametrize("layout", ["single", "pairs"])
def test_species_by_few_features(world: World, tmp_path: Path, layout: str, fraction: float):
    sketch = SketchParameters(fraction=fraction)
    database = build(world, tmp_path / "db", "cpu", parameters=DatabaseParameters(sketch))
    rules = OutputRules(evidence=EvidenceParameters())
    sample = sample_of(world, layout)
    one = classify(database, sample, tmp_path / "a", "cpu", CALLS_BY_EVIDENCE, rules)
    two = classify(database, sample, tmp_path / "b", "cuda", CALLS_BY_EVIDENCE, rules)
    assert two == one


@pytest.mark.parametrize("ties", ["first", "ambiguous"])
@pytest.mark.parametrize("identity", [0.0, 0.94])
def test_calls_without_a_taxonomy(world: World, tmp_path: Path, ties: str, identity: float):
    database = build(world, tmp_path / "db", "cpu", taxonomy=False)
    sample, parameters = sample_of(world, "pairs"), QueryParameters(ties=ties)
    rules = OutputRules(evidence=EvidenceParameters(identity))
    one = classify(database, sample, tmp_path / "a", "cpu", parameters, rules)
    assert classify(database, sample, tmp_path / "b", "cuda", parameters, rules) == one


def sample_of(world: World, layout: str) -> Sample:
    first, second = world.reads[0::2], world.reads[1::2]
    if layout == "single":
        return one_sample([str(world.fastq("s.fq", world.reads))], [], interleaved=False, name="x")
    if layout == "fasta":
        return one_sample([str(world.fasta("s.fa", world.reads))], [], interleaved=False, name="x")
    one, two = world.fastq("p1.fq", first, "/1"), world.fastq("p2.fq", second, "/2")
    if layout == "pairs":
        return one_sample([str(one)], [str(two)], interleaved=False, name="x")
    records = [path.read_text().split("@r")[1:] for path in (one, two)]
    both = world.folder / "both.fq"
    both.write_text("".join("@r" + r for pair in zip(*records, strict=True) for r in pair))
    return one_sample([str(both)], [], interleaved=True, name="x")


@pytest.mark.parametrize("chunk_bytes", [2000, 1 << 16])
@pytest.mark.parametrize("layout", ["single", "pairs"])
def test_calls_do_not_depend_on_chunks(world: World, tmp_path: Path, layout: str, chunk_bytes: int):
    database = build(world, None, "cpu")
    sample = sample_of(world, layout)
    rules = OutputRules(coverage_share=0.1)
    one = classify(database, sample, tmp_path / "a", "cpu", rules=rules)
    two = classify(
        database,
        sample,
        tmp_path / "b",
        "cuda",
        rules=rules,
        chunk_bytes=chunk_bytes,
        units_per_task=33,
    )
    assert two == one


def test_special_outputs(world: World, tmp_path: Path):
    database = build(world, None, "cpu")
    sample = sample_of(world, "pairs")
    expected = classify(database, sample, tmp_path / "plain", "cpu")
    reads = tmp_path / "reads.tsv"
    classifier = Classifier(database, options=RunOptions(threads=2, backend="cuda"))
    classifier.classify([sample], SampleOutputs(reads=str(reads), kraken_reads="/dev/null"))
    assert reads.read_bytes() == expected["reads"]


SKETCHES = [
    SketchParameters(),
    SketchParameters(sketch=21),
    SketchParameters(10, stride=700, smer=9),
    SketchParameters(5, stride=40, smer=2),
    SketchParameters(16, 32, 127, 112),
    SketchParameters(12, 16, 300, 100),
    SketchParameters(4, 20, 90, 90),
    SketchParameters(9, 3, 33, 7),
    SketchParameters(13, 30, 1200, 700),
    SketchParameters(fraction=0.5),
    SketchParameters(16, 32, 127, 112, 0.125),
    SketchParameters(9, 3, 33, 7, 0.3),
]


@pytest.mark.parametrize("sketch", SKETCHES)
def test_sketches_of_queries(world: World, tmp_path: Path, sketch: SketchParameters):
    """Windows of more bases than a warp holds, short k-mers, unknown and small letters."""
    source = random.Random(3)
    reads = [read if i % 3 else read.lower() for i, read in enumerate(world.reads[:200])]
    reads += ["N" * 80, "ACGT" * 20, "ACGTN" * 60, "", "A" * sketch.kmer]
    for sequence in world.sequences[:4]:
        reads.append(mutated(sequence, 0.02, source))
        reads.append(mutated(sequence[:900], 0.05, source).replace("AC", "NN"))
    database = build(world, None, "cpu", parameters=DatabaseParameters(sketch))
    sample = one_sample([str(world.fastq("k.fq", reads))], [], interleaved=False, name="x")
    one, two = (
        classify(database, sample, tmp_path / backend, backend, QUERIES[2])
        for backend in ("cpu", "cuda")
    )
    assert one == two


@pytest.mark.parametrize("copies", [3, 150])
def test_features_that_repeat_in_a_range(world: World, tmp_path: Path, copies: int):
    """Counted once each, by blocks, and of more than 1,024 windows in device memory."""
    source = random.Random(11)
    unit = "".join(source.choices("ACGT", k=37))
    sides = ["".join(source.choices("ACGT", k=1500)) for _ in range(2)]
    sequence = sides[0] + unit * 30 + sides[1] + unit * 4
    text = tmp_path / "repeats.fa"
    records = (f">s{i}\n{mutated(sequence, 0.002 * (i % 5), source)}\n" for i in range(copies))
    text.write_text("".join(records))
    database = build(world, None, "cpu", references=[text], taxonomy=False)
    starts = range(1200, len(sequence) - 300, 23)
    reads = [mutated(sequence[at : at + 250], 0.01, source) for at in starts]
    sample = one_sample([str(world.fastq("r.fq", reads))], [], interleaved=False, name="x")
    one, two = (
        classify(database, sample, tmp_path / backend, backend, QUERIES[2])
        for backend in ("cpu", "cuda")
    )
    assert one == two


@pytest.mark.parametrize("room", [None, 20_000])
@pytest.mark.parametrize("parameters", [QUERIES[0], QUERIES[3]])
def test_looking_twice(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    parameters: QueryParameters,
    room: int | None,
):
    """Evidence for species and coverage; with little room, queries wait on the host."""
    monkeypatch.setattr(GpuSampleRun, "room", room)
    database = build(world, None, "cpu")
    sample = sample_of(world, "pairs")
    looks = ((0.1, 0.0, 0.5), (0.0, 0.95, 0.5), (0.0, 0.9, 0.0))
    for number, (share, identity, genome_share) in enumerate(looks):
        rules = OutputRules(
            coverage_share=share,
            evidence=EvidenceParameters(identity, genome_share=genome_share),
        )
        one, two = (
            classify(
                database, sample, tmp_path / f"{backend}{number}", backend, parameters, rules,
                chunk_bytes=5000,
            )
            for backend in ("cpu", "cuda")
        )  # fmt: skip
        assert one == two


def with_relatives_of_all_kinds(world: World) -> list[str]:
    """Reads of species "G one a", of relatives of "G one b", of far ones of "G two a", "lonely"."""
    source = random.Random(11)
    reads = []
    for i in range(600):
        of, rate = ((0, 0.0), (2, 0.06), (4, 0.16), (6, 0.16))[i % 4]
        sequence = world.sequences[of]
        start = source.randrange(len(sequence) - 150)
        reads.append(mutated(sequence[start : start + 150], rate, source))
    return reads


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[SampleModel, Weights]]:
    """The models, and what they say of the sources, of each time that one is fitted."""
    found: list[tuple[SampleModel, Weights]] = []
    before = SampleModel.fit

    def fit(self: SampleModel, parameters: EvidenceParameters) -> Weights:
        found.append((self, before(self, parameters)))
        return found[-1][1]

    monkeypatch.setattr(SampleModel, "fit", fit)
    return found


def same_fits(fits: list[tuple[SampleModel, Weights]]) -> None:
    (here, own), (there, other) = fits
    for mine, its in zip(own, other, strict=True):
        assert np.array_equal(mine, its)
    for mine, its in zip(here.classes.sorted(), there.classes.sorted(), strict=True):
        assert np.array_equal(mine, its)
    assert np.array_equal(here.classes.own, there.classes.own)
    assert np.array_equal(here.classes.marks, there.classes.marks)
    assert here.ambiguous == there.ambiguous


@pytest.mark.parametrize("parameters", [CALLS_BY_EVIDENCE, QUERIES[2], QUERIES[3], QUERIES[4]])
@pytest.mark.parametrize("partitions", [1, 3])
def test_fits(
    world: World,
    tmp_path: Path,
    fits: list[tuple[SampleModel, Weights]],
    parameters: QueryParameters,
    partitions: int,
):
    database = build(world, tmp_path / "db", "cpu", request=PartitionRequest(number=partitions))
    reads = with_relatives_of_all_kinds(world)
    sample = one_sample([str(world.fastq("d.fq", reads))], [], interleaved=False, name="x")
    rules = OutputRules(evidence=EvidenceParameters(genome_share=0))
    one, two = (
        classify(database, sample, tmp_path / backend, backend, parameters, rules)
        for backend in ("cpu", "cuda")
    )
    same_fits(fits)
    assert one == two


@pytest.mark.parametrize("partitions", [1, 5])
def test_several_gpus(world: World, tmp_path: Path, partitions: int):
    import cupy

    if (gpus := cupy.cuda.runtime.getDeviceCount()) < 2:
        pytest.skip("needs two GPUs")
    database = build(world, None, "cpu", request=PartitionRequest(number=partitions))
    for layout in ("pairs", "interleaved", "fasta"):
        sample = sample_of(world, layout)
        one = classify(database, sample, tmp_path / f"{layout}1", "cuda")
        two = classify(database, sample, tmp_path / f"{layout}n", "cuda", gpus=gpus)
        assert one == two


def test_queries_with_very_many_locations_and_long_reads(world: World, tmp_path: Path):
    """Lists beyond what shared memory holds, in one partition and in several."""
    source = random.Random(1)
    core = "".join(source.choices("ACGT", k=2000))
    references = []
    for i in range(300):
        path = tmp_path / f"{i}.fa"
        path.write_text(f">s{i}\n{mutated(core, 0.002 * (i % 7), source)}\n")
        references.append(path)
    reads = [mutated(core[at : at + 150], 0.01, source) for at in range(0, 1800, 9)]
    reads += [core * 5, "ACGT" * 5000, "N" * 300, "A"]
    sample = one_sample([str(world.fastq("long.fq", reads))], [], interleaved=False, name="x")
    for partitions in (1, 3):
        database = build(
            world, None, "cuda", references=references, request=PartitionRequest(number=partitions),
            parameters=DatabaseParameters(max_locations=KEEP_ALL), taxonomy=False,
        )  # fmt: skip
        outputs = [
            classify(database, sample, tmp_path / f"{backend}{partitions}", backend, parameters)
            for backend in ("cpu", "cuda")
            for parameters in (QueryParameters(candidates=20),)
        ]
        assert outputs[0] == outputs[1]


@pytest.mark.parametrize("copies", [16, 24, 45, 90, 185, 220])
@pytest.mark.parametrize("taxonomy", [False, True])
def test_queries_whose_locations_a_block_sorts(
    world: World, tmp_path: Path, copies: int, taxonomy: bool
):
    """Some 300 to 4,100 of a read, as many again of its mate; those of others are more or fewer."""
    source = random.Random(copies)
    core = "".join(source.choices("ACGT", k=3000))
    references = []
    for i in range(copies):
        references.append(tmp_path / f"{i}.fa")
        references[-1].write_text(f">s{i}\n{mutated(core, 0.004 * (i % 5), source)}\n")
    own = tmp_path / "map.tsv"
    taxa = [taxid for taxid in TAXA if taxid]
    own.write_text("".join(f"s{i}\t{taxa[i % len(taxa)]}\n" for i in range(0, copies, 2)))
    database = build(world, None, "cpu", references=references, taxonomy=taxonomy, map=own,
                     parameters=DatabaseParameters(max_locations=KEEP_ALL))  # fmt: skip
    starts = [source.randrange(2400) for _ in range(300)]
    first = [mutated(core[at : at + 40 + at % 200], 0.005, source) for at in starts]
    second = [mutated(core[at + 300 : at + 500], 0.005, source) for at in starts]
    files = [str(world.fastq(f"{i}.fq", reads)) for i, reads in enumerate((first, second))]
    for mates in (files[1:], []):
        sample = one_sample(files[:1], mates, interleaved=False, name="x")
        for parameters in (QueryParameters(), QueryParameters(candidates=32, insert_size=700)):
            one, two = (
                classify(database, sample, tmp_path / name, name, parameters)
                for name in ("cpu", "cuda")
            )
            assert one == two


@pytest.mark.parametrize("last", [False, True])
def test_very_many_locations_in_one_partition_and_few_in_another(
    world: World, tmp_path: Path, last: bool
):
    source = random.Random(2)
    core = "".join(source.choices("ACGT", k=2000))
    copies = [mutated(core, 0.01, source) for _ in range(60)]
    # As long as all of them, so that it has a partition of its own.
    alone = core + "".join(source.choices("ACGT", k=2000 * len(copies)))
    references = []
    for i, sequence in enumerate([*copies, alone] if last else [alone, *copies]):
        path = tmp_path / f"{i}.fa"
        path.write_text(f">s{i}\n{sequence}\n")
        references.append(path)
    reads = [mutated(core[at : at + 150], 0.01, source) for at in range(0, 1800, 9)]
    sample = one_sample([str(world.fastq("x.fq", reads))], [], interleaved=False, name="x")
    request = PartitionRequest(number=2)
    database = build(world, None, "cpu", references=references, request=request, taxonomy=False)
    one, two = (classify(database, sample, tmp_path / name, name) for name in ("cpu", "cuda"))
    assert one == two


def test_candidate_files_of_the_gpu(world: World, tmp_path: Path):
    database = build(world, tmp_path / "db", "cuda", request=PartitionRequest(number=2))
    sample = sample_of(world, "pairs")
    files = []
    for number, backend in enumerate(("cpu", "cuda")):
        files.append(tmp_path / f"{number}.cand")
        Classifier(
            database,
            partitions=[number],
            options=RunOptions(threads=2, backend=backend),  # type: ignore[arg-type]
        ).classify([sample], SampleOutputs(candidates=str(files[-1])))
    whole = classify(database, sample, tmp_path / "whole", "cpu")
    merged = tmp_path / "merged.tsv"
    Classifier(database, partitions=[]).merge(files, SampleOutputs(reads=str(merged)))
    assert merged.read_bytes() == whole["reads"]


def test_real_genomes(tmp_path: Path):
    genomes = sorted((DATA / "genomes").glob("*.fna.gz"))
    taxonomy = DATA / "taxonomy/bacteria"
    built = {}
    for backend in ("cpu", "cuda"):
        built[backend] = build_database(
            genomes,
            None,
            taxonomy=taxonomy,
            maps=[taxonomy / "seqid2taxid.tsv"],
            options=RunOptions(threads=8, backend=backend),  # type: ignore[arg-type]
        )
    for name in ("directory", "entries", "locations"):
        one, two = (getattr(own.loaded[0].index, name) for own in built.values())
        assert np.array_equal(one, two)
    reads = [str(DATA / f"reads/ecoli_mg1655_1kb_R{mate}.fastq.gz") for mate in (1, 2)]
    sample = one_sample(reads[:1], reads[1:], interleaved=False, name="x")
    one, two = (
        classify(built["cpu"], sample, tmp_path / backend, backend) for backend in ("cpu", "cuda")
    )
    assert one == two


def test_fit_of_real_reads(tmp_path: Path, fits: list[tuple[SampleModel, Weights]]):
    """Reads of genomes that are there, of others of their genera, and of other genera."""
    genomes = sorted((DATA / "genomes").glob("*.fna.gz"))
    taxonomy = DATA / "taxonomy/bacteria"
    database = build_database(
        genomes,
        None,
        taxonomy=taxonomy,
        maps=[taxonomy / "seqid2taxid.tsv"],
        options=RunOptions(threads=8),
    )
    reads = str(DATA / "reads/kraken_HiSeq_accuracy.fa.gz")
    sample = one_sample([reads], [], interleaved=False, name="x")
    rules = OutputRules(evidence=EvidenceParameters(species_identity=0.94))
    one, two = (
        classify(database, sample, tmp_path / backend, backend, CALLS_BY_EVIDENCE, rules)
        for backend in ("cpu", "cuda")
    )
    same_fits(fits)
    assert one == two


@pytest.mark.parametrize("rooms", [(1.0, 1 << 30), (0.0, 1 << 30), (1e-6, 1 << 17), (0.0, 0)])
@pytest.mark.parametrize("kind", ["single", "pairs", "interleaved"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\n\n"])
def test_records_by_call(
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rooms: tuple[float, int],
    kind: str,
    end: bytes,
) -> None:
    """They are the same whether they stay on the GPU, on the host, in part, or not at all."""
    monkeypatch.setattr(gpu_run, "SHARE_FOR_RECORDS", rooms[0])
    monkeypatch.setattr(RunOptions, "kept_bytes", rooms[1])
    reads = world.reads * 3
    texts = [
        f"@r{i} of {'x' * (i % 90)}\n{read}\n+\n{chr(40 + i % 30) * len(read)}".encode()
        for i, read in enumerate(reads)
    ]
    half = len(texts) // 2
    sides = {
        "single": [texts],
        "pairs": [texts[:half], [b"@r%d" % i + text[text.index(b"\n"):]
                                 for i, text in enumerate(texts[half:])]],
        "interleaved": [[line for i in range(half) for line in (texts[i], texts[i])]],
    }[kind]  # fmt: skip
    inputs = [tmp_path / "1.fq", tmp_path / "2.fq"][: len(sides)]
    for path, side in zip(inputs, sides, strict=True):
        path.write_bytes(b"\n".join(side) + end)
    database = build(world, tmp_path / "db", "cpu")
    lane = one_sample(
        [str(inputs[0])], list(map(str, inputs[1:])), interleaved=kind == "interleaved", name="own"
    )
    found = {}
    for backend in ("cpu", "cuda"):
        names = ["classified_out", "unclassified_out"]
        names += ["classified_out2", "unclassified_out2"] if kind == "pairs" else []
        paths = {name: str(tmp_path / f"{backend}.{name}") for name in names}
        options = RunOptions(threads=2, backend=backend, chunk_bytes=1 << 16)  # type: ignore[arg-type]
        Classifier(database, options=options).classify(
            [lane], SampleOutputs(reads=str(tmp_path / "calls"), **paths)
        )
        found[backend] = [Path(path).read_bytes() for path in paths.values()]
    assert found["cuda"] == found["cpu"]
    assert all(found["cpu"])
