"""``ngsgpu evaluate classification``: outcomes against a plain oracle, and the formats it reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.evaluate.classification.calls import ELSEWHERE, UNCLASSIFIED, read_calls
from ngsgpu.evaluate.classification.files import (
    evaluate_classification,
    read_composition,
    read_references,
)
from ngsgpu.evaluate.truth.origins import NOWHERE, UNKNOWN, read_origins
from ngsgpu.taxonomy.ranks import RANKS
from ngsgpu.taxonomy.tree import Taxonomy
from tests.support.classify import trees
from tests.support.properties import examples


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    return trees.small(tmp_path_factory.mktemp("dump"))


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


# --- the formats ----------------------------------------------------------------------------------

OURS = """\
read\ttaxid\trank\tname\tscore\ttarget\tbegin\tend
r1\t562\tspecies\tEscherichia coli\t12\tref_0.1\t1\t127
r2/1\t83333\tsequence\tref_0.1\t16\tref_0.1\t113\t239
r3\t0\tno rank\tunclassified\t2\tref_0.1\t1\t127
r4\t4711\tspecies\tsomething\t7\tref_0.1\t1\t127
"""

KRAKEN = """\
C\tr1\t562\t101\t562:3 0:20
C\tr2\tEscherichia coli K-12 (taxid 83333)\t101|101\t83333:3 |:| 0:20
U\tr3\t0\t101\t0:70
C\tr4\t4711\t101\t4711:1
"""

KRAKEN_NAMES = KRAKEN.replace("\t562\t", "\tEscherichia coli (taxid 562)\t").replace(
    "\t0\t101", "\tunclassified (taxid 0)\t101"
)

METACACHE = """\
# Reporting per-read mappings
# TABLE_LAYOUT: query_header\t|\trank:taxname
r1 comment\t|\tspecies:Escherichia coli
r2\t|\tsequence:ref_0.1
r3\t|\t--
r4\t|\tspecies:Not here: at all
# queries: 4
"""

METACACHE_TAXIDS = """\
# comment
r1 comment\t|\tspecies:Escherichia coli(562)
r2\t|\tsequence:ref_0.1(-1)
r3\t|\t--
r4\t|\tspecies:Something (old)(4711)
"""

METACACHE_COLUMNS = """\
r1\t|\tspecies\t|\tEscherichia coli\t|\t562
r2\t|\tsequence\t|\tref_0.1\t|\t-1
r3\t|\t--\t|\t--\t|\t0
r4\t|\tspecies\t|\tSomething\t|\t4711
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("text", "program", "scores"),
    [
        (OURS, "ngsgpu", [12, 16, 2, 7]),
        ("".join("\t".join(line.split("\t")[:2]) + "\n" for line in OURS.splitlines()),
         "ngsgpu", None),
        (KRAKEN, "kraken", None),
        (KRAKEN_NAMES, "kraken", None),
        (METACACHE, "metacache", None),
        (METACACHE_TAXIDS, "metacache", None),
        (METACACHE_COLUMNS, "metacache", None),
    ],
    ids=["ours", "ours, two columns", "kraken", "kraken, names", "metacache", "metacache, taxids",
         "metacache, columns"],
)  # fmt: skip
def test_calls_of_all_programs(
    taxonomy: Taxonomy,
    tmp_path: Path,
    text: str,
    program: str,
    scores: list[int] | None,
    ending: str,
) -> None:
    path = tmp_path / "calls"
    path.write_bytes(text.replace("\n", ending).encode())
    (block,) = read_calls(path, taxonomy, {"ref_0.1": 83333})
    assert block.program == program
    expected = [taxonomy.index_of(562), taxonomy.index_of(83333), UNCLASSIFIED, ELSEWHERE]
    assert block.node.tolist() == expected
    names = [
        block.lines.data[start:end].tobytes()
        for start, end in zip(block.lines.name_start, block.lines.name_end, strict=True)
    ]
    assert names == [b"r1", b"r2", b"r3", b"r4"]
    assert block.has_scores == (scores is not None)
    if scores is not None:
        assert block.lines.score.tolist() == scores


