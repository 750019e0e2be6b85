"""Growing a forest from recorded positions, and measuring it on others; needs scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.correct.forests.forest import FEATURES, LEAF, VALUE_BITS, Forest, Link, accepts
from ngsgpu.errors import UsageError, install_extra
from ngsgpu.io.paths import Paths, listed
from ngsgpu.jit import njit
from ngsgpu.train.extract import Rows
from ngsgpu.train.params import Settings
from ngsgpu.train.samples import load_samples, select

THRESHOLDS: Final = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
"""Probabilities at which a forest is measured."""


def fit(
    kind: str, features: Rows, labels: NDArray[np.int8], settings: Settings | None = None
) -> Forest:
    """Grow a forest.

    Args:
        kind: ``anchor`` or ``candidate``.
        features: of each position.
        labels: 1 where the consensus is right, else 0.
        settings: how.

    Raises:
        UsageError: scikit-learn is not installed, or all labels are equal.
    """
    settings = settings or Settings()
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    except ImportError as error:
        raise UsageError(f"training needs scikit-learn; {install_extra('train')}") from error
    chance = np.random.default_rng(settings.seed)
    right = np.flatnonzero(labels == 1)
    wrong = np.flatnonzero(labels == 0)
    if not len(right) or not len(wrong):
        raise UsageError(
            f"{kind}: there are {len(right):,} positions where the consensus is right and "
            f"{len(wrong):,} where it is wrong; extract more"
        )
    used = min(len(right), settings.most_right * len(wrong))
    chosen = np.sort(np.concatenate([chance.choice(right, used, replace=False), wrong]))
    weights = np.where(labels[chosen] == 1, len(right) / used, 1.0)
    x, y = features[chosen].astype(np.float64), labels[chosen]
    if settings.method == "boosting":
        boosted = HistGradientBoostingClassifier(
            max_iter=settings.trees,
            max_leaf_nodes=settings.leaves,
            min_samples_leaf=settings.smallest_leaf,
            learning_rate=settings.learning_rate,
            l2_regularization=settings.regularisation,
            early_stopping=False,
            random_state=settings.seed,
        ).fit(x, y, sample_weight=weights)
        base = round(float(boosted._baseline_prediction.item()) * (1 << VALUE_BITS))
        trees = [_boosted(stage[0].nodes) for stage in boosted._predictors]
        return _joined(kind, trees, "logit", base, settings)
    grown = RandomForestClassifier(
        n_estimators=settings.trees,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=settings.smallest_leaf,
        random_state=settings.seed,
    ).fit(x, y, sample_weight=weights)
    trees = [_grown(one.tree_) for one in grown.estimators_]
    return _joined(kind, trees, "mean", 0, settings)


def _boosted(nodes: NDArray[Any]) -> NDArray[np.int64]:
    leaf = nodes["is_leaf"].astype(bool)
    values = np.where(leaf, np.rint(nodes["value"] * (1 << VALUE_BITS)), nodes["num_threshold"])
    return breadth_first(leaf, nodes["feature_idx"], values, nodes["left"], nodes["right"])


def _grown(tree: Any) -> NDArray[np.int64]:
    leaf = tree.children_left < 0
    share = tree.value[:, 0, 1] / tree.value[:, 0].sum(axis=1)
    values = np.where(leaf, np.rint(share * (1 << VALUE_BITS)), tree.threshold)
    return breadth_first(leaf, tree.feature, values, tree.children_left, tree.children_right)


def breadth_first(
    leaf: NDArray[Any],
    feature: NDArray[Any],
    value: NDArray[Any],
    left: NDArray[Any],
    right: NDArray[Any],
) -> NDArray[np.int64]:
    """Nodes of a tree as ``ngsgpu.correct.forests.forest`` lays them out.

    Args:
        leaf: whether a node is a leaf.
        feature: number of its feature.
        value: of a leaf, in 2^-12; otherwise the largest value that goes left.
        left: left child.
        right: right child.
    """
    order = [0]
    nodes = []
    for node in order:
        own = int(np.floor(value[node])) << 32
        if leaf[node]:
            nodes.append(own | LEAF)
            continue
        nodes.append(own | len(order) << 16 | int(feature[node]))
        order += [int(left[node]), int(right[node])]
    return np.array(nodes, dtype=np.int64)


def _joined(
    kind: str, trees: Sequence[NDArray[np.int64]], link: Link, base: int, settings: Settings
) -> Forest:
    roots = np.concatenate([[0], np.cumsum([len(tree) for tree in trees])]).astype(np.int64)
    return Forest(kind, roots, np.concatenate(trees), link, base, settings.threshold, settings.sure)


def measure(forest: Forest, features: Rows, labels: NDArray[np.int8]) -> list[dict[str, Any]]:
    """How a forest decides at some thresholds.

    Returns:
        For each of ``THRESHOLDS``: the share of right consensus bases that it takes
        (``sensitivity``), and the number of wrong ones that it takes (``wrong``). There must be
        right ones.
    """
    table = []
    for threshold in THRESHOLDS:
        taken = _decide(forest.arrays(threshold), features.astype(np.int64))
        table.append(
            {
                "threshold": threshold,
                "sensitivity": round(float(taken[labels == 1].mean()), 6),
                "wrong": int(taken[labels == 0].sum()),
                "right_positions": int((labels == 1).sum()),
                "wrong_positions": int((labels == 0).sum()),
            }
        )
    return table


@njit(nogil=True, cache=True)
def _decide(forest: Any, features: NDArray[np.int64]) -> NDArray[np.bool_]:
    taken = np.zeros(len(features), dtype=np.bool_)
    for i in range(len(features)):
        taken[i] = accepts(forest, features[i], forest.threshold)
    return taken


def fit_groups(
    paths: Paths, left_out: Sequence[str], settings: Settings
) -> tuple[dict[str, Forest], dict[str, Any]]:
    """Grow both forests from files of positions, and test them on the organisms left out.

    Args:
        paths: written by ``save_samples``.
        left_out: groups that are tested on instead.
        settings: how.

    Returns:
        The forests by kind, and how they were made, for people.

    Raises:
        InputError: a file is of another kind.
        UsageError: a group has no positions, or nothing is left to train on.
    """
    paths = listed(paths)
    files = [(Path(path).name, *load_samples(path)) for path in paths]
    groups = {group for _, group, _, _ in files}
    if unknown := set(left_out) - groups:
        raise UsageError(
            f"`leave_out='{min(unknown)}'`: the organisms are {', '.join(sorted(groups))}"
        )
    if not groups - set(left_out):
        raise UsageError("`leave_out` leaves no organism to train on")
    forests, tests, used = {}, {}, []
    for kind in FEATURES:
        inside: list[tuple[Rows, NDArray[np.int8]]] = []
        outside: list[tuple[Rows, NDArray[np.int8]]] = []
        for name, group, rows, labels in files:
            own = select(kind, rows, labels)
            (outside if group in left_out else inside).append(own)
            used.append(
                {
                    "file": name,
                    "group": group,
                    "kind": kind,
                    "positions": len(own[1]),
                    "wrong": int((own[1] == 0).sum()),
                    "trained": group not in left_out,
                }
            )
        forests[kind] = fit(kind, *_stacked(inside), settings)
        tests[kind] = _tested(forests[kind], outside)
    return forests, {"settings": asdict(settings), "samples": used, "tests": tests}


def _tested(forest: Forest, parts: Sequence[tuple[Rows, NDArray[np.int8]]]) -> list[dict[str, Any]]:
    """``measure`` of the organisms left out; empty where they have no right position."""
    if not any((labels == 1).any() for _, labels in parts):
        return []
    return measure(forest, *_stacked(parts))


def _stacked(parts: Sequence[tuple[Rows, NDArray[np.int8]]]) -> tuple[Rows, NDArray[np.int8]]:
    return np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts])
