"""Adapters are found in the reads in which fastp finds them, and are the same."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ngsgpu.trim import detect
from ngsgpu.trim.adapters import begin_of_known, is_two_coloured, known_adapters

INDEX = "ATCACGATCTCGTATGCCGTCTTCTGCTTG"
TRUSEQ = "AGATCGGAAGAGCACACGTCTGAACTCCAGTCAC" + INDEX
NEXTERA = "CTGTCTCTTATACACATCTCCGAGCCCACGAGAC" + INDEX
SMALL_RNA = "TGGAATTCTCGGGTGCCAAGGAACTCCAGTCAC" + INDEX
MGI = "AAGTCGGAGGCCAAGCGGTCTTAGGAAGACAA" + INDEX
UNKNOWN = "".join(random.Random(5).choices("ACGT", k=160))
# No quotes and backslashes, which fastp does not escape in its JSON.
ODD = b"BDEFHIKMRSUVWXYZn.*-!5~"


@dataclass(frozen=True)
class Library:
    """Reads to simulate.

    Attributes:
        adapter: follows each fragment, and random bases follow it.
        reads: how many.
        length: of reads.
        fragments: mean length, and standard deviation.
        genome: its length.
        errors, unknown, lower, odd: part of the bases that is replaced by any base, by N, by its
            lower-case letter, and by another character.
        trim_tail: last bases of every read that are trimmed.
    """

    adapter: str = TRUSEQ
    reads: int = 12_000
    length: int = 100
    fragments: tuple[float, float] = (110, 30)
    genome: int = 30_000
    errors: float = 0.003
    unknown: float = 0
    lower: float = 0
    odd: float = 0
    trim_tail: int = 0

    def simulate(self, seed: int) -> list[bytes]:
        rng = np.random.default_rng(seed)
        adapter = np.frombuffer(self.adapter.encode(), dtype=np.uint8)
        sizes = np.clip(rng.normal(*self.fragments, self.reads), 0, self.genome).astype(int)
        places = rng.integers(0, self.genome - sizes + 1)
        # A genome, the adapter, and of each read what follows; and where in them its bases are.
        text = np.concatenate([_random(rng, self.genome), adapter])
        table = _random(rng, self.reads * self.length).reshape(self.reads, self.length)
        column = np.arange(self.length)
        past = column - sizes[:, None]
        at = np.where(past < 0, places[:, None] + column, self.genome + past)
        np.copyto(table, text.take(at, mode="clip"), where=past < len(adapter))
        for rate, letters in (
            (self.errors, _random(rng, table.size).reshape(table.shape)),
            (self.unknown, np.full_like(table, ord("N"))),
            (self.lower, table | 32),
            (self.odd, rng.choice(np.frombuffer(ODD, dtype=np.uint8), table.shape)),
        ):
            np.copyto(table, letters, where=rng.random(table.shape) < rate)
        return [row.tobytes() for row in table]


def _random(rng: np.random.Generator, length: int) -> NDArray[np.uint8]:
    return rng.choice(np.frombuffer(b"ACGT", dtype=np.uint8), length)


# Nearly all fragments have no bases: after fragments that differ, only known adapters are found.
DIMERS: dict[str, Any] = {"adapter": UNKNOWN, "fragments": (-120, 40)}

LIBRARIES = {
    "truseq": Library(),
    "truseq, at the beginnings of reads": Library(fragments=(15, 10)),
    "truseq, in few reads": Library(fragments=(180, 50)),
    "truseq, in hardly any reads": Library(fragments=(250, 50)),
    "nextera": Library(NEXTERA, length=151, fragments=(180, 60)),
    "small RNA": Library(SMALL_RNA, length=75, fragments=(22, 2)),
    "small RNA, short reads": Library(SMALL_RNA, length=36, fragments=(22, 2)),
    "MGI": Library(MGI, reads=10_000),
    "unknown": Library(UNKNOWN),
    "dimers": Library(**DIMERS),
    "dimers, read to their ends": Library(UNKNOWN[:60], fragments=(-120, 40)),
    "dimers, with a tail of A": Library(UNKNOWN[:40] + "A" * 60, fragments=(-120, 40)),
    "dimers, fewer": Library(UNKNOWN, fragments=(-100, 40)),
    "repetitive": Library("ACACACACAC" * 5, fragments=(-120, 40)),
    "poly-G": Library("G" * 100),
    "no adapter": Library(fragments=(400, 50)),
    "amplicon": Library(fragments=(400, 0), genome=400),
    "amplicons": Library(fragments=(295, 4), genome=300, length=150),
    "one read too few": Library(reads=9_999),
    "reads too short": Library(length=30),
    "many errors": Library(errors=0.04),
    "dimers, many errors": Library(errors=0.05, **DIMERS),
    "unknown bases": Library(unknown=0.02),
    "dimers, unknown bases": Library(unknown=0.02, **DIMERS),
    "lower case": Library(lower=0.01),
    "dimers, lower case": Library(lower=0.5, reads=20_000, **DIMERS),
    "dimers, odd letters": Library(odd=0.02, **DIMERS),
    "dimers, trimmed tails": Library(trim_tail=57, **DIMERS),
    "tails longer than reads": Library(trim_tail=95),
}


def arrays(
    reads: list[bytes],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]]:
    """Letters, starts and lengths, with a character between reads."""
    lengths = np.array([len(read) for read in reads], dtype=np.int32)
    starts = np.cumsum(lengths + 1, dtype=np.int64) - lengths - 1
    return np.frombuffer(b"A".join(reads), dtype=np.uint8), starts, lengths


def found(reads: list[bytes], trim_tail: int = 0) -> str:
    bases, starts, lengths = arrays(reads)
    size = detect.sample_size(lengths)
    return detect.detect_adapter(bases, starts[:size], lengths[:size], trim_tail)


def found_by_fastp(folder: Path, reads: list[bytes], trim_tail: int = 0) -> str:
    if shutil.which("fastp") is None:
        pytest.skip("fastp is not installed")
    with (folder / "reads.fq").open("wb") as file:
        file.writelines(b"@r\n%b\n+\n%b\n" % (read, b"I" * len(read)) for read in reads)
    subprocess.run(
        ["fastp", "-i", "reads.fq", "-o", "/dev/null", "-j", "out.json", "-h", "/dev/null",
         "-w", "1", "-t", str(trim_tail), "--dont_eval_duplication"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    cutting = json.loads((folder / "out.json").read_bytes()).get("adapter_cutting", {})
    adapter = cutting.get("read1_adapter_sequence", "unspecified")
    return "" if adapter == "unspecified" else adapter


@pytest.mark.parametrize("name", LIBRARIES)
def test_as_fastp(tmp_path: Path, name: str) -> None:
    library = LIBRARIES[name]
    reads = library.simulate(seed=1)
    expected = found_by_fastp(tmp_path, reads, library.trim_tail)
    assert found(reads, library.trim_tail) == expected


@pytest.mark.parametrize("seed", range(4))
def test_reads_of_different_lengths(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    adapter = rng.choice([TRUSEQ, NEXTERA, UNKNOWN])
    library = Library(adapter, length=150, fragments=(rng.choice([60, 110, 160]), 40))
    reads = [read[: rng.randint(1, 150)] for read in library.simulate(seed)]
    assert found(reads) == found_by_fastp(tmp_path, reads)


def test_what_is_found() -> None:
    """Without fastp: the adapters themselves, of known ones what the kits share."""
    assert found(LIBRARIES["truseq"].simulate(2)) == TRUSEQ[:33]
    assert found(LIBRARIES["nextera"].simulate(2)) == NEXTERA[:34]
    assert found(LIBRARIES["dimers"].simulate(2)) == UNKNOWN[:60]
    assert found(LIBRARIES["no adapter"].simulate(2)) == ""
    assert found(LIBRARIES["one read too few"].simulate(2)) == ""


@pytest.mark.parametrize("reads", [[], [b""] * 10_000, [b"ACGT"] * 10_000])
def test_next_to_nothing(reads: list[bytes]) -> None:
    assert found(reads) == ""


@given(
    st.lists(st.text("ACGTACGTACGTNacgt.", max_size=45).map(str.encode), max_size=6),
    st.integers(1, 4),
)
def test_counts(reads: list[bytes], tail: int) -> None:
    bases, starts, lengths = arrays(reads)
    counts = detect.count_kmers(bases, starts, np.maximum(lengths.astype(np.int64) - tail, 0))
    expected = Counter(
        kmer
        for read in reads
        for k in range(20, len(read) - 10 - tail + 1)
        if set(kmer := read[k : k + 10].decode()) <= set("ACGT")
    )
    assert {detect.text_of(k): int(counts[k]) for k in np.flatnonzero(counts)} == expected


@given(st.data())
def test_seeds(data: st.DataObject) -> None:
    """Ranked one by one, each before those that are not more frequent."""
    counts = np.zeros(4**10, dtype=np.int64)
    kmers = st.one_of(st.integers(0, 4**10 - 1), st.integers(0, 40).map(lambda k: k * 25_000 + 77))
    for kmer in data.draw(st.lists(kmers, max_size=40)):
        counts[kmer] = data.draw(st.sampled_from([0, 9, 10, 11, 12, 500]))
    ranked: list[int] = []
    total = 0
    for kmer in np.flatnonzero(counts).tolist():
        text = detect.text_of(kmer)
        varied = max(map(text.count, "ACGT")) < 6 and text.count("G") + text.count("C") < 8
        if varied and not text.startswith("GGGG"):
            total += int(counts[kmer])
            place = sum(bool(counts[own] > counts[kmer]) for own in ranked)
            ranked.insert(place, kmer)
    expected = [
        kmer
        for kmer in ranked[:10]
        if counts[kmer] >= 10
        and counts[kmer] * 4**10 >= 20 * total
        and len(list(groupby(detect.text_of(kmer)))) > 3
    ]
    assert detect.frequent_kmers(counts) == expected


@given(
    st.lists(st.text("ACGTNacg", max_size=6), min_size=1, max_size=4),
    st.lists(st.integers(0, 80), min_size=4, max_size=4),
    st.booleans(),
)
def test_paths(texts: list[str], copies: list[int], reverse: bool) -> None:
    """Walked through a tree of the texts, whose branches are the letters' last three bits."""
    stretches = [text for text, many in zip(texts, copies, strict=False) for _ in range(many)]
    expected, left = "", [text.split("N")[0] for text in stretches]
    while len(left := [text for text in left if text]) >= 50:
        branch, most = Counter(ord(text[0]) & 7 for text in left).most_common(1)[0]
        if most / len(left) < 0.95:
            break
        left = [text for text in left if ord(text[0]) & 7 == branch]
        expected += left[0][0]
        left = [text[1:] for text in left]
    step = -1 if reverse else 1
    bases, begins, lengths = arrays([text[::step].encode() for text in stretches])
    room = lengths.astype(np.int64)
    if reverse:
        begins = begins + room - 1
    assert detect.dominant_path(bases, begins, room, step) == (expected, len(left) < 50)


