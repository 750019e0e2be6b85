"""Adapters that are not given: those of kits, and none that reads merely begin with."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from ngsgpu.run.adapters import KNOWN
from tests.support.adapters import Pair, random_genome, write_mates
from tests.support.commands import Commands, read_json
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

READS = 12_000
"""Enough for fastp to detect an adapter."""

PRIMERS = ("GTGYCAGCMGCCGCGGTAA", "GGACTACNVGGGTWTCTAAT")
"""515F and 806R, for 16S."""

CODES = {"Y": "CT", "M": "AC", "N": "ACGT", "V": "ACG", "W": "AT"}


def reads_of(path: Path, make: Callable[[int], str], count: int = READS) -> Path:
    made = ((b"r%d" % number, make(number).encode()) for number in range(count))
    return write(path, fastq(Record(name, bases, b"I" * len(bases)) for name, bases in made))


def trimmed(ngsgpu: Commands, *words: object) -> tuple[dict[str, int], list[str]]:
    """Reads of the statistics, and the adapters that were looked for."""
    stats = Path(str(words[1])).with_name("stats.json")
    done = ngsgpu("trim", *words, "--stats", stats)
    assert done.status == 0, done.err
    found = read_json(stats)
    return found["reads"] | {"bases": found["bases"]["kept"]}, found["adapters"]["sequences"]


@pytest.mark.parametrize("amplicons", [1, 3, 5])
def test_single_end_amplicons_are_kept_whole(
    ngsgpu: Commands, tmp_path: Path, backend: str, amplicons: int
) -> None:
    rng = random.Random(amplicons)
    genomes = [random_genome(rng, 150) for _ in range(amplicons)]
    path = reads_of(tmp_path / "r.fq", lambda number: genomes[number % amplicons])
    reads, adapters = trimmed(ngsgpu, "-i", path, "--backend", backend)
    assert (reads["kept"], reads["bases"], adapters) == (READS, 150 * READS, [])


def test_16s_in_both_directions(ngsgpu: Commands, tmp_path: Path) -> None:
    """Degenerate primers at the beginnings of reads of either strand are no adapters."""
    rng = random.Random(4)
    insides = [random_genome(rng, 250) for _ in range(4)]

    def make(number: int) -> str:
        front, back = ("".join(rng.choice(CODES.get(own, own)) for own in one) for one in PRIMERS)
        whole = front + rng.choice(insides) + reverse_complement(back)
        return (reverse_complement(whole) if number % 2 else whole)[:150]

    path = reads_of(tmp_path / "r.fq", make)
    reads, adapters = trimmed(ngsgpu, "-i", path, "-G")
    assert (reads["kept"], reads["bases"], adapters) == (READS, 150 * READS, [])


@pytest.mark.parametrize("amplicons", [1, 5])
def test_what_adapters_advises_keeps_amplicons(
    ngsgpu: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, amplicons: int
) -> None:
    """Mates that do not overlap, some of which end in G's: there is no adapter to detect."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(amplicons)
    genomes = [random_genome(rng, 300) for _ in range(amplicons)]

    def read(genome: str, number: int) -> str:
        return genome[:60] + "G" * 40 if number % 10 == 0 else genome[:100]

    ends = [(own, reverse_complement(own)) for own in genomes]
    pairs = [
        Pair(read(one, number), read(two, number + 3), 300)
        for number, (one, two) in ((number, ends[number % amplicons]) for number in range(READS))
    ]
    first, second = write_mates(tmp_path, pairs)
    done = ngsgpu("adapters", "-i", first, "-I", second)
    (line,) = (own for own in done.err.splitlines() if "trim: " in own)
    assert "--trim-poly-g" in line and "--detect-adapter-for-pe" not in line
    command = shlex.split(line.partition("trim: ngsgpu trim ")[2])
    for more in ([], ["--detect-adapter-for-pe"]):
        reads, adapters = trimmed(ngsgpu, *command, *more)
        assert (reads["kept"], adapters) == (2 * READS, [])


@pytest.mark.parametrize("mate", [0, 1])
@pytest.mark.parametrize("kit", KNOWN)
def test_kits_are_found_behind_varied_fragments(
    ngsgpu: Commands, tmp_path: Path, kit: str, mate: int
) -> None:
    """In single reads, also where these are second mates."""
    rng = random.Random(kit)
    adapter = KNOWN[kit][mate] + random_genome(rng, 60)
    sizes = [rng.randint(18, 60) for _ in range(3000)]
    path = reads_of(
        tmp_path / "r.fq", lambda number: (random_genome(rng, sizes[number]) + adapter)[:75], 3000
    )
    reads, (found, *_) = trimmed(ngsgpu, "-i", path)
    assert found == KNOWN[kit][mate]
    assert reads["kept"] == 3000
    # A fragment may end as the adapter begins, or with an error.
    assert abs(reads["bases"] - sum(sizes)) < 0.02 * sum(sizes)


def test_small_rna_of_few_kinds(ngsgpu: Commands, tmp_path: Path) -> None:
    """The adapter is found, though what precedes it is nearly as frequent."""
    rng = random.Random(6)
    kinds = [random_genome(rng, 22) for _ in range(10)]
    adapter = KNOWN["Illumina small RNA"][0]
    path = reads_of(tmp_path / "r.fq", lambda _: (rng.choice(kinds) + adapter)[:50])
    reads, (found, *_) = trimmed(ngsgpu, "-i", path)
    assert (reads["kept"], reads["bases"], found) == (READS, 22 * READS, adapter)


def dimers(share: float, count: int = 2000) -> Iterable[str]:
    """Reads of adapters alone, and others."""
    rng = random.Random(7)
    adapter = KNOWN["Illumina TruSeq"][0] + random_genome(rng, 60)
    for number in range(count):
        yield adapter[:75] if number < share * count else random_genome(rng, 75)


def test_nothing_is_left_of_dimers(ngsgpu: Commands, tmp_path: Path, backend: str) -> None:
    """All outputs are there, what happened is said, and the status is that of an empty filter."""
    for share, status, said in (
        (1.0, 4, "0 of 2,000 reads"),
        (0.6, 0, "800 of 2,000 reads"),
        (0.4, 0, ""),
    ):
        own = [*dimers(share)]
        path = reads_of(tmp_path / "r.fq", own.__getitem__, len(own))
        out, stats = tmp_path / "o.fq", tmp_path / "s.json"
        words = ["-i", path, "-o", out, "--stats", stats, "--backend", backend]
        done = ngsgpu("trim", *words)
        assert done.status == status, done.err
        assert ("reads are left" in done.err) == bool(said) and said in done.err
        assert out.read_bytes().count(b"\n") == 4 * read_json(stats)["reads"]["kept"]
        assert ngsgpu("trim", *words, "--fastp", "-a", KNOWN["Illumina TruSeq"][0]).status == 0