def test_names_that_begin_like_comments(taxonomy: Taxonomy, tmp_path: Path) -> None:
    """Only MetaCache writes comments."""
    path = write(tmp_path / "calls", OURS.replace("\nr1", "\n#r1"))
    (block,) = read_calls(path, taxonomy)
    assert (len(block.lines), block.lines.fields(0)[0]) == (4, "#r1")


def test_metacache_names_that_two_taxa_have(tmp_path: Path) -> None:
    nodes = [
        (1, 1, "no rank", "root"),
        (5, 1, "genus", "Bacillus"),
        (6, 1, "species", "Bacillus"),
    ]
    from ngsgpu.taxonomy.dump import load_taxonomy

    taxonomy = load_taxonomy(trees.write_dump(tmp_path, nodes))
    path = write(tmp_path / "calls", "a\t|\tspecies:Bacillus\nb\t|\tgenus:Bacillus\n")
    (block,) = read_calls(path, taxonomy)
    assert taxonomy.taxid[block.node].tolist() == [6, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it contains no calls"),
        ("# only\n", "it contains no calls"),
        ("\nr1\t562\n", "line 2: this is not the output of a known"),
        ("C\tr1\t562\nC\tr2\n", "line 2: the line has 2 columns, the first one 3"),
        (OURS + "r5\t562\n", "line 6: the line has 2 columns, the first one 8"),
        ("C\tr1\t562\nC\tr2\t5_6_2\n", "line 2: the line is not one of kraken's calls"),
        ("C\tr1\t562\nC\tr2\tcoli\n", "line 2: the line is not one of kraken's calls"),
        ("read\ttaxid\nr1\t562\nr2\t\n", "line 3: the line is not one of ngsgpu's calls"),
        ("a\t|\tspecies:x\nb\t|\tx\n", "line 2: the line is not one of metacache's calls"),
    ],
)
def test_other_files_are_refused(
    taxonomy: Taxonomy, tmp_path: Path, text: str, message: str
) -> None:
    path = write(tmp_path / "calls", text)
    with pytest.raises(InputError, match=message):
        list(read_calls(path, taxonomy))


def test_truth_by_label_and_ranks(taxonomy: Taxonomy, tmp_path: Path) -> None:
    path = write(
        tmp_path / "truth.tsv",
        "sets\tlabel\tspecies\ttaxid\tgenus_taxid\n"
        "x\tE_coli\tE. coli\t562\t561\n"
        "x\tE_coli_K\tK-12\t83333\t561\n"
        "x\tE_albertii\tE. albertii\t208962\t561\n"
        "x\tR_sphaeroides\tR. sphaeroides\t1063\tNA\n",
    )
    origins = read_origins(path, taxonomy)
    assert origins.by_label
    assert origins.taxid.tolist() == [562, 83333, 208962, 1063]
    species, genus, family = (RANKS.index(rank) for rank in ("species", "genus", "family"))
    coli, escherichia, enterobacteria = taxonomy.indices_of([562, 561, 543])
    assert origins.lineage[:, species].tolist() == [coli, coli, NOWHERE, NOWHERE]
    assert origins.lineage[:, genus].tolist() == [escherichia] * 3 + [NOWHERE]
    assert origins.lineage[:, family].tolist() == [enterobacteria] * 3 + [UNKNOWN]
    calls = write(
        tmp_path / "calls",
        "".join(
            f"U\t{name}\t0\n"
            for name in ("E_coli.1", "E_coli_K-2", "E_coli_Kx", "E_coli", "E_colix.1", "E", "x")
        ),
    )
    (block,) = read_calls(calls, taxonomy)
    assert origins.of(block.lines).tolist() == [0, 1, 0, 0, -1, -1, -1]