def test_samples() -> None:
    """A sample takes reads as long as it has too few of them and too few bases."""
    assert detect.sample_size(np.full(300_000, 100, dtype=np.int32)) == 256 * 1024
    assert detect.sample_size(np.full(300_000, 151, dtype=np.int32)) == 256 * 1024
    assert detect.sample_size(np.full(300_000, 302, dtype=np.int32)) == 128 * 1024
    assert detect.sample_size(np.full(300_000, 301, dtype=np.int32)) == 131_508
    assert detect.sample_size(np.zeros(0, dtype=np.int32)) == 0
    lengths = np.random.default_rng(1).integers(0, 400, 300_000, dtype=np.int32)
    reads = bases = 0
    while reads < 256 * 1024 and bases < 151 * 256 * 1024:
        bases += int(lengths[reads])
        reads += 1
    assert detect.sample_size(lengths) == reads


def test_known_adapters() -> None:
    adapters = known_adapters()
    assert len(adapters) == 233
    assert list(adapters) == sorted(adapters)
    assert all(set(sequence) <= set("ACGT") and name for sequence, name in adapters.items())
    assert begin_of_known(TRUSEQ) == TRUSEQ[:33]
    assert begin_of_known(TRUSEQ[:32]) == ""
    assert begin_of_known("") == ""


@pytest.mark.parametrize(
    ("name", "by_fastp", "by_us"),
    [
        (b"@NS500713:64:HFKJJBGXY:1:11101:20469:1097 1:N:0", True, True),
        (b"@NB551068:1", True, True),
        (b"@NDX550164:2", True, True),
        (b"@A00111:22", True, True),
        (b"@LH00123:9:22ABC:1:1101:1:1", False, True),
        (b"@VH00123:5:AAAA", False, True),
        (b"@VL00123:5:AAAA", False, True),
        (b"@MN01365:5:AAAA", False, True),
        (b"@FS10000899:5:AAAA", False, True),
        (b"@SH00209:5:AAAA", False, True),
        (b"@MN908947.3-1", False, False),
        (b"@LHOTSE", False, False),
        (b"@A10111:22", False, False),
        (b"@M00176:17", False, False),
        (b"@ND", False, False),
        (b"@", False, False),
        (b"", False, False),
    ],
)
def test_two_colours(name: bytes, by_fastp: bool, by_us: bool) -> None:
    assert is_two_coloured(name, as_fastp=True) == by_fastp
    assert is_two_coloured(name, as_fastp=False) == by_us
