"""Evaluation of what ART really writes, and of the rule for indels against ART's alignments."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.evaluate import evaluate_arrays, evaluate_correction
from tests.support.evaluate import oracle

Sequences = tuple[list[str], list[bytes]]


@pytest.fixture(scope="module")
def art(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prefix of files simulated with indels from a genome with an N and a header with words."""
    folder = tmp_path_factory.mktemp("art")
    generator = random.Random(11)
    genome = [generator.choice("ACGT") for _ in range(20_000)]
    genome[9_000:9_003] = "NNN"
    (folder / "genome.fa").write_text(f">chr1 with words\n{''.join(genome)}\n>chr2\n")
    with (folder / "genome.fa").open("a") as file:
        file.write("".join(generator.choice("ACGT") for _ in range(5_000)) + "\n")
    subprocess.run(
        ["art_illumina", "-ss", "HS20", "-p", "-l", "100", "-f", "12", "-m", "300", "-s", "10",
         "-rs", "1", "-sam", "-ef", "-nf", "0", "-i", "genome.fa", "-o", "art",
         "-ir", "0.001", "-dr", "0.001", "-ir2", "0.001", "-dr2", "0.001"],
        cwd=folder, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return folder / "art"


def read_fastq(path: Path) -> Sequences:
    lines = path.read_bytes().splitlines()
    return [line[1:].decode() for line in lines[::4]], lines[1::4]


def read_truth(prefix: Path, mate: int) -> list[bytes]:
    """The error-free reads of a mate in the reads' direction, by hand."""
    truth = []
    for line in Path(f"{prefix}_errFree.sam").read_text().splitlines():
        fields = line.split("\t")
        if line.startswith("@") or not int(fields[1]) & (0x40, 0x80)[mate]:
            continue
        bases = fields[9].encode()
        truth.append(oracle.reverse_complement(bases) if int(fields[1]) & 16 else bases)
    return truth


def read_gapped(prefix: Path, mate: int) -> list[bool]:
    """Whether ART's alignment of each read has a gap."""
    lines = Path(f"{prefix}{mate + 1}.aln").read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(">")]
    return ["-" in lines[n + 1] + lines[n + 2] for n in starts]


def damage(reads: list[bytes], truth: list[bytes], seed: int) -> list[bytes]:
    """A corrector that mends most errors, makes some, and swaps some."""
    generator = random.Random(seed)
    result = []
    for read, true in zip(reads, truth, strict=True):
        mended = [t if generator.random() < 0.9 else b for t, b in zip(true, read, strict=True)]
        result.append(
            bytes(generator.choice(b"ACGTN") if generator.random() < 0.002 else b for b in mended)
        )
    return result


@pytest.fixture(scope="module")
def corrected(art: Path) -> list[Path]:
    paths = []
    for mate in range(2):
        names, reads = read_fastq(Path(f"{art}{mate + 1}.fq"))
        after = damage(reads, read_truth(art, mate), seed=mate)
        path = art.parent / f"corrected{mate + 1}.fq"
        path.write_bytes(
            b"".join(
                b"@%s\n%s\n+\n%s\n" % (name.encode(), read, b"I" * len(read))
                for name, read in zip(names, after, strict=True)
            )
        )
        paths.append(path)
    return paths


def test_counts_equal_the_oracle(art: Path, corrected: list[Path]) -> None:
    found = evaluate_correction(
        f"{art}_errFree.sam", f"{art}1.fq", corrected[0], f"{art}2.fq", corrected[1],
        alignments=[f"{art}1.aln", f"{art}2.aln"],
    )  # fmt: skip
    assert found.truth_in_step
    before, after, truth, mates, indels = [], [], [], [], []
    for mate in range(2):
        before += read_fastq(Path(f"{art}{mate + 1}.fq"))[1]
        after += read_fastq(corrected[mate])[1]
        truth += read_truth(art, mate)
        indels += read_gapped(art, mate)
        mates += [mate] * (len(truth) - len(mates))
    expected = oracle.evaluate(before, after, truth, mates, indels)
    for indel, counts, reads in (
        (False, found.counts, found.read_counts),
        (True, found.indel_counts, found.indel_read_counts),
    ):
        for name in ("tp", "fp", "fn", "tn", "wrong_to_wrong"):
            assert getattr(counts, name) == expected["bases"][indel, name]
        for name, value in reads.document().items():
            assert value == expected["reads"][indel, name]
    assert found.read_counts.with_unknown_truth > 0
    assert found.counts.errors_before / found.counts.bases == pytest.approx(0.0095, abs=0.0015)


def test_rule_for_indels_agrees_with_the_alignments(art: Path) -> None:
    gapped = np.array(read_gapped(art, 0) + read_gapped(art, 1))
    reads = read_fastq(Path(f"{art}1.fq"))[1] + read_fastq(Path(f"{art}2.fq"))[1]
    truth = read_truth(art, 0) + read_truth(art, 1)
    rule = np.array(
        [
            evaluate_arrays([r], [r], [t]).indel_read_counts.total == 1
            for r, t in zip(reads, truth, strict=True)
        ]
    )
    assert gapped.sum() > 20
    assert not (rule & ~gapped).any(), "a read without indels was taken for one with"
    # What is missed looks like a few substitutions: gaps close to an end of the read.
    for number in np.flatnonzero(gapped & ~rule):
        differ = sum(a != b for a, b in zip(reads[number], truth[number], strict=True))
        assert differ <= 6
    assert (gapped & ~rule).sum() <= 0.1 * gapped.sum()


def test_sam_alignments_help_on_the_forward_strand(art: Path) -> None:
    inputs = (f"{art}_errFree.sam", f"{art}1.fq", f"{art}1.fq", f"{art}2.fq", f"{art}2.fq")
    exact = evaluate_correction(*inputs, alignments=[f"{art}1.aln", f"{art}2.aln"])
    by_sam = evaluate_correction(*inputs, alignments=f"{art}.sam")
    by_rule = evaluate_correction(*inputs)
    found = [e.indel_read_counts.total for e in (by_rule, by_sam, exact)]
    assert found == sorted(found)


def test_single_reads(art: Path) -> None:
    subprocess.run(
        ["art_illumina", "-ss", "HS20", "-l", "100", "-f", "2", "-rs", "2", "-sam", "-ef", "-na",
         "-i", "genome.fa", "-o", "single"],
        cwd=art.parent, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    reads = art.parent / "single.fq"
    found = evaluate_correction(art.parent / "single_errFree.sam", reads, reads)
    assert found.truth_in_step and not found.paired
    assert found.read_counts.total + found.indel_read_counts.total == len(read_fastq(reads)[0])