@pytest.mark.parametrize(
    "text",
    [
        "r1\t562\nr2/2\t1280\nr3\t562",
        "read\ttaxid\nr1\t562\nr2\t1280\nr3\t562\n",
        "taxid\tread\n562\tr1 comment\n1280\tr2\n562\tr3\n",
        "@Version:0.9\n@SampleID:x\n@@SEQUENCEID\tTAXID\tBINID\nr1\t562\ta\nr2\t1280\tb\nr3\t562\tc\n",
    ],
)
def test_truth_by_read(taxonomy: Taxonomy, tmp_path: Path, text: str) -> None:
    origins = read_origins(write(tmp_path / "truth", text), taxonomy)
    (block,) = read_calls(write(tmp_path / "calls", KRAKEN), taxonomy)
    found = origins.of(block.lines)
    assert not origins.by_label
    assert [int(origins.taxid[at]) if at >= 0 else None for at in found] == [562, 1280, 562, None]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it contains no reads"),
        ("read\ttaxid\n", "it contains no reads"),
        ("@Version:0.9\n", "it contains no reads"),
        ("nothing\n", "line 1: there are no columns"),
        ("r1\t562\nr2\n", "line 2: a taxid is missing"),
        ("read\ttaxid\nr1\tcoli\n", "line 2: a taxid is missing or not a number"),
        ("read\ttaxid\nr1\t" + "9" * 20 + "\n", "line 2: a taxid is missing or not a number"),
    ],
)
def test_bad_truth_is_refused(taxonomy: Taxonomy, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_origins(write(tmp_path / "truth.tsv", text), taxonomy)


def test_small_tables(tmp_path: Path) -> None:
    path = write(tmp_path / "a", "name\ttaxid\nref_0.1\t562\n\nref_1.1\t1280\textra\n")
    assert read_references(path) == {"ref_0.1": 562, "ref_1.1": 1280}
    with pytest.raises(InputError, match="line 2: the line is not a name and a taxid"):
        read_references(write(tmp_path / "large", f"a\t562\nb\t{1 << 63}\n"))
    path = write(tmp_path / "b", "562\t60\n1280\t30\n562\t10\n")
    assert read_composition(path) == pytest.approx({562: 0.7, 1280: 0.3})
    path = write(tmp_path / "c", "taxid\tshare\n562\t0.25\n")
    assert read_composition(path) == {562: 0.25}
    for text in ("562\t0.5\n1280\n", "562\t0.5\n1280\tx\n", "562\t0.5\ncoli\t0.5\n", "562\t-1\n"):
        with pytest.raises(InputError, match="fraction"):
            read_composition(write(tmp_path / "d", text))


# --- outcomes -------------------------------------------------------------------------------------


def oracle(
    taxonomy: Taxonomy,
    reads: list[tuple[int, int, int]],
    references: list[int],
    rank: int,
    least: int,
) -> dict[str, int]:
    """Outcomes of reads of (true node, called node or -1, score) in plain words."""

    def at(node: int) -> int | None:
        same = [up for up in taxonomy.lineage(node) if taxonomy.rank[up] == rank]
        return same[-1] if same else None

    represented = {at(node) for node in references}
    counts = dict.fromkeys(("tp", "fp", "fn", "tn", "represented", "unknown"), 0)
    for truth, called, score in reads:
        true = at(truth)
        if true is None:
            counts["unknown"] += 1
            continue
        counts["represented"] += true in represented
        found = None if called < 0 or score < least else at(called)
        if found is not None:
            counts["tp" if found == true else "fp"] += 1
        else:
            counts["fn" if true in represented else "tn"] += 1
    return counts


@given(taxonomy=trees.taxonomies(12), data=st.data())
@examples(50)
def test_outcomes_and_curve(
    tmp_path_factory: pytest.TempPathFactory, taxonomy: Taxonomy, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("run")
    size = len(taxonomy)
    node = st.integers(0, size - 1)
    reads = data.draw(
        st.lists(st.tuples(node, st.integers(-1, size - 1), st.integers(0, 5)), min_size=1)
    )
    references = data.draw(st.lists(node, min_size=1, max_size=4))
    truth = write(
        folder / "truth.tsv", "".join(f"r{i}\t{read[0] + 1}\n" for i, read in enumerate(reads))
    )
    calls = write(
        folder / "calls.tsv",
        "read\ttaxid\tscore\n"
        + "".join(f"r{i}\t{read[1] + 1}\t{read[2]}\n" for i, read in enumerate(reads)),
    )
    known = write(
        folder / "refs.tsv", "".join(f"s{i}\t{at + 1}\n" for i, at in enumerate(references))
    )
    ranks = ["species", "genus", "domain"]
    evaluation = evaluate_classification(
        [("mine", calls)], taxonomy, truth=truth, references=known, ranks=ranks
    )
    (run,) = evaluation.runs
    assert (run.reads, run.without_truth, run.program) == (len(reads), 0, "ngsgpu")
    assert run.unclassified == sum(called < 0 for _, called, _ in reads)
    for rank in ranks:
        for least, counts in [(0, run.ranks[rank])] + [
            (hits, found[rank]) for hits, found in run.curve.items()
        ]:
            expected = oracle(taxonomy, reads, references, RANKS.index(rank), least)
            assert {key: getattr(counts, key) for key in expected} == expected
            if counts.tp + counts.fp:
                assert counts.precision == counts.tp / (counts.tp + counts.fp)
            if counts.represented:
                assert counts.sensitivity == counts.tp / counts.represented
    assert list(run.curve) == sorted({score for _, called, score in reads if called >= 0})
    assert run.abundance is not None
    assert 0 <= run.abundance.false_positives <= run.abundance.deviation <= 2 + 1e-9
    json.dumps(evaluation.document())


def test_profiles_by_rank(taxonomy: Taxonomy, tmp_path: Path) -> None:
    # Truth: 60 E. coli, 40 S. aureus. Calls: 50 E. coli (20 of them as its strain), 30 lambda, 10
    # as the genus Escherichia, 10 unclassified.
    truth = "".join(f"r{i}\t{562 if i < 60 else 1280}\n" for i in range(100))
    called = [562] * 30 + [83333] * 20 + [561] * 10 + [10710] * 30 + [0] * 10
    calls = "".join(f"C\tr{i}\t{taxid}\t100\t\n" for i, taxid in enumerate(called))
    evaluation = evaluate_classification(
        [("k", write(tmp_path / "calls", calls))],
        taxonomy,
        truth=write(tmp_path / "truth", "read\ttaxid\n" + truth),
    )
    profile = evaluation.runs[0].document()["profile"]
    species, genus = profile["species"], profile["genus"]
    assert [species[key] for key in ("tp", "fp", "fn")] == [1, 1, 1]
    assert [species[key] for key in ("completeness", "purity", "f1")] == [0.5, 0.5, 0.5]
    assert species["l1_norm"] == pytest.approx(0.1 + 0.4 + 0.3)
    assert species["bray_curtis"] == pytest.approx(0.8 / (1.0 + 0.8))
    assert genus["l1_norm"] == pytest.approx(0.0 + 0.4 + (genus["fp"] and 0.3))


def test_abundances_beside_a_composition(taxonomy: Taxonomy, tmp_path: Path) -> None:
    # 100 reads: 50 E. coli, 20 S. aureus, 10 lambda (not in the sample), 20 unclassified.
    called = [562] * 30 + [83333] * 20 + [1280] * 20 + [10710] * 10 + [0] * 20
    calls = write(
        tmp_path / "calls", "".join(f"C\tr{i}\t{taxid}\t100\t\n" for i, taxid in enumerate(called))
    )
    composition = write(tmp_path / "sample.tsv", "562\t60\n1280\t30\n623\t10\n")
    evaluation = evaluate_classification([("k", calls)], taxonomy, composition=composition)
    found = evaluation.runs[0].abundance
    assert evaluation.runs[0].ranks == {}
    assert found is not None
    assert found.false_positives == pytest.approx(0.1)
    assert found.deviation == pytest.approx(0.1 + 0.1 + 0.1 + 0.1)
    assert [(taxon.taxid, taxon.expected) for taxon in found.taxa] == [
        (562, 0.6), (1280, 0.3), (623, 0.1), (10710, 0.0),
    ]  # fmt: skip
    assert [taxon.observed for taxon in found.taxa] == pytest.approx([0.5, 0.2, 0.0, 0.1])


def test_rounding_of_several_blocks(
    taxonomy: Taxonomy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ngsgpu.evaluate.classification import calls as module
    from ngsgpu.io.text.lines import read_line_blocks

    path = write(tmp_path / "calls", KRAKEN * 50)
    truth = write(tmp_path / "truth", "r1\t562\nr2\t562\nr3\t562\nr4\t562\n")
    whole = evaluate_classification([("k", path)], taxonomy, truth=truth)
    monkeypatch.setattr(module, "read_line_blocks", lambda p: read_line_blocks(p, block_bytes=64))
    assert evaluate_classification([("k", path)], taxonomy, truth=truth) == whole
    assert whole.runs[0].ranks["species"].tp == 100
    assert np.isclose(whole.runs[0].ranks["species"].precision or 0, 2 / 3)


# --- the command ----------------------------------------------------------------------------------


def test_command(tmp_path: Path, taxonomy: Taxonomy, capsys: pytest.CaptureFixture[str]) -> None:
    folder = trees.write_dump(tmp_path / "tax")
    ours = write(tmp_path / "ours.tsv", OURS)
    kraken = write(tmp_path / "kraken.txt", KRAKEN)
    truth = write(tmp_path / "truth", "read\ttaxid\nr1\t562\nr2\t562\nr3\t1280\nr4\t623\n")
    target = tmp_path / "out.json"
    command = [
        "evaluate", "classification", "--truth", str(truth), "--taxonomy", str(folder),
        "--classified", str(ours), "--classified", str(kraken), "--json", str(target),
    ]  # fmt: skip
    assert main(command) == 0
    text = capsys.readouterr().out
    assert "ours.tsv (ngsgpu): 4 reads, 1 unclassified" in text
    assert "kraken.txt (kraken): 4 reads, 1 unclassified" in text
    document = json.loads(target.read_text())
    assert document["schema"] == "ngsgpu.evaluate.classification"
    assert document["schema_version"] == 1
    first, second = document["runs"]
    assert first["ranks"] == second["ranks"]
    species = first["ranks"]["species"]
    assert (species["tp"], species["fp"], species["fn"]) == (2, 1, 1)
    assert species["precision"] == pytest.approx(2 / 3)
    assert first["curve"]["hits"] == [7, 12, 16]
    assert first["curve"]["ranks"]["species"]["precision"] == [pytest.approx(2 / 3), 1.0, 1.0]
    assert "curve" not in second
    assert main([*command, "--rank", "genus", "--name", "a", "--name", "b"]) == 0
    assert "a (ngsgpu)" in capsys.readouterr().out
    assert list(json.loads(target.read_text())["runs"][0]["ranks"]) == ["genus"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "nothing to compare with"),
        (
            ["--truth", "t", "--name", "a", "--name", "b"],
            "1 --classified files but 2 --name labels",
        ),
        (["--truth", "t", "--rank", "tribes"], "unknown rank 'tribes'"),
        (["--truth", "t", "--taxonomy", "nowhere"], "there is no such directory"),
    ],
)
def test_wrong_use_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    folder = trees.write_dump(tmp_path / "tax")
    command = ["evaluate", "classification", "--classified", "x", "--taxonomy", str(folder)]
    assert main([*command, *options]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_reads_that_the_truth_does_not_know(taxonomy: Taxonomy, tmp_path: Path) -> None:
    calls = write(tmp_path / "calls", KRAKEN)
    truth = write(tmp_path / "truth", "other\t562\n")
    with pytest.raises(InputError, match="the truth knows none of its reads"):
        evaluate_classification([("k", calls)], taxonomy, truth=truth)
