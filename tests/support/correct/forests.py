"""Random forests, and the correction with forests in plain Python, beside ``oracle``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from ngsgpu.correct.forests.forest import FEATURES, LEAF, Forest, Model
from tests.support.correct import oracle
from tests.support.correct.alignment import ONE, Candidate, Columns, consensus, make_reads, support
from tests.support.correct.oracle import Decision
from tests.support.correct.scenarios import Scenario

Tree = int | tuple[int, int, Any, Any]
"""A leaf's value; or feature, largest value that goes left, left and right tree."""


def random_tree(random: Random, features: int, depth: int) -> Tree:
    if depth == 0 or random.random() < 0.1:
        return random.randint(-3000, 3000)
    feature = random.randrange(features)
    bound = random.choice([0, 1, 2, 3, 5, 10, 30, 100, 256, 1000, 3000, 3900, 4095, 12000, 16000])
    return (
        feature,
        bound,
        random_tree(random, features, depth - 1),
        random_tree(random, features, depth - 1),
    )


def flattened(trees: list[Tree]) -> tuple[np.ndarray, np.ndarray]:
    """Roots and nodes as in a model, breadth first."""
    roots, nodes = [0], []
    for tree in trees:
        queue = [tree]
        for node in queue:
            if isinstance(node, int):
                nodes.append((node << 32) | LEAF)
            else:
                feature, bound, left, right = node
                nodes.append((bound << 32) | (len(queue) << 16) | feature)
                queue += [left, right]
        roots.append(len(nodes))
    return np.array(roots, dtype=np.int64), np.array(nodes, dtype=np.int64)


@dataclass(frozen=True)
class Forests:
    """Trees of both kinds, and the model that holds the same."""

    trees: dict[str, list[Tree]]
    model: Model

    @classmethod
    def random(cls, random: Random) -> Forests:
        trees = {
            kind: [
                random_tree(random, len(names), random.randint(0, 6))
                for _ in range(random.choice([1, 2, 5, 33, 70]))
            ]
            for kind, names in FEATURES.items()
        }
        made = {
            kind: Forest(
                kind,
                *flattened(own),
                random.choice(["logit", "mean"]),
                random.randint(-500, 500),
                random.choice([0.2, 0.5, 0.7]),
                random.choice([0.5, 0.8]),
            )
            for kind, own in trees.items()
        }
        return cls(trees, Model(made["anchor"], made["candidate"]))

    def sum(self, kind: str, features: dict[str, int]) -> int:
        values = [features[name] for name in FEATURES[kind]]
        total = 0
        for tree in self.trees[kind]:
            node = tree
            while not isinstance(node, int):
                feature, bound, left, right = node
                node = left if values[feature] <= bound else right
            total += node
        return total

    def scenario(self, scenario: Scenario, path: Path) -> Scenario:
        """The same, to be corrected with these forests, as CARE does or beside our rules."""
        self.model.save(path)
        # Random forests are hardly ever as sure as beside rules they must be by default.
        least = None if scenario.parameters.classic else 0.6
        parameters = replace(scenario.parameters, model=str(path), anchor_threshold=least)
        return replace(scenario, parameters=parameters)


