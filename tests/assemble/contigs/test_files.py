"""The command: contigs of made genomes, the graph's file, and what it refuses."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.assemble.contigs import run
from ngsgpu.errors import HostMemoryError
from ngsgpu.kmers import Source
from ngsgpu.run.options import RunOptions
from tests.support.commands import Commands, names, read_json
from tests.support.io.records import write
from tests.support.minhash.oracle import reverse_complement


def genome(seed: int) -> str:
    """6,000 bases, 180 of them twice: longer than a read, shorter than a fragment."""
    rng = random.Random(seed)
    one, repeat, two, three = (
        "".join(rng.choices("ACGT", k=size)) for size in (2500, 180, 1500, 1640)
    )
    return one + repeat + two + repeat + three


def pairs(sequences: list[str], coverage: int, seed: int) -> list[tuple[str, str]]:
    """Pairs of 100 bases with inserts of about 350, and an error in every fifth read."""
    rng = random.Random(seed)
    found = []
    for own in sequences:
        for _ in range(len(own) * coverage // 200):
            size = min(len(own), max(120, int(rng.gauss(350, 25))))
            begin = rng.randrange(len(own) - size + 1)
            mates = [own[begin : begin + 100], reverse_complement(own[begin : begin + size])[:100]]
            for mate in range(2):
                if rng.random() < 0.2:
                    at = rng.randrange(100)
                    mates[mate] = mates[mate][:at] + rng.choice("ACGT") + mates[mate][at + 1 :]
            found.append((mates[0], mates[1]) if rng.random() < 0.5 else (mates[1], mates[0]))
    return found


def written(folder: Path, reads: list[tuple[str, str]]) -> list[Path]:
    return [
        write(
            folder / f"R{mate + 1}.fq",
            "".join(
                f"@r{i}/{mate + 1}\n{own[mate]}\n+\n{'F' * 100}\n" for i, own in enumerate(reads)
            ).encode(),
        )
        for mate in range(2)
    ]


def contigs(path: Path) -> dict[str, str]:
    return {
        (lines := record.split("\n"))[0]: "".join(lines[1:])
        for record in path.read_text().split(">")[1:]
    }


GENOME = genome(1)


@pytest.mark.parametrize("is_turned", [False, True])
def test_pairs_choose_between_copies_that_differ(
    tmp_path: Path, ngsgpu: Commands, is_turned: bool
) -> None:
    """Two paths through a repeat have the same length; one mate says which is meant."""
    rng = random.Random(7)
    one, front, back, two, three = (
        "".join(rng.choices("ACGT", k=size)) for size in (2500, 130, 130, 1500, 1640)
    )
    other = front + "A" + back
    text = one + front + "C" + back + two + (reverse_complement(other) if is_turned else other)
    text += three
    first, second = written(tmp_path, pairs([text], 60, 3))
    fasta, stats = tmp_path / "c.fa", tmp_path / "s.json"
    done = ngsgpu("assemble", "-i", first, "-I", second, "-o", fasta, "--stats", stats, "-t", 1)
    assert done.status == 0, done.err
    (bases,) = contigs(fasta).values()
    assert bases in text or bases in reverse_complement(text)
    assert len(bases) > len(text) - 60
    assert read_json(stats)["joins"]["open"] == 0


def test_a_plasmid_that_shares_a_repeat(tmp_path: Path, ngsgpu: Commands) -> None:
    """Pairs lead from its end over the repeat to its beginning: it is a circle, written once."""
    rng = random.Random(12)
    one, repeat, two, plasmid = (
        "".join(rng.choices("ACGT", k=size)) for size in (2500, 180, 1640, 2600)
    )
    plasmid += repeat
    texts = [one + repeat + two, *[plasmid + plasmid[:400]] * 2]
    first, second = written(tmp_path, pairs(texts, 40, 5))
    fasta = tmp_path / "c.fa"
    assert ngsgpu("assemble", "-q", "-i", first, "-I", second, "-o", fasta).status == 0
    found = {header: bases for header, bases in contigs(fasta).items() if "circular=yes" in header}
    (bases,) = found.values()
    assert len(bases) == len(plasmid)
    assert bases in 2 * plasmid or bases in 2 * reverse_complement(plasmid)


@pytest.fixture(scope="module")
def mates(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return written(tmp_path_factory.mktemp("reads"), pairs([GENOME], 60, 2))


def test_a_repeat_is_bridged(tmp_path: Path, mates: list[Path], ngsgpu: Commands) -> None:
    """One contig, the same for any threads; the graph's file spells it, and the numbers agree."""
    fasta, gfa, stats = tmp_path / "c.fa", tmp_path / "g.gfa", tmp_path / "s.json"
    done = ngsgpu(
        "assemble", "-i", mates[0], "-I", mates[1], "-o", fasta, "--gfa", gfa, "--stats", stats,
        "-t", 1,
    )  # fmt: skip
    assert done.status == 0, done.err
    found = contigs(fasta)
    assert len(found) == 1
    ((header, bases),) = found.items()
    assert bases in GENOME or bases in reverse_complement(GENOME)
    assert len(bases) > len(GENOME) - 60
    assert bases <= reverse_complement(bases)
    name, length, coverage = header.split()
    assert (name, length) == ("contig_1", f"length={len(bases)}")
    assert 50 < float(coverage.removeprefix("coverage=")) < 70
    numbers = read_json(stats)
    assert numbers["contigs"]["bases"] == numbers["contigs"]["n50"] == len(bases)
    assert abs(numbers["insert_size"]["median"] - 350) < 5
    assert numbers["joins"] == {"by_a_path": 2, "by_a_patch": 0, "open": 0}
    assert numbers["rounds"][0]["kmer"] == 31

    lines = [line.split("\t") for line in gfa.read_text().splitlines()]
    segments = {line[1]: line[2] for line in lines if line[0] == "S"}
    segments = {
        name + sign: own if sign == "+" else reverse_complement(own)
        for name, own in segments.items()
        for sign in "+-"
    }
    overlap = numbers["rounds"][-1]["kmer"] - 1
    links = {(a + b, c + d) for t, a, b, c, d, size in (x for x in lines if x[0] == "L")}
    for a, b in links:
        assert segments[a][-overlap:] == segments[b][:overlap]
    (path,) = (line for line in lines if line[0] == "P")
    steps = path[2].split(",")
    assert path[3] == ",".join([f"{overlap}M"] * (len(steps) - 1))
    spelled = segments[steps[0]] + "".join(segments[step][overlap:] for step in steps[1:])
    assert spelled == bases
    turn = {"+": "-", "-": "+"}
    for a, b in itertools.pairwise(steps):
        assert {(a, b), (b[:-1] + turn[b[-1]], a[:-1] + turn[a[-1]])} & links

    before = fasta.read_bytes(), gfa.read_bytes()
    records = [path.read_text().split("@")[1:] for path in mates]
    both = "".join(f"@{a}@{b}" for a, b in zip(*records, strict=True))
    inside = write(mates[0].with_name("both.fq"), both.encode())
    done = ngsgpu(
        "assemble", "-q", "-i", inside, "--interleaved", "-o", fasta, "--gfa", gfa, "-t", 3
    )
    assert (done.status, done.err) == (0, "")
    assert (fasta.read_bytes(), gfa.read_bytes()) == before
    assert names(tmp_path) == ["c.fa", "g.gfa", "s.json"]


