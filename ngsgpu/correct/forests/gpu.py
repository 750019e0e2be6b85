"""The forests of a correction on the GPU."""

from __future__ import annotations

from typing import Any, Final

from ngsgpu.correct.forests.forest import ForestArrays, Forests
from ngsgpu.device.cuda.structs import Struct

FOREST: Final = Struct(__name__, "Forest", {
    "roots": "const int64_t*",
    "nodes": "const int64_t*",
    "trees": "int64_t",
    "threshold": "int64_t",
    "sure": "int64_t",
    "coverage": "int64_t",
})  # fmt: skip
"""A forest of ``ngsgpu.correct.forests.forest.Forests``, and the coverage."""


def forest_bytes(forests: Forests) -> int:
    """GPU memory of forests, at least."""
    parts = (forests.anchor, forests.candidate)
    return sum(part.roots.nbytes + part.nodes.nbytes for part in parts if len(part.nodes))


class DeviceForests:
    """Both forests on the current GPU.

    Attributes:
        second: when the second correction of an anchor counts.
        struct: the structs ``FOREST`` of the anchors' and the candidates', for kernels.
    """

    def __init__(self, forests: Forests) -> None:
        import cupy

        self.second = forests.second
        self._arrays: list[Any] = []
        parts = [self._placed(one, forests.coverage) for one in (forests.anchor, forests.candidate)]
        self.struct = cupy.concatenate(parts)

    def _placed(self, forest: ForestArrays, coverage: int) -> Any:
        import cupy

        roots, nodes = cupy.asarray(forest.roots), cupy.asarray(forest.nodes)
        self._arrays += [roots, nodes]
        return FOREST.on_device(
            roots=roots,
            nodes=nodes,
            trees=len(forest.rest),
            threshold=forest.threshold,
            sure=forest.sure,
            coverage=coverage,
        )
