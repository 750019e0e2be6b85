"""Reads by taxon, against an oracle that reads the table line by line."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from ngsgpu.classify.extract import calls as table
from ngsgpu.run.options import RunOptions
from tests.support.classify.world import NODES, World, make_world
from tests.support.commands import Commands, read_json
from tests.support.io.records import Record, fastq, write

PARENTS = {taxid: parent for taxid, parent, _, _ in NODES}
TAXIDS = [0, *PARENTS]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


@dataclass
class Case:
    """Reads or pairs, and their calls."""

    sides: list[list[Record]]
    taxids: list[int]

    @classmethod
    def of(cls, rng: random.Random, units: int, mates: int) -> Case:
        sides: list[list[Record]] = [[] for _ in range(mates)]
        numbered = rng.random() < 0.5
        for number in range(units):
            for mate, side in enumerate(sides, 1):
                size = rng.randint(1, 40)
                header = f"read{number}" + (f"/{mate}" if numbered else "")
                header += " more words" * (rng.random() < 0.3)
                bases = "".join(rng.choices("ACGTN", k=size)).encode()
                side.append(Record(header.encode(), bases, b"I" * size))
        return cls(sides, rng.choices(TAXIDS, k=units))

    def ours(self) -> bytes:
        rows = [
            f"read{n}\t{taxid}\tspecies\tname\t5\t-\t0\t0" for n, taxid in enumerate(self.taxids)
        ]
        head = "read\ttaxid\trank\tname\tscore\ttarget\tbegin\tend"
        return "".join(f"{row}\n" for row in [head, *rows]).encode()

    def kraken(self) -> bytes:
        rows = [f"{'CU'[not t]}\tread{n}\t{t}\t100|100\t0:5" for n, t in enumerate(self.taxids)]
        return "".join(f"{row}\n" for row in rows).encode()

    def with_names(self) -> bytes:
        """As Kraken 2 writes them with --use-names."""
        lines = [line.split(b"\t") for line in self.kraken().splitlines()]
        for fields in lines:
            fields[2] = b"Some (odd) taxon 7 (taxid " + fields[2] + b")"
        return b"".join(b"\t".join(fields) + b"\r\n" for fields in lines)

    def kept(
        self, taxa: list[int], exclude: list[int], *, children: bool, invert: bool
    ) -> list[list[Record]]:
        def is_below(taxid: int, others: list[int]) -> bool:
            while True:
                if taxid in others:
                    return True
                if not children or taxid in (0, 1):
                    return False
                taxid = PARENTS[taxid]

        wanted = [
            (is_below(taxid, taxa) and not is_below(taxid, exclude)) != invert
            for taxid in self.taxids
        ]
        return [
            [record for record, keep in zip(side, wanted, strict=True) if keep]
            for side in self.sides
        ]


@pytest.mark.parametrize("seed", range(12))
def test_random_calls(
    ngsgpu: Commands, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    case = Case.of(rng, rng.choice([0, 1, 700]), rng.choice([1, 2]))
    taxa = rng.sample(TAXIDS, rng.randint(1, 3))
    exclude = rng.sample(TAXIDS[1:], rng.randint(0, 2))
    children, invert = rng.random() < 0.6, rng.random() < 0.3
    text = rng.choice([case.ours, case.kraken, case.with_names])()
    calls = write(tmp_path / "calls", gzip.compress(text) if rng.random() < 0.3 else text)
    small = rng.choice([100, 1 << 20])
    monkeypatch.setattr(
        table, "read_line_blocks", lambda path, threads: LINES(path, block_bytes=small)
    )
    monkeypatch.setattr(
        "ngsgpu.run.options.RunOptions",
        lambda **given: RunOptions(**{**given, "units_per_task": rng.choice([1, 7, 1000])}),
    )
    words = ["--taxon", ",".join(map(str, taxa))]
    words += ["--exclude", ",".join(map(str, exclude))] if exclude else []
    words += ["--with-children", "--taxonomy", world.taxonomy] if children else []
    words += ["--invert"] if invert else []
    for mate, side in enumerate(case.sides):
        words += [("-i", "-I")[mate], write(tmp_path / f"{mate}.fq", fastq(side))]
        words += [("-o", "-O")[mate], tmp_path / f"out{mate}.fq"]
    stats = tmp_path / "stats.json"
    done = ngsgpu("extract", "-c", calls, *words, "--stats", stats, "-t", 2)
    assert done.status == 0, done.err
    kept = case.kept(taxa, exclude, children=children, invert=invert)
    for mate, side in enumerate(kept):
        assert (tmp_path / f"out{mate}.fq").read_bytes() == fastq(side)
    assert read_json(stats)["reads"] == {
        "total": sum(map(len, case.sides)), "kept": sum(map(len, kept)),
    }  # fmt: skip


LINES = table.read_line_blocks


def test_reads_of_a_classification(ngsgpu: Commands, world: World, tmp_path: Path) -> None:
    """By the table and by Kraken's lines, with the tree of the database, of pairs in one file."""
    database = tmp_path / "db"
    pairs_text = (
        f"@r{at // 2} x\n{read}\n+\n{'I' * len(read)}\n" for at, read in enumerate(world.reads[:60])
    )
    reads = write(tmp_path / "both.fq", "".join(pairs_text).encode())
    built = ngsgpu(
        "db", "build", *world.references, "-d", database, "--taxonomy", world.taxonomy,
        "--map", world.map, "--kmer", 10, "--sketch", 8, "--window", 60, "--stride", 51, "-q",
    )  # fmt: skip
    assert built.status == 0, built.err
    tables = {"-o": tmp_path / "calls.tsv", "--kraken-reads": tmp_path / "kraken"}
    named = [word for pair in tables.items() for word in pair]
    done = ngsgpu("classify", "-d", database, "-i", reads, "--interleaved", *named, "-q")
    assert done.status == 0, done.err
    taxids = [int(line.split("\t")[1]) for line in tables["-o"].read_text().splitlines()[1:]]
    wanted = [taxid in (20, 21, 22) for taxid in taxids]
    assert any(wanted) and not all(wanted)
    for calls in tables.values():
        out = tmp_path / f"{calls.name}.out"
        done = ngsgpu(
            "extract", "-c", calls, "-d", database, "--taxon", 20, "--with-children",
            "-i", reads, "--interleaved", "-o", out, "-q",
        )  # fmt: skip
        assert done.status == 0, done.err
        lines = reads.read_bytes().splitlines(keepends=True)
        pairs = [b"".join(lines[at : at + 8]) for at in range(0, len(lines), 8)]
        kept = [pair for pair, is_kept in zip(pairs, wanted, strict=True) if is_kept]
        assert out.read_bytes() == b"".join(kept)


