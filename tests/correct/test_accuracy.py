"""The goal of accuracy on simulated reads whose truth is known, small enough for every run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.evaluate import CorrectionEvaluation, evaluate_arrays, evaluate_correction
from tests.support.commands import Commands
from tests.support.readset.simulation import LETTERS, Simulated, random_genome, simulate

MIN_SENSITIVITY = 0.95
MAX_FP_PER_MILLION = 100


@pytest.fixture(scope="module")
def genome() -> np.ndarray:
    """200 kb, in which 8 % are repeats: 1 kb pieces that occur again with 1 % differences."""
    return random_genome(np.random.default_rng(7), 200_000, repeats=8, repeat_length=1_000)


def sequences(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()[1::4]


@pytest.mark.parametrize("paired", [True, False], ids=["paired", "single"])
def test_simulated_reads(
    tmp_path: Path, ngsgpu: Commands, genome: np.ndarray, paired: bool
) -> None:
    reads: Simulated = simulate(np.random.default_rng(8), genome[:60_000], 30, paired=paired)
    options: list[object] = ["--stats", tmp_path / "s.json"]
    if paired:
        for mate in (0, 1):
            reads.write_fastq(tmp_path / f"{mate}.fq", mate=mate)
        options += ["-i", tmp_path / "0.fq", "-I", tmp_path / "1.fq"]
        options += ["-o", tmp_path / "0.out", "-O", tmp_path / "1.out"]
        ngsgpu.corrects(*options)
        sides = [sequences(tmp_path / f"{mate}.out") for mate in (0, 1)]
        after = [read for pair in zip(*sides, strict=True) for read in pair]
    else:
        reads.write_fastq(tmp_path / "in.fq")
        ngsgpu.corrects("-i", tmp_path / "in.fq", "-o", tmp_path / "out.fq", *options)
        after = sequences(tmp_path / "out.fq")
    counts = evaluate_arrays(reads.sequences(), after, reads.truths()).counts
    assert counts.errors_before > 0.005 * counts.bases
    assert counts.sensitivity is not None and counts.fp_per_million is not None
    print(f"sensitivity {counts.sensitivity:.4f}, {counts.fp_per_million:.1f} FP per million")
    assert counts.sensitivity >= MIN_SENSITIVITY
    assert counts.fp_per_million <= MAX_FP_PER_MILLION


def correct_reads_of_art(
    folder: Path,
    ngsgpu: Commands,
    genome: np.ndarray,
    *options: str,
    correct: tuple[str, ...] = (),
) -> CorrectionEvaluation:
    """HiSeq 2000, as in the published comparisons; ART is among what the tests set up."""
    assert shutil.which("art_illumina"), "install ART, as scripts/setup.sh test does"
    (folder / "genome.fa").write_bytes(b">chr\n" + LETTERS[genome].tobytes() + b"\n")
    subprocess.run(
        ["art_illumina", "-ss", "HS20", "-p", "-l", "100", "-f", "30", "-m", "300", "-s", "10",
         "-rs", "3", "-sam", "-ef", "-i", "genome.fa", "-o", "art", *options],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    paths = [folder / name for name in ("art1.fq", "art2.fq", "out1.fq", "out2.fq")]
    ngsgpu.corrects("-i", paths[0], "-I", paths[1], "-o", paths[2], "-O", paths[3], *correct)
    return evaluate_correction(
        folder / "art_errFree.sam", paths[0], paths[2], paths[1], paths[3],
        alignments=[folder / "art1.aln", folder / "art2.aln"],
    )  # fmt: skip


def test_reads_of_art(tmp_path: Path, ngsgpu: Commands, genome: np.ndarray) -> None:
    found = correct_reads_of_art(tmp_path, ngsgpu, genome[:100_000])
    assert found.counts.sensitivity is not None and found.counts.fp_per_million is not None
    print(f"{found.counts.sensitivity:.4f}, {found.counts.fp_per_million:.1f} FP per million")
    assert found.counts.sensitivity >= MIN_SENSITIVITY
    assert found.counts.fp_per_million <= MAX_FP_PER_MILLION


@pytest.mark.parametrize("options", [(), ("--classic",)], ids=["default", "classic"])
def test_reads_with_indels(
    tmp_path: Path, ngsgpu: Commands, genome: np.ndarray, options: tuple[str, ...]
) -> None:
    """They come nearer to the genome or stay; of those with two indels one may go farther."""
    rates = [text for name in ("-ir", "-ir2", "-dr", "-dr2") for text in (name, "0.002")]
    found = correct_reads_of_art(tmp_path, ngsgpu, genome[:60_000], *rates, correct=options)
    reads, aligned = found.indel_read_counts, found.indel_aligned
    print(f"{reads.total} reads, {reads.changed} changed: {aligned}")
    assert reads.total > 300
    assert aligned.farther <= (0 if options else 1)
    assert aligned.cost_after < 0.9 * aligned.cost_before
    assert aligned.nearer >= 0.2 * reads.total
    assert found.counts.fp_per_million is not None
    assert found.counts.fp_per_million <= MAX_FP_PER_MILLION
