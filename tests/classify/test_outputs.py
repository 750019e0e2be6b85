"""Outputs of classification: lines against a plain oracle, formats against parsers."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.call.abundance import estimate_abundance
from ngsgpu.classify.call.results import CalledReads, SampleTotals
from ngsgpu.classify.database.targets import Labels
from ngsgpu.classify.outputs.biom import biom_table
from ngsgpu.classify.outputs.cami import CAMI_RANKS, cami_profile
from ngsgpu.classify.outputs.kraken import kraken_report, krona_text
from ngsgpu.classify.outputs.reads import GROUPS, KrakenLinesWriter, ReadTableWriter
from ngsgpu.classify.outputs.tables import abundance_table, coverage_table
from ngsgpu.classify.outputs.tree import CountedTree, count_tree, genome_sizes, tree_of
from ngsgpu.classify.query.queries import CandidateArrays, QueryBlock
from ngsgpu.errors import UsageError
from ngsgpu.taxonomy.ranks import RANK_CODES, rank_name
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
from tests.support.properties import examples


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    return trees.small(tmp_path_factory.mktemp("dump"))


@pytest.fixture(scope="module")
def labels(taxonomy: Taxonomy) -> Labels:
    taxa = [taxonomy.index_of(taxid) for taxid in (83333, 1280, 10710)]
    return trees.make_labels(taxonomy, [*taxa, -1], [4_000_000, 1000, 90, 127])


# --- lines a read ---------------------------------------------------------------------------------


@st.composite
def called(draw: st.DrawFn, labels: Labels, paired: bool) -> CalledReads:
    count = draw(st.integers(0, 8))
    calls = [-1, *labels.used_calls.tolist()]
    names = [draw(st.text("ab.:/1", min_size=1, max_size=12)).encode() for _ in range(count)]
    widths = np.array([len(name) + 1 for name in names], dtype=np.int64)
    ends = np.cumsum(widths)

    def numbers(low: int, high: int) -> np.ndarray:
        values = [draw(st.integers(low, high)) for _ in range(count)]
        return np.array(values, dtype=np.int32)

    target = numbers(-1, labels.targets - 1)
    begin = np.minimum(numbers(0, 35000), np.maximum(labels.windows()[target] - 1, 0))
    queries = QueryBlock(
        names=np.frombuffer(b" ".join([*names, b""]), dtype=np.uint8),
        name_start=ends - widths,
        name_end=ends - 1,
        length1=numbers(0, 300),
        length2=numbers(0, 300),
        features=np.zeros(count, dtype=np.int64),
        candidates=CandidateArrays.empty(count, 1),
        paired=paired,
    )
    return CalledReads(
        queries=queries,
        call=np.array([draw(st.sampled_from(calls)) for _ in range(count)], dtype=np.int32),
        score=numbers(0, 2**31 - 1),
        target=target,
        window_begin=begin.astype(np.int32),
        window_end=np.minimum(begin + numbers(0, 3), labels.windows()[target] - 1).astype(np.int32),
    )


def part_of(reads: CalledReads, begin: int, end: int) -> CalledReads:
    fields = ("call", "score", "target", "window_begin", "window_end")
    return CalledReads(
        reads.queries.part(begin, end), *(getattr(reads, name)[begin:end] for name in fields)
    )


def name_of(reads: CalledReads, i: int) -> bytes:
    own = reads.queries
    return own.names[own.name_start[i] : own.name_end[i]].tobytes()


def table_oracle(labels: Labels, reads: CalledReads, groups: tuple[str, ...]) -> str:
    lines = []
    for i in range(len(reads)):
        fields = [name_of(reads, i).decode()]
        call, target = int(reads.call[i]), int(reads.target[i])
        if "taxon" in groups and call < 0:
            fields += ["0", "no rank", "unclassified"]
        elif "taxon" in groups and call < labels.nodes:
            taxonomy = labels.taxonomy
            rank = rank_name(int(taxonomy.rank[call]))
            fields += [str(taxonomy.taxid[call]), rank, taxonomy.name(call)]
        elif "taxon" in groups:
            node = labels.node_of_target[call - labels.nodes]
            name = labels.target_name(call - labels.nodes)
            fields += [str(labels.taxonomy.taxid[node]), "sequence", name]
        if "score" in groups:
            fields.append(str(reads.score[i]))
        if "target" in groups:
            fields.append(labels.target_name(target) if target >= 0 else "-")
        if "range" in groups and target >= 0:
            last = int(reads.window_end[i]) * 112 + 127
            fields.append(str(int(reads.window_begin[i]) * 112 + 1))
            fields.append(str(min(last, int(labels.target_length[target]))))
        elif "range" in groups:
            fields += ["0", "0"]
        lines.append("\t".join(fields) + "\n")
    return "".join(lines)


@given(data=st.data())
@examples(60)
def test_table_of_reads(labels: Labels, data: st.DataObject) -> None:
    reads = data.draw(called(labels, paired=False))
    groups = tuple(group for group in GROUPS if data.draw(st.booleans()))
    writer = ReadTableWriter(labels, groups)
    expected = table_oracle(labels, reads, groups)
    assert writer.text(reads).tobytes().decode() == expected
    cut = data.draw(st.integers(0, len(reads)))
    parts = [writer.text(part_of(reads, *ends)) for ends in ((0, cut), (cut, len(reads)))]
    assert b"".join(part.tobytes() for part in parts).decode() == expected


def test_header_of_the_table(labels: Labels) -> None:
    header = b"read\ttaxid\trank\tname\tscore\ttarget\tbegin\tend\n"
    assert ReadTableWriter(labels).header() == header
    assert ReadTableWriter(labels, ["range", "taxon"]).header() == (
        b"read\ttaxid\trank\tname\tbegin\tend\n"
    )
    assert ReadTableWriter(labels, []).header() == b"read\n"
    with pytest.raises(UsageError, match="there are no columns 'length'"):
        ReadTableWriter(labels, ["length"])


@given(data=st.data())
@examples(40)
def test_kraken_lines(labels: Labels, data: st.DataObject) -> None:
    paired = data.draw(st.booleans())
    reads = data.draw(called(labels, paired))
    lines = KrakenLinesWriter(labels).text(reads).tobytes().decode().splitlines()
    taxids = labels.taxonomy.taxid
    assert len(lines) == len(reads)
    for i, line in enumerate(lines):
        state, name, taxid, length, hits = line.split("\t")
        call, target = int(reads.call[i]), int(reads.target[i])
        assert state == ("U" if call < 0 else "C")
        assert name.encode() == name_of(reads, i)
        node = call if call < labels.nodes else labels.node_of_target[call - labels.nodes]
        assert int(taxid) == (0 if call < 0 else taxids[node])
        mates = [int(reads.queries.length1[i]), int(reads.queries.length2[i])]
        assert length == "|".join(str(bases) for bases in mates[: 2 if paired else 1])
        best = taxids[labels.node_of_target[target]] if target >= 0 else 0
        assert hits == f"{best}:{reads.score[i] if target >= 0 else 0}"


# --- sums of a sample -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(labels: Labels) -> CountedTree:
    counts = np.zeros(labels.nodes + labels.targets, dtype=np.int64)
    for taxid, reads in ((561, 5), (562, 20), (620, 3), (543, 2), (131567, 1), (1, 4)):
        counts[labels.taxonomy.index_of(taxid)] = reads
    counts[labels.nodes :] = [30, 7, 1, 6]
    totals = SampleTotals("s", counts, queries=100, unclassified=21)
    assert totals.classified == counts.sum()
    return tree_of(labels, totals)


@given(taxonomy=trees.taxonomies(), data=st.data())
@examples(60)
def test_clades_are_sums_of_what_is_below(taxonomy: Taxonomy, data: st.DataObject) -> None:
    size = len(taxonomy)
    direct = np.array(data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)))
    tree = count_tree(taxonomy, direct, 3)
    for node in range(size):
        below = [at for at in range(size) if node in taxonomy.lineage(at)]
        assert tree.clade[node] == direct[below].sum()
    assert tree.total == direct.sum() + 3
    walked = [node for node, _ in tree.walk()]
    assert sorted(walked) == np.flatnonzero(tree.clade).tolist()
    for node, depth in tree.walk():
        assert depth == taxonomy.depth[node]
        above = int(taxonomy.parent[node])
        assert above == node or walked.index(above) < walked.index(node)


MULTIQC = re.compile(
    r"^\s{0,2}\d{1,3}\.\d{1,2}\t\d+\t\d+\t(\d+\t\d+\t)?[URDKPCOFGS-]\d{0,2}\t\d+\s+"
    r"(root|unclassified)"
)


def test_kraken_report(tree: CountedTree) -> None:
    report = kraken_report(tree)
    lines = report.splitlines()
    assert all(MULTIQC.match(line) for line in lines[:2])
    assert lines[:4] == [
        " 21.00\t21\t21\tU\t0\tunclassified",
        " 79.00\t79\t10\tR\t1\troot",
        " 68.00\t68\t1\tR1\t131567\t  cellular organisms",
        " 67.00\t67\t0\tD\t2\t    Bacteria",
    ]
    rows = [line.split("\t") for line in lines]
    assert {len(row) for row in rows} == {6}
    assert sum(int(row[2]) for row in rows) == 100
    codes = {row[5].strip(): row[3] for row in rows}
    assert codes["Escherichia coli"] == "S"
    assert codes["Escherichia coli K-12"] == "S1"
    assert codes["Viruses"] == "D"
    # As TAXPASTA checks it: the percentages of U and R add up to 100.
    assert sum(float(row[0]) for row in rows if row[3] in "UR") == pytest.approx(100, abs=1)
    depths = [(len(row[5]) - len(row[5].lstrip())) // 2 for row in rows[1:]]
    assert all(after <= before + 1 for before, after in pairwise(depths))


def test_kraken_report_of_nothing(taxonomy: Taxonomy) -> None:
    empty = count_tree(taxonomy, np.zeros(len(taxonomy), dtype=np.int64))
    assert kraken_report(empty) == "  0.00\t0\t0\tU\t0\tunclassified\n"
    assert krona_text(empty) == ""
    assert cami_profile(empty, "x").splitlines()[-1].startswith("@@TAXID")
    assert json.loads(biom_table([("x", empty)]))["shape"] == [0, 1]


def test_krona_text(tree: CountedTree) -> None:
    rows = [line.split("\t") for line in krona_text(tree).splitlines()]
    assert sum(int(row[0]) for row in rows) == 100
    assert rows[0] == ["21", "Unclassified"]
    assert ["10"] in rows
    assert ["7", "cellular organisms", "Bacteria", "Bacillota", "Staphylococcus",
            "Staphylococcus aureus"] in rows  # fmt: skip
    assert all(all(field for field in row) for row in rows)


def test_cami_profile(tree: CountedTree) -> None:
    lines = cami_profile(tree, "sample 1/a").splitlines()
    assert lines[0] == "@SampleID:sample_1_a"
    header = dict(line[1:].split(":", 1) for line in lines if re.match("@[A-Za-z]", line))
    assert set(header) == {"SampleID", "Version", "Ranks"}
    assert re.fullmatch(r"[A-Za-z0-9._]+", header["SampleID"])
    ranks = header["Ranks"].split("|")
    assert lines[3] == "@@TAXID\tRANK\tTAXPATH\tTAXPATHSN\tPERCENTAGE"
    sums = dict.fromkeys(ranks, 0.0)
    for line in lines[4:]:
        taxid, rank, path, names, share = line.split("\t")
        assert path.split("|")[-1] == taxid
        assert len(path.split("|")) == len(names.split("|")) == ranks.index(rank) + 1
        assert re.fullmatch(r"\d{1,3}\.\d+", share)
        sums[rank] += float(share)
    assert sums["superkingdom"] == pytest.approx(68.0)
    assert sums["species"] == pytest.approx(58.0)
    assert all(share <= 100 for share in sums.values())
    assert "562\tspecies\t2|1224|1236||543|561|562\t" in "\n".join(lines)
    assert list(CAMI_RANKS) == ranks


def test_biom_table(tree: CountedTree, monkeypatch: pytest.MonkeyPatch) -> None:
    other = count_tree(tree.taxonomy, tree.direct * 0 + (np.arange(len(tree.direct)) == 3), 0)
    document = json.loads(biom_table([("a", tree), ("b", other)]))
    required = {
        "id", "format", "format_url", "type", "generated_by", "date", "rows", "columns",
        "matrix_type", "matrix_element_type", "shape", "data",
    }  # fmt: skip
    assert set(document) == required
    assert document["format"] == "Biological Observation Matrix 1.0.0"
    assert document["type"] == "Taxon table"
    rows, columns = document["shape"]
    assert (len(document["rows"]), len(document["columns"])) == (rows, columns)
    ids = [row["id"] for row in document["rows"]]
    assert len(set(ids)) == len(ids)
    sums = [0, 0]
    for row, column, count in document["data"]:
        assert 0 <= row < rows and isinstance(count, int) and count > 0
        sums[column] += count
    assert sums == [79, 1]
    lineage = document["rows"][ids.index("562")]["metadata"]["taxonomy"]
    assert lineage == [
        "k__Bacteria", "p__Pseudomonadota", "c__Gammaproteobacteria", "o__",
        "f__Enterobacteriaceae", "g__Escherichia", "s__Escherichia coli",
    ]  # fmt: skip
    assert document["date"] == "1970-01-01T00:00:00"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert json.loads(biom_table([("a", tree)]))["date"] == "2023-11-14T22:13:20"


def test_abundance_table(tree: CountedTree) -> None:
    species, genus = (
        estimate_abundance(tree.taxonomy, tree.direct, RANK_CODES[rank], tree.unclassified)
        for rank in ("species", "genus")
    )
    sizes = np.zeros(len(tree.taxonomy))
    for taxid, size in ((562, 5e6), (561, 4e6), (1280, 2.5e6)):
        sizes[tree.taxonomy.index_of(taxid)] = size
    rows = [line.split("\t") for line in abundance_table([species], sizes).splitlines()]
    assert rows[0] == ["taxid", "rank", "name", "reads", "percent_of_reads",
                       "percent_of_classified", "genome_bases", "percent_of_genomes",
                       "at_rank"]  # fmt: skip
    assert {len(row) for row in rows} == {9}
    assert rows[1][:3] == ["562", "species", "Escherichia coli"]
    assert rows[-1] == ["0", "no rank", "unclassified", "21", "21.0000", "", "", "", "species"]
    assert sum(int(row[3]) for row in rows[1:-2]) + 21 == 100 - species.left_over
    # Not called as a species: the unclassified reads, and those of genera and above.
    ranked = tree.taxonomy.ranked_lineages()
    above = sum(int(n) for n, own in zip(tree.direct, ranked, strict=True) if own[species.rank] < 0)
    assert rows[-2][:4] == ["0", "no rank", "unknown", str(21 + above)]
    # Twice the genome: half the share of the same reads.
    found = {row[0]: row for row in rows[1:-2]}
    depth = {taxid: int(found[taxid][3]) / float(found[taxid][6]) for taxid in ("562", "1280")}
    for taxid, own in depth.items():
        assert found[taxid][7] == f"{100 * own / sum(depth.values()):.4f}"
    assert {row[7] for taxid, row in found.items() if taxid not in depth} <= {""}
    both = abundance_table([genus, species], sizes).splitlines()
    assert both[-len(rows) + 1 :] == abundance_table([species], sizes).splitlines()[1:]
    assert [line.split("\t")[8] for line in both[1:]] == sorted(
        line.split("\t")[8] for line in both[1:]
    )


def test_genome_sizes(taxonomy: Taxonomy) -> None:
    """Sequences of one taxon in one file are a genome; a taxon has the mean of its genomes."""
    taxids = (83333, 83333, 562, 1280)
    taxa = [*map(taxonomy.index_of, taxids), -1]
    labels = trees.make_labels(taxonomy, taxa, [4_000_000, 100_000, 5_000_000, 1000, 90])
    sizes = genome_sizes(labels, np.array([0, 0, 0, 1, 1], dtype=np.int32))
    found = {int(taxonomy.taxid[at]): float(sizes[at]) for at in np.flatnonzero(sizes)}
    assert {taxid: found[taxid] for taxid in (83333, 562, 561, 1280, 1279)} == {
        83333: 4.1e6, 562: 4.55e6, 561: 4.55e6, 1280: 1000, 1279: 1000,
    }  # fmt: skip
    assert found[2] == pytest.approx(9.101e6 / 3)
    assert 620 not in found


def test_coverage_table(labels: Labels) -> None:
    windows = labels.windows()
    assert windows.tolist() == [35715, 9, 1, 1]
    reads = np.zeros(int(windows.sum()), dtype=np.int32)
    reads[100:300] = 3
    reads[windows[0] : windows[0] + 9] = [1, 0, 0, 5, 0, 0, 0, 0, 2]
    rows = [line.split("\t") for line in coverage_table(labels, reads).splitlines()]
    assert rows[0] == ["target", "taxid", "name", "length", "windows", "covered", "mean_reads",
                       "bin_bases", "bins"]  # fmt: skip
    assert rows[1][:6] == ["ref_0.1", "83333", "Escherichia coli", "4000000", "35715", "200"]
    assert rows[2] == ["ref_1.1", "1280", "Staphylococcus aureus", "1000", "9", "3", "0.8889",
                       "112", "1,0,0,5,0,0,0,0,2"]  # fmt: skip
    assert len(rows) == 3
    bins = [int(value) for value in rows[1][8].split(",")]
    assert len(bins) <= 200 and sum(bins) == 600 and sum(value > 0 for value in bins) == 2
    assert len(coverage_table(labels, reads, most=1).splitlines()) == 2
