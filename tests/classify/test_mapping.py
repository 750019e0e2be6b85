"""From names of reference sequences to taxa."""

from __future__ import annotations

import gzip
import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.mapping import map_targets
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support import DATA
from tests.support.classify import trees
from tests.support.properties import examples

pytestmark = pytest.mark.usefixtures("small_kernels")


def taxids(taxonomy: Taxonomy, headers: list[str], *maps: Path, files: list[str] | None = None):
    whole = [header.encode() for header in headers]
    names = [header.split()[0] for header in whole]
    nodes = map_targets(names, whole, taxonomy, maps, files=files)
    assert nodes.dtype == np.int32
    return [int(taxonomy.taxid[node]) if node >= 0 else None for node in nodes]


def test_taxids_in_headers(taxonomy: Taxonomy) -> None:
    headers = [
        "kraken:taxid|562|NC_1.1 Escherichia",
        "NC_2.1|kraken:taxid|1280",
        "NC_3.1 [taxid=623] something",
        "NC_4.1 taxid:99 merged",
        "NC_5.1 mytaxid|562",
        "NC_6.1",
    ]
    assert taxids(taxonomy, headers) == [562, 1280, 623, 562, None, None]


ACCESSIONS = """\
accession\taccession.version\ttaxid\tgi
NC_000001\tNC_000001.5\t562\t11
NC_000002\tNC_000002.1\t1280\t12
NC_000003\tNC_000003.1\t0\t13
NC_000002\tNC_000002.2\t623\t14
"""


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_accession2taxid(taxonomy: Taxonomy, tmp_path: Path, header: bool, ending: str) -> None:
    path = tmp_path / "nucl.accession2taxid.gz"
    lines = ACCESSIONS.splitlines()[0 if header else 1 :]
    with gzip.open(path, "wb") as file:
        file.write((ending.join(lines) + ending).encode())
    names = ["NC_000001.5", "NC_000001.7", "NC_000001", "NC_000002.2", "NC_000002.9", "NC_000003.1"]
    assert taxids(taxonomy, names, path) == [562, 562, 562, 623, 1280, None]
    names = ["gi|556|ref|NC_000001.5| Escherichia", "gi|1|gb|NC_000002.1|", "NC_00000"]
    assert taxids(taxonomy, names, path) == [562, 1280, None]


def test_simple_table(taxonomy: Taxonomy, tmp_path: Path) -> None:
    path = tmp_path / "map.tsv"
    path.write_text("# mine\n\nchr1\t562\nchr2\t1280\nchr1\t623\nchr3\t4711")
    assert taxids(taxonomy, ["chr2", "chr1", "chr3", "chr4"], path) == [1280, 562, None, None]
    path.write_text("name\tlength\ttaxid\nchr1\t5\t562\n")
    assert taxids(taxonomy, ["chr1 first"], path) == [562]


def test_two_taxids_of_one_name_are_said(
    taxonomy: Taxonomy, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "map.tsv"
    report = '{"accession": "GCF_000000001.1", "organism": {"taxId": %d}}\n'
    tables = {
        "chr1\t562\nchr2\t2\nchr2\t2\nchr1\t623\n": "chr1",
        report % 562 + report % 623: "GCF_000000001.1",
    }
    for text, name in tables.items():
        path.write_text(text)
        caplog.clear()
        assert taxids(taxonomy, [name, "chr2"], path, files=[name, ""])[0] == 562
        (said,) = (own.getMessage() for own in caplog.records)
        assert f"1 names have several taxids, first '{name}' (562 and 623)" in said


def test_assembly_summary(taxonomy: Taxonomy, tmp_path: Path) -> None:
    path = tmp_path / "assembly_summary.txt"
    path.write_text(
        "#   See a README file for a description\n"
        "# assembly_accession\tbioproject\ttaxid\tspecies_taxid\torganism_name\n"
        "GCF_000005845.2\tPRJ1\t83333\t562\tE. coli\n"
        "GCF_000013425.1\tPRJ2\t1280\t1280\tS. aureus\n"
    )
    files = ["refs/GCF_000005845.2_ASM584v2_genomic.fna.gz", "GCF_000013425.9.fna", "other.fna"]
    names = ["NC_000913.3", "NC_007795.1", "NC_1"]
    assert taxids(taxonomy, names, path, files=files) == [83333, 1280, None]


def test_headers_come_first_then_the_files_in_order(taxonomy: Taxonomy, tmp_path: Path) -> None:
    first, second = tmp_path / "first.tsv", tmp_path / "second.tsv"
    first.write_text("a\t562\n")
    second.write_text("a\t1280\nb\t1280\nc\t1280\n")
    headers = ["a", "b", "c taxid|623"]
    assert taxids(taxonomy, headers, first, second) == [562, 1280, 623]
    assert taxids(taxonomy, headers, second, first) == [1280, 1280, 623]


@pytest.mark.parametrize("line", ["chr2", "chr2\t", "chr2\tE. coli", "chr2\t-5", "chr2 562"])
def test_lines_without_a_taxid_are_refused(taxonomy: Taxonomy, tmp_path: Path, line: str) -> None:
    path = tmp_path / "map.tsv"
    path.write_text(f"chr1\t562\n{line}\nchr3\t562\n")
    with pytest.raises(InputError, match=r"map\.tsv, line 2: no taxid in column 2"):
        taxids(taxonomy, ["chr1"], path)


def test_unknown_taxids_are_said(taxonomy: Taxonomy, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="ngsgpu"):
        assert taxids(taxonomy, ["a taxid|4711", "b"]) == [None, None]
    assert "1 of 2 reference sequences" in caplog.text and "'a' (4711)" in caplog.text


@given(
    keys=st.lists(st.text("ab.|1", min_size=1, max_size=4), max_size=12),
    table=st.lists(st.tuples(st.text("ab.1", min_size=1, max_size=4), st.integers(0, 16))),
)
@examples(60)
def test_whole_names_as_a_dictionary_finds_them(
    tmp_path_factory: pytest.TempPathFactory, keys: list[str], table: list[tuple[str, int]]
) -> None:
    taxonomy = trees.make_taxonomy([0] * 16, [255] * 16)
    path = tmp_path_factory.mktemp("maps") / "map.tsv"
    path.write_text("".join(f"{name}\t{taxid}\n" for name, taxid in table))
    first: dict[str, int] = {}
    for name, taxid in table:
        if taxid and first.get(name, 0) == 0:
            first[name] = taxid
    for key, found in zip(keys, taxids(taxonomy, keys, path), strict=True):
        if key in first:
            assert found == first[key]


def test_real_genomes() -> None:
    folder = DATA / "taxonomy" / "bacteria"
    taxonomy = load_taxonomy(folder)
    lines = (folder / "seqid2taxid.tsv").read_text().splitlines()
    names = [line.split("\t")[0] for line in lines]
    expected = [int(line.split("\t")[1]) for line in lines]
    assert taxids(taxonomy, names, folder / "seqid2taxid.tsv") == expected
