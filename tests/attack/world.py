"""A small world to attack: reads, references, a database, and every command on them."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pysam

from ngsgpu.correct.forests.features import MOST_FEATURES
from ngsgpu.correct.forests.forest import FEATURES
from ngsgpu.io.compress.zstd import library as zstd
from ngsgpu.train.samples import save_samples
from tests.support.io.alignments import bam, pairs_of
from tests.support.io.oracle import Bad, read_fastq
from tests.support.io.records import Record

_PAIRS: Final = 260
_GENOME: Final = 4000
_READ: Final = 100
_COMPLEMENT: Final = bytes.maketrans(b"ACGT", b"TGCA")

NODES: Final = (
    (1, 1, "no rank", "root"),
    (2, 1, "domain", "Bacteria"),
    (10, 2, "genus", "G one"),
    (11, 10, "species", "G one a"),
    (12, 10, "species", "G one b"),
)


@dataclass(frozen=True)
class Command:
    """A command line in which ``IN/`` and ``OUT/`` stand for the folders of a case.

    Attributes:
        name: what reports call it.
        line: the arguments.
        stdin: an input that comes through standard input.
        before: what lies in ``OUT`` before, by the name of what is copied from ``IN``.
        prints: whether its result is what it prints.
    """

    name: str
    line: str
    stdin: str | None = None
    before: tuple[tuple[str, str], ...] = ()
    prints: bool = False

    @property
    def arguments(self) -> list[str]:
        return self.line.split()

    @property
    def inputs(self) -> list[str]:
        """Names of the files and folders that are read."""
        named = [word[3:].split("/")[0] for word in self.arguments if word.startswith("IN/")]
        return named + ([self.stdin] if self.stdin else [])

    @property
    def outputs(self) -> list[str]:
        """Names of the files and folders that are written."""
        return [word[4:] for word in self.arguments if word.startswith("OUT/")]

    def placed(self, folder: Path) -> list[str]:
        """The arguments for a case's folder."""
        return [
            str(folder / ("in" if word.startswith("IN/") else "out") / word.split("/", 1)[1])
            if word.startswith(("IN/", "OUT/"))
            else word
            for word in self.arguments
        ]


_MANY = (
    "-o OUT/calls.tsv --kraken-reads OUT/kraken.tsv --report OUT/report.txt --krona OUT/krona.txt "
    "--cami OUT/cami.profile --biom OUT/table.biom --abundance OUT/abundance.tsv "
    "--coverage OUT/coverage.tsv --stats OUT/classify.json"
)

