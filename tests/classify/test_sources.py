"""Databases from what people have: folders of NCBI, GTDB and Kraken 2, tables of files."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ngsgpu.classify.database.source import find_sources
from ngsgpu.cli import main
from ngsgpu.errors import InputError, UsageError
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.ranks import rank_name
from tests.support.classify import trees

COLI, AUREUS = "GCF_000005845.2", "GCF_000013425.1"
GTDB = (
    f"RS_{COLI}\td__Bacteria;p__Pseudomonadota;c__Gammaproteobacteria;o__Enterobacterales;"
    "f__Enterobacteriaceae;g__Escherichia;s__Escherichia coli\n"
    f"GB_GCA_000013425.1\td__Bacteria;p__Bacillota;c__Bacilli;o__Staphylococcales;"
    "f__Staphylococcaceae;g__Staphylococcus;s__\n"
    f"RS_{AUREUS}\td__Bacteria;p__Bacillota;c__Bacilli;o__Staphylococcales;"
    "f__Staphylococcaceae;g__Staphylococcus;s__Staphylococcus aureus\n"
)


def fasta(path: Path, header: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    bases = "".join(random.Random(header).choices("ACGT", k=300))
    path.write_text(f">{header}\n{bases}\n")
    return path


@pytest.fixture
def tax(tmp_path: Path) -> Path:
    trees.small(tmp_path / "tax")
    return tmp_path / "tax"


def taxa(*arguments: str | Path) -> dict[str, str]:
    """Taxon by sequence of a database planned with arguments."""
    where = Path(arguments[0]).parent / "db"
    assert main(["db", "plan", *map(str, arguments), "-d", str(where), "-t1", "-q"]) == 0
    from ngsgpu.classify.database.database import open_database
    from ngsgpu.classify.database.info import target_lines

    rows = [line.split("\t") for line in target_lines(open_database(where))]
    return {row[0]: row[5] for row in rows[1:]}


@pytest.mark.parametrize("inside", ["", "ncbi_dataset/data"])
def test_ncbi_datasets(tmp_path: Path, tax: Path, inside: str) -> None:
    data = tmp_path / "download" / "ncbi_dataset" / "data"
    fasta(data / COLI / f"{COLI}_ASM584v2_genomic.fna", "NC_000913.3 Escherichia coli")
    fasta(data / COLI / "cds_from_genomic.fna", "lcl|NC_000913.3_cds_1 gene")
    fasta(data / AUREUS / "chr1.fna", "NC_007795.1")
    reports = [
        {"accession": COLI, "organism": {"taxId": 562, "organismName": "Escherichia coli"}},
        {"accession": AUREUS, "organism": {"taxId": 1280}},
    ]
    report = data / "assembly_data_report.jsonl"
    report.write_text("".join(json.dumps(own) + "\n" for own in reports))
    place = tmp_path / "download" / inside
    assert taxa(place, "--taxonomy", tax) == {
        "NC_000913.3": "Escherichia coli", "NC_007795.1": "Staphylococcus aureus",
    }  # fmt: skip
    report.write_text('{"accession": "GCF_1.1"}\n')
    assert main(["db", "plan", str(place), "-d", str(tmp_path / "x"), "--taxonomy", str(tax)]) == 2


def test_datasets_without_sequences(tmp_path: Path) -> None:
    (tmp_path / "data_report.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match=r"no FASTA file of a genome; .*datasets rehydrate"):
        find_sources([tmp_path])


def test_refseq(tmp_path: Path, tax: Path, caplog: pytest.LogCaptureFixture) -> None:
    genomes = tmp_path / "genomes"
    fasta(genomes / f"{COLI}_ASM584v2_genomic.fna", "NC_000913.3")
    fasta(genomes / f"{COLI}_ASM584v2_rna_from_genomic.fna", "rna1")
    (genomes / "assembly_summary.txt").write_text(
        f"##  See README\n#assembly_accession\tbioproject\ttaxid\n{COLI}\tPRJ1\t562\n"
    )
    assert taxa(genomes, "--taxonomy", tax) == {"NC_000913.3": "Escherichia coli"}
    assert find_sources([genomes]).maps == []
    assert "assembly_summary.txt is not used: it needs a `taxonomy`" in caplog.text


def test_gtdb(tmp_path: Path, tax: Path) -> None:
    genomes = tmp_path / "genomes"
    fasta(genomes / "GCF/000" / f"{COLI}_genomic.fna", "NC_000913.3")
    fasta(genomes / f"{AUREUS}_genomic.fna", "NC_007795.1")
    table = genomes / "bac120_taxonomy_r220.tsv"
    table.write_text(GTDB)
    expected = {"NC_000913.3": "Escherichia coli", "NC_007795.1": "Staphylococcus aureus"}
    assert taxa(genomes) == expected
    elsewhere = table.rename(tmp_path / "bac120_taxonomy.tsv")
    assert taxa(genomes, "--taxonomy", elsewhere) == expected
    tree = load_taxonomy(elsewhere)
    coli = next(node for node in range(len(tree)) if tree.name(node) == "Escherichia coli")
    assert [rank_name(tree.rank[node]) for node in tree.lineage(coli)] == [
        "species", "genus", "family", "order", "class", "phylum", "domain", "root",
    ]  # fmt: skip
    # Taxids do not depend on what else is in a release.
    elsewhere.write_text(GTDB.splitlines()[0])
    assert tree.taxid[coli] in load_taxonomy(elsewhere).taxid
    assert tree.taxid[coli] == 226666076413678
    assert tree.taxid.max() < 2**53


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("RS_GCF_1\tBacteria", "line 4: there is no accession with a lineage"),
        ("RS_GCF_1\td__Bacteria;x__X", "line 4: there is no accession with a lineage"),
        ("RS_GCF_1\td__Archaea;p__Bacillota", "line 4: p__Bacillota is below d__Archaea and d__B"),
    ],
)
def test_lineages_that_are_refused(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "ar53_taxonomy.tsv"
    path.write_text(GTDB + line + "\n")
    with pytest.raises(InputError, match=message):
        load_taxonomy(path)


@pytest.mark.parametrize("known", ["headers", "map"])
def test_kraken2(tmp_path: Path, tax: Path, known: str) -> None:
    kraken = tmp_path / "kraken"
    header = "kraken:taxid|562|NC_000913.3" if known == "headers" else "NC_000913.3"
    fasta(kraken / "library/bacteria/library.fna", f"{header} Escherichia coli")
    fasta(kraken / "library/added/x.fna", "NC_007795.1")
    tax.rename(kraken / "taxonomy")
    if known == "map":
        (kraken / "seqid2taxid.map").write_text("NC_000913.3\t562\nNC_007795.1\t1280\n")
    else:
        (kraken / "taxonomy/nucl_gb.accession2taxid").write_text("NC_007795\tNC_007795.1\t1280\t1")
    assert list(taxa(kraken).values()) == ["Staphylococcus aureus", "Escherichia coli"]


@pytest.mark.parametrize("header", ["", "# genomes\nfile\ttaxid\n", "name\ttaxid\tpath\n"])
def test_tables_of_files(tmp_path: Path, tax: Path, header: str) -> None:
    fasta(tmp_path / "a/genome.fna", "chr1")
    fasta(tmp_path / "b/genome.fna", "chr2")
    table = tmp_path / "genomes.tsv"
    rows = [("./a/genome.fna", "562"), (str(tmp_path / "b/genome.fna"), "1280")]
    last = header.startswith("name")
    table.write_text(header + "".join(
        f"x\t{taxid}\t{file}\n" if last else f"{file}\t{taxid}\n" for file, taxid in rows
    ))  # fmt: skip
    expected = {"chr1": "Escherichia coli", "chr2": "Staphylococcus aureus"}
    assert taxa(table, "--taxonomy", tax) == expected
    table.write_text(table.read_text() + "c/genome.fna\t562\n")
    with pytest.raises(InputError, match=r"genomes\.tsv, line .*: the file '.*' does not exist"):
        find_sources([table])


def test_forced(tmp_path: Path) -> None:
    fasta(tmp_path / "refs/x.fna", "x")
    (tmp_path / "refs/bac120_taxonomy.tsv").write_text(GTDB)
    assert find_sources([tmp_path / "refs"], kind="files").references == [tmp_path / "refs"]
    with pytest.raises(InputError, match="there is no library/ and taxonomy/; check `source`"):
        find_sources([tmp_path / "refs"], kind="kraken2")
    with pytest.raises(UsageError, match="'kraken' is not known; choose one of auto, ncbi"):
        find_sources([tmp_path / "refs"], kind="kraken")
