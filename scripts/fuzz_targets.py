"""What ``scripts/fuzz.py`` feeds with changed files: every parser, and small valid files for it.

A target gets bytes, which are a file, its content before packing, or one of the files of a folder.
What a checksum would refuse is sealed again, so that the code behind the checksum is reached. Each
returns, or raises an error of ours; the driver takes anything else for a finding.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import random
import shutil
import socket
import tarfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness.archives import unpack
from ngsgpu.chains.steps import read_steps
from ngsgpu.classify.database.database import open_database
from ngsgpu.classify.extract.calls import CallReader
from ngsgpu.classify.outputs.biom import biom_table
from ngsgpu.classify.outputs.merged import abundance_tables, reads_table, taxpasta_table
from ngsgpu.classify.outputs.reports import read_trees
from ngsgpu.classify.run.samples import read_samples
from ngsgpu.collectives.plan import read_plan
from ngsgpu.collectives.topology import parse_topology
from ngsgpu.correct.forests.forest import MAGIC, Model
from ngsgpu.deplete import index as hosts
from ngsgpu.evaluate.classification.calls import read_calls
from ngsgpu.evaluate.classification.files import read_composition as read_shares_of_taxa
from ngsgpu.evaluate.classification.files import read_references
from ngsgpu.evaluate.truth.origins import read_origins
from ngsgpu.io.compress import gzip as gzip_reader
from ngsgpu.io.output.manifest import parse_json, sealed
from ngsgpu.io.text.reader import read_batches
from ngsgpu.kmers import database as kmers
from ngsgpu.report.sections.classification.files import (
    read_composition,
    read_coverage,
    read_evidence,
    read_shares,
)
from ngsgpu.run.serve.arriving import Arriving, RefusedError
from ngsgpu.run.serve.request import Request, close
from ngsgpu.suffix.store import open_index as open_references
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.mapping import map_targets
from ngsgpu.taxonomy.tree import Taxonomy
from scripts.soak_files import simulate_pairs
from tests.attack.world import zstd_frames
from tests.support.io.alignments import content, pairs_of
from tests.support.io.oracle import Bad, read_fastq
from tests.support.io.records import bgzf
from tests.support.report_results import ABUNDANCE, COVERAGE, EVIDENCE

ROOT: Final = Path(__file__).resolve().parents[1]
FORMATS: Final = ROOT / "tests/data/formats"
LARGEST: Final = 1 << 16
"""Bytes of the largest valid file to begin with."""
CHUNKS: Final = (64, 301, 1 << 12, 1 << 20)
"""Bytes of text in which read files are read; the length of the input chooses."""


@dataclass(frozen=True)
class Target:
    """A parser.

    Attributes:
        seeds: valid inputs.
        check: parses bytes, in a folder that it may write to.
    """

    seeds: Callable[[], list[bytes]]
    check: Callable[[bytes, Path], None]


def _read(data: bytes, folder: Path, name: str = "reads") -> None:
    """Read a file of reads in small pieces, with threads."""
    path = folder / name
    path.write_bytes(data)
    chunk = CHUNKS[len(data) % len(CHUNKS)]
    usual = gzip_reader.CHUNK_BYTES
    gzip_reader.CHUNK_BYTES = max(chunk, 2048)  # type: ignore[misc]
    try:
        for batch in read_batches(path, threads=1 + len(data) % 3, chunk_bytes=chunk):
            assert len(batch) > 0
    finally:
        gzip_reader.CHUNK_BYTES = usual  # type: ignore[misc]


def _read_alignments(data: bytes, folder: Path) -> None:
    _read(bgzf(data, 5000), folder)


def _texts() -> list[bytes]:
    source = random.Random(3)
    genome = bytes(source.choices(b"ACGT", k=600))
    mates = simulate_pairs(source, [genome, genome])
    fastq = b"".join(mates[0][:6])
    fasta = b">one first\n%b\n>two\n%b\n%b\n" % (genome[:80], genome[80:140], genome[140:170])
    return [fastq, fastq.replace(b"\n", b"\r\n"), fasta, fasta.lower(), b"@a\nA\n+\nI"]


def _gzips() -> list[bytes]:
    texts = _texts()
    two = [gzip.compress(text, level, mtime=0) for text in texts for level in (0, 9)]
    return [*two, two[0] + two[1], two[1] + bytes(512)]


def _packed() -> list[bytes]:
    return [pack(t) for t in _texts() for pack in (zstd_frames, bz2.compress, lzma.compress)]


def _alignments() -> list[bytes]:
    records = [read_fastq(text) for text in _texts()[:1] * 2]
    assert not any(isinstance(own, Bad) for own in records)
    pairs = pairs_of(*records)  # type: ignore[arg-type]
    return [content(pairs), content(pairs[:1]), content([])]


def _bams() -> list[bytes]:
    return [bam_bytes(text) for text in _alignments()]


def bam_bytes(text: bytes) -> bytes:
    """A BAM file of its content."""
    return bgzf(text, 5000)


def _kept(folder: Path) -> Path:
    """The files of the last release's formats, unpacked once in a folder."""
    place = folder / "formats"
    if not place.exists():
        with tarfile.open(sorted(FORMATS.glob("*.tar.gz"))[-1]) as archive:
            unpack(archive, place)
    return place