COMMANDS: Final = (
    Command("correct", "correct -q -t 2 -i IN/r1.fq -I IN/r2.fq -o OUT/c1.fq -O OUT/c2.fq "
            "--stats OUT/correct.json"),
    Command("correct gz", "correct -q -t 2 -i IN/r1.fq.gz -o OUT/c1.fq.gz"),
    Command("correct zst", "correct -q -t 2 -i IN/r1.fq.zst -o OUT/c1.fq.zst"),
    Command("correct bam", "correct -q -t 2 -i IN/p.bam -o OUT/c1.fq"),
    Command("correct cram", "correct -q -t 2 -i IN/a.cram --cram-reference IN/refs/g0.fna "
            "-o OUT/c1.fq"),
    Command("correct stdin", "correct -q -t 1 -i - -o OUT/c1.fq", stdin="r1.fq"),
    Command("merge", "merge -q -t 2 -i IN/r1.fq -I IN/r2.fq -o OUT/m.fq --unmerged1 OUT/u1.fq "
            "--unmerged2 OUT/u2.fq --hist OUT/m.hist --ihist OUT/m.ihist --stats OUT/merge.json"),
    Command("merge gz", "merge -q -t 1 -i IN/r1.fq.gz -I IN/r2.fq -o OUT/m.fq.gz"),
    Command("extend", "extend -q -t 2 -i IN/r1.fq -I IN/r2.fq -o OUT/e.fq --remaining1 OUT/e1.fq "
            "--remaining2 OUT/e2.fq --insert-size 220 --insert-sd 20 --stats OUT/extend.json"),
    Command("extend mixed", "extend -q -t 1 -i IN/x1.fq -I IN/x2.fq -o OUT/e.fq "
            "--remaining1 OUT/e1.fq --remaining2 OUT/e2.fq --insert-size 220 --insert-sd 20"),
    Command("correct mixed", "correct -q -t 2 -i IN/x1.fq -I IN/x2.fq -o OUT/c1.fq -O OUT/c2.fq"),
    Command("correct by k-mers", "correct --method spectrum -q -t 2 -i IN/r1.fq -I IN/r2.fq "
            "-o OUT/c1.fq -O OUT/c2.fq --stats OUT/correct.json"),
    Command("deplete-index", "deplete-index -q -t 2 IN/refs/g1.fna -o OUT/host.idx"),
    Command("deplete", "deplete -q -t 2 -d IN/host.idx -i IN/r1.fq -I IN/r2.fq -o OUT/k1.fq "
            "-O OUT/k2.fq --stats OUT/deplete.json"),
    Command("deplete renamed", "deplete -q -t 2 -d IN/kept1.idx -i IN/r1.fq.gz -o OUT/k1.fq "
            "--rename"),
    Command("deplete-index union", "deplete-index union -q -t 2 IN/kept1.idx IN/kept2.idx "
            "-o OUT/both.idx --keep-kmers"),
    Command("deplete-index diff", "deplete-index diff -q -t 1 IN/kept1.idx IN/kept2.idx "
            "-o OUT/rest.idx"),
    Command("deplete-index intersect", "deplete-index intersect -q -t 2 IN/kept1.idx IN/kept2.idx "
            "-o OUT/shared.idx --keep-kmers"),
    Command("deplete-index info", "deplete-index info IN/kept1.idx", prints=True),
    Command("kmers spectrum", "kmers spectrum -t 1 --exact -i IN/r1.fq -o OUT/kmers.tsv"),
    Command("kmers count", "kmers count -q -t 2 -i IN/r1.fq -I IN/r2.fq -k 21 -o OUT/counts "
            "--histo OUT/kmers.histo"),
    Command("kmers count bam", "kmers count -q -t 2 -i IN/p.bam -k 21 -o OUT/counts "
            "--histo OUT/kmers.histo"),
    Command("kmers union", "kmers union -t 2 IN/counts1 IN/counts2 -o OUT/union"),
    Command("kmers dump", "kmers dump -t 1 -d IN/counts1 -o OUT/counts.tsv"),
    Command("kmers query", "kmers query -t 1 -d IN/counts1 -i IN/more.fna -o OUT/query.tsv"),
    Command("kmers histo", "kmers histo -t 1 -d IN/counts1 -o OUT/histo.tsv"),
    Command("kmers info", "kmers info -d IN/counts1", prints=True),
    Command("unitigs", "unitigs -q -t 2 -i IN/r1.fq -I IN/r2.fq -o OUT/unitigs.fa "
            "--gfa OUT/unitigs.gfa --stats OUT/unitigs.json"),
    Command("unitigs of counts", "unitigs -q -t 1 -d IN/counts1 -o OUT/unitigs.fa"),
    Command("assemble", "assemble -q -t 2 -i IN/r1.fq -I IN/r2.fq -o OUT/contigs.fa "
            "--gfa OUT/contigs.gfa --scaffolds OUT/scaffolds.fa --coverage OUT/coverage.bedgraph "
            "--stats OUT/assemble.json"),
    Command("index bwa", "index build -q -t 2 IN/refs/g0.fna -o OUT/reference"),
    Command("index fm", "index build -q -t 2 --format fm IN/refs/g0.fna -o OUT/index"),
    Command("index query", "index query -q -t 2 IN/index -i IN/r1.fq -o OUT/matches.paf"),
    Command("index query gz", "index query -q -t 1 IN/index -i IN/r1.fq.gz -i IN/p.bam "
            "-o OUT/matches.paf --stats OUT/query.json"),
    Command("index query bwa", "index query -q -t 2 IN/ref -i IN/r1.fq -o OUT/matches.paf"),
    Command("index query of bwa's own", "index query -q -t 2 IN/bare -i IN/r1.fq "
            "-o OUT/matches.paf"),
    Command("db stats", "db stats -d IN/db", prints=True),
    Command("db info", "db info -d IN/db --targets", prints=True),
    Command("db verify", "db verify -d IN/db", prints=True),
    Command("db build", "db build -q -t 2 IN/refs -d OUT/db --taxonomy IN/tax --map IN/map.tsv "
            "--partitions 2"),
    Command("db build stats", "db build -q -t 2 IN/refs -d OUT/db --taxonomy IN/tax "
            "--map IN/map.tsv --stats OUT/build.json"),
    Command("db add", "db add -q -t 1 IN/more.fna -d OUT/db --map IN/map.tsv",
            before=(("db", "db"),)),
    Command("db remove", "db remove -q -t 1 g1 -d OUT/db", before=(("db", "db"),)),
    Command("classify", "classify -q -t 2 -d IN/db -i IN/r1.fq -I IN/r2.fq " + _MANY),
    Command("classify sorted", "classify -q -t 2 -d IN/db -i IN/r1.fq.gz -I IN/r2.fq.gz "
            "-o OUT/calls.tsv --classified-out OUT/c1.fq --classified-out2 OUT/c2.fq "
            "--unclassified-out OUT/u1.fq.gz --unclassified-out2 OUT/u2.fq.gz"),
    Command("extract", "extract -q -t 2 -c IN/calls.tsv -i IN/r1.fq -I IN/r2.fq -d IN/db "
            "-o OUT/e1.fq -O OUT/e2.fq --taxon 1 --with-children --stats OUT/extract.json"),
    Command("extract by Kraken's lines", "extract -q -t 2 -c IN/named.txt -i IN/r1.fq -I IN/r2.fq "
            "-o OUT/e1.fq -O OUT/e2.fq --taxon 1,2,10,11,12"),
    Command("classify references", "classify -q -t 1 --references IN/refs --taxonomy IN/tax "
            "--map IN/map.tsv -i IN/r1.fq.gz -o OUT/calls.tsv"),
    Command("classify sheet", "classify -q -t 2 -d IN/db --samples IN/sheet.tsv "
            "-o OUT/calls.{sample}.tsv --biom OUT/all.biom"),
    Command("classify partition", "classify -q -t 1 -d IN/db --only-partition 0 -i IN/r1.fq "
            "-I IN/r2.fq --candidates OUT/0.cand"),
    Command("classify-merge", "classify-merge -q -t 1 -d IN/db IN/0.cand IN/1.cand " + _MANY),
    Command("classify-table", "classify-table IN/report.txt IN/other.txt --reads OUT/reads.tsv "
            "--abundances OUT/shares.tsv --taxpasta OUT/taxpasta.tsv --biom OUT/all.biom"),
    Command("evaluate correction", "evaluate correction --truth IN/truth.sam -i IN/r1.fq "
            "-I IN/r2.fq -o IN/c1.fq -O IN/c2.fq --json OUT/correction.json"),
    Command("evaluate merging", "evaluate merging --truth IN/truth.sam -i IN/r1.fq -I IN/r2.fq "
            "-m IN/m.fq --json OUT/merging.json"),
    Command("evaluate kmers", "evaluate kmers --reference IN/refs/g0.fna -k 15 -i IN/r1.fq "
            "-I IN/r2.fq -o IN/c1.fq -O IN/c2.fq --json OUT/kmers.json"),
    Command("evaluate mapped", "evaluate mapped --reference IN/refs/g0.fna --alignments "
            "IN/truth.sam -i IN/r1.fq -I IN/r2.fq -o IN/c1.fq -O IN/c2.fq -m IN/m.fq "
            "--json OUT/mapped.json"),
    Command("evaluate extension", "evaluate extension --reference IN/refs/g0.fna "
            "--truth IN/truth.sam --extended IN/e.fq --json OUT/extension.json"),
    Command("evaluate classification", "evaluate classification --classified IN/calls.tsv "
            "--taxonomy IN/tax --truth IN/truth.tsv --references IN/db "
            "--json OUT/classification.json"),
    Command("evaluate mapped cram", "evaluate mapped --reference IN/refs/g0.fna --alignments "
            "IN/a.cram -i IN/r1.fq -I IN/r2.fq -o IN/c1.fq -O IN/c2.fq --json OUT/mapped.json"),
    Command("evaluate Kraken's lines", "evaluate classification --classified IN/named.txt "
            "--taxonomy IN/tax --composition IN/shares.tsv --references IN/map.tsv "
            "--json OUT/classification.json"),
    Command("train extract", "train extract -t 1 --truth IN/truth.sam -i IN/r1.fq -I IN/r2.fq "
            "--group one --every 4 -o OUT/samples.npz"),
    Command("train fit", "train fit --trees 2 --leaves 4 IN/samples.npz -o OUT/forests.npz"),
    Command("train export", "train export IN/forests.npz -o OUT/own.forests"),
    Command("correct by forests", "correct -q -t 2 --model IN/own.forests -i IN/r1.fq -I IN/r2.fq "
            "-o OUT/c1.fq -O OUT/c2.fq"),
    Command("workflow init", "workflow init OUT/study"),
    Command("report", "report IN/study.json -o OUT/report.html"),
    Command("report of taxa", "report IN/taxa.json -o OUT/report.html --tables OUT/tables "
            "--methods OUT/methods.md --software OUT/software.yml"),
)  # fmt: skip

