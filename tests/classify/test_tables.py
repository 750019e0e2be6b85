"""Tables of taxa by samples, from the samples' reports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.call.abundance import estimate_abundance
from ngsgpu.classify.outputs.biom import biom_table
from ngsgpu.classify.outputs.kraken import kraken_report
from ngsgpu.classify.outputs.reports import read_report, read_trees, sample_of_report
from ngsgpu.classify.outputs.tree import CountedTree, count_tree
from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.report.sections.classification.files import read_composition
from ngsgpu.taxonomy.ranks import RANK_CODES
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
from tests.support.properties import examples

COUNTS = {
    "A": ({561: 2, 562: 9, 1279: 8, 131567: 3}, 18),
    "B.x": ({2: 4, 623: 7, 1280: 3, 10710: 7}, 22),
    "none": ({}, 5),
}
TAXPASTA = """\
taxonomy_id\tA\tB.x\tnone
0\t18\t22\t5
1\t0\t0\t0
131567\t3\t0\t0
2\t0\t4\t0
1224\t0\t0\t0
1236\t0\t0\t0
543\t0\t0\t0
561\t2\t0\t0
562\t9\t0\t0
1239\t0\t0\t0
1279\t8\t0\t0
620\t0\t0\t0
623\t0\t7\t0
1280\t0\t3\t0
10239\t0\t0\t0
10710\t0\t7\t0
"""
"""What ``taxpasta merge -p kraken2`` of TAXPASTA 0.7.0 makes of the reports."""


@pytest.fixture
def samples(tmp_path: Path) -> dict[str, CountedTree]:
    taxonomy = trees.small(tmp_path / "dump")
    made = {}
    for name, (counts, unclassified) in COUNTS.items():
        direct = np.zeros(len(taxonomy), dtype=np.int64)
        for taxid, reads in counts.items():
            direct[taxonomy.index_of(taxid)] = reads
        made[name] = count_tree(taxonomy, direct, unclassified)
    return made


@pytest.fixture
def reports(tmp_path: Path, samples: dict[str, CountedTree]) -> list[str]:
    paths = [tmp_path / f"{name}.kraken2.report.txt" for name in samples]
    for path, tree in zip(paths, samples.values(), strict=True):
        path.write_text(kraken_report(tree))
    return [str(path) for path in paths]


def table(*arguments: str) -> dict[tuple[str, str], list[str]]:
    """Run the command; the cells of its table by rank and taxid."""
    assert main(["classify-table", *arguments]) == 0
    header, *rows = (line.split("\t") for line in Path(arguments[-1]).read_text().splitlines())
    assert header == ["rank", "taxid", "name", "lineage", *COUNTS]
    found = {(row[0], row[1]): row[4:] for row in rows}
    assert len(found) == len(rows)
    return found


def test_taxpasta_makes_the_same_table(reports: list[str], tmp_path: Path) -> None:
    assert main(["classify-table", *reports, "--taxpasta", str(tmp_path / "t.tsv")]) == 0
    assert (tmp_path / "t.tsv").read_text() == TAXPASTA


def test_taxpasta_has_unclassified_reads_where_reports_state_them(
    reports: list[str], tmp_path: Path
) -> None:
    """As TAXPASTA 0.7.0; Kraken 2 writes no such line if all reads are classified."""
    for path in reports[:2]:
        whole = Path(path).read_text()
        Path(path).write_text(whole[whole.index("\n") + 1 :])
    table = tmp_path / "t.tsv"
    assert main(["classify-table", *reports[:2], "--taxpasta", str(table)]) == 0
    taxa = [line.rpartition("\t")[0] for line in TAXPASTA.splitlines()]
    assert table.read_text().splitlines() == taxa[:1] + taxa[2:]
    assert main(["classify-table", *reports, "--taxpasta", str(table)]) == 0
    expected = TAXPASTA.splitlines()
    expected.append("0\t0\t0\t5")
    del expected[1]
    assert table.read_text().splitlines() == expected


def test_biom_is_that_of_classify(
    reports: list[str], samples: dict[str, CountedTree], tmp_path: Path
) -> None:
    assert main(["classify-table", *reports, "--biom", str(tmp_path / "all.biom")]) == 0
    merged = (tmp_path / "all.biom").read_text()
    assert json.loads(merged) == json.loads(biom_table(list(samples.items())))


def test_reads_are_those_of_clades(
    reports: list[str], samples: dict[str, CountedTree], tmp_path: Path
) -> None:
    found = table(*reports, "--reads", str(tmp_path / "reads.tsv"))
    assert found.pop(("no rank", "0")) == ["18", "22", "5"]
    assert found["domain", "2"] == ["19", "14", "0"]
    for (rank, taxid), cells in found.items():
        for tree, cell in zip(samples.values(), cells, strict=True):
            node = tree.taxonomy.index_of(int(taxid))
            assert tree.taxonomy.rank[node] == RANK_CODES[rank]
            assert tree.clade[node] == int(cell)


def test_abundances_are_those_of_classify(
    reports: list[str], samples: dict[str, CountedTree], tmp_path: Path
) -> None:
    found = table(*reports, "--abundances", str(tmp_path / "shares.tsv"))
    assert found["no rank", "0"] == ["45.0000", "51.1628", "100.0000"]
    for rank in ("phylum", "family", "species"):
        for column, tree in enumerate(samples.values()):
            own = estimate_abundance(tree.taxonomy, tree.direct, RANK_CODES[rank])
            for node in np.flatnonzero(own.reads).tolist():
                cells = found[rank, str(tree.taxonomy.taxid[node])]
                assert cells[column] == f"{100 * own.reads[node] / tree.total:.4f}"


def test_ranks_are_chosen(reports: list[str], tmp_path: Path) -> None:
    found = table(*reports, "--ranks", "species,genus", "--reads", str(tmp_path / "r.tsv"))
    assert [rank for rank, _ in found] == ["no rank"] + ["genus"] * 3 + ["species"] * 4
    # The most reads first.
    assert [taxid for rank, taxid in found if rank == "genus"] == ["561", "1279", "620"]


@given(taxonomy=trees.taxonomies(), data=st.data())
@examples(40)
def test_reports_are_read_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, taxonomy: Taxonomy, data: st.DataObject
) -> None:
    folder, size = tmp_path_factory.mktemp("reports"), len(taxonomy)
    written = {}
    for name in "ab":
        direct = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
        written[name] = count_tree(taxonomy, direct, data.draw(st.integers(0, 3)))
        (folder / f"{name}.kreport").write_text(kraken_report(written[name]))
    for name, tree in read_trees(sorted(folder.iterdir())):
        own = written[name]
        assert tree.unclassified == own.unclassified and tree.total == own.total
        for node in np.flatnonzero(own.clade).tolist():
            at = tree.taxonomy.index_of(int(taxonomy.taxid[node]))
            assert (tree.direct[at], tree.clade[at]) == (own.direct[node], own.clade[node])
            assert tree.taxonomy.name(at) == taxonomy.name(node)


def test_reports_of_kraken_2_have_two_columns_more(tmp_path: Path) -> None:
    path = tmp_path / "x.report.txt"
    path.write_text(
        " 50.00\t1\t1\t9\t8\tU\t0\tunclassified\n 50.00\t1\t1\t7\t6\tR\t1\troot\n"
    )  # fmt: skip
    report = read_report(path)
    assert (report.unclassified, report.direct) == (1, {1: 1})


KRAKEN_2025 = """\
 96.77\t600\t0\tR\t1\troot
 96.77\t600\t0\tR1\t131567\t  cellular organisms
 96.77\t500\t0\tR2\t2\t    Bacteria
 96.77\t500\t0\tK\t3379134\t      Pseudomonadati
 96.77\t500\t500\tP\t1224\t        Pseudomonadota
  9.00\t90\t90\t-\t2157\t    Archaea
  1.00\t10\t10\t  \t2759\t    Eukaryota
 50.00\t40\t0\tR1\t10239\t  Viruses
 50.00\t40\t40\tR2\t2559587\t    Riboviria\x85\u2028x
