"""Calls of reads whose genomes a database has, has by another strain, or lacks.

    python -m benchmarks.accuracy.classification_sets --references GENOMES --taxonomy TAX \
        --map seqid2taxid.tsv --work FOLDER --choose 0 1 2 --check 100 101 -o out.json

Each draw (a seed) deals 24 genomes out: 5 whose strain the database lacks while it has another of
the species, 5 whose species and 4 whose genus it lacks, 3 that it has, and 7 that it has with 1 to
5 % of the bases changed, unevenly along the genome. 400 reads (200 of changed genomes) of each are
drawn with six lengths and rates of errors. ``ngsgpu`` classifies them with databases of several
windows at about the same memory and with other ways of calling, Kraken 2, if it is on the PATH,
with three values of ``--confidence``. Values were chosen on the draws of ``--choose``; those of
``--check`` are judged apart. Databases and reads stay in ``--work`` for the next run.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.classification_curves import RANKS, SEPARATOR, judge
from benchmarks.accuracy.classification_holdout import Genome, rates_of, read_genomes
from benchmarks.harness.document import describe_commit, write_document

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database
    from ngsgpu.classify.params import EvidenceParameters, QueryParameters

Kinds = Mapping[str, tuple[int, int, float]]

KINDS: Final[Kinds] = {
    "100, 0.5 %": (100, 0, 0.005),
    "75, 1 %": (75, 0, 0.01),
    "250, 1 %": (250, 0, 0.01),
    "2 x 150, 0.3 %": (150, 150, 0.003),
    "100, 3 %": (100, 0, 0.03),
    "150, 0.1 %": (150, 0, 0.001),
}
"""Bases of a read, of its mate (0: there is none), errors per base."""
READS: Final = 400
FRAGMENT: Final = 350
CHANGED: Final = ("changed 1 %", "changed 2 %", "changed 3 %", "changed 4 %", "changed 5 %",
                  "changed 5 %", "changed 4 %")  # fmt: skip
WINDOWS: Final = ((127, 112, 21), (127, 112, 32), (63, 48, 9), (31, 16, 3))
"""Window, stride and sketch; all but the second take about the same memory."""
CONFIDENCES: Final = (0.0, 0.1, 0.2)
ACGT: Final = np.frombuffer(b"ACGT", dtype=np.uint8)
COMPLEMENT: Final = bytes.maketrans(b"ACGT", b"TGCA")

Roles = dict[int, str]


def deal(genomes: Sequence[Genome], seed: int) -> tuple[Roles, list[Genome]]:
    """The role of each genome that reads are drawn from, and the genomes of the database."""
    order = [int(i) for i in np.random.default_rng(seed).permutation(len(genomes))]
    species = [genome.species for genome in genomes]
    genus = [genome.genus for genome in genomes]
    roles: Roles = {}
    for i in order:
        left = species.count(species[i]) - sum(species[j] == species[i] for j in roles)
        if left > 1 and len(roles) < 5:
            roles[i] = "strain"

    def others(taxon: list[int], of: list[int]) -> list[int]:
        taken = {taxon[i] for i in of}
        return [i for i in order if i not in roles and taxon[i] not in taken]

    rest = others(species, list(roles))
    lacked = [i for i in rest if genus.count(genus[i]) > 1][:5]
    rest = [i for i in others(species, [*roles, *lacked]) if i not in lacked]
    unrelated = {genus[i] for i in [*roles, *lacked]}
    strangers = [i for i in rest if genus[i] not in unrelated][:4]
    foreign = {genus[i] for i in strangers}
    rest = [i for i in rest if i not in strangers and genus[i] not in foreign]
    strains = list(roles)
    roles |= dict.fromkeys(lacked, "species") | dict.fromkeys(strangers, "genus")
    roles |= dict.fromkeys(rest[:3], "stays") | dict(zip(rest[3:10], CHANGED, strict=False))
    there = [
        genome
        for i, genome in enumerate(genomes)
        if i not in strains
        and genome.species not in {species[j] for j in lacked}
        and genome.genus not in foreign
    ]
    return roles, there


def sequences(path: Path) -> list[NDArray[np.uint8]]:
    """The bases of a compressed FASTA file's sequences."""
    records = gzip.decompress(path.read_bytes()).split(b">")[1:]
    bodies = (record.partition(b"\n")[2].replace(b"\n", b"").upper() for record in records)
    return [np.frombuffer(body, dtype=np.uint8) for body in bodies]