TABLES: Final = ("abundance", "coverage", "evidence")
"""Tables of a classification that a report shows."""
BY_NAME: Final = {command.name: command for command in COMMANDS}


def make_world(folder: Path, run: Callable[[list[str]], int | None]) -> None:
    """Make all inputs, those that come from other commands by running these.

    Args:
        folder: a new folder.
        run: runs a command line of ngsgpu and returns its exit status.

    Raises:
        RuntimeError: a command failed.
    """
    folder.mkdir(parents=True)
    source = random.Random(11)
    genomes = [_random_bases(source, _GENOME) for _ in range(2)]
    genomes.append(_mutated(source, genomes[0], 0.03))
    _write_reads(folder, source, genomes[0])
    _write_references(folder, genomes, _random_bases(source, 900))

    def made(line: str) -> None:
        words = [
            str(folder / word[3:]) if word.startswith("IN/") else word for word in line.split()
        ]
        if status := run(words):
            raise RuntimeError(f"exit status {status} of ngsgpu {line}")

    made("correct -q -i IN/r1.fq -I IN/r2.fq -o IN/c1.fq -O IN/c2.fq --stats IN/correct.json")
    made("merge -q -i IN/r1.fq -I IN/r2.fq -o IN/m.fq --stats IN/merge.json")
    made("extend -q -i IN/r1.fq -I IN/r2.fq -o IN/e.fq --insert-size 220 --insert-sd 20 "
         "--stats IN/extend.json")  # fmt: skip
    made("kmers spectrum --exact -i IN/r1.fq -o IN/kmers.tsv")
    made("deplete-index -q IN/refs/g1.fna -o IN/host.idx")
    for number, own in ((1, 2), (2, 0)):  # relatives: they have k-mers in common, and others
        made(f"deplete-index -q IN/refs/g{own}.fna -o IN/kept{number}.idx --keep-kmers")
    for mate in "12":
        made(f"kmers count -q -i IN/r{mate}.fq -k 21 -o IN/counts{mate}")
    made("index build -q --format fm IN/refs/g0.fna -o IN/index")
    for name in ("ref", "bare"):
        made(f"index build -q IN/refs/g0.fna -o IN/{name}")
    (folder / "bare.sums").unlink()
    made("db build -q IN/refs -d IN/db --taxonomy IN/tax --map IN/map.tsv --partitions 2")
    made("classify -q -d IN/db -i IN/r1.fq -I IN/r2.fq -o IN/calls.tsv --report IN/report.txt")
    made("classify -q -d IN/db -i IN/x2.fq --report IN/other.txt --abundance IN/abundance.tsv "
         "--coverage IN/coverage.tsv --evidence IN/evidence.tsv")  # fmt: skip
    _write_named_calls(folder)
    for part in "01":
        made(f"classify -q -d IN/db --only-partition {part} -i IN/r1.fq -I IN/r2.fq "
             f"--candidates IN/{part}.cand")  # fmt: skip
    _write_samples(folder / "samples.npz")
    made("train fit --trees 2 --leaves 4 IN/samples.npz -o IN/forests.npz")
    made("train export IN/forests.npz -o IN/own.forests")
    (folder / "study.json").write_text(
        '{"schema": "ngsgpu.study", "schema_version": 1, "samples": [{"name": "s", "kind": "real", '
        '"files": {"correct": "correct.json", "merge": "merge.json", "kmers": {"raw": '
        '"kmers.tsv"}}}]}\n'
    )