"""


def test_domains_of_kraken_reports_since_2025(tmp_path: Path) -> None:
    """Their ranks have no letters there; the lineage has the domain in place of the kingdom."""
    path = tmp_path / "A.kreport"
    path.write_text(KRAKEN_2025)
    biom, reads = tmp_path / "A.biom", tmp_path / "reads.tsv"
    assert main(["classify-table", str(path), "--biom", str(biom), "--reads", str(reads)]) == 0
    rows = [line.split("\t") for line in reads.read_text().split("\n")]
    domains = {row[2]: int(row[4]) for row in rows if row[0] == "domain"}
    assert domains == {"Bacteria": 500, "Archaea": 90, "Eukaryota": 10, "Viruses": 40}
    (phylum,) = (row for row in rows if row[0] == "phylum")
    assert phylum[3] == "k__Bacteria;p__Pseudomonadota"
    assert "k__Bacteria" in biom.read_text() and "k__Pseudomonadati" not in biom.read_text()
    composition = read_composition(path)
    codes = {taxon.name: taxon.code for taxon in composition.root.walk()}
    assert {name for name, code in codes.items() if code == "D"} == set(domains)
    assert "Riboviria\x85\u2028x" in codes


@pytest.mark.parametrize(
    ("file", "sample"),
    [
        ("a/S.kraken2.report.txt", "S"),
        ("S_1.v2.kreport", "S_1.v2"),
        ("S.txt", "S"),
        ("S.kraken.report", "S"),
    ],
)
def test_samples_are_named_after_their_files(file: str, sample: str) -> None:
    assert sample_of_report(file) == sample


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,reads\n", "line 1: it is not a line of a Kraken report"),
        ("1.00\t1\t1\tS\t5\t    x\n", "line 1: its lines form no tree"),
        ("9.00\t1\t1\tR\t1\troot\n9.00\t1\t1\tR\t1\troot\n", "line 2: its lines form no tree"),
        ("9.00\t1\t-1\tR\t1\troot\n", "line 1: it is not a line"),
        ("9.00\t1\t1_0\tR\t1\troot\n", "line 1: it is not a line"),
    ],
)
def test_damaged_reports_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.kreport"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_report(path)


def test_other_taxonomies_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, below in (("a", "R1\t7\t  x"), ("b", "S\t7\t  x")):
        text = f"1.00\t1\t0\tR\t1\troot\n1.00\t1\t1\t{below}\n"
        (tmp_path / f"{name}.kreport").write_text(text)
    paths = [str(tmp_path / f"{name}.kreport") for name in "ab"]
    assert main(["classify-table", *paths, "--reads", str(tmp_path / "r")]) == 2
    assert "taxon 7 (x) has another place in the tree" in capsys.readouterr().err
    (tmp_path / "b.kreport").write_text("1.00\t1\t0\tR\t2\troot\n")
    assert main(["classify-table", *paths, "--reads", str(tmp_path / "r")]) == 2
    assert "the reports have different roots (1, 2)" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_wrong_use_is_refused(
    reports: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["classify-table", *reports]) == 2
    assert "no output given" in capsys.readouterr().err
    assert main(["classify-table", *reports, "--ranks", "tribe", "--reads", "-"]) == 2
    assert "--ranks: 'tribe'; choose from domain," in capsys.readouterr().err
    copy = tmp_path / "again" / "A.kreport"
    copy.parent.mkdir()
    copy.write_text(Path(reports[0]).read_text())
    assert main(["classify-table", *reports, str(copy), "--reads", "-"]) == 2
    assert "both belong to sample 'A'" in capsys.readouterr().err
