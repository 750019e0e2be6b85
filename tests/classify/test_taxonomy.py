"""Reading taxonomies, and questions to them."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given

from ngsgpu.errors import InputError
from ngsgpu.taxonomy.dump import load_taxonomy
from ngsgpu.taxonomy.ranks import NO_RANK, RANK_CODES, RANKS
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support import DATA
from tests.support.classify import trees
from tests.support.properties import examples

pytestmark = pytest.mark.usefixtures("small_kernels")


def test_nodes_are_those_of_the_file(taxonomy: Taxonomy) -> None:
    written = {taxid: (parent, name) for taxid, parent, _, name in trees.rows()}
    assert list(taxonomy.taxid) == sorted(written)
    for node, taxid in enumerate(taxonomy.taxid.tolist()):
        assert (int(taxonomy.taxid[taxonomy.parent[node]]), taxonomy.name(node)) == written[taxid]


def test_ranks(taxonomy: Taxonomy) -> None:
    of = {
        taxid: int(rank) for taxid, rank in zip(taxonomy.taxid.tolist(), taxonomy.rank, strict=True)
    }
    assert of[1] == RANK_CODES["root"]
    assert of[2] == of[10239] == RANK_CODES["domain"]
    assert of[562] == RANK_CODES["species"]
    assert of[131567] == of[83333] == NO_RANK


def test_look_up_follows_merged_taxids(taxonomy: Taxonomy) -> None:
    coli = taxonomy.index_of(562)
    assert taxonomy.taxid[coli] == 562
    assert taxonomy.index_of(99) == taxonomy.index_of(98) == coli
    assert taxonomy.index_of(97) == taxonomy.index_of(0) == taxonomy.index_of(10**15) == -1
    assert taxonomy.index_of((1 << 63) - 1) == taxonomy.index_of(1 << 63) == -1
    assert taxonomy.index_of(-(10**30)) == -1
    assert taxonomy.indices_of([[562, 5], [99, 1]]).tolist() == [[coli, -1], [coli, taxonomy.root]]


def test_lineages(taxonomy: Taxonomy) -> None:
    node = taxonomy.index_of(83333)
    taxids = [int(taxonomy.taxid[at]) for at in taxonomy.lineage(node)]
    assert taxids == [83333, 562, 561, 543, 1236, 1224, 2, 131567, 1]
    row = taxonomy.ranked_lineages()[node]
    named = {RANKS[rank]: int(taxonomy.taxid[at]) for rank, at in enumerate(row) if at >= 0}
    assert named == {
        "species": 562, "genus": 561, "family": 543, "class": 1236, "phylum": 1224, "domain": 2,
        "root": 1,
    }  # fmt: skip


def test_of_two_nodes_with_a_rank_the_higher_one_counts(tmp_path: Path) -> None:
    nodes = [
        (1, 1, "no rank", "root"),
        (10, 1, "species group", "group"),
        (11, 10, "species subgroup", "subgroup"),
        (12, 11, "species", "species"),
    ]
    taxonomy = load_taxonomy(trees.write_dump(tmp_path, nodes))
    row = taxonomy.ranked_lineages()[taxonomy.index_of(12)]
    assert row[RANK_CODES["subgenus"]] == taxonomy.index_of(10)


@given(taxonomy=trees.taxonomies())
@examples(60)
def test_ranked_lineages_are_those_of_the_walk_up(taxonomy: Taxonomy) -> None:
    found = taxonomy.ranked_lineages()
    for node in range(len(taxonomy)):
        expected = [-1] * len(RANKS)
        for above in taxonomy.lineage(node):
            if taxonomy.rank[above] != NO_RANK:
                expected[taxonomy.rank[above]] = above
        assert found[node].tolist() == expected
        assert taxonomy.depth[node] == len(taxonomy.lineage(node)) - 1
    order = taxonomy.top_down().tolist()
    assert sorted(order) == list(range(len(taxonomy)))
    place = {node: at for at, node in enumerate(order)}
    assert all(place[int(taxonomy.parent[node])] <= place[node] for node in order)


def test_saved_and_loaded(taxonomy: Taxonomy, tmp_path: Path) -> None:
    taxonomy.save(tmp_path)
    again = Taxonomy.load(tmp_path)
    assert again.digest() == taxonomy.digest()
    assert again.name(again.index_of(99)) == "Escherichia coli"


def test_digest_tells_taxonomies_apart(taxonomy: Taxonomy, tmp_path: Path) -> None:
    nodes = [(*row[:3], row[3].replace("coli", "cola")) for row in trees.rows()]
    other = load_taxonomy(trees.write_dump(tmp_path, nodes))
    assert other.digest() != taxonomy.digest()


@pytest.mark.parametrize("name", ["parent", "name_start", "merged_index"])
def test_damaged_arrays_are_refused(taxonomy: Taxonomy, tmp_path: Path, name: str) -> None:
    taxonomy.save(tmp_path)
    path = tmp_path / f"{name}.npy"
    array = np.load(path)
    np.save(path, array + array.dtype.type(10**6))
    with pytest.raises(InputError, match="are inconsistent"):
        Taxonomy.load(tmp_path)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(InputError, match=name):
        Taxonomy.load(tmp_path)
    path.unlink()
    with pytest.raises(InputError, match=r"cannot be read \(No such file"):
        Taxonomy.load(tmp_path)


def test_compressed_files(taxonomy: Taxonomy, tmp_path: Path) -> None:
    folder = trees.write_dump(tmp_path, merged=[(99, 562), (98, 99)])
    for name in ("nodes.dmp", "names.dmp", "merged.dmp"):
        with gzip.open(folder / f"{name}.gz", "wb") as file:
            file.write((folder / name).read_bytes())
        (folder / name).unlink()
    assert load_taxonomy(folder).digest() == taxonomy.digest()


def test_loose_separators_crlf_and_no_last_line_end(taxonomy: Taxonomy, tmp_path: Path) -> None:
    folder = trees.write_dump(tmp_path, merged=[(99, 562), (98, 99)])
    for name in ("nodes.dmp", "names.dmp"):
        text = (folder / name).read_text().replace("\t|\t", "|").replace("\t|", "|")
        (folder / name).write_bytes(text.replace("\n", "\r\n").encode().rstrip())
    assert load_taxonomy(folder).digest() == taxonomy.digest()


def test_parent_0_is_a_root_and_merged_may_be_missing(tmp_path: Path) -> None:
    folder = trees.write_dump(tmp_path, [(1, 0, "no rank", "root"), (5, 1, "species", "five")])
    (folder / "merged.dmp").unlink()
    taxonomy = load_taxonomy(folder)
    assert taxonomy.root == 0
    assert len(taxonomy.merged_taxid) == 0


def test_nodes_without_a_name_are_called_by_their_taxid(tmp_path: Path) -> None:
    folder = trees.write_dump(tmp_path)
    lines = (folder / "names.dmp").read_text().splitlines(keepends=True)
    (folder / "names.dmp").write_text("".join(x for x in lines if not x.startswith("562\t")))
    taxonomy = load_taxonomy(folder)
    assert taxonomy.name(taxonomy.index_of(562)) == "562"
    assert taxonomy.name(taxonomy.index_of(561)) == "Escherichia"


def edited(folder: Path, name: str, old: str, new: str) -> Path:
    path = trees.write_dump(folder) / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    return folder


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("543\t|\t1236", "543\t|\t562", r"line 6: taxid 543 is its own ancestor \(543 -> 562 -> 561"
         r" -> 543\)"),
        ("1\t|\t1\t|", "1\t|\t562\t|", "there is no root"),
        ("620\t|\t543", "620\t|\t620", "line 10: there is more than one root: 1 and 620"),
        ("1280\t|\t1279", "1280\t|\t77", "line 14: the parent of taxid 1280, 77, is not there"),
        ("1279\t|\t1239", "1239\t|\t2", r"line 13: taxid 1239 comes a second time \(first in line"
         r" 12\)"),
        ("562\t|\t561\t|", "562 561", "line 8: the line does not begin with a taxid"),
        ("562\t|\t561\t|", "x62\t|\t561\t|", "line 8: the line does not begin with a taxid"),
        ("562\t|\t561\t|", "0\t|\t561\t|", "line 8: the line does not begin with a taxid"),
    ],
)  # fmt: skip
def test_bad_nodes_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(InputError, match=f"nodes.dmp.*{message}"):
        load_taxonomy(edited(tmp_path, "nodes.dmp", old, new))


def test_bad_names_and_merged_are_refused(tmp_path: Path) -> None:
    folder = edited(tmp_path / "a", "names.dmp", "2\t|\tBacteria\t|", "2\tBacteria\t")
    with pytest.raises(InputError, match=r"names\.dmp, line 6: "):
        load_taxonomy(folder)
    folder = trees.write_dump(tmp_path / "b", merged=[(99, 562)])
    with (folder / "merged.dmp").open("a") as file:
        file.write("nothing\n")
    with pytest.raises(InputError, match=r"merged\.dmp, line 2: "):
        load_taxonomy(folder)


def test_missing_and_empty_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such directory"):
        load_taxonomy(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"there is no nodes\.dmp"):
        load_taxonomy(tmp_path)
    folder = trees.write_dump(tmp_path / "dump")
    (folder / "nodes.dmp").write_text("\n\n")
    with pytest.raises(InputError, match="it contains no nodes"):
        load_taxonomy(folder)


def test_real_taxonomies() -> None:
    for name in ("bacteria", "kmcp_custom", "kraken2_viral", "woltka_ncbi_subset"):
        taxonomy = load_taxonomy(DATA / "taxonomy" / name)
        assert taxonomy.taxid[taxonomy.root] == 1
        assert (taxonomy.ranked_lineages()[:, RANK_CODES["root"]] == taxonomy.root).all()