def _write_named_calls(folder: Path) -> None:
    """The calls as Kraken 2 writes them with ``--use-names``, and a study and shares of taxa."""
    rows = [line.split("\t") for line in (folder / "calls.tsv").read_text().splitlines()[1:]]
    (folder / "named.txt").write_text(
        "".join(
            f"{'U' if row[1] == '0' else 'C'}\t{row[0]}\t{row[3]} (taxid {row[1]})\t100|100\t0:9\n"
            for row in rows
        )
    )
    (folder / "shares.tsv").write_text("taxid\tfraction\n11\t0.75\n12\t0.25\n")
    files = {"report": "other.txt", **{own: f"{own}.tsv" for own in TABLES}}
    study = {"schema": "ngsgpu.study", "schema_version": 2,
             "samples": [{"name": "s", "files": {"classification": {"db": files}}}]}  # fmt: skip
    (folder / "taxa.json").write_text(json.dumps(study) + "\n")


def lay_out(world: Path, command: Command, folder: Path, *, exist_ok: bool = False) -> None:
    """Make the folders ``in``, ``out`` and ``tmp`` of a case, with copies of what is read."""
    for name in ("in", "out", "tmp"):
        (folder / name).mkdir(parents=True, exist_ok=exist_ok)
    needed = set(command.inputs)
    if "sheet.tsv" in needed:
        needed |= {"r1.fq", "r2.fq", "r1.fq.gz"}
    if "taxa.json" in needed:
        needed |= {"other.txt", *(f"{own}.tsv" for own in TABLES)}
    if "study.json" in needed:
        needed |= {"correct.json", "merge.json", "kmers.tsv"}
    for name in needed:
        _copy(world / name, folder / "in" / name)
    for name, target in command.before:
        _copy(world / name, folder / "out" / target)