def test_reads_that_change_between_their_readings(
    tmp_path: Path, ngsgpu: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = written(tmp_path, pairs([GENOME], 20, 2))
    first_graph = run._first_graph

    def graph_and_change(*arguments: Any) -> Any:
        found = first_graph(*arguments)
        write(tmp_path / "other", own[0].read_bytes().replace(b"A", b"C", 50)).replace(own[0])
        return found

    monkeypatch.setattr(run, "_first_graph", graph_and_change)
    done = ngsgpu("assemble", "-i", own[0], "-I", own[1], "-o", tmp_path / "c.fa")
    assert done.status == 2
    assert f"{own[0]}: the file changed during the run" in done.error
    assert names(tmp_path) == ["R1.fq", "R2.fq"]


def test_alleles_and_single_reads(tmp_path: Path, ngsgpu: Commands) -> None:
    """A variant in half of the reads, as single reads: kept apart by default, merged if wanted."""
    other = GENOME[:1000] + {"A": "C"}.get(GENOME[1000], "A") + GENOME[1001:]
    reads = [read for pair in pairs([GENOME, other], 25, 3) for read in pair]
    path = write(
        tmp_path / "s.fa", "".join(f">{i}\n{own}\n" for i, own in enumerate(reads)).encode()
    )
    out = tmp_path / "c.fa"
    for choice, alleles in (("auto", 2), ("errors", 2), ("keep", 2), ("merge", 1)):
        done = ngsgpu(
            "assemble", "-q", "-s", path, "-k", "31,51", "--bubbles", choice, "--min-contig", 50,
            "-o", out,
        )  # fmt: skip
        assert (done.status, done.err) == (0, "")
        found = list(contigs(out).values())
        variants = [
            site
            for site in (GENOME[990:1011], other[990:1011])
            if any(site in own or reverse_complement(site) in own for own in found)
        ]
        assert len(variants) == alleles
        if choice == "errors":
            both = GENOME + "N" + other
            assert all(own in both or reverse_complement(own) in both for own in found)


def test_a_diploid_is_merged(tmp_path: Path, ngsgpu: Commands) -> None:
    """By default contigs go on over the alleles of a diploid, and a warning says so."""
    genome = "".join(random.Random(8).choices("ACGT", k=6000))
    text = list(genome)
    for at in range(150, 5900, 200):
        text[at] = "ACGT"["ACGT".index(text[at]) - 1]
    other = "".join(text)
    one, two = written(tmp_path, pairs([genome, other], 25, 3))
    sizes = []
    for choice, words in ((), "contigs have the more frequent one"), (
        ("--bubbles", "errors"), "contigs end at each of them",
    ):  # fmt: skip
        done = ngsgpu("assemble", "-q", "-i", one, "-I", two, "-o", tmp_path / "c.fa", *choice)
        assert done.status == 0
        assert "two alternatives that share the coverage" in done.err
        assert words in done.err
        own = contigs(tmp_path / "c.fa").values()
        sizes.append(max(map(len, own)))
        for bases in own:
            bases = max(
                bases, reverse_complement(bases), key=lambda own: own[:20] in genome + other
            )
            at = max(genome.find(bases[:20]), other.find(bases[:20]))
            assert all(
                base in pair for base, *pair in zip(bases, genome[at:], other[at:], strict=False)
            )
    assert sizes[0] > 5500 > 1000 > sizes[1]


def test_scaffolds_and_coverage(tmp_path: Path, ngsgpu: Commands) -> None:
    """60 bases that no read covers become N; coverage is that of the reads where each one lies."""
    middle, reads = 800, []
    for mates in pairs([GENOME], 60, 4):
        places = [max(GENOME.find(mate), GENOME.find(reverse_complement(mate))) for mate in mates]
        # Reads with errors, in a repeat's second copy, or over the gap.
        if all(at >= 0 and not middle - 100 < at < middle + 60 for at in places):
            reads.append((mates, places))
    one, other = written(tmp_path, [mates for mates, _ in reads])
    fasta, joined, bed = (tmp_path / name for name in ("c.fa", "s.fa", "c.bg"))
    done = ngsgpu(
        "assemble", "-q", "-i", one, "-I", other, "-k", "31,51,71", "-o", fasta,
        "--scaffolds", joined, "--coverage", bed, "-t", 2,
    )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    (scaffold,) = contigs(joined).values()
    found = {header.split()[0]: bases for header, bases in contigs(fasta).items()}
    assert len(found) == 2
    (name,) = contigs(joined)
    assert name.startswith(f"scaffold_1 length={len(scaffold)} contigs=")
    for part in name.split("contigs=")[1].split(","):
        own = found[part[:-1]]
        assert (own if part[-1] == "+" else reverse_complement(own)) in scaffold
    forward = max(scaffold, reverse_complement(scaffold), key=lambda own: own[:300] in GENOME)
    left, _, right = forward.partition("N")
    right = right.lstrip("N")
    gap = GENOME.index(right) - GENOME.index(left) - len(left)
    assert abs(forward.count("N") - gap) < 15

    rows = [line.split("\t") for line in bed.read_text().splitlines()]
    for contig, bases in found.items():
        runs = [(int(row[1]), int(row[2]), int(row[3])) for row in rows if row[0] == contig]
        assert [run[1] for run in runs[:-1]] == [run[0] for run in runs[1:]]
        assert (runs[0][0], runs[-1][1]) == (0, len(bases))
        depth = [n for a, b, n in runs for _ in range(a, b)]
        turned = bases not in GENOME
        begin = GENOME.index(reverse_complement(bases) if turned else bases)
        expected = [0] * len(GENOME)
        for _, places in reads:
            for at in places:
                for i in range(at, at + 100):
                    expected[i] += 1
        wanted = expected[begin : begin + len(bases)]
        wanted = wanted[::-1] if turned else wanted
        if len(bases) < 1000:
            assert depth == wanted
        else:
            assert sum(a != b for a, b in zip(depth, wanted, strict=True)) < 800


def test_mate_pairs(tmp_path: Path, ngsgpu: Commands) -> None:
    """Mates that point away from each other are used as single reads, and the files are named."""
    turned = [
        (reverse_complement(one), reverse_complement(two)) for one, two in pairs([GENOME], 60, 2)
    ]
    first, second = written(tmp_path, turned)
    stats = tmp_path / "s.json"
    done = ngsgpu("assemble", "-i", first, "-I", second, "-o", tmp_path / "c.fa", "--stats", stats)
    assert done.status == 0
    assert f"{first} and {second}: the mates point away from each other" in done.err
    assert read_json(stats)["insert_size"] is None


@pytest.mark.parametrize("size", [8, 100])
def test_pairs_that_make_no_graph(tmp_path: Path, ngsgpu: Commands, size: int) -> None:
    """Reads shorter than k, or that share nothing, as of a negative control: empty outputs."""
    rng = random.Random(5)
    inputs = [
        write(
            tmp_path / f"R{mate}.fa",
            "".join(f">r{i}/{mate}\n{''.join(rng.choices('ACGT', k=size))}\n" for i in range(50))
            .encode(),
        )
        for mate in (1, 2)
    ]  # fmt: skip
    own = {option: tmp_path / f"c{option}" for option in ("-o", "--gfa", "--scaffolds")}
    own |= {option: tmp_path / f"c{option}" for option in ("--coverage", "--stats")}
    given = [text for pair in own.items() for text in pair]
    done = ngsgpu("assemble", "-q", "-i", inputs[0], "-I", inputs[1], *given)
    assert (done.status, done.err) == (0, "")
    assert own["--gfa"].read_text() == "H\tVN:Z:1.0\n"
    assert all(own[name].read_bytes() == b"" for name in ("-o", "--scaffolds", "--coverage"))
    stats = read_json(own["--stats"])
    assert (stats["reads"]["pairs"], stats["insert_size"]) == (50, None)
    assert set(stats["contigs"].values()) == {0}


@pytest.mark.parametrize("chosen", [(), ("--min-abundance", 2), ("-k", "31,51")])
def test_low_coverage(tmp_path: Path, ngsgpu: Commands, chosen: tuple[object, ...]) -> None:
    """Below a depth of 18, k begins at 21 and k-mers seen once count, unless options say more."""
    mates = written(tmp_path, pairs([GENOME], 12, 11))
    fasta, stats = tmp_path / "c.fa", tmp_path / "s.json"
    command = ("assemble", "-i", mates[0], "-I", mates[1], "-o", fasta, "--stats", stats)
    done = ngsgpu(*command, *chosen)
    assert done.status == 0, done.err
    assert "coverage is low; beginning again with k = " in done.err
    numbers = read_json(stats)
    assert numbers["rounds"][0]["kmer"] == (31 if "-k" in chosen else 21)
    least = 2 if "--min-abundance" in chosen else 1
    assert numbers["coverage"] == {"is_low": 1, "min_abundance": least}
    found = list(contigs(fasta).values())
    if not chosen:
        # Of two reads that differ, where no third one lies, either may be wrong.
        (own,) = found
        assert len(own) > len(GENOME) - 100
        both = GENOME + "N" + reverse_complement(GENOME)
        begin = both.find(own[3000:3100]) - 3000
        assert sum(a != b for a, b in zip(own, both[begin:], strict=False)) <= 2


@pytest.mark.parametrize(("overlap", "number"), [(12, 1), (-8, 2)])
def test_reads_that_hardly_overlap(
    tmp_path: Path, ngsgpu: Commands, overlap: int, number: int
) -> None:
    """Pairs and an overlap of 12 bases join what no k does; without an overlap, a gap stays."""
    middle, reads = 900, []
    for mates in pairs([GENOME], 60, 6):
        places = [max(GENOME.find(mate), GENOME.find(reverse_complement(mate))) for mate in mates]
        if all(0 <= at <= middle + overlap - 100 or at >= middle for at in places):
            reads.append(mates)
    one, two = written(tmp_path, reads)
    fasta, stats = tmp_path / "c.fa", tmp_path / "s.json"
    done = ngsgpu("assemble", "-q", "-i", one, "-I", two, "-o", fasta, "--stats", stats)
    assert (done.status, done.err) == (0, "")
    found = list(contigs(fasta).values())
    assert len(found) == number
    both = GENOME + "N" + reverse_complement(GENOME)
    assert all(own in both for own in found)
    joins = read_json(stats)["joins"]
    assert (joins["by_a_patch"], joins["open"]) == ((1, 0) if number == 1 else (0, 1))


def test_reads_need_memory() -> None:
    source = Source(10**9, 10**11, 0, ())
    with pytest.raises(HostMemoryError, match=r"1,000,000,000 reads takes .* try `memory='"):
        run.plan_reads(source, RunOptions(memory=1 << 30)).check()


def test_what_is_refused(tmp_path: Path, mates: list[Path], ngsgpu: Commands) -> None:
    out = tmp_path / "c.fa"
    for options, message in (
        (["-i", mates[0], "-k", "31,41,40", "-o", out], "ascending numbers, such as 31,51,71"),
        (["-i", mates[0], "-k", "30", "-o", out], "must be odd, not 30"),
        (
            ["-i", mates[0], "-k", "few", "-o", out],
            "numbers with commas between, not 'few'",
        ),
        (["-i", mates[0], "-k", "31,503", "-o", out], "at most 501, not 503"),
        (["-i", mates[0], "--min-contig", 0, "-o", out], "--min-contig must be 1 or more"),
        (["-i", "-", "-o", out], "reads are read twice; name files, not streams"),
        (["-o", out], "no reads given"),
        (["-i", mates[0]], "no output given"),
        (["-i", mates[0], "-o", out, "--memory", "100M"], "try fewer threads, or --memory"),
    ):
        done = ngsgpu("assemble", *options)
        assert done.status in (2, 3)
        assert message in done.error
    assert names(tmp_path) == []
