"""Reading k-mer histograms, contigs, QUAST's tables and Snakemake's benchmark files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu.errors import InputError
from ngsgpu.report.quast import join_quast, read_quast
from ngsgpu.report.sections.assembly import read_contig_lengths
from ngsgpu.report.sections.correction.plots import read_spectrum
from ngsgpu.report.sections.cost import Benchmark, read_benchmarks
from tests.support.report import QUAST, write_text


def test_spectrum(tmp_path: Path) -> None:
    text = "# k=21 sampled=1/16\nmultiplicity\tcount\n1\t500\n3\t7\n"
    spectrum = read_spectrum(write_text(tmp_path / "a.tsv", text))
    assert (spectrum.k, spectrum.sampled, spectrum.once) == (21, 1 / 16, 500)
    assert spectrum.multiplicity.tolist() == [1, 3]
    empty = read_spectrum(write_text(tmp_path / "b.tsv", "multiplicity\tcount\n"))
    assert (empty.once, len(empty.count), empty.sampled) == (0, 0, 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\t2\n2\n", "line 2: this is not a multiplicity"),
        ("1\t2\nx\ty\n", "line 2: this is not a multiplicity"),
        ("2\t2\n1\t2\n", "line 2: multiplicities must ascend"),
        ("0\t2\n", "line 1: multiplicities must ascend"),
        ("# k=x\n", "line 1: the comment is damaged"),
        ("# sampled=1/0\n", "line 1: the comment is damaged"),
    ],
)
def test_damaged_spectra(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_spectrum(write_text(tmp_path / "a.tsv", text))


def test_contig_lengths(tmp_path: Path) -> None:
    text = ">a\nACGT\nAC\n\n>b\n>c\nACGTACGT\r\n"
    lengths = read_contig_lengths(write_text(tmp_path / "a.fa", text))
    assert lengths.tolist() == [8, 6, 0]
    assert len(read_contig_lengths(write_text(tmp_path / "b.fa", ""))) == 0
    with pytest.raises(InputError, match="line 1: this is not FASTA"):
        read_contig_lengths(write_text(tmp_path / "c.fa", "ACGT\n>a\n"))
    with pytest.raises(InputError, match="No such file"):
        read_contig_lengths(tmp_path / "d.fa")


def test_quast_both_ways_round(tmp_path: Path) -> None:
    quast = read_quast(write_text(tmp_path / "report.tsv", QUAST))
    columns = zip(*(line.split("\t") for line in QUAST.splitlines()), strict=True)
    transposed = "".join("\t".join(column) + "\n" for column in columns)
    assert read_quast(write_text(tmp_path / "t.tsv", transposed)) == quast
    assert quast.number("N50", "raw") == 20110
    assert quast.number("# unaligned contigs", "corrected") == 0
    assert quast.number("LA90", "raw") is None
    assert quast.number("nothing", "raw") is None


def test_quast_tables_of_one_assembly_each(tmp_path: Path) -> None:
    reports = {
        name: read_quast(write_text(tmp_path / f"{name}.tsv", f"Assembly\tcontigs\nN50\t{value}\n"))
        for name, value in (("raw", 10), ("corrected", 20))
    }
    joint = join_quast(reports)
    assert joint.metrics == {"N50": {"raw": "10", "corrected": "20"}}


@pytest.mark.parametrize("name", ["sim raw", "sim_uncorrected", "Raw"])
def test_quast_names_of_assemblies(tmp_path: Path, name: str) -> None:
    text = f"Assembly\t{name}\tsim corrected\nN50\t1\t2\n"
    quast = read_quast(write_text(tmp_path / "report.tsv", text))
    assert quast.metrics["N50"] == {"raw": "1", "corrected": "2"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a QUAST report.tsv"),
        ("N50\t1\n", "not a QUAST report.tsv"),
        ("Assembly\traw\tcorrected\nN50\t1\n", "line 2: the line has 2 cells"),
        ("Assembly\traw\traw.2\nN50\t1\t2\n", "cannot be distinguished"),
    ],
)
def test_damaged_quast_tables(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_quast(write_text(tmp_path / "report.tsv", text))


def test_benchmarks(tmp_path: Path) -> None:
    head = "s\th:m:s\tmax_rss\tcpu_time\n"
    first = write_text(tmp_path / "1.tsv", f"{head}2.5\t0:00:02\t100\t3\n9\t0:00:09\t900\t9\n")
    second = write_text(tmp_path / "2.tsv", f"{head}0.5\t0:00:00\t-\tNA\n")
    cost = read_benchmarks((first, second))
    assert cost == Benchmark(2, 3.0, 3.0, 100.0)
    assert read_benchmarks((second,)).max_rss_mib is None


@pytest.mark.parametrize(
    "text", ["", "s\tmax_rss\n", "a\tb\n1\t2\n", "s\tmax_rss\n1\n", "s\tmax_rss\n1\tx\n"]
)
def test_damaged_benchmarks(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"Snakemake benchmark file|not a number"):
        read_benchmarks((write_text(tmp_path / "1.tsv", text),))
