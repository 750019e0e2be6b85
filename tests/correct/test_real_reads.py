"""Reads of real machines run through, and keep all but some bases."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import pysam
import pytest

from tests.support import DATA
from tests.support.commands import Commands, names, read_json
from tests.support.io.edge_table import EXPECTED, Parsed
from tests.support.io.records import decompressed
from tests.support.minhash.oracle import reverse_complement


def records(path: Path) -> list[tuple[str, str | None, str, str | None]]:
    with pysam.FastxFile(str(path)) as file:
        return [(r.name, r.comment, r.sequence, r.quality) for r in file]


def beginning(path: Path, target: Path, reads: int = 1_000) -> Path:
    """The first reads of a file."""
    with gzip.open(path) as file:
        target.write_bytes(b"".join(islice(file, 4 * reads)))
    return target


def without_bases(path: Path) -> list[tuple[str, str | None, int, str | None]]:
    return [(name, comment, len(bases), q) for name, comment, bases, q in records(path)]


@pytest.mark.parametrize(
    "name",
    ["ecoli_mg1655_1kb", "sarscov2_artic_miseq", "merge_16S_v4_dada2_sam1"],
)
def test_pairs(tmp_path: Path, ngsgpu: Commands, name: str) -> None:
    ins = [
        beginning(DATA / "reads" / f"{name}_R{mate}.fastq.gz", tmp_path / f"{mate}.fq")
        for mate in (1, 2)
    ]
    outs = [tmp_path / f"{mate}.fastq.gz" for mate in (1, 2)]
    ngsgpu.corrects(
        "-i", ins[0], "-I", ins[1], "-o", outs[0], "-O", outs[1], "--stats", tmp_path / "s.json"
    )
    for before, after in zip(ins, outs, strict=True):
        assert without_bases(before) == without_bases(after)
    stats = read_json(tmp_path / "s.json")
    assert 0 < stats["corrected"]["bases"] < 0.05 * stats["reads"]["bases"]


def test_corrected_reads_are_in_the_genome(tmp_path: Path, ngsgpu: Commands) -> None:
    """Nearly all reads of the first 1,000 bases of a known genome occur in it exactly."""
    path = DATA / "genomes" / "escherichia_coli__K_12_MG1655.fna.gz"
    region = records(path)[0][2][:3_000]
    region += "|" + reverse_complement(region)
    ins = [DATA / "reads" / f"ecoli_mg1655_1kb_R{mate}.fastq.gz" for mate in (1, 2)]
    outs = [tmp_path / f"{mate}.fastq" for mate in (1, 2)]
    ngsgpu.corrects("-i", ins[0], "-I", ins[1], "-o", outs[0], "-O", outs[1])
    before = [r[2] in region for path in ins for r in records(path)]
    after = [r[2] in region for path in outs for r in records(path)]
    print(len(before), sum(before), sum(after))
    assert sum(after) > sum(before)
    assert not any(b and not a for b, a in zip(before, after, strict=True))


def test_fasta(tmp_path: Path, ngsgpu: Commands) -> None:
    path = DATA / "reads" / "kraken_HiSeq_accuracy.fa.gz"
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out.fa")
    assert without_bases(path) == without_bases(tmp_path / "out.fa")


def test_awkward_files(tmp_path: Path, ngsgpu: Commands) -> None:
    """Of a few reads that hardly overlap nothing can be corrected; refused files give nothing."""
    for name, expected in list(EXPECTED.items())[::3]:
        path, output = DATA / "edge" / name, tmp_path / "out"
        done = ngsgpu.correct("-i", path, "-o", output, "-q", "--coverage", 4)
        if isinstance(expected, Parsed):
            assert done.status == 0, done.err
            before, after = decompressed(path), output.read_bytes()
            assert len(before) == len(after), name
            assert sum(b != a for b, a in zip(before, after, strict=True)) <= 3, name
            output.unlink()
        else:
            assert done.status == 2
            assert done.error.startswith(str(path))
        assert names(tmp_path) == []
