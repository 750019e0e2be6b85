"""What ``--stats`` says is what was done."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import ngsgpu as package
from tests.support.commands import Commands, read_json
from tests.support.correct.data import mates, simulated_pairs
from tests.support.io.records import Record, fasta, fastq, write

CLASSES = ("high_quality", "confirmed", "completed", "anchor_only", "rejected")


def run(tmp_path: Path, ngsgpu: Commands, layout: str, *options: object) -> dict[str, Any]:
    """Correct; returns the statistics, checked against the files."""
    records = simulated_pairs()
    texts = {
        "single": [fastq(records)],
        "interleaved": [fastq(records)],
        "pairs": [fastq(side) for side in mates(records)],
        "FASTA": [fasta(records)],
    }[layout]
    ins = [write(tmp_path / f"in{i}", text) for i, text in enumerate(texts)]
    outs = [tmp_path / f"out{i}" for i in range(len(texts))]
    files: list[object] = ["-i", ins[0], "-o", outs[0]]
    if layout == "pairs":
        files += ["-I", ins[1], "-O", outs[1]]
    if layout == "interleaved":
        files += ["--interleaved"]
    ngsgpu.corrects(*files, "--stats", tmp_path / "s.json", *options)
    stats = read_json(tmp_path / "s.json")
    after = b"".join(path.read_bytes() for path in outs)
    check_against_files(stats, b"".join(texts), after, per_record=2 if layout == "FASTA" else 4)
    return stats


def check_against_files(
    stats: dict[str, Any], before: bytes, after: bytes, per_record: int
) -> None:
    lines = list(
        zip(
            before.splitlines()[1::per_record],
            after.splitlines()[1::per_record],
            strict=True,
        )
    )
    changes = [
        (position, old)
        for b, a in lines
        for position, (old, new) in enumerate(zip(b, a, strict=True))
        if old != new
    ]
    by_position = stats["corrected_bases_by_position"]
    corrected = stats["corrected"]
    assert corrected["bases"] == len(changes) == sum(map(sum, by_position)) > 0
    assert corrected["reads"] == sum(b != a for b, a in lines)
    for position in range(len(by_position[0])):
        assert sum(mate[position] for mate in by_position) == sum(p == position for p, _ in changes)
    decided = sum(chr(old) not in "ACGTacgt" for _, old in changes)
    ambiguous = sum(chr(letter) not in "ACGTacgt" for b, _ in lines for letter in b)
    assert corrected["unknown_decided"] == decided > 0
    assert corrected["unknown_left"] == ambiguous - decided


@pytest.mark.parametrize("layout", ["single", "interleaved", "pairs", "FASTA"])
def test_counts_add_up(tmp_path: Path, ngsgpu: Commands, layout: str) -> None:
    records = simulated_pairs()
    stats = run(tmp_path, ngsgpu, layout)
    paired = layout in ("interleaved", "pairs")
    assert stats["schema"] == "ngsgpu.correct"
    assert stats["schema_version"] == 1
    assert stats["version"] == package.__version__
    reads, anchors = stats["reads"], stats["anchors"]
    assert reads == {
        "total": len(records),
        "paired": int(paired),
        "bases": sum(len(r.bases) for r in records),
        "min_length": 100,
        "max_length": 100,
        "with_unknown": sum(b"N" in r.bases.upper() for r in records),
    }
    assert anchors["total"] == len(records)
    kinds = ("without_candidates", "high_quality", "low_quality")
    assert sum(anchors[kind] for kind in kinds) == len(records)
    assert 0 <= anchors["in_repeats"] <= len(records)
    candidates = stats["candidates"]
    assert candidates["found"] >= candidates["aligned"] >= candidates["kept"] > len(records)
    assert candidates["kept"] >= candidates["removed_by_refinement"] >= 0
    by_class = {kind: stats["corrected"][f"{kind}_reads"] for kind in CLASSES}
    assert by_class["high_quality"] == anchors["high_quality"]
    assert sum(by_class.values()) == anchors["high_quality"] + anchors["low_quality"]
    assert stats["corrected"]["reads"] <= sum(by_class.values()) - by_class["rejected"]
    positions = stats["corrected_bases_by_position"]
    assert [len(mate) for mate in positions] == [100] * (2 if paired else 1)
    if paired:
        assert all(sum(mate) > 0 for mate in positions)
    assert stats["backend"] == "cpu"
    assert stats["coverage"]["estimated"] is True
    assert stats["coverage"]["value"] == pytest.approx(25, rel=0.15)


def test_what_was_asked_for(tmp_path: Path, ngsgpu: Commands) -> None:
    options = ("--coverage", 21.5, "--kmer", 17, "--hashes", 30, "--seed", 9, "--quality-bits", 2)
    stats = run(tmp_path, ngsgpu, "single", *options, "--backend", "cpu")
    assert stats["coverage"] == {"value": 21.5, "estimated": False, "suffices": True}
    parameters = stats["parameters"]
    assert parameters["coverage"] == 21.5
    assert parameters["quality_bits"] == 2
    assert parameters["phred_offset"] == "auto"
    assert parameters["minhash"] == {
        "kmer": 17,
        "hashes": 30,
        "seed": 9,
        "crowd_factor": 2.5,
        "crowd_minimum": 10,
    }
    assert "2 CPU threads" in stats["device"]
    spectrum = stats["spectrum"]
    assert (spectrum["k"], spectrum["sampled"]) == (17, 1)
    occurrences = sum(multiplicity * count for multiplicity, count in spectrum["histogram"])
    assert occurrences == len(simulated_pairs()) * (100 - 17 + 1)


def test_times_and_memory(tmp_path: Path, ngsgpu: Commands) -> None:
    stats = run(tmp_path, ngsgpu, "pairs")
    times = stats["time_s"]
    stages = {"read", "fill", "spectrum", "tables", "correct", "write"}
    assert times.keys() == stages | {"total"}
    assert all(times[stage] >= 0 for stage in stages)
    assert times["total"] >= 0.9 * max(times[stage] for stage in stages)
    assert stats["memory"]["planned_bytes"] > 1 << 28
    assert stats["memory"]["peak_rss_bytes"] > 1 << 26


def test_mates_of_several_lanes(tmp_path: Path, ngsgpu: Commands) -> None:
    """Positions are counted by mate in every lane."""
    first, second = mates(simulated_pairs())
    # Second mates are half as long, so that their positions tell them.
    second = [Record(r.header, r.bases[:50], (r.qualities or b"")[:50]) for r in second]
    files: list[object] = []
    for lane, (low, high) in enumerate([(0, 101), (101, 375)]):
        for option, side in (("i", first), ("I", second)):
            path = write(tmp_path / f"{option}{lane}", fastq(side[low:high]))
            files += [f"-{option}", path]
    files += ["-o", tmp_path / "o", "-O", tmp_path / "O", "--stats", tmp_path / "s.json"]
    ngsgpu.corrects(*files)
    one, two = read_json(tmp_path / "s.json")["corrected_bases_by_position"]
    assert sum(one[50:]) > 0
    assert sum(two[50:]) == 0 < sum(two)


@pytest.mark.parametrize(("coverage", "few"), [("3.4", True), ("3.5", False), ("auto", False)])
def test_too_low_a_coverage_is_said(
    tmp_path: Path, ngsgpu: Commands, coverage: str, few: bool
) -> None:
    path = write(tmp_path / "in.fq", fastq(simulated_pairs()))
    options = ["-i", path, "-o", tmp_path / "out.fq", "--stats", tmp_path / "s.json"]
    said = ngsgpu.corrects(*options, "--coverage", coverage).err
    line = "the coverage of 3.4 (given) is too low: below 3.5, correction finds about half"
    assert said.count(line) == said.count("too low") == few
    assert read_json(tmp_path / "s.json")["coverage"]["suffices"] is not few
    assert (tmp_path / "out.fq").stat().st_size == path.stat().st_size


def test_too_low_a_coverage_is_estimated(tmp_path: Path, ngsgpu: Commands) -> None:
    path = write(tmp_path / "in.fq", fastq(simulated_pairs(coverage=2)))
    options = ["-i", path, "--stats", tmp_path / "s.json"]
    said = ngsgpu.corrects(*options, "-o", tmp_path / "out.fq").err
    assert said.count("(estimated) is too low") == 1
    assert read_json(tmp_path / "s.json")["coverage"]["suffices"] is False
    empty = write(tmp_path / "empty.fq", b"")
    assert "too low" not in ngsgpu.corrects("-i", empty, "-o", tmp_path / "e.fq").err


def amplicon_reads(
    count: int, seed: int, errors: float, *, flat: bool
) -> tuple[list[Record], list[str]]:
    """Single reads of two amplicons, and what they should be.

    Errors have low qualities, or all bases the same if ``flat``.
    """
    rng = random.Random(seed)
    amplicons = ["".join(rng.choices("ACGT", k=100)) for _ in range(2)]
    records, truth = [], []
    for number in range(count):
        truth.append(amplicons[number % 2])
        wrong = [rng.random() < errors for _ in truth[-1]]
        bases = "".join(
            rng.choice("ACGT".replace(base, "")) if error else base
            for base, error in zip(truth[-1], wrong, strict=True)
        )
        scores = bytes(33 + (12 if error and not flat else 37) for error in wrong)
        records.append(Record(b"a%d" % number, bases.encode(), scores))
    return records, truth


def test_amplicons_are_corrected(tmp_path: Path, ngsgpu: Commands) -> None:
    """Single reads of a coverage far above that of what one of them can look at."""
    records, truth = amplicon_reads(800, 1, 0.015, flat=False)
    path, stats = write(tmp_path / "in.fq", fastq(records)), tmp_path / "s.json"
    files = ["-i", path, "-o", tmp_path / "out.fq", "--stats", stats, "--coverage", "5000"]
    said = ngsgpu.corrects(*files).err
    after = (tmp_path / "out.fq").read_text().split("\n")[1::4]
    assert sum(one != right for one, right in zip(after, truth, strict=True)) < 20
    assert "nearly all" not in said and "unchanged" not in said
    assert read_json(stats)["parameters"]["minhash"]["kmer"] == 20
    kept = read_json(stats)["kept"]
    assert kept["nearly_all"] is False
    assert 0 <= kept["rare"] < 100 < kept["q20_bases"]
    # As CARE decides, no read has enough similar ones: that is said.
    said = ngsgpu.corrects(*files, "--classic").err
    assert said.count("reads were left unchanged") == 1 and "lower --coverage" in said
    assert read_json(stats)["kept"]["nearly_all"] is True


def test_errors_kept_as_alleles_are_said(tmp_path: Path, ngsgpu: Commands) -> None:
    """Without qualities that tell errors, several reads have the same one by chance."""
    records, _ = amplicon_reads(900, 2, 0.04, flat=True)
    path, stats = write(tmp_path / "in.fq", fastq(records)), tmp_path / "s.json"
    files = ["-i", path, "-o", tmp_path / "out.fq", "--stats", stats, "--keep-variants", "2"]
    said = ngsgpu.corrects(*files).err
    assert said.count("nearly all differences between reads were kept") == 1
    assert "--keep-variants" in said
    document = read_json(stats)
    assert document["kept"]["nearly_all"] is True
    assert document["corrected"]["bases"] < document["kept"]["rare"]


@pytest.mark.parametrize("reads", [b"", b"@r\nACG\n+\nIII\n"])
def test_no_coverage_without_kmers(
    tmp_path: Path, ngsgpu: Commands, backend: str, reads: bytes
) -> None:
    """Neither an empty file nor reads that are too short have a coverage of 1."""
    path, stats = write(tmp_path / "r.fq", reads), tmp_path / "s.json"
    words = ["correct", "-i", path, "-o", tmp_path / "o.fq", "--stats", stats, "--backend", backend]
    done = ngsgpu(*words)
    assert done.status == 0 and "coverage unknown" in done.err and "coverage 1.0" not in done.err
    assert read_json(stats)["coverage"] == {"value": 0, "estimated": True, "suffices": False}
    assert "coverage 30.0 (given)" in ngsgpu(*words, "--coverage", 30).err