def _copy(source: Path, target: Path) -> None:
    """Copy a file, a folder, or all files with a prefix."""
    if source.is_dir():
        shutil.copytree(source, target)
    elif not source.exists():
        for path in source.parent.glob(f"{source.name}.*"):
            shutil.copy2(path, target.parent / path.name)
    else:
        shutil.copy2(source, target)


def _random_bases(source: random.Random, length: int) -> bytes:
    return bytes(source.choices(b"ACGT", k=length))


def _mutated(source: random.Random, bases: bytes, rate: float) -> bytes:
    return bytes(source.choice(b"ACGT") if source.random() < rate else base for base in bases)


def _write_reads(folder: Path, source: random.Random, genome: bytes) -> None:
    """Pairs of 2 x 100, most of which overlap, with qualities, errors, N and their truth.

    ``x1.fq`` and ``x2.fq`` hold the same pairs cut to lengths from 60 to 100.
    """
    mates: tuple[list[bytes], list[bytes]] = ([], [])
    mixed: tuple[list[bytes], list[bytes]] = ([], [])
    truth = [f"@HD\tVN:1.4\tSO:unsorted\n@SQ\tSN:g0\tLN:{len(genome)}\n".encode()]
    for number in range(_PAIRS):
        length = source.randint(130, 260)
        start = source.randrange(len(genome) - length)
        second = start + length - _READ
        for mate, at in enumerate((start, second)):
            forward = genome[at : at + _READ]
            fields = (b"p%d" % number, b"99" if mate == 0 else b"147", b"g0", b"%d" % (at + 1),
                      b"99", b"100=", b"=", b"%d" % ((second, start)[mate] + 1), b"0", forward,
                      b"~" * _READ)  # fmt: skip
            truth.append(b"\t".join(fields) + b"\n")
            read = forward if mate == 0 else forward[::-1].translate(_COMPLEMENT)
            read = _mutated(source, read, 0.01)
            if source.random() < 0.05:
                read = read[:50] + b"N" + read[51:]
            quality = bytes(source.choices(b"#5AFI", weights=(1, 2, 5, 10, 20), k=_READ))
            for records, kept in ((mates, _READ), (mixed, source.randint(60, _READ))):
                fields = number, mate + 1, read[:kept], quality[:kept]
                records[mate].append(b"@p%d/%d\n%b\n+\n%b\n" % fields)
    for mate, records in enumerate(mixed, 1):
        (folder / f"x{mate}.fq").write_bytes(b"".join(records))
    for mate, records in enumerate(mates, 1):
        (folder / f"r{mate}.fq").write_bytes(b"".join(records))
        (folder / f"r{mate}.fq.gz").write_bytes(gzip.compress(b"".join(records), 1, mtime=0))
        (folder / f"r{mate}.fq.zst").write_bytes(zstd_frames(b"".join(records)))
    (folder / "p.bam").write_bytes(bam(pairs_of(*map(_records, mates)), 5000))
    (folder / "truth.sam").write_bytes(b"".join(truth))
    (folder / "g0.fna").write_bytes(b">g0\n" + genome + b"\n")
    pysam.view(  # type: ignore[attr-defined]
        "-C", "-T", str(folder / "g0.fna"), "-o", str(folder / "a.cram"), str(folder / "truth.sam"),
        catch_stdout=False,
    )  # fmt: skip
    (folder / "sheet.tsv").write_text(
        "sample\tfastq_1\tfastq_2\none\tr1.fq\tr2.fq\ntwo\tr1.fq.gz\t\n"
    )