class ForestCorrector(oracle.Corrector):
    """The correction with forests."""

    def __init__(self, scenario: Scenario, forests: Forests) -> None:
        reads = make_reads(scenario.letters, scenario.qualities, scenario.parameters.quality_bits)
        super().__init__(reads, scenario.parameters, scenario.coverage, paired=scenario.paired)
        self.forests = forests
        self.c = max(1, round(scenario.coverage * 16))

    def to_coverage(self, reads: int) -> int:
        return int(Fraction(256 * 16 * reads, self.c))

    def of_msa(self, length: int, columns: Columns) -> dict[str, int]:
        supports = [support(columns[i], consensus(columns[i])) for i in range(length)]
        depths = [sum(cell.reads for cell in columns[i].values()) for i in range(length)]
        return {
            "mean_support": (sum(supports) // length) // 256,
            "min_support": min(supports) // 256,
            "min_coverage": self.to_coverage(min(depths)),
            "max_coverage": self.to_coverage(max(depths)),
        }

    def of_column(self, columns: Columns, column: int, own: str) -> dict[str, int]:
        """Features of a column that both forests see."""
        cells = columns[column]
        new = consensus(cells)
        weight = sum(cell.weight for cell in cells.values())
        reads = sum(cell.reads for cell in cells.values())
        return {
            "q20_o": cells[own].q20,
            "q20_x": cells[new].q20,
            "share_weight_o": 4096 * cells[own].weight // weight,
            "support": 4096 * cells[new].weight // weight,
            "weight_per_read": weight // reads,
            "coverage": self.to_coverage(reads),
            "weight": int(Fraction(weight * 256 * 16, self.c * ONE)),
        }

    def of_position(
        self,
        anchor: int,
        columns: Columns,
        kept: list[Candidate],
        crowded: bool,
        position: int,
    ) -> dict[str, int]:
        own = self.reads[anchor]
        old, new = own.bases[position], consensus(columns[position])
        differing = [i for i, base in enumerate(own.bases) if base != consensus(columns[i])]
        cells = columns[position]
        reads = sum(cell.reads for cell in cells.values())
        best = {
            base: max(
                (c.weight(self.max_mismatch_ratio) for c in kept if c.base_at(position) == base),
                default=0,
            )
            for base in "ACGT"
        }
        return {
            **self.of_msa(len(own), columns),
            **self.of_column(columns, position, old),
            "differing": len(differing),
            "reads_o": cells[old].reads,
            "reads_x": cells[new].reads,
            "share_reads_o": 4096 * cells[old].reads // reads,
            "share_reads_x": 4096 * cells[new].reads // reads,
            "weight_per_read_o": cells[old].weight // cells[old].reads,
            "weight_per_read_x": cells[new].weight // cells[new].reads,
            "own_weight": own.weights[position],
            "best_o": best[old],
            "best_x": best[new],
            "near": sum(0 < abs(i - position) <= 10 for i in differing),
            "from_end": min(position, len(own) - 1 - position),
            "crowded": int(crowded),
        }

    def forest_edits(
        self,
        anchor: int,
        columns: Columns,
        kept: list[Candidate],
        quality: str,
        crowded: bool,
        bound: int,
        with_rules: bool,
    ) -> dict[int, str]:
        """The anchor's edits where the forest's sum reaches the bound, and those by the rules."""
        own = self.reads[anchor]
        classic = self.edits(anchor, columns, kept, whole=quality != "low", crowded=crowded)
        alleles, gap = self.alleles(anchor, columns, kept), self.gap(anchor, columns)
        result = {}
        for position, old in enumerate(own.bases):
            asked = quality != "high" or (crowded and own.q20[position])
            if oracle.in_gap(gap, position):
                continue
            if old in alleles[position]:
                asked = False
            by_rules = with_rules or position in own.ambiguous or not asked
            if by_rules and position in classic:
                result[position] = classic[position]
            if position in own.ambiguous or not asked:
                continue
            new = consensus(columns[position])
            if new == old:
                continue
            features = self.of_position(anchor, columns, kept, crowded, position)
            if self.forests.sum("anchor", features) >= bound:
                result[position] = new
        return result

    def corrected(self, anchor: int, columns: Columns, c: Candidate) -> str:
        if not self.p.classic:
            return super().corrected(anchor, columns, c)
        length, read = len(self.reads[anchor]), c.aligned_offset
        bound = self.forests.model.candidate.arrays().threshold
        end = c.shift + len(read)
        differing = [i for i in range(c.shift, end) if consensus(columns[i]) != c.base_at(i)]
        corrected = list(read.bases)
        both = min(length, end) - max(0, c.shift)
        for column in differing:
            offset = column - c.shift
            features = {
                **self.of_msa(length, columns),
                **self.of_column(columns, column, read.bases[offset]),
                "differing": len(differing),
                "overlap": 4096 * both // (length + len(read) - both),
                "own_weight": read.weights[offset],
                "alignment_weight": c.weight(self.max_mismatch_ratio),
                "from_end": min(offset, len(read) - 1 - offset),
                "outside": max(-column, column - (length - 1), 0),
            }
            if self.forests.sum("candidate", features) >= bound:
                corrected[offset] = consensus(columns[column])
        return "".join(corrected)

    def decide(
        self, anchor: int, aligned: dict[int, Candidate], *, crowded: bool
    ) -> Decision | None:
        kept, columns = self.msa(anchor, aligned)
        if not kept:
            return None
        quality = self.classify(anchor, columns)
        model, least = self.forests.model.anchor, self.p.anchor_threshold
        if not self.p.classic and least is None:
            least = max(0.9995, model.sure)
        forest = model.arrays(least)
        own, sure = (
            self.forest_edits(
                anchor, columns, kept, quality, crowded,
                bound=forest.threshold if first or not self.p.classic else forest.sure,
                with_rules=first and not self.p.classic,
            )
            for first in (True, False)
        )  # fmt: skip
        return self.decided(anchor, columns, kept, quality, own, sure)

    def outcome(
        self, number: int, decision: Decision | None, votes: list[str]
    ) -> tuple[str, dict[int, str]]:
        outcome, edits = super().outcome(number, decision, votes)
        unconfirmed = ("anchor only",) if self.p.classic else ()
        if outcome in ("completed", "rejected", *unconfirmed) and decision is not None:
            return outcome, decision.complete
        return outcome, edits
