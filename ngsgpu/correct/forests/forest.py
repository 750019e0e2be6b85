"""Forests that decide whether a base becomes the consensus (CARE, section 4.4.7), and their files.

Trees are arrays of nodes of 8 bytes in breadth-first order, siblings side by side: in the low 16
bits the feature, then 16 bits for the left child's place in its tree, then the largest value that
goes left. A leaf has ``LEAF`` for a feature, and its share of the decision for a value. All are
integers, so every backend decides alike.

A model file holds both forests: the line ``MAGIC``, the SHA-256 of all that follows, a line of
JSON, then for each forest its roots (uint32) and nodes (uint64), little endian.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.forests.features import ANCHOR_FEATURES, CANDIDATE_FEATURES, COVERAGE_BITS
from ngsgpu.errors import InputError
from ngsgpu.io.output.atomic import write_texts
from ngsgpu.io.output.manifest import parse_json
from ngsgpu.jit import njit

MAGIC: Final = b"ngsgpu forests 1\n"
LEAF: Final = 0xFFFF
MOST_BYTES: Final = 5 << 20
VALUE_BITS: Final = 12
"""Leaves are in 2^-12: of a logit, or of a probability."""

MOST_SUM: Final = 1 << 30
"""Bound of the sums of a forest, so that 32 bits suffice."""

NO_FOREST: Final = 1 << 40
"""Threshold that says that no forest decides."""

FEATURES: Final = {"anchor": ANCHOR_FEATURES, "candidate": CANDIDATE_FEATURES}

Link = Literal["logit", "mean"]
"""What the trees' sum is: the logit of the probability, or the sum of as many probabilities."""


BESIDE_RULES: Final = 0.9995
"""Least probability at which a forest changes what rules leave. From 0.998, at which the shipped
model is sure, two of 679 reads with insertions or deletions became worse, not one
(``tests/correct/test_accuracy.py``); ``docs/accuracy.md`` has what it does on other reads."""

Second = Literal["equal", "rejected", "unconfirmed"]
"""When the second correction of a low-quality anchor counts: if the candidate corrections equal it,
if they reject the first, or unless they confirm the first."""


class ForestArrays(NamedTuple):
    """A forest as passed to kernels.

    Attributes:
        roots: int64[trees + 1], where each tree's nodes begin.
        nodes: int64, the nodes.
        rest: int64[trees, 2], least and largest sum of the trees after each.
        threshold: least sum at which the base is changed; ``NO_FOREST``: there is none.
        sure: the same unless candidate corrections confirm it; ``NO_FOREST``: these decide alone.
    """

    roots: NDArray[np.int64]
    nodes: NDArray[np.int64]
    rest: NDArray[np.int64]
    threshold: int
    sure: int


class Forests(NamedTuple):
    """Both forests as passed to kernels, and the run's coverage in 2^-4."""

    anchor: ForestArrays
    candidate: ForestArrays
    coverage: int

    @property
    def second(self) -> Second:
        """When the second correction of an anchor counts."""
        if self.anchor.sure == NO_FOREST:
            return "equal"
        return "rejected" if self.anchor.sure == self.anchor.threshold else "unconfirmed"


@njit(nogil=True, cache=True)
def accepts(forest: ForestArrays, features: NDArray[np.int64], threshold: int) -> bool:
    """Whether the trees' sum reaches a threshold; trees that cannot change that are left out."""
    total = np.int64(0)
    for tree in range(len(forest.rest)):
        root = forest.roots[tree]
        node = forest.nodes[root]
        while node & LEAF != LEAF:
            right = features[node & LEAF] > node >> 32
            node = forest.nodes[root + ((node >> 16) & 0xFFFF) + right]
        total += node >> 32
        if total + forest.rest[tree, 0] >= threshold:
            return True
        if total + forest.rest[tree, 1] < threshold:
            return False
    return False


