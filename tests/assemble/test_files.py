"""The command: its inputs and outputs, the choice of the abundance, and what it refuses."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support.assemble import oracle
from tests.support.commands import Commands, names, read_json
from tests.support.io.records import write

K = 21
RANDOM = random.Random(7)
GENOME = "".join(RANDOM.choices("ACGT", k=1500))
GENOME += GENOME[300:420] + "".join(RANDOM.choices("ACGT", k=300))


def reads() -> list[str]:
    """Reads of 100 bases, 40-fold, with an error in every second one."""
    found = []
    for i in range(len(GENOME) * 40 // 100):
        begin = RANDOM.randrange(len(GENOME) - 100)
        own = list(GENOME[begin : begin + 100])
        if i % 2:
            own[RANDOM.randrange(100)] = RANDOM.choice("ACGT")
        found.append("".join(own))
    return found


READS = reads()


@pytest.fixture
def mates(tmp_path: Path) -> list[Path]:
    half = len(READS) // 2
    return [
        write(
            tmp_path / f"R{mate}.fq",
            "".join(f"@r\n{own}\n+\n{'F' * 100}\n" for own in part).encode(),
        )
        for mate, part in ((1, READS[:half]), (2, READS[half:]))
    ]


def expected(least: int) -> tuple[str, str]:
    kmers = {kmer: n for kmer, n in oracle.counted(READS, K).items() if n >= least}
    return oracle.texts(kmers, K)


def test_reads_and_database(tmp_path: Path, mates: list[Path], ngsgpu: Commands) -> None:
    """At the valley, which is the same for reads and their database, and at a number."""
    fasta, gfa, folder = tmp_path / "u.fa", tmp_path / "u.gfa", tmp_path / "db"
    done = ngsgpu(
        "unitigs", "-i", mates[0], "-I", mates[1], "-k", K, "-o", fasta, "--gfa", gfa, "-t", 2
    )
    assert done.status == 0, done.err
    least = int(done.err.split("--min-abundance ")[1].split(",")[0])
    assert 3 <= least <= 20
    assert (fasta.read_text(), gfa.read_text()) == expected(least)
    assert names(tmp_path) == ["R1.fq", "R2.fq", "u.fa", "u.gfa"]
    done = ngsgpu("kmers", "count", "-q", "-i", mates[0], "-I", mates[1], "-k", K, "-o", folder)
    assert done.status == 0, done.err
    for abundance, number in (("auto", least), ("2", 2)):
        done = ngsgpu("unitigs", "-q", "-d", folder, "--min-abundance", abundance, "-o", fasta)
        assert (done.status, done.err) == (0, "")
        assert fasta.read_text() == expected(number)[0]


def test_statistics(tmp_path: Path, mates: list[Path], ngsgpu: Commands) -> None:
    """What all commands have, the graph's own numbers, and k of the database that was read."""
    out, stats, folder = tmp_path / "u.fa", tmp_path / "u.json", tmp_path / "db"
    done = ngsgpu("kmers", "count", "-q", "-i", mates[0], "-k", K, "-o", folder)
    assert done.status == 0, done.err
    for given, auto in (
        (["-i", mates[0], "-k", K], None),
        (["-d", folder], None),
        (["-d", folder, "--min-abundance", 5], 5),
    ):
        done = ngsgpu("unitigs", *given, "-o", out, "--stats", stats, "-t", 1, "--gpus", 0)
        assert done.status == 0, done.err
        written = read_json(stats)
        assert list(written)[:8] == [
            "schema", "schema_version", "version", "backend", "device", "job", "command",
            "parameters",
        ]  # fmt: skip
        assert written["schema"] == "ngsgpu.unitigs"
        assert (written["backend"], written["job"]["gpus"]) == ("cpu", [])
        assert written["device"].startswith("1 CPU threads")
        assert written["command"]
        assert written["parameters"] == {"kmer": K, "min_abundance": auto, "min_quality": 0}
        assert set(written["time_s"]) == {"kmers", "compacting", "writing", "total"}
        assert written["memory"]["peak_rss_bytes"] > 1 << 20
        assert written["kmer"] == K
        assert written["unitigs"] == out.read_text().count(">")
        assert f"at most {written['memory']['peak_rss_bytes'] / 2**30:.2f} GiB" in done.err


