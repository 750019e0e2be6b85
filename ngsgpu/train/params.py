"""Parameters of training."""

from __future__ import annotations

from typing import Final, Literal

from ngsgpu.declared.limits import MAX_SEED
from ngsgpu.declared.options import option, value
from ngsgpu.declared.values import parameters

Method = Literal["boosting", "forest"]

MAX_LEAVES: Final = 30_000


@parameters
class Settings:
    """How trees are grown."""

    method: Method = option(
        "boosting", "boosting|forest", "Gradient boosting, or a random forest as CARE's."
    )
    trees: int = option(60, "N", "Trees of each forest.", least=1)
    leaves: int = option(31, "N", "Leaves of a tree at most.", least=2, most=MAX_LEAVES)
    smallest_leaf: int = value(40, "Fewest positions of a leaf.", least=1)
    learning_rate: float = value(0.15, "Learning rate of boosting.", least=0.001, most=1)
    regularisation: float = value(
        1.0, "Regularisation of the values of leaves in boosting (L2).", least=0
    )
    most_right: int = value(
        100,
        "Positions where the consensus is right that are used, for each where it is wrong; the "
        "others' weight is given to these.",
        least=1,
    )
    threshold: float = option(
        0.9, "P", "Probability from which a base is changed.", above=0, below=1
    )
    sure: float = option(
        0.998,
        "P",
        "The same where the corrections of other reads do not confirm it.",
        above=0,
        below=1,
    )
    seed: int = option(1, "N", "Seed of what is random.", least=0, most=MAX_SEED)