def test_reads_without_names(ngsgpu: Commands, world: World, tmp_path: Path) -> None:
    """Their calls have empty names, too."""
    headers = ["@", "@ comment", "@a b"]
    bases = world.reads[0]
    text = "".join(f"{own}\n{bases}\n+\n{'I' * len(bases)}\n" for own in headers)
    reads = write(tmp_path / "r.fq", text.encode())
    database, calls, out = (tmp_path / name for name in ("db", "calls", "out.fq"))
    built = ngsgpu(
        "db", "build", *world.references, "-d", database, "--taxonomy", world.taxonomy,
        "--map", world.map, "-q",
    )  # fmt: skip
    assert built.status == 0, built.err
    for option in ("-o", "--kraken-reads"):
        done = ngsgpu("classify", "-d", database, "-i", reads, option, calls, "-q")
        assert done.status == 0, done.err
        done = ngsgpu("extract", "-c", calls, "-i", reads, "-o", out, "--taxon", 1, "--invert")
        assert done.status == 0, done.err
        assert out.read_bytes() == reads.read_bytes()


HEAD = b"read\ttaxid\n"


@pytest.mark.parametrize(
    ("calls", "words", "said"),
    [
        (HEAD + b"a\t1\n", [], "has 1 calls, and there are more reads"),
        (HEAD + b"a\t1\nb\t2\nc\t3\n", [], "there are 2 reads or pairs, and more calls"),
        (HEAD + b"b\t1\na\t2\n", [], "call 1 is of 'b', and the read in"),
        (HEAD + b"aa\t1\nb\t2\n", [], "call 1 is of 'aa'"),
        (HEAD + b"a\t1\nb\tx\n", [], "line 3: the line is no call"),
        (HEAD + b"a\t1\nb\n", [], "line 3: the line is cut (1 columns, the first line has 2)"),
        (HEAD + b"a\t1\nb\t2\t3\n", [], "line 3: the line is no call (3 columns"),
        (b"C\ta\t1\t9\t1:5\nC\tb\t1\n", [], "line 2: the line is cut (3 columns"),
        (b"C\ta\tX (taxid 1)\nC\tb\tX (taxid )\n", [], "line 2: the line is no call"),
        (b"C\ta\tX (taxid 1)\nC\tb\ttaxid 2)\n", [], "line 2: the line is no call"),
        (HEAD + b"a\t1\nb\t" + b"9" * 30 + b"\n", [], "line 3: the line is no call"),
        (b"read\tscore\na\t1\n", [], "the table has no column taxid"),
        (b"name\ttaxid\na\t1\n", [], "line 1: this is no table of calls"),
        (b"", [], "has 0 calls, and there are more reads"),
        (None, [], "no such file"),
        (HEAD, ["--with-children"], "taxa below others need a taxonomy"),
        (HEAD, ["--taxonomy", "TAX", "--with-children"], "taxon 999 is not in the taxonomy"),
        (HEAD, ["--taxonomy", "TAX", "-d", "db"], "give only one of it and --taxonomy"),
    ],
)
def test_refusals(
    ngsgpu: Commands, world: World, tmp_path: Path, calls: bytes | None, words: list[str], said: str
) -> None:
    """Nothing is written then."""
    reads = write(tmp_path / "r.fq", b"@a\nA\n+\nI\n@b\nC\n+\nI\n")
    path = tmp_path / "calls"
    if calls is not None:
        write(path, calls)
    taxon = 999 if "not in the taxonomy" in said else 1
    given = [str(world.taxonomy) if word == "TAX" else word for word in words]
    out = tmp_path / "out.fq"
    done = ngsgpu("extract", "-c", path, "-i", reads, "-o", out, "--taxon", taxon, *given)
    assert done.status == 2
    assert said in done.error
    assert not out.exists()