def _members(archived: str) -> list[tuple[str, bytes]]:
    """Files of a database in the formats that are kept, by their names, the small ones."""
    found = []
    with tarfile.open(sorted(FORMATS.glob("*.tar.gz"))[-1]) as archive:
        for entry in archive.getmembers():
            if entry.name.startswith(archived) and entry.size <= LARGEST:
                file = archive.extractfile(entry)
                assert file is not None
                found.append((entry.name, file.read()))
    return sorted(found)


def _folder_seeds(archived: str) -> Callable[[], list[bytes]]:
    return lambda: [bytes([i]) + data for i, (_, data) in enumerate(_members(archived))]


def _sealed_again(data: bytes) -> bytes:
    """A manifest with the right checksum, if it is one."""
    try:
        values = parse_json(data)
        return sealed(values).encode() if isinstance(values, dict) else data
    except (ValueError, TypeError):
        return data


def _in_folder(archived: str, read: Callable[[Path], None]) -> Callable[[bytes, Path], None]:
    """A check that has one file of a database replaced: the first byte says which."""
    members = _members(archived)

    def check(data: bytes, folder: Path) -> None:
        if not data:
            return
        place = _kept(folder)
        name, before = members[data[0] % len(members)]
        after = data[1:]
        if name.endswith(("json", "sums")):
            after = _sealed_again(after)
        (place / name).write_bytes(after)
        try:
            read(place / archived)
        finally:
            (place / name).write_bytes(before)

    return check


def _open_database(path: Path) -> None:
    with closing(open_database(path)) as database:
        for number in database.built():
            database.load_partition(number)


def _open_kmers(path: Path) -> None:
    kmers.open_database(path).histogram()


def _open_references(path: Path) -> None:
    open_references(path)


def _open_hosts(data: bytes, folder: Path) -> None:
    """An index of a host, its header as a line of JSON before the table."""
    head, _, table = data.partition(b"\n")
    try:
        values = parse_json(head)
        text = hosts._sealed(values) if isinstance(values, dict) else head
    except ValueError:
        text = head
    path = folder / "host.idx"
    path.write_bytes(text + table)
    hosts.open_index(path)


def _host_seeds() -> list[bytes]:
    ((_, data),) = _members("small.idx")
    return [data[: hosts.HEADER_BYTES].rstrip() + b"\n" + data[hosts.HEADER_BYTES :]]


def _parse_model(data: bytes, folder: Path) -> None:
    sha256 = hashlib.sha256(data).hexdigest().encode()
    model = Model.parse(folder / "model", MAGIC + sha256 + b"\n" + data)
    model.forests(30.0)


def _models() -> list[bytes]:
    data = (ROOT / "ngsgpu/correct/models/default.forests").read_bytes()
    head, _, payload = data[len(MAGIC) :].partition(b"\n")[2].partition(b"\n")
    values, at, small = json.loads(head), 0, b""
    for own in (values["anchor"], values["candidate"]):  # the first tree of each forest
        roots = payload[at : at + 4 * (own["trees"] + 1)]
        at += len(roots)
        nodes = int.from_bytes(roots[4:8], "little")
        small += roots[:8] + payload[at : at + 8 * nodes]
        at += 8 * own["nodes"]
        own["trees"], own["nodes"] = 1, nodes
    return [json.dumps(values).encode() + b"\n" + small, head + b"\n" + payload]


def _steps(ending: str) -> Callable[[bytes, Path], None]:
    def check(data: bytes, folder: Path) -> None:
        path = folder / f"chain.{ending}"
        path.write_bytes(data)
        read_steps(str(path))

    return check


def _yaml() -> list[bytes]:
    return [
        b"steps:\n  - trim: {cut_tail: true}\n  - deplete: {index: human.idx}\n  - merge\n",
        b'steps: [correct: {keep: true}, first: {command: classify, arguments: "-d a"}]\n',
        b"steps:\n- trim\n- merge: {out: &a m.fq, hist: m.hist}\n",
    ]


