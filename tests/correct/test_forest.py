"""Forests: what they see, how they decide, their files, and corrections with them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.cli import main
from ngsgpu.correct import CorrectionParameters, RunOptions
from ngsgpu.correct.forests.forest import FEATURES, MAGIC, Model, accepts, load_model
from ngsgpu.errors import InputError, UsageError
from tests.support.correct.forests import ForestCorrector, Forests
from tests.support.correct.scenarios import Scenario, scenarios
from tests.support.correct.whole import assert_equal
from tests.support.properties import examples


class WithForests:
    """A scenario whose oracle has forests, for ``assert_equal``."""

    def __init__(self, scenario: Scenario, forests: Forests) -> None:
        self.scenario, self.forests = scenario, forests

    def __getattr__(self, name: str) -> object:
        return getattr(self.scenario, name)

    def oracle(self) -> ForestCorrector:
        return ForestCorrector(self.scenario, self.forests)


@given(st.integers(0, 1 << 30))
@examples(200)
def test_trees_are_summed_until_the_outcome_is_settled(seed: int) -> None:
    random = Random(seed)
    forests = Forests.random(random)
    for kind, names in FEATURES.items():
        values = {name: random.choice([0, 1, 5, 300, 4000, 16_000]) for name in names}
        array = np.array(list(values.values()), dtype=np.int64)
        arrays = getattr(forests.model, kind).arrays()
        total = forests.sum(kind, values)
        for bound in (total - 1, total, total + 1, arrays.threshold, arrays.sure):
            assert accepts(arrays, array, bound) == (total >= bound)


def test_corrections_equal_the_oracle(backend: str, tmp_path: Path) -> None:
    @given(scenarios(), st.integers(0, 1 << 30))
    @examples(100)
    def compare(scenario: Scenario, seed: int) -> None:
        forests = Forests.random(Random(seed))
        own = forests.scenario(scenario, tmp_path / "model")
        assert_equal(WithForests(own, forests), RunOptions(backend=backend))  # type: ignore[arg-type]

    compare()


@given(scenarios(max_reads=30), st.integers(0, 1 << 30))
@examples(15)
def test_nothing_is_decided_by_threads_or_batches(scenario: Scenario, seed: int) -> None:
    forests = Forests.random(Random(seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ngsgpu.correct.forests.forest.load_model", lambda name: forests.model)
        own = WithForests(scenario, forests)
        ways = ((1, 1), (2, 7), (4, 10_000))
        options = [RunOptions(threads=n, units_per_task=anchors) for n, anchors in ways]
        assert_equal(own, *options)  # type: ignore[arg-type]


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Model]:
    model = Forests.random(Random(3)).model
    path = tmp_path / "model.forests"
    model.save(path)
    return path, model


def test_a_saved_model_is_read_back(saved: tuple[Path, Model]) -> None:
    path, model = saved
    read = Model.load(path)
    for kind in FEATURES:
        ours, theirs = getattr(read, kind), getattr(model, kind)
        assert np.array_equal(ours.nodes, theirs.nodes)
        assert np.array_equal(ours.roots, theirs.roots)
        assert (ours.link, ours.base, ours.threshold, ours.sure) == (
            theirs.link,
            theirs.base,
            theirs.threshold,
            theirs.sure,
        )
    assert read.sha256 and load_model("none") is None


def test_each_damage_is_seen(saved: tuple[Path, Model]) -> None:
    content = saved[0].read_bytes()

    @given(st.integers(0, len(content) - 1), st.integers(1, 255))
    @examples(200)
    def damage(place: int, change: int) -> None:
        changed = bytearray(content)
        changed[place] ^= change
        with pytest.raises(InputError):
            Model.parse("m", bytes(changed))
        with pytest.raises(InputError):
            Model.parse("m", content[:place])

    damage()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda head: head["anchor"]["features"].pop(), "other features"),
        (lambda head: head["anchor"].update(trees=9999), "no valid forests"),
        (lambda head: head["candidate"].update(base=1 << 40), "no valid forests"),
        (lambda head: head["candidate"].update(threshold=2), "no valid forests"),
        (lambda head: head["candidate"].update(link="other"), "no valid forests"),
        (lambda head: head.pop("candidate"), "no valid forests"),
    ],
)
def test_contents_are_checked(
    saved: tuple[Path, Model], change: object, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, _ = saved
    text, _, payload = path.read_bytes()[len(MAGIC) + 65 :].partition(b"\n")
    head = json.loads(text)
    change(head)  # type: ignore[operator]
    content = json.dumps(head).encode() + b"\n" + payload
    path.write_bytes(MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    with pytest.raises(InputError, match=message):
        Model.load(path)


def test_trees_that_do_not_end_are_refused() -> None:
    model = Forests.random(Random(5)).model
    nodes = model.anchor.nodes.copy()
    inner = int(np.flatnonzero(nodes & 0xFFFF != 0xFFFF)[0])
    nodes[inner] &= ~np.int64(0xFFFF << 16)  # its own child
    with pytest.raises(ValueError, match="no forest"):
        type(model.anchor)("anchor", model.anchor.roots, nodes, "logit", 0, 0.5, 0.9)


def test_wrong_models_end_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = tmp_path / "r.fq"
    reads.write_text("@r\nACGT\n+\nIIII\n")
    out = tmp_path / "c.fq"
    command = ["correct", "-i", str(reads), "-o", str(out), "-q"]
    for model, message in (
        (str(tmp_path / "absent"), "check --model"),
        (str(reads), "no model of this version"),
    ):
        assert main([*command, "--model", model]) == 2
        assert message in capsys.readouterr().err
    assert main([*command, "--anchor-threshold", "1.5"]) == 2
    assert not out.exists()


def test_thresholds_are_probabilities() -> None:
    for value in (0.0, 1.0, float("nan")):
        with pytest.raises(UsageError, match="between 0 and 1"):
            CorrectionParameters(candidate_threshold=value)