def test_summary(tmp_path: Path, ngsgpu: Commands) -> None:
    path = write(tmp_path / "g.fa", f">g\n{GENOME}\n".encode())
    out = tmp_path / "u.gfa"
    done = ngsgpu("unitigs", "-i", path, "-k", K, "--min-abundance", 1, "--gfa", out)
    assert done.status == 0, done.err
    assert out.read_text() == oracle.texts(oracle.counted([GENOME], K), K)[1]
    sizes = sorted(len(own.bases) for own in oracle.unitigs(oracle.counted([GENOME], K)))
    assert f"{len(sizes)} unitigs of {sum(sizes):,} bases" in done.err
    assert f"longest {sizes[-1]:,}" in done.err
    done = ngsgpu("unitigs", "-i", path, "-k", K, "--gfa", out)
    assert "no valley" in done.err
    assert f"100 {K}-mers that occur 2 times or more" in done.err


def test_colors(tmp_path: Path, ngsgpu: Commands) -> None:
    """Two samples that share a part, and one of its own k-mers only; their union is the graph."""
    samples = {"one": GENOME[:900], "two": GENOME[600:], "none": "ACGTT" * 10}
    for name, bases in samples.items():
        path = write(tmp_path / f"{name}.fa", f">g\n{bases}\n".encode())
        done = ngsgpu("kmers", "count", "-q", "-i", path, "-k", K, "-o", tmp_path / f"{name}.kmers")
        assert done.status == 0, done.err
    own = [tmp_path / f"{name}.kmers" for name in samples]
    assert ngsgpu("kmers", "union", *own[:2], "-o", tmp_path / "all").status == 0
    given = [text for path in own for text in ("--color", path)]
    fasta, table, stats = tmp_path / "u.fa", tmp_path / "u.tsv", tmp_path / "u.json"
    done = ngsgpu(
        "unitigs", "-q", "-d", tmp_path / "all", "--min-abundance", 1, "-o", fasta, *given,
        "--colors", table, "--stats", stats, "-t", 2,
    )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    counts = {name: oracle.counted([bases], K) for name, bases in samples.items()}
    unitigs = fasta.read_text().splitlines()[1::2]
    lines = ["unitig kmers one_kmers one_count two_kmers two_count none_kmers none_count"]
    for number, bases in enumerate(unitigs):
        kmers = list(oracle.counted([bases], K))
        line = [number, len(kmers)]
        for found in counts.values():
            line += [sum(kmer in found for kmer in kmers), sum(found[kmer] for kmer in kmers)]
        lines.append(" ".join(map(str, line)))
    assert table.read_text().replace("\t", " ").splitlines() == lines
    written = json.loads(stats.read_text())
    assert written["schema"] == "ngsgpu.unitigs"
    assert written["unitigs"] == len(unitigs) > 3
    assert written["bases"] == sum(map(len, unitigs))
    assert ngsgpu("kmers", "count", "-q", "-i", path, "-k", 31, "-o", tmp_path / "k31").status == 0
    for options, message in (
        (given, "belong together"),
        (["--colors", table], "belong together"),
        ([*given, "--color", tmp_path / "x" / "one.kmers", "--colors", table], "are named one"),
        (["--color", tmp_path / "k31", "--colors", table], "31-mers and the graph 21-mers"),
    ):
        done = ngsgpu("unitigs", "-d", tmp_path / "all", "-o", fasta, *options)
        assert done.status == 2
        assert message in done.error


def test_what_is_refused(tmp_path: Path, mates: list[Path], ngsgpu: Commands) -> None:
    out = tmp_path / "u.fa"
    for options, message in (
        (["-i", mates[0], "-k", 20, "-o", out], "--kmer must be odd, not 20"),
        (["-i", mates[0], "-k", 129, "-o", out], "--kmer must be from 11 to 127, not 129"),
        (["-i", mates[0], "--min-abundance", "few", "-o", out], "auto or a number, not 'few'"),
        (["-i", mates[0], "--min-abundance", 0, "-o", out], "auto or from 1 to 65,535, not 0"),
        (["-o", out], "give reads (-i) or a k-mer database (-d)"),
        (["-i", mates[0]], "no output given"),
        (["-d", tmp_path / "k", "-k", 31, "-o", out], "--kmer is for reads"),
        (["-i", mates[0], "-o", out, "--memory", "100M"], "try fewer threads, or --memory"),
    ):
        done = ngsgpu("unitigs", *options)
        assert done.status in (2, 3)
        assert message in done.error
    assert names(tmp_path) == ["R1.fq", "R2.fq"]