def _toml() -> list[bytes]:
    return [
        b'steps = ["trim", "deplete", "merge"]\n\n[deplete]\nindex = "human.idx"\n',
        (ROOT / "ngsgpu/chains/presets/isolate.toml").read_bytes(),
    ]


NODES: Final = b"1\t|\t1\t|\tno rank\t|\n2\t|\t1\t|\tdomain\t|\n11\t|\t2\t|\tspecies\t|\n"
NAMES: Final = b"1\t|\troot\t|\t\t|\tscientific name\t|\n11\t|\tG a\t|\t\t|\tscientific name\t|\n"
DUMPS: Final = {
    "nodes.dmp": NODES,
    "names.dmp": NAMES,
    "merged.dmp": b"12\t|\t11\t|\n",
}
LINEAGES: Final = b"GB_GCA_1.1\td__B;p__P;c__C;o__O;f__F;g__G;s__G a\nRS_GCF_2.1\td__B;p__Q\n"
TABLES: Final = (
    b"accession\taccession.version\ttaxid\tgi\ng0\tg0.1\t11\t0\ng1\tg1.1\t2\t0\n",
    b"g0\t11\ng1\t2\n",
    b'{"accession":"GCF_1.1","organism":{"taxId":11}}\n',
)


def _dump_seeds() -> list[bytes]:
    return [*(bytes([i]) + text for i, text in enumerate(DUMPS.values())), b"\3" + LINEAGES]


def _load_taxonomy(data: bytes, folder: Path) -> None:
    """Dumps of which one is replaced, or a table of lineages: the first byte says which."""
    place = folder / "taxonomy"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    chosen = data[0] % (len(DUMPS) + 1) if data else 0
    if chosen == len(DUMPS):
        (place / "bac120_taxonomy.tsv").write_bytes(data[1:])
    else:
        for number, (name, text) in enumerate(DUMPS.items()):
            (place / name).write_bytes(data[1:] if number == chosen else text)
    load_taxonomy(place)


def _map(data: bytes, folder: Path) -> None:
    taxonomy = _known_taxonomy(folder)
    path = folder / "map.tsv"
    path.write_bytes(data)
    names = [b"g0.1", b"g1"]
    map_targets(names, names, taxonomy, [path], files=["GCF_1.1_x.fna", "b.fna"])


def _read_plan(data: bytes, folder: Path) -> None:
    path = folder / "plan.json"
    path.write_bytes(data)
    read_plan(path)


def _plans() -> list[bytes]:
    ours = {"format": "ngsgpu transfer plan", "kind": "all2all", "gpus": 2, "main": 0,
            "chunks": 1, "durations": ["1"], "paths": [[0, 1], [1, 0]]}  # fmt: skip
    gossip = {"type": "all2all", "num_gpus": 2, "main_gpu": 0, "num_steps": 1, "num_chunks": 1,
              "chunks": [1, 1], "plan": [[0, 1], [1, 0]]}  # fmt: skip
    return [json.dumps(values).encode() for values in (ours, gossip)]


def _read_topology(data: bytes, folder: Path) -> None:
    del folder
    parse_topology(data.decode(errors="replace"), "topology")


def _topologies() -> list[bytes]:
    places = (ROOT / "ngsgpu/collectives/topologies").iterdir()
    matrix = b"\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV2\t0-7\nGPU1\tNV2\t X \t0-7\n"
    return [*(path.read_bytes() for path in places if path.is_file()), matrix]


def _read_sheet(data: bytes, folder: Path) -> None:
    path = folder / "sheet.tsv"
    path.write_bytes(data)
    (folder / "r1.fq").write_bytes(b"")
    read_samples(path)


def _requests() -> list[bytes]:
    own = Request(["classify", "-i", "/dev/fd/9"], "served", 2, environment={"A": "b"})
    return [json.dumps(vars(own) | {"numbers": [0, 1, 2, *more]}).encode() for more in ([], [9])]


def _read_request(data: bytes, folder: Path) -> None:
    """A server's request, with as many files as one of ours may have."""
    del folder
    ends = socket.socketpair()
    with ends[0], ends[1], suppress(RefusedError):
        arriving = Arriving(ends[1])
        with suppress(OSError):
            ends[0].setblocking(False)
            files = [ends[0].fileno()] * (3 + len(data) % 2)
            socket.send_fds(ends[0], [len(data).to_bytes(4, "big") + data], files)
            ends[0].shutdown(socket.SHUT_WR)
        request = arriving.receive()
        assert request is not None
        close(request.files)


def _read_calls(data: bytes, folder: Path) -> None:
    """A table of calls, by the reader of extraction and by that of evaluation."""
    path = folder / "calls"
    path.write_bytes(data)
    taxonomy = _known_taxonomy(folder)
    try:
        for _ in read_calls(path, taxonomy, {"s1": 11}):
            pass
    finally:
        if b"\t|\t" not in data:  # MetaCache's are for evaluation only
            reader = CallReader(path, 1)
            while reader.take(1 + len(data) % 7):
                pass


