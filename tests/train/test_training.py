"""From reads with truth to a model that corrects, by the commands as a user types them."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.cli import main
from ngsgpu.correct.forests.forest import FEATURES, LEAF, Model, accepts
from ngsgpu.errors import InputError, UsageError
from ngsgpu.train import extract
from ngsgpu.train.fit import Settings, fit, fit_groups
from ngsgpu.train.samples import load_forests, load_samples, save_samples, select
from tests.support.correct.scenarios import mutated
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples

LENGTH = 60


def write_reads(folder: Path, name: str, seed: int) -> list[str]:
    """Pairs of two strains, 20 x and 5 x, with their truth; arguments of ``train extract``."""
    random = Random(seed)
    first = "".join(random.choices("ACGT", k=1500))
    strains = [first] * 4 + [mutated(random, first, 0.02)]
    mates: tuple[list[str], list[str]] = ([], [])
    truth = []
    for number in range(320):
        genome = random.choice(strains)
        start = random.randrange(len(genome) - 200)
        pieces = genome[start : start + LENGTH], genome[start + 140 : start + 200]
        for mate, piece in enumerate(pieces):
            read = piece if mate == 0 else reverse_complement(piece)
            letters = mutated(random, read, 0.02)
            qualities = "".join(
                chr(33 + (random.choice([2, 10, 15, 30]) if a != b else random.choice([30, 38])))
                for a, b in zip(read, letters, strict=True)
            )
            mates[mate].append(f"@{number}/{mate + 1}\n{letters}\n+\n{qualities}\n")
            flag = 67 if mate == 0 else 147
            truth.append(f"{number}\t{flag}\tg\t1\t99\t{LENGTH}=\t=\t1\t200\t{piece}\t*\n")
    paths = [folder / f"{name}{ending}" for ending in ("_1.fq", "_2.fq", ".sam")]
    for path, lines in zip(paths, (*mates, truth), strict=True):
        path.write_text("".join(lines))
    return ["-i", str(paths[0]), "-I", str(paths[1]), "--truth", str(paths[2])]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("training")
    paths = []
    for seed, group in enumerate(("a", "b")):
        reads = write_reads(folder, group, seed)
        paths.append(str(folder / f"{group}.npz"))
        command = ["train", "extract", *reads, "-o", paths[-1], "--group", group, "-t", "1"]
        assert main([*command, "--every", "1"]) == 0
    return folder, paths


def test_reads_that_change_between_their_two_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reads = write_reads(tmp_path, "a", 0)
    record = extract._record

    def record_and_change(*arguments: Any) -> Any:
        found = record(*arguments)
        path = Path(reads[3])
        (tmp_path / "other").write_text(path.read_text().replace("A", "C", 50))
        (tmp_path / "other").replace(path)
        return found

    monkeypatch.setattr(extract, "_record", record_and_change)
    assert main(["train", "extract", *reads, "-o", str(tmp_path / "s.npz"), "--group", "a"]) == 2
    assert "a_2.fq: the file changed during the run" in capsys.readouterr().err
    assert not (tmp_path / "s.npz").exists()


def test_from_reads_to_a_model_that_corrects(
    samples: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, paths = samples
    forests, model = folder / "f.npz", folder / "m.forests"
    fitted = ["train", "fit", *paths, "-o", str(forests), "--leave-out", "b", "--trees", "8"]
    assert main([*fitted, "--leaves", "5"]) == 0
    assert "candidate  P 0.90  sensitivity" in capsys.readouterr().out
    assert main(["train", "export", str(forests), "-o", str(model)]) == 0
    read = Model.load(model)
    assert read.anchor.trees == read.candidate.trees == 8
    assert read.trained["settings"]["leaves"] == 5
    assert {one["group"] for one in read.trained["samples"] if one["trained"]} == {"a"}
    reads = [str(folder / f"a_{mate}.fq") for mate in (1, 2)]
    corrected = [str(folder / f"c_{mate}.fq") for mate in (1, 2)]
    command = ["correct", "-i", reads[0], "-I", reads[1], "-o", corrected[0], "-O", corrected[1]]
    assert main([*command, "-q", "-t", "1", "--backend", "cpu", "--model", str(model)]) == 0
    assert Path(corrected[0]).read_text() != Path(reads[0]).read_text()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kept", ["none", "wrong"])
def test_an_organism_without_positions_of_a_forest(
    samples: tuple[Path, list[str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kept: str,
) -> None:
    _, rows, labels = load_samples(samples[1][1])
    candidates = rows[:, 0] == list(FEATURES).index("candidate")
    keep = ~candidates if kept == "none" else ~candidates | (labels == 0)
    one, forests = tmp_path / "one.npz", tmp_path / "f.npz"
    save_samples(one, "b", rows[keep], labels[keep])
    fitted = ["train", "fit", samples[1][0], str(one), "-o", str(forests), "--leave-out", "b"]
    assert main([*fitted, "--trees", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if line.startswith("candidate")] == [
        "candidate  not tested: b has no position where the consensus is right"
    ]
    assert load_forests(forests)[1]["tests"]["candidate"] == []
    assert sum(line.startswith("anchor") for line in said) == 8


def test_labels_are_the_truth(samples: tuple[Path, list[str]]) -> None:
    folder, paths = samples
    group, rows, labels = load_samples(paths[0])
    assert group == "a"
    true = [line.split("\t") for line in (folder / "a.sam").read_text().splitlines()]
    assert len(labels) > 100 and set(labels.tolist()) == {0, 1}
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        bases = true[row[1]][9]
        if row[1] % 2:
            bases = reverse_complement(bases)
        assert ("ACGT"[row[3]] == bases[row[2]]) == bool(label)


@pytest.mark.parametrize("method", ["boosting", "forest"])
def test_integer_trees_decide_as_the_library_does(
    samples: tuple[Path, list[str]], method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sklearn.ensemble

    name = "HistGradientBoostingClassifier" if method == "boosting" else "RandomForestClassifier"
    made = []

    class Kept(getattr(sklearn.ensemble, name)):  # type: ignore[misc]
        def fit(self, x: object, y: object, sample_weight: object = None) -> object:
            made.append(self)
            return super().fit(x, y, sample_weight=sample_weight)

    Kept.__name__ = name
    monkeypatch.setattr(sklearn.ensemble, name, Kept)
    x, y = select("candidate", *load_samples(samples[1][0])[1:])
    forest = fit("candidate", x, y, Settings(method=method, trees=12, leaves=9,
                                                     threshold=0.5, sure=0.5))  # fmt: skip
    ours = np.array(
        [accepts(forest.arrays(), row, forest.arrays().threshold) for row in x.astype(np.int64)]
    )
    chance = made[0].predict_proba(x.astype(np.float64))[:, 1]
    clear = abs(chance - 0.5) > 0.01  # leaves are rounded
    assert clear.sum() > 50
    assert np.array_equal(ours[clear], chance[clear] > 0.5)
    assert np.count_nonzero(forest.nodes & LEAF == LEAF) <= 9 * 12


def test_wrong_uses_are_explained(samples: tuple[Path, list[str]], tmp_path: Path) -> None:
    _, paths = samples
    with pytest.raises(UsageError, match="the organisms are a, b"):
        fit_groups(paths, ["c"], Settings())
    with pytest.raises(UsageError, match="no organism to train on"):
        fit_groups(paths, ["a", "b"], Settings())
    with pytest.raises(UsageError, match="boosting or forest"):
        Settings(method="other", threshold=0.5, sure=0.5)
    with pytest.raises(InputError, match="it holds no samples"):
        load_samples(Path(paths[0]).with_suffix(".sam"))
    with pytest.raises(InputError, match="No such file"):
        load_samples(tmp_path / "missing.npz")
    with pytest.raises(InputError, match="it holds no forests"):
        load_forests(paths[0])
    _, rows, labels = load_samples(paths[0])
    right = labels == 1
    save_samples(tmp_path / "right.npz", "a", rows[right], labels[right])
    with pytest.raises(UsageError, match="extract more"):
        fit_groups([tmp_path / "right.npz"], [], Settings())
    assert set(FEATURES) == {"anchor", "candidate"}


@given(data=st.data())
@examples(100)
def test_damaged_files_are_refused_or_unchanged(
    samples: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = Path(samples[1][0]).read_bytes()
    # The lists of members, which only some ways of reading look at, are at both ends.
    near_an_end = st.integers(0, 200) | st.integers(len(whole) - 200, len(whole) - 1)
    at = data.draw(st.integers(0, len(whole) - 1) | near_an_end)
    damaged = tmp_path_factory.getbasetemp() / "damaged.npz"
    if data.draw(st.booleans()):
        damaged.write_bytes(whole[:at])
    else:
        flipped = whole[at] ^ data.draw(st.integers(1, 255))
        damaged.write_bytes(whole[:at] + bytes([flipped]) + whole[at + 1 :])
    try:
        group, rows, labels = load_samples(damaged)
    except InputError as error:
        assert "run ngsgpu train extract again" in str(error)
    else:
        expected = load_samples(samples[1][0])
        assert group == expected[0]
        assert np.array_equal(rows, expected[1])
        assert np.array_equal(labels, expected[2])