def test_taxa_that_no_read_has(ngsgpu: Commands, world: World, tmp_path: Path) -> None:
    """Without a taxonomy a warning; with one, taxa that it does not have are an error."""
    reads = write(tmp_path / "r.fq", b"@a\nA\n+\nI\n@b\nC\n+\nI\n")
    calls, out = write(tmp_path / "calls", HEAD + b"a\t1\nb\t1\n"), tmp_path / "out.fq"
    words = ["extract", "-c", calls, "-i", reads, "-o", out, "--taxon"]
    done = ngsgpu(*words, 777)
    assert (done.status, out.read_bytes()) == (0, b"")
    assert "ngsgpu: no read is called as taxon 777 itself" in done.err
    for taxon in ("1", "1 --invert", "777 --invert"):
        assert ("no read is" in ngsgpu(*words, *taxon.split()).err) == ("777" in taxon)
    for others in ([777], [1, "--exclude", 777]):
        done = ngsgpu(*words, *others, "--taxonomy", world.taxonomy)
        assert (done.status, "taxon 777 is not in the taxonomy" in done.error) == (2, True)
    done = ngsgpu(*words, "9" * 30)
    assert (done.status, "--taxon must be from 0 to 9,223," in done.error) == (2, True)


def test_no_taxon(ngsgpu: Commands, tmp_path: Path) -> None:
    done = ngsgpu("extract", "-c", tmp_path / "c", "-i", tmp_path / "r", "-o", tmp_path / "o")
    assert done.status == 2
    assert "ngsgpu extract needs --taxon" in done.err