@dataclass(frozen=True, slots=True)
class Forest:
    """A trained forest.

    Attributes:
        kind: ``anchor`` or ``candidate``.
        roots: int64[trees + 1], where each tree's nodes begin.
        nodes: int64, the nodes.
        link: what the trees' sum is.
        base: added to the sum, in 2^-12.
        threshold: least probability at which the base is changed.
        sure: the same unless candidate corrections confirm it.
    """

    kind: str
    roots: NDArray[np.int64]
    nodes: NDArray[np.int64]
    link: Link
    base: int
    threshold: float
    sure: float

    def __post_init__(self) -> None:
        lengths = np.diff(self.roots)
        # First of all: by roots that are wrong, an array of any size would be made.
        if (
            not self.trees
            or np.any(lengths < 1)
            or self.roots[0] != 0
            or self.roots[-1] != len(self.nodes)
        ):
            raise ValueError(f"the {self.kind} forest is no forest")
        least, most = self._sums()
        features = self.nodes & LEAF
        inner = features != LEAF
        tree = np.repeat(np.arange(self.trees), lengths)
        sizes = lengths[tree]
        places = np.arange(len(self.nodes)) - self.roots[tree]
        children = (self.nodes >> 16) & 0xFFFF
        if (
            np.any(features[inner] >= len(FEATURES[self.kind]))
            or np.any(children[inner] <= places[inner])
            or np.any(children[inner] + 1 >= sizes[inner])
            or np.maximum(abs(least), abs(most)).sum() >= MOST_SUM
            or abs(self.base) >= MOST_SUM
            or self.link not in ("logit", "mean")
            or not 0 < self.threshold < 1
            or not 0 < self.sure < 1
        ):
            raise ValueError(f"the {self.kind} forest is no forest")

    @property
    def trees(self) -> int:
        """Number of trees."""
        return len(self.roots) - 1

    def _sums(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Smallest and largest leaf of each tree."""
        leaves = self.nodes & LEAF == LEAF
        values = self.nodes >> 32
        starts = self.roots[:-1]
        far = np.int64(1) << 40
        least = np.minimum.reduceat(np.where(leaves, values, far), starts)
        return least, np.maximum.reduceat(np.where(leaves, values, -far), starts)

    def arrays(self, threshold: float | None = None) -> ForestArrays:
        """The forest for the kernels.

        Args:
            threshold: least probability at which a base is changed; None: the model's.
        """
        probability = self.threshold if threshold is None else threshold
        least, most = self._sums()
        rest = np.zeros((self.trees, 2), dtype=np.int64)
        rest[:-1, 0] = np.cumsum(least[:0:-1])[::-1]
        rest[:-1, 1] = np.cumsum(most[:0:-1])[::-1]
        return ForestArrays(
            self.roots, self.nodes, rest, self._bound(probability),
            self._bound(max(probability, self.sure)),
        )  # fmt: skip

    def _bound(self, probability: float) -> int:
        """Least sum of trees of a probability."""
        one = 1 << VALUE_BITS
        if self.link == "logit":
            return math.ceil(math.log(probability / (1 - probability)) * one) - self.base
        return math.ceil(probability * self.trees * one) - self.base


def no_trees(threshold: int = NO_FOREST) -> ForestArrays:
    """Arrays without trees: no forest, or with another threshold one that changes nothing."""
    rest = np.zeros((0, 2), np.int64)
    return ForestArrays(np.zeros(1, np.int64), np.zeros(0, np.int64), rest, threshold, NO_FOREST)


@dataclass(frozen=True, slots=True)
class Model:
    """The forests of a model file.

    Attributes:
        anchor: for positions of anchors with low-quality MSAs.
        candidate: for positions of candidates.
        trained: what it was trained on, for people.
        sha256: of the file's content; empty if not from a file.
    """

    anchor: Forest
    candidate: Forest
    trained: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    def save(self, path: str | Path) -> None:
        """Write a model file."""
        head, parts = {"trained": dict(self.trained)}, []
        for kind in FEATURES:
            forest: Forest = getattr(self, kind)
            head[kind] = {
                "features": FEATURES[kind],
                "trees": forest.trees,
                "nodes": len(forest.nodes),
                "link": forest.link,
                "base": forest.base,
                "threshold": forest.threshold,
                "sure": forest.sure,
            }
            parts += [forest.roots.astype("<u4").tobytes(), forest.nodes.astype("<i8").tobytes()]
        content = json.dumps(head, sort_keys=True).encode() + b"\n" + b"".join(parts)
        sha256 = hashlib.sha256(content).hexdigest()
        write_texts({path: MAGIC + sha256.encode() + b"\n" + content})

    @classmethod
    def load(cls, path: str | Path) -> Model:
        """Read a model file.

        Raises:
            InputError: it cannot be read, is damaged, or was trained for other features.
        """
        try:
            with Path(path).open("rb") as file:
                content = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise InputError(path, error.strerror or str(error), "check `model`") from error
        return cls.parse(path, content)

    @classmethod
    def parse(cls, path: str | Path, content: bytes) -> Model:
        """The model in a file's content; see ``load``."""
        if not content.startswith(MAGIC):
            raise InputError(
                path,
                "this is no model of this version",
                "give a file that ngsgpu train export wrote",
            )
        if len(content) > MOST_BYTES:
            raise InputError(path, "the model is larger than 5 MiB", "train smaller forests")
        sha256, _, content = content[len(MAGIC) :].partition(b"\n")
        if hashlib.sha256(content).hexdigest().encode() != sha256:
            raise InputError(path, "its checksum is wrong", "copy or export the model again")
        head_text, _, payload = content.partition(b"\n")
        try:
            head = parse_json(head_text)
            forests = {}
            at = 0
            for kind, names in FEATURES.items():
                own = head[kind]
                if tuple(own["features"]) != names:
                    raise InputError(
                        path,
                        f"the {kind} forest was trained for other features",
                        "train it with this version of ngsgpu",
                    )
                roots = np.frombuffer(payload, "<u4", own["trees"] + 1, at).astype(np.int64)
                at += 4 * len(roots)
                nodes = np.frombuffer(payload, "<i8", own["nodes"], at).astype(np.int64)
                at += 8 * len(nodes)
                numbers = {name: float(own[name]) for name in ("threshold", "sure")}
                forests[kind] = Forest(kind, roots, nodes, own["link"], int(own["base"]), **numbers)
            return cls(**forests, trained=head["trained"], sha256=sha256.decode())
        except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
            raise InputError(
                path, f"it holds no valid forests ({error})", "export the model again"
            ) from error

    def forests(
        self, coverage: float, anchor: float | None = None, candidate: float | None = None
    ) -> Forests:
        """The forests for the kernels.

        Args:
            coverage: reads per genome position.
            anchor: least probability for a change of an anchor; None: the model's.
            candidate: the same for a candidate.
        """
        return Forests(
            self.anchor.arrays(anchor), self.candidate.arrays(candidate), fixed_coverage(coverage)
        )

    def beside_rules(self, coverage: float, anchor: float | None = None) -> Forests:
        """For kernels in which the anchor forest changes what rules leave, if it is sure.

        Args:
            coverage: reads per genome position.
            anchor: least probability for a change; None: ``BESIDE_RULES``, or more if the model is
                sure from there on.
        """
        least = max(BESIDE_RULES, self.anchor.sure) if anchor is None else anchor
        arrays = self.anchor.arrays(least)
        sure = arrays._replace(sure=arrays.threshold)
        return Forests(sure, no_trees(), fixed_coverage(coverage))


def fixed_coverage(coverage: float) -> int:
    """The coverage in 2^-4, at least 1 of these."""
    return max(1, round(coverage * (1 << COVERAGE_BITS)))


def without_forests() -> Forests:
    """For kernels that decide without forests."""
    return Forests(no_trees(), no_trees(), 1)


def load_model(model: str) -> Model | None:
    """The model of ``--model``: ``none``, ``default`` (the shipped one) or a file."""
    if model == "none":
        return None
    return _shipped() if model == "default" else Model.load(model)


@cache
def _shipped() -> Model:
    shipped = resources.files("ngsgpu.correct").joinpath("models/default.forests")
    return Model.parse("ngsgpu's own model", shipped.read_bytes())