def zstd_frames(data: bytes) -> bytes:
    """A file of frames with checksums, none of which ends where a record does."""
    options = {zstd.CompressionParameter.checksum_flag: 1}
    pieces = [data[at : at + 9973] for at in range(0, len(data), 9973)] or [b""]
    return b"".join(zstd.compress(piece, options=options) for piece in pieces)


def _records(mates: list[bytes]) -> list[Record]:
    found = read_fastq(b"".join(mates))
    assert not isinstance(found, Bad)
    return found


def _write_references(folder: Path, genomes: list[bytes], further: bytes) -> None:
    refs, tax = folder / "refs", folder / "tax"
    refs.mkdir()
    tax.mkdir()
    for number, genome in enumerate(genomes):
        (refs / f"g{number}.fna").write_bytes(
            b">g%d a genome\n" % number
            + b"".join(genome[at : at + 70] + b"\n" for at in range(0, len(genome), 70))
        )
    (folder / "more.fna").write_bytes(b">g3 further\n" + further + b"\n")
    (folder / "map.tsv").write_text("g0\t11\ng1\t12\ng2\t11\ng3\t12\n")
    (tax / "nodes.dmp").write_text(
        "".join(f"{node}\t|\t{parent}\t|\t{rank}\t|\n" for node, parent, rank, _ in NODES)
    )
    (tax / "names.dmp").write_text(
        "".join(f"{node}\t|\t{name}\t|\t\t|\tscientific name\t|\n" for node, _, _, name in NODES)
    )
    (folder / "truth.tsv").write_text(
        "read\ttaxid\n" + "".join(f"p{number}\t11\n" for number in range(_PAIRS))
    )


def _write_samples(path: Path) -> None:
    """Positions for training on, of which a feature tells whether the consensus is right."""
    values = np.random.default_rng(1).integers(0, 9, (600, 4 + MOST_FEATURES), dtype=np.int32)
    values[:, 0] %= len(FEATURES)
    save_samples(path, "two", values, (values[:, 4] > 2).astype(np.int8))
