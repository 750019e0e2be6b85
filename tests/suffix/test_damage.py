"""Damaged indexes: what checksums, sums and bounds notice, and that nothing leaves its arrays."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.jit import interpreted
from ngsgpu.suffix import QueryParameters, build_index, fm, open_index
from ngsgpu.suffix.bwa import ENDINGS, SUMS
from ngsgpu.suffix.check import has_right_counts
from ngsgpu.suffix.places import SequencePlaces
from ngsgpu.suffix.query import cpu, run
from ngsgpu.suffix.query.cpu import find_maximal, place_of_row
from tests.support.suffix.damage import reads, rubbish

DATA = Path(__file__).parents[1] / "data" / "bwa_index"
_USED = (".ann", ".bwt", ".sa")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    build_index(DATA / "reference.fa", folder / "i")
    return folder


@pytest.mark.parametrize("ending", [*_USED, SUMS])
def test_every_changed_byte_is_noticed(built: Path, tmp_path: Path, ending: str) -> None:
    for path in built.iterdir():
        shutil.copy(path, tmp_path)
    path = tmp_path / f"i{ending}"
    content = path.read_bytes()
    source = random.Random(ending)
    for _ in range(60):
        wrong = bytearray(content)
        wrong[source.randrange(len(content))] ^= source.randrange(1, 256)
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=r"\.sums"):
            open_index(tmp_path / "i")
    path.write_bytes(content)
    open_index(tmp_path / "i")


def test_checksums_of_another_index_are_refused_and_missing_ones_not(
    built: Path, tmp_path: Path
) -> None:
    for path in built.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "r.fa").write_text(">a\nACGTTTGCAACGATTAGC\n")
    build_index(tmp_path / "r.fa", tmp_path / "other")
    for ending in ENDINGS:  # as bwa index does
        shutil.copy(tmp_path / f"other{ending}", tmp_path / f"i{ending}")
    with pytest.raises(InputError, match=r"remove the \.sums of the old one"):
        open_index(tmp_path / "i")
    (tmp_path / "i.sums").unlink()
    assert open_index(tmp_path / "i")[1].names == [b"a"]
    shutil.copy(built / "i.ann", tmp_path / "i.ann")
    with pytest.raises(InputError, match=r"i\.ann: does not belong to the \.bwt beside it"):
        open_index(tmp_path / "i")


def test_without_checksums_most_damage_of_the_transform_is_noticed(tmp_path: Path) -> None:
    """All but a byte that has the same bases in another order."""
    for ending in ENDINGS:
        shutil.copy(DATA / f"reference{ending}", tmp_path / f"i{ending}")
    path = tmp_path / "i.bwt"
    content = path.read_bytes()
    source = random.Random(3)
    unnoticed = 0
    for _ in range(200):
        wrong = bytearray(content)
        at = source.randrange(len(content))
        wrong[at] ^= source.randrange(1, 256)
        path.write_bytes(wrong)
        try:
            open_index(tmp_path / "i")
        except InputError:
            continue
        unnoticed += 1
        bases = [sorted(byte >> shift & 3 for shift in (0, 2, 4, 6)) for byte in (
            content[at], wrong[at])]  # fmt: skip
        assert bases[0] == bases[1] or at >= len(content) - 40
    assert unnoticed < 30


@pytest.mark.parametrize("kind", ["zeros", "random", "bases"])
def test_no_look_up_leaves_its_arrays_or_goes_in_circles(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    source = np.random.default_rng(len(kind))
    for size in (1, 31, 128, 129, 640):
        for _ in range(2):
            index = rubbish(source, size, kind)
            assert index.is_consistent() == (kind == "bases")
            assert has_right_counts(index) == (kind == "bases") or kind == "zeros"
            parts = index.words, index.primary, index.totals
            codes, starts = reads(source)
            found = np.zeros((5000, 5), dtype=np.int64)
            with interpreted(), monkeypatch.context() as plain:
                # As plain Python, in which an index out of range is an error.
                plain.setattr(fm, "popcount", lambda word: int(word).bit_count())
                plain.setattr(cpu, "prefetch", lambda array, place: array[place])
                most = find_maximal(*parts, codes, starts, (0, len(starts) - 1), 1, False, found)
                assert most <= len(found)
                rows = found[: max(most, 0)]
                assert (rows[:, 3:] >= 0).all() and (rows[:, 3:] <= size + 1).all()
                for row in range(size + 1):
                    assert -1 <= place_of_row(*parts, index.sample, row) < size


def test_a_search_in_rubbish_ends_in_an_error() -> None:
    source = np.random.default_rng(1)
    index = rubbish(source, 1000, "bases")
    places = SequencePlaces([b"a"], np.array([0, 500]))
    search = run.Searcher(index, places, QueryParameters(1, max_places=1000))
    with pytest.raises(InputError, match="the index: is damaged: a look-up leads nowhere"):
        for _ in range(50):
            search.hits(search.matches(*reads(source)))


@pytest.mark.parametrize("kind", ["bwa", "fm"])
def test_an_index_that_is_cut_while_it_is_searched_ends_the_run(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = random.Random(5)
    text = "".join(draw.choice("ACGT") for _ in range(60_000))
    (tmp_path / "r.fa").write_text(f">a\n{text}\n")
    build_index(tmp_path / "r.fa", tmp_path / "i", kind)  # type: ignore[arg-type]
    (tmp_path / "q.fa").write_text(
        "".join(f">r{at}\n{text[at : at + 90]}\n" for at in range(0, 50_000, 60))
    )
    before = sorted(path.name for path in tmp_path.iterdir())
    path = tmp_path / ("i.bwt" if kind == "bwa" else "i/words.npy")
    codes_of = run.codes_of

    def cut(batch: run.RecordBatch) -> object:
        os.truncate(path, 100)
        return codes_of(batch)

    monkeypatch.setattr(run, "codes_of", cut)
    arguments = ["index", "query", "-q", str(tmp_path / "i"), "-i", str(tmp_path / "q.fa")]
    assert main([*arguments, "-o", str(tmp_path / "o.paf"), "--backend", "cpu"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"ngsgpu: error: {path}: was cut short while it was read; ")
    assert said.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before