def changed(bases: NDArray[np.uint8], rate: float, source: np.random.Generator) -> Any:
    """A sequence with substitutions, whose rate varies from 500 bases to the next."""
    local = np.minimum(source.gamma(2.0, rate / 2, len(bases) // 500 + 1), 0.3)
    places = np.flatnonzero(source.random(len(bases)) < np.repeat(local, 500)[: len(bases)])
    found = bases.copy()
    codes = np.minimum(np.searchsorted(ACGT, found[places]), 3)
    found[places] = ACGT[(codes + source.integers(1, 4, len(places))) % 4]
    return found


def draw_reads(
    genome: Sequence[NDArray[np.uint8]],
    number: int,
    kind: tuple[int, int, float],
    source: np.random.Generator,
) -> Iterator[tuple[bytes, bytes]]:
    """Reads, or pairs, from anywhere in a genome."""
    length, mate, errors = kind
    room = np.array([max(len(bases) - 600, 0) for bases in genome], dtype=np.float64)

    def misread(text: bytes) -> bytes:
        bases = np.frombuffer(text, dtype=np.uint8).copy()
        places = np.flatnonzero(source.random(len(bases)) < errors)
        bases[places] = ACGT[source.integers(0, 4, len(places))]
        return bases.tobytes()

    for which in source.choice(len(genome), number, p=room / room.sum()):
        size = max(FRAGMENT, length) if mate else length
        start = source.integers(0, len(genome[which]) - size)
        text = genome[which][start : start + size].tobytes()
        if source.random() < 0.5:
            text = text.translate(COMPLEMENT)[::-1]
        first = misread(text[:length])
        yield first, misread(text[-mate:].translate(COMPLEMENT)[::-1]) if mate else b""


def make_reads(
    genomes: Sequence[Genome], seed: int, folder: Path, kinds: Kinds = KINDS
) -> list[Genome]:
    """Write the reads of a draw and their labels; return the genomes of the database."""
    roles, there = deal(genomes, seed)
    if (folder / "labels.tsv").exists():
        return there
    source = np.random.default_rng(1000 + seed)

    def drawn() -> Iterator[Drawn]:
        for i, role in roles.items():
            own, genome = genomes[i], sequences(genomes[i].path)
            if role in CHANGED:
                rate = float(role.split()[1]) / 100
                genome = [changed(bases, rate, source) for bases in genome]
            reads = READS // 2 if role in CHANGED else READS
            yield Drawn(own.species, own.genus, role, genome, reads)

    write_reads(drawn(), there, source, folder, kinds)
    return there


class Drawn(NamedTuple):
    """A genome that reads are drawn from."""

    species: int
    genus: int
    role: str
    genome: Sequence[NDArray[np.uint8]]
    reads: int


def write_reads(
    drawn: Iterable[Drawn],
    there: Sequence[Genome],
    source: np.random.Generator,
    folder: Path,
    kinds: Kinds,
) -> None:
    """Draw reads of each kind from genomes, and write them and their labels.

    Args:
        drawn: the genomes.
        there: those of the database.
        source: of the reads.
        folder: is made.
        kinds: of reads.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["label\ttaxid\tgenus_taxid\tspecies_genome_here\tgenus_genome_here\trole"]
    texts: dict[tuple[str, int], list[bytes]] = {}
    species, genera = ({getattr(own, rank) for own in there} for rank in RANKS)
    for number, own in enumerate(drawn):
        rows.append(f"g{number}\t{own.species}\t{own.genus}\t{own.species in species}\t"
                    f"{own.genus in genera}\t{own.role}")  # fmt: skip
        for kind, values in kinds.items():
            for at, pair in enumerate(draw_reads(own.genome, own.reads, values, source)):
                for mate, text in enumerate(pair, start=1):
                    if text:
                        name = f">g{number}{SEPARATOR}{at}\n".encode()
                        texts.setdefault((kind, mate), []).append(name + text + b"\n")
    for (kind, mate), lines in texts.items():
        file_of(folder, kind, mate, kinds).write_bytes(b"".join(lines))
    (folder / "labels.tsv").write_text("\n".join(rows) + "\n")


def file_of(folder: Path, kind: str, mate: int, kinds: Kinds = KINDS) -> Path:
    """The file of a kind of reads."""
    return folder / f"{list(kinds).index(kind)}_{mate}.fa"


def files_of(folder: Path, kind: str, kinds: Kinds = KINDS) -> list[Path]:
    """The reads, or both mates, of a kind."""
    mates = (1, 2) if kinds[kind][1] else (1,)
    return [file_of(folder, kind, mate, kinds) for mate in mates]


def settings() -> Iterator[tuple[str, tuple[int, int, int], QueryParameters, EvidenceParameters]]:
    """Name, windows, parameters and evidence of each way of classifying."""
    from ngsgpu.classify.params import (
        CALLS_BY_EVIDENCE,
        METACACHE_CALLS,
        NO_EVIDENCE,
        EvidenceParameters,
        QueryParameters,
    )

    usual, one_pass = EvidenceParameters(), NO_EVIDENCE
    for windows in WINDOWS:
        name = "--window {} --stride {} --sketch {}".format(*windows)
        yield name if windows != WINDOWS[0] else "defaults", windows, CALLS_BY_EVIDENCE, usual
    for identity in (0.92, 0.93, 0.95, 0.96):
        evidence = replace(usual, species_identity=identity)
        yield f"--species-identity {identity}", WINDOWS[0], CALLS_BY_EVIDENCE, evidence
    for hits in (2, 4):
        own = replace(CALLS_BY_EVIDENCE, min_hits=hits)
        yield f"--min-hits {hits}", WINDOWS[0], own, usual
    yield "--species-identity 0", WINDOWS[0], QueryParameters(), one_pass
    yield "MetaCache's", (127, 112, 16), METACACHE_CALLS, one_pass


def build(there: Sequence[Genome], windows: tuple[int, int, int], wanted: Any) -> Database:
    """A database in memory."""
    from ngsgpu.classify.database.build import build_database
    from ngsgpu.classify.params import DatabaseParameters, SketchParameters
    from ngsgpu.run.options import RunOptions

    window, stride, sketch = windows
    parameters = SketchParameters(window=window, stride=stride, sketch=sketch)
    return build_database(
        [own.path for own in there], None, parameters=DatabaseParameters(parameters),
        taxonomy=wanted.taxonomy, maps=[wanted.map], options=RunOptions(threads=2),
    )  # fmt: skip


def classify(
    database: Database,
    files: Sequence[Path],
    truth: dict[str, dict[str, str]],
    parameters: QueryParameters,
    evidence: EvidenceParameters,
) -> Any:
    """Call all reads of a sample and judge them: int64[2, 3], see ``judge``."""
    from ngsgpu.classify.call.cpu import call_block
    from ngsgpu.classify.call.evidence import SpeciesEvidence
    from ngsgpu.classify.query.engine import Engine
    from ngsgpu.classify.run.samples import one_sample, queries_of

    left = evidence.left_by_errors(database.parameters.sketch.kmer)
    engine = Engine(database, parameters, left_by_errors=left)
    first, *second = map(str, files)
    lane = one_sample([first], second, interleaved=False, name="x").lanes[0]
    seen = SpeciesEvidence(engine.target_node, engine.lineages, engine.rules)
    blocks = []
    for mates in lane.batches(threads=2, phred_offset="auto", chunk_bytes=256 << 20):
        block = engine.find_candidates(queries_of(mates, lane))
        seen.add(block.candidates, engine.expected_hits(block), block.features)
        names = [label_of(name.decode()) for name in mates[0].names()]
        blocks.append((block, [truth[name] for name in names]))
    accepted = None
    if evidence.species_identity > 0:
        accepted = seen.accepted(evidence, engine.sketch.kmer)
    doubtful = evidence.doubtful_confidence * left
    return sum(
        judge(engine, call_block(engine, block, None, accepted, doubtful).call, own)
        for block, own in blocks
    )


def calls_of(database: Database, files: Sequence[Path]) -> list[tuple[str, int]]:
    """Label and taxid of each read of a sample, classified by the defaults; 0 without a call."""
    from ngsgpu.classify.call.cpu import call_block
    from ngsgpu.classify.call.evidence import SpeciesEvidence
    from ngsgpu.classify.params import CALLS_BY_EVIDENCE, EvidenceParameters
    from ngsgpu.classify.query.engine import Engine
    from ngsgpu.classify.run.samples import one_sample, queries_of

    engine, evidence = Engine(database, CALLS_BY_EVIDENCE), EvidenceParameters()
    first, *second = map(str, files)
    lane = one_sample([first], second, interleaved=False, name="x").lanes[0]
    seen = SpeciesEvidence(engine.target_node, engine.lineages, engine.rules)
    blocks = []
    for mates in lane.batches(threads=2, phred_offset="auto", chunk_bytes=256 << 20):
        block = engine.find_candidates(queries_of(mates, lane))
        seen.add(block.candidates, engine.expected_hits(block), block.features)
        blocks.append((block, [label_of(name.decode()) for name in mates[0].names()]))
    accepted = seen.accepted(evidence, engine.sketch.kmer)
    nodes, taxids = len(engine.lineages), engine.taxonomy.taxid
    found: list[tuple[str, int]] = []
    for block, labels in blocks:
        call = call_block(engine, block, None, accepted, evidence.doubtful_confidence).call
        node = np.where(call >= nodes, engine.target_node[np.maximum(call - nodes, 0)], call)
        taxid = np.where(node >= 0, taxids[np.maximum(node, 0)], 0)
        found += zip(labels, taxid.tolist(), strict=True)
    return found


def label_of(name: str) -> str:
    return name.split(SEPARATOR)[0]


class Kraken:
    """Kraken 2 with a database of the same genomes.

    Args:
        there: the genomes.
        folder: of the draw.
        wanted: the command's arguments.
        size: bytes of the database at most; None: no limit.
        lazy: whether ``build`` is left to the caller.
    """

    def __init__(
        self,
        there: Sequence[Genome],
        folder: Path,
        wanted: Any,
        size: int | None = None,
        *,
        lazy: bool = False,
    ) -> None:
        from ngsgpu.taxonomy.dump import load_taxonomy

        self._size = size
        self._database = folder / ("kraken2" if size is None else f"kraken2-{size}")
        self._tree = load_taxonomy(wanted.taxonomy)
        self._there, self._wanted = there, wanted
        self.bytes = 0
        if not lazy:
            self.build()

    def build(self) -> None:
        """Build the database, if it is not there."""
        if not (self._database / "hash.k2d").exists():
            self._build(self._there, self._wanted)
        self.bytes = sum(path.stat().st_size for path in self._database.glob("*.k2d"))

    def remove(self) -> None:
        """Remove the database."""
        shutil.rmtree(self._database)

    def _build(self, there: Sequence[Genome], wanted: Any) -> None:
        shutil.rmtree(self._database, ignore_errors=True)
        shutil.copytree(wanted.taxonomy, self._database / "taxonomy")
        taxid = dict(line.split("\t")[:2] for line in wanted.map.read_text().splitlines() if line)
        labelled = self._database / "all.fna"
        with labelled.open("wb") as out:
            for genome in there:
                for record in gzip.decompress(genome.path.read_bytes()).split(b">")[1:]:
                    header, _, body = record.partition(b"\n")
                    name = header.split()[0].decode()
                    if name in taxid:
                        out.write(f">{name}|kraken:taxid|{taxid[name]}\n".encode() + body)
        own = ["kraken2-build", "--db", str(self._database), "--no-masking"]
        limit = [] if self._size is None else ["--max-db-size", str(self._size)]
        for more in (["--add-to-library", str(labelled)], ["--build", *limit]):
            subprocess.run([*own, *more], check=True, capture_output=True)
        labelled.unlink()
        shutil.rmtree(self._database / "library")

    def classify(
        self, files: Sequence[Path], truth: dict[str, dict[str, str]], confidence: float
    ) -> Any:
        """As ``classify``."""
        return self.judge(self.calls(files, confidence), truth)

    def calls(self, files: Sequence[Path], confidence: float) -> list[tuple[str, int]]:
        """Label and taxid of each read; 0 of those without a call."""
        lines = subprocess.run(
            ["kraken2", "--db", str(self._database), "--confidence", str(confidence),
             *(["--paired"] if len(files) > 1 else []), *map(str, files)],
            check=True, capture_output=True, text=True,
        ).stdout.splitlines()  # fmt: skip
        fields = [line.split("\t") for line in lines]
        return [(label_of(own[1]), int(own[2]) if own[0] == "C" else 0) for own in fields]

    def judge(self, calls: Sequence[tuple[str, int]], truth: dict[str, dict[str, str]]) -> Any:
        """Judge calls, see ``judge``."""
        call = [self._tree.index_of(taxid) if taxid else -1 for _, taxid in calls]

        class Calls:
            taxonomy = self._tree
            target_node = np.zeros(1, dtype=np.int32)
            lineages = self._tree.ranked_lineages()

        return judge(Calls, np.array(call), [truth[label] for label, _ in calls])


def run(seed: int, genomes: Sequence[Genome], wanted: Any) -> dict[str, Any]:
    """All programs on a draw: right calls, calls and reads to be found, by program and kind."""
    folder = wanted.work / f"draw{seed}"
    there = make_reads(genomes, seed, folder)
    with (folder / "labels.tsv").open(newline="") as file:
        truth = {row["label"]: row for row in csv.DictReader(file, delimiter="\t")}
    found: dict[str, dict[str, Any]] = {}
    databases: dict[tuple[int, int, int], Database] = {}
    for name, windows, parameters, evidence in sorted(settings(), key=lambda own: own[1]):
        if windows not in databases:
            databases = {windows: build(there, windows, wanted)}
        for kind in KINDS:
            tally = classify(
                databases[windows], files_of(folder, kind), truth, parameters, evidence
            )
            found.setdefault(name, {})[kind] = tally.tolist()
    document: dict[str, Any] = {"seed": seed, "references": len(there)}
    if shutil.which("kraken2"):
        kraken = Kraken(there, folder, wanted)
        document["kraken2_bytes"] = kraken.bytes
        for confidence in CONFIDENCES:
            found[f"kraken2 --confidence {confidence:g}"] = {
                kind: kraken.classify(files_of(folder, kind), truth, confidence).tolist()
                for kind in KINDS
            }
    return {**document, "results": found}


def summary(draws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rates over all draws, by program; of all kinds of reads together and of each."""
    rates: dict[str, Any] = {}
    for name in draws[0]["results"]:
        own = [one["results"][name] for one in draws]
        by_kind = {kind: np.sum([one[kind] for one in own], axis=0) for kind in KINDS}
        by_kind = {"all": np.sum(list(by_kind.values()), axis=0), **by_kind}
        rates[name] = {
            kind: rates_of(dict(zip(RANKS, tally.tolist(), strict=True)))
            for kind, tally in by_kind.items()
        }
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name in ("references", "taxonomy", "map", "work"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--choose", type=int, nargs="+", default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--check", type=int, nargs="+", default=[100, 101], metavar="SEED")
    wanted = parser.parse_args()
    genomes = read_genomes(wanted)
    document: dict[str, Any] = {**describe_commit(), "genomes": len(genomes)}
    for part in ("choose", "check"):
        draws = []
        for seed in getattr(wanted, part):
            draws.append(run(seed, genomes, wanted))
            print(part, seed, file=sys.stderr)
        document[part] = {"summary": summary(draws), "draws": draws}
        for name, rates in document[part]["summary"].items():
            shown = [f"{rates['all'][rank][what]:.3f}"
                     for rank in RANKS for what in ("precision", "sensitivity")]  # fmt: skip
            print(f"| {part} | `{name}` | {shown[0]}, {shown[1]} | {shown[2]}, {shown[3]} |")
    write_document(document, wanted.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
