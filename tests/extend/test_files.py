"""From files to files: what is written, in every layout, whatever the threads and chunks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.errors import OUT_OF_MEMORY
from tests.support.commands import Commands
from tests.support.extend.data import INSERT, LENGTH, Pairs, simulated_pairs, write_pairs
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

GIVEN = ("--insert-size", INSERT, "--insert-sd", 8)


@pytest.fixture
def pairs() -> Pairs:
    return simulated_pairs()


def records(path: Path, lines: int = 4) -> list[list[str]]:
    text = path.read_text().splitlines()
    return [text[i : i + lines] for i in range(0, len(text), lines)]


def fields(header: str) -> dict[str, str]:
    return dict(item.split("=") for item in header.split()[1:])


def test_pairs_become_their_fragments(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    first, second = write_pairs(tmp_path, pairs)
    done = ngsgpu(
        "extend", "-i", first, "-I", second, "-o", tmp_path / "e.fq", "-t", 2,
        "--remaining1", tmp_path / "r1.fq", "--remaining2", tmp_path / "r2.fq",
        "--stats", tmp_path / "s.json",
    )  # fmt: skip
    assert done.status == 0, done.err
    extended = records(tmp_path / "e.fq")
    names = [int(record[0].split()[0][2:]) for record in extended]
    assert names == sorted(names)
    right = 0
    for name, (header, bases, plus, qualities) in zip(names, extended, strict=True):
        assert plus == "+"
        assert len(bases) == len(qualities) == int(fields(header)["length"])
        (a, b), (c, d) = (map(int, fields(header)[f"read{m}"].split("-")) for m in (1, 2))
        assert (a, b, d) == (0, LENGTH, len(bases))
        read, mate = pairs.first[name], pairs.second[name]
        assert bases[a:b] == read.bases.decode(), "the reads' own bases stay"
        assert qualities[a:b] == (read.qualities or b"").decode()
        assert reverse_complement(bases[c:d].replace("N", "A")) == mate.bases.decode().replace(
            "N", "T"
        )
        right += bases[b:c] == pairs.fragments[name][b:c] and d == len(pairs.fragments[name])
    total = len(pairs.first)
    assert len(extended) > 0.8 * total
    assert right > 0.98 * len(extended)
    rest = [int(record[0][2:].split("/")[0]) for record in records(tmp_path / "r1.fq")]
    assert sorted(names + rest) == list(range(total))
    assert (tmp_path / "r2.fq").read_bytes() == fastq([pairs.second[name] for name in rest])
    stats = json.loads((tmp_path / "s.json").read_text())
    assert stats["insert"]["estimated"]
    assert stats["insert"]["mean"] == pytest.approx(INSERT, abs=4)
    assert stats["insert"]["sd"] == pytest.approx(8, abs=3)
    assert stats["pairs"]["total"] == total
    assert stats["pairs"]["connected"] == len(extended)


def test_unsorted_output_has_the_same_records(
    tmp_path: Path, pairs: Pairs, ngsgpu: Commands
) -> None:
    first, second = write_pairs(tmp_path, pairs)
    for name, options in (("a", ()), ("b", ("--unsorted",))):
        done = ngsgpu("extend", "-i", first, "-I", second, "-o", tmp_path / name, *GIVEN, *options)
        assert done.status == 0, done.err
    assert sorted(records(tmp_path / "a")) == sorted(records(tmp_path / "b"))


def test_outward_extension(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    first, second = write_pairs(tmp_path, pairs)
    options = ("-o", tmp_path / "e.fq", "--outward", "--strict", 2, *GIVEN)
    done = ngsgpu("extend", "-i", first, "-I", second, *options)
    assert done.status == 0, done.err
    genome = pairs.genome, reverse_complement(pairs.genome)
    longer = inside = 0
    for header, bases, _, _ in records(tmp_path / "e.fq"):
        (a, b), (c, d) = (map(int, fields(header)[f"read{m}"].split("-")) for m in (1, 2))
        pair = int(header.split()[0][2:])
        assert bases[a:b] == pairs.first[pair].bases.decode()
        assert (b - a, d - c) == (LENGTH, LENGTH)
        outside = bases[:a], bases[d:]
        longer += len(bases) > d - a
        inside += all(any(part in strand for strand in genome) for part in outside)
    total = len(records(tmp_path / "e.fq"))
    assert longer > 0.9 * total
    assert inside > 0.9 * total


def test_mate_pairs_are_turned(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    """Reads that point outwards give the same fragments, written the other way round."""

    def reverse_complemented(record: Record) -> Record:
        bases = record.bases.decode().translate(str.maketrans("ACGTN", "TGCAN"))[::-1]
        return Record(record.header, bases.encode(), (record.qualities or b"")[::-1])

    inward = write_pairs(tmp_path, pairs)
    outward = [
        write(tmp_path / f"o{m}.fq", fastq([reverse_complemented(r) for r in side]))
        for m, side in ((1, pairs.first), (2, pairs.second))
    ]
    texts = []
    for (one, two), library in ((inward, "pe"), (outward, "mp")):
        done = ngsgpu(
            "extend", "-i", one, "-I", two, "-o", tmp_path / "e", *GIVEN, "--library", library
        )
        assert done.status == 0, done.err
        texts.append([record[1] for record in records(tmp_path / "e")])
    # N are replaced at other places, so that single pairs may come out otherwise.
    same = np.mean([text in set(texts[1]) for text in texts[0]])
    assert same > 0.97


def test_overlapping_pairs(tmp_path: Path, ngsgpu: Commands) -> None:
    pairs = simulated_pairs(seed=5)
    short = [
        Record(b"s%d" % i, f[:LENGTH].encode(), b"I" * LENGTH)
        for i, f in enumerate(pairs.fragments)
    ]
    mates = [
        Record(r.header, reverse_complement(f[: LENGTH + 40]).encode()[:LENGTH], b"I" * LENGTH)
        for r, f in zip(short, pairs.fragments, strict=True)
    ]
    one, two = write(tmp_path / "1", fastq(short)), write(tmp_path / "2", fastq(mates))
    done = ngsgpu("extend", "-i", one, "-I", two, "-o", tmp_path / "e")
    assert done.status == 0, done.err
    found = records(tmp_path / "e")
    assert len(found) > 0.9 * len(short)
    for header, bases, _, _ in found:
        assert bases == pairs.fragments[int(header.split()[0][2:])][: LENGTH + 40]


def test_formats_and_qualities(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    first, second = write_pairs(tmp_path, pairs)
    inputs = ("-i", first, "-I", second, *GIVEN)

    def run(name: str, *options: object) -> list[list[str]]:
        done = ngsgpu("extend", *inputs, "-o", tmp_path / name, *options)
        assert done.status == 0, done.err
        return records(tmp_path / name, 2 if "--fasta" in options else 4)

    plain = run("plain.fq")
    fasta = run("plain.fa", "--fasta")
    assert [(h[1:], b) for h, b in fasta] == [(h[1:], b) for h, b, _, _ in plain]
    constant = run("constant.fq", "--gap-quality", 32)
    for header, _, _, qualities in constant:
        (_, b), (c, _) = (map(int, fields(header)[f"read{m}"].split("-")) for m in (1, 2))
        assert set(qualities[b:c]) <= {"A"}
    both = run("all.fq", "--include-remaining")
    assert len(both) == 2 * len(pairs.first) - len(plain)
    # FASTA in, FASTA out.
    sides = [
        write(tmp_path / f"{m}.fa", b"".join(b">%s\n%s\n" % r[:2] for r in side))
        for m, side in ((1, pairs.first), (2, pairs.second))
    ]
    done = ngsgpu(
        "extend", "-i", sides[0], "-I", sides[1], "-o", tmp_path / "e.fa",
        "--remaining1", tmp_path / "r.fa", *GIVEN,
    )  # fmt: skip
    assert done.status == 0, done.err
    extended = (tmp_path / "e.fa").read_text().count(">")
    assert extended > 0.8 * len(pairs.first)
    assert (tmp_path / "r.fa").read_text().count(">") == 2 * (len(pairs.first) - extended)


def test_dry_run(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    first, second = write_pairs(tmp_path, pairs)
    done = ngsgpu("extend", "-i", first, "-I", second, "--dry-run")
    assert done.status == 0, done.err
    assert f"{len(pairs.first):,} pairs" in done.out or f"pairs    {len(pairs.first):,}" in done.out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["1.fq", "2.fq"]
    stats = tmp_path / "plan.json"
    assert ngsgpu("extend", "-i", first, "-I", second, "--dry-run", "--stats", stats).status == 0
    memory = json.loads(stats.read_text())["memory"]
    assert memory["reads"] == 2 * len(pairs.first)
    assert [own["name"] for own in memory["allocations"]] == ["reads", "tables", "other"]
    assert sum(own["bytes"] for own in memory["allocations"]) == memory["planned_bytes"]


def test_empty_input(tmp_path: Path, ngsgpu: Commands) -> None:
    for name in ("1", "2"):
        write(tmp_path / name, b"")
    done = ngsgpu("extend", "-i", tmp_path / "1", "-I", tmp_path / "2", "-o", tmp_path / "e")
    assert done.status == 0, done.err
    assert (tmp_path / "e").read_bytes() == b""
    assert "no pairs\n" in done.err
    assert "±" not in done.err


def test_one_pair(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    first = write(tmp_path / "1", fastq(list(pairs.first[:1])))
    second = write(tmp_path / "2", fastq(list(pairs.second[:1])))
    rest = tmp_path / "rest"
    given = ("-i", first, "-I", second, "-o", tmp_path / "e", "--remaining1", rest)
    done = ngsgpu("extend", *given, *GIVEN)
    assert done.status == 0, done.err
    assert (tmp_path / "e").read_bytes() == b""
    assert rest.read_bytes() == first.read_bytes() + second.read_bytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-I", "2.fq", "--insert-size", 300), "--insert-sd"),
        (("-I", "2.fq", "--strict", 3), "--strict"),
        ((), "pairs"),
        (("-I", "2.fq", "--min-overlap", 30), "--min-overlap"),
        (("-I", "2.fq", "--remaining2", "x"), "--remaining1"),
        (("-I", "2.fq", "--fasta", "--include-remaining"), "--fasta"),
        (("-I", "2.fq", *GIVEN, "--min-length", 500), "--min-length"),
        (("-I", "2.fq", "--min-length", 500, "--max-length", 400), "exceed --max-length (400)"),
        (("-I", "2.fq", "--memory", "1M"), "--memory"),
        (("-I", "2.fq", "--backend", "cuda"), "cuda"),
    ],
)
def test_refusals(
    tmp_path: Path,
    pairs: Pairs,
    ngsgpu: Commands,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    words: str,
) -> None:
    write_pairs(tmp_path, pairs)
    monkeypatch.chdir(tmp_path)
    done = ngsgpu("extend", "-i", "1.fq", "-o", "e.fq", *options)
    assert done.status == (OUT_OF_MEMORY if words == "--memory" else 2)
    assert words in done.error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.fq", "2.fq"]


def test_too_few_pairs_to_estimate_from(tmp_path: Path, pairs: Pairs, ngsgpu: Commands) -> None:
    first = write(tmp_path / "1", fastq(list(pairs.first[:5])))
    second = write(tmp_path / "2", fastq(list(pairs.second[:5])))
    done = ngsgpu("extend", "-i", first, "-I", second, "-o", tmp_path / "e")
    assert done.status == 2
    assert "of 5 sampled pairs" in done.error
    assert "--insert-size" in done.error
    assert "--library" in done.error
    assert not (tmp_path / "e").exists()