def _known_taxonomy(folder: Path) -> Taxonomy:
    place = folder / "known"
    if not place.exists():
        place.mkdir()
        for name, text in DUMPS.items():
            (place / name).write_bytes(text)
    return load_taxonomy(place)


CALLS: Final = (
    b"read\ttaxid\trank\tname\tscore\ttarget\tbegin\tend\nr1\t11\tspecies\tG a\t9\ts1\t1\t99\n"
    b"\t0\tno rank\tunclassified\t0\t-\t0\t0\n",
    b"C\tr1\t11\t100|100\t11:5 |:| 0:9\nU\tr2\t0\t100\t0:9\n",
    b"C\tr1\tG a (taxid 11)\t100\t11:5\nU\t\tunclassified (taxid 0)\t100\t0:9\n",
    b"# TABLE_LAYOUT: x\nr1 c\t|\tspecies:G a(11)\nr2\t|\t--\nr3\t|\tsequence:s1\n",
)
REPORTS: Final = (
    b" 10.00\t1\t1\tU\t0\tunclassified\n 90.00\t9\t0\tR\t1\troot\n 90.00\t9\t1\tR2\t2\t  Bacteria\n"
    b" 80.00\t8\t8\tS\t11\t    G a\n",
    b" 90.00\t9\t0\t7\t6\tR\t1\troot\n 90.00\t9\t9\t7\t6\t \t10239\t  Viruses\n",
)


def _read_report(data: bytes, folder: Path) -> None:
    """A Kraken report, by the tables of samples and by the report's page."""
    path = folder / "S.kreport"
    path.write_bytes(data)
    try:
        samples = read_trees([path])
        if samples:
            reads_table(samples), abundance_tables(samples), taxpasta_table(samples)
            biom_table(samples)
    finally:
        read_composition(path)


def _read_tables(data: bytes, folder: Path) -> None:
    """Tables of a classification that a report shows: the first byte says which."""
    path = folder / "table.tsv"
    path.write_bytes(data[1:])
    (read_shares, read_coverage, read_evidence)[data[0] % 3 if data else 0](path)


def _table_seeds() -> list[bytes]:
    return [bytes([i]) + text.encode() for i, text in enumerate((ABUNDANCE, COVERAGE, EVIDENCE))]


def _read_truth(data: bytes, folder: Path) -> None:
    """Truth, or a composition and references: the first byte says which."""
    path = folder / "truth.tsv"
    path.write_bytes(data[1:])
    if not data or data[0] % 2:
        read_shares_of_taxa(path), read_references(path)
    else:
        read_origins(path, _known_taxonomy(folder))


TRUTHS: Final = (
    b"\0read\ttaxid\nr1\t11\nr2\t2\n",
    b"\0label\tspecies\ttaxid\tgenus_taxid\nG\tG a\t11\t10\n",
    b"\1taxid\tfraction\n11\t3\n2\t1\n",
)


TARGETS: Final[dict[str, Target]] = {
    "text": Target(_texts, _read),
    "gzip": Target(_gzips, _read),
    "bgzf": Target(lambda: [bgzf(text, size) for text in _texts() for size in (90, 999)], _read),
    "packed": Target(_packed, _read),
    "bam": Target(_alignments, _read_alignments),
    "bam file": Target(_bams, _read),
    "database": Target(_folder_seeds("small.db"), _in_folder("small.db", _open_database)),
    "k-mers": Target(_folder_seeds("small.kmers"), _in_folder("small.kmers", _open_kmers)),
    "references": Target(_folder_seeds("small.bwa"), _in_folder("small.bwa", _open_references)),
    "host": Target(_host_seeds, _open_hosts),
    "forests": Target(_models, _parse_model),
    "chain yaml": Target(_yaml, _steps("yaml")),
    "chain toml": Target(_toml, _steps("toml")),
    "request": Target(_requests, _read_request),
    "taxonomy": Target(_dump_seeds, _load_taxonomy),
    "map": Target(lambda: [*TABLES], _map),
    "calls": Target(lambda: [*CALLS], _read_calls),
    "kraken report": Target(lambda: [*REPORTS], _read_report),
    "tables": Target(_table_seeds, _read_tables),
    "truth": Target(lambda: [*TRUTHS], _read_truth),
    "plan": Target(_plans, _read_plan),
    "topology": Target(_topologies, _read_topology),
    "sheet": Target(lambda: [b"sample\tfastq_1\tfastq_2\none\tr1.fq\t\n"], _read_sheet),
}
