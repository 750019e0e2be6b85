"""What calls on a GPU are decided by: all queries together, and the rules of calls."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ngsgpu.classify.call.classes import WIDTH, Rows
from ngsgpu.classify.call.coverage import CoverageCounter
from ngsgpu.classify.call.model import SampleModel
from ngsgpu.classify.call.posterior import POWERS, Weights
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu_batch import GpuBatch
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.sort import radix_argsort
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import to_device, to_host

KERNELS: Final = KernelModule("ngsgpu.classify.call", "first_pass.cu")
_CALL_RULES: Final = ("min_hits", "difference", "lowest", "highest", "best_alone")
_OF_TREE: Final = {"lineages": "const int32_t*", "node_rank": "const uint8_t*",
                   "target_node": "const int32_t*", "target_taxon": "const int32_t*"}  # fmt: skip
_OF_MODEL: Final = {"row": "const int32_t*", "source_of_target": "const int32_t*",
                    "weights": "const int32_t*", "log2": "const int32_t*",
                    "genus": "const int32_t*", "powers": "const int64_t*"}  # fmt: skip

RULES: Final = Struct(__name__, "Rules", {
    **_OF_TREE,
    **_OF_MODEL,
    **dict.fromkeys(("nodes", "targets", "ranks", "by_model", "unknown", "step", "posterior",
                     *_CALL_RULES), "int64_t"),
})  # fmt: skip
"""The tree (``lineages`` of nodes and ranks), the reference sequences (their nodes, -1 where there
is none; taxa of calls, null where these may be sequences), the fit (``Weights``, whose arrays are
empty, and null, where nothing was found), and what decides; 0 in ``by_model``: MetaCache's rule."""


class GpuFirstPass:
    """Collects statistics over all reads before the first one is called.

    Args:
        engine: the database.
        counter: collects coverage, or None.
        model: collects the classes of reads, or None.
    """

    def __init__(
        self, engine: Engine, counter: CoverageCounter | None, model: SampleModel | None
    ) -> None:
        import cupy

        self._min_hits = np.int32(engine.rules.min_hits)
        self._counter = counter
        self._model = model
        if counter is not None:
            self._first = cupy.asarray(counter.first_window)
            self._covered = cupy.asarray(counter.marks)
        if model is not None:
            classes, sources = model.classes, model.sources
            self._sources = to_device(sources.of_target), to_device(sources.first_place)
            self._least = to_device(classes.least)
            self._own = cupy.zeros(len(classes.own), dtype=cupy.uint64)
            self._marks = cupy.zeros(len(classes.marks), dtype=cupy.uint8)
            self._ambiguous = cupy.zeros(1, dtype=cupy.uint64)

    def add(self, batch: GpuBatch) -> None:
        """Look at queries."""
        queries, most = np.uint32(len(batch)), np.int32(batch.candidates.shape[1])
        if self._counter is not None:
            KERNELS.launch_threads(
                "mark_covered",
                len(batch),
                batch.candidates,
                queries,
                most,
                self._min_hits,
                self._first,
                self._covered,
            )
        if self._model is not None and len(batch):
            self._model.classes.add_rows(self._classes(batch, queries, most, self._model))

    def _classes(
        self, batch: GpuBatch, queries: np.uint32, most: np.int32, model: SampleModel
    ) -> Rows:
        """The classes of a batch, once each."""
        import cupy

        words = cupy.empty((len(batch), WIDTH), dtype=cupy.int64)
        hashes = cupy.empty(len(batch), dtype=cupy.uint64)
        KERNELS.launch_threads(
            "find_classes",
            len(batch),
            batch.candidates,
            batch.sizes,
            queries,
            most,
            *self._sources,
            np.int32(model.sources.per_place),
            np.int32(model.classes.step),
            self._least,
            words,
            hashes,
            self._own,
            self._marks,
            self._ambiguous,
        )
        order = radix_argsort(hashes)
        is_first = cupy.ones(len(batch), dtype=cupy.bool_)
        is_first[1:] = hashes[1:] != hashes[:-1]
        first = cupy.flatnonzero(is_first)
        counts = cupy.diff(cupy.append(first, len(batch)))
        return Rows(to_host(words[order[first]]), to_host(hashes[first]), to_host(counts))

    def finish(self) -> None:
        """Hand over the collected statistics."""
        if self._counter is not None:
            self._counter.marks[...] = self._covered.get()
        if self._model is not None:
            classes = self._model.classes
            classes.own += self._own.get().astype(np.int64)
            classes.marks |= self._marks.get()
            self._model.ambiguous += int(self._ambiguous[0])


def rules_on_gpu(engine: Engine, weights: Weights | None) -> tuple[Any, list[Any]]:
    """The struct ``RULES``, and the arrays that it points to.

    Args:
        engine: the classifier, with its lineages and rules.
        weights: the fit of the sample; None if calls are by MetaCache's rule.
    """
    rules = engine.rules
    arrays: dict[str, Any] = {
        "lineages": engine.lineages,
        "node_rank": engine.node_rank,
        "target_node": engine.target_node,
    }
    if len(engine.taxon_of_target) > 0:
        arrays["target_taxon"] = engine.taxon_of_target
    numbers = {"unknown": 0, "step": 0, "posterior": 0}
    if weights is not None:
        arrays |= {
            "row": weights.row, "source_of_target": weights.of_target,
            "weights": weights.weights, "log2": weights.log2, "genus": weights.genus,
            "powers": POWERS,
        }  # fmt: skip
        numbers = {name: getattr(weights, name) for name in numbers}
    on_device = {name: to_device(array) for name, array in arrays.items()}
    struct = RULES.on_device(
        **dict.fromkeys([*_OF_TREE, *_OF_MODEL]) | on_device,
        nodes=len(engine.taxonomy),
        targets=len(engine.target_node),
        ranks=engine.lineages.shape[1],
        by_model=weights is not None,
        **numbers,
        **{name: getattr(rules, name) for name in _CALL_RULES},
    )
    return struct, list(on_device.values())
