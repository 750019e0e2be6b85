"""What calls on a GPU are decided by: all queries together, and the rules of calls."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ngsgpu.classify.call.acceptance import Acceptance
from ngsgpu.classify.call.coverage import CoverageCounter
from ngsgpu.classify.call.evidence import SpeciesEvidence
from ngsgpu.classify.params import PER_MILLION
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.query.gpu_batch import GpuBatch
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.structs import Struct
from ngsgpu.device.pinned import to_device

KERNELS: Final = KernelModule("ngsgpu.classify.call", "first_pass.cu")
_CALL_RULES: Final = ("min_hits", "near_hits", "few_hits", "many_hits", "unit", "chance",
                      "difference", "confidence", "species_confidence", "lowest", "highest",
                      "best_alone")  # fmt: skip

RULES: Final = Struct(__name__, "Rules", {
    "lineages": "const int32_t*",
    "node_rank": "const uint8_t*",
    "target_node": "const int32_t*",
    "target_taxon": "const int32_t*",
    "level": "const uint8_t*",
    "reads": "const int64_t*",
    "least": "const int32_t*",
    "passes": "const uint8_t*",
    **dict.fromkeys(("nodes", "targets", "ranks", "doubtful_confidence", "kmer", "per_kmer",
                     *_CALL_RULES), "int64_t"),
})  # fmt: skip
"""The tree (``lineages`` of nodes and ranks), the reference sequences (their nodes, -1 where there
is none; taxa of calls, null where these may be sequences; their ``Acceptance``, null if all are
accepted), and what decides."""


class GpuFirstPass:
    """Collects statistics over all reads before the first one is called.

    Args:
        engine: the database.
        counter: collects coverage, or None.
        evidence: collects the species evidence, or None.
    """

    def __init__(
        self, engine: Engine, counter: CoverageCounter | None, evidence: SpeciesEvidence | None
    ) -> None:
        import cupy

        self._min_hits = np.int32(engine.rules.min_hits)
        self._counter = counter
        self._evidence = evidence
        if counter is not None:
            self._first = cupy.asarray(counter.first_window)
            self._covered = cupy.asarray(counter.marks)
        if evidence is not None:
            self._species = cupy.asarray(evidence.species)
            self._bins = cupy.asarray(evidence.counts)
            self._looked_up = cupy.asarray(evidence.looked_up)
            self._rules, self._rule_arrays = rules_on_gpu(engine, None, 0.0)

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
        if self._evidence is not None:
            KERNELS.launch_threads(
                "count_evidence",
                len(batch),
                batch.candidates,
                batch.sizes,
                queries,
                most,
                self._species,
                self._rules,
                self._bins,
                self._looked_up,
            )

    def finish(self) -> None:
        """Hand over the collected statistics."""
        if self._counter is not None:
            self._counter.marks[...] = self._covered.get()
        if self._evidence is not None:
            self._evidence.counts[...] = self._bins.get()
            self._evidence.looked_up[...] = self._looked_up.get()


def rules_on_gpu(
    engine: Engine, accepted: Acceptance | None, doubtful_confidence: float
) -> tuple[Any, list[Any]]:
    """The struct ``RULES``, and the arrays that it points to.

    Args:
        engine: the classifier, with its lineages and rules.
        accepted: accepted and rejected species; None if all are accepted.
        doubtful_confidence: minimum fraction of shared k-mers for reads with only rejected species.
    """
    rules = engine.rules
    found = dict.fromkeys(Acceptance._fields)
    if accepted is not None:
        found = {name: to_device(array) for name, array in accepted._asdict().items()}
    taxa = engine.taxon_of_target
    lineages, node_rank, target_node = arrays = [
        to_device(array) for array in (engine.lineages, engine.node_rank, engine.target_node)
    ]
    if len(taxa) > 0:
        arrays.append(to_device(taxa))
    struct = RULES.on_device(
        lineages=lineages,
        node_rank=node_rank,
        target_node=target_node,
        target_taxon=arrays[3] if len(taxa) > 0 else None,
        nodes=len(engine.taxonomy),
        targets=len(engine.target_node),
        ranks=engine.lineages.shape[1],
        doubtful_confidence=round(doubtful_confidence * PER_MILLION),
        kmer=engine.sketch.kmer,
        per_kmer=engine.sketch.hit_scale.per_kmer,
        **found,
        **{name: getattr(rules, name) for name in _CALL_RULES},
    )
    return struct, [*arrays, *found.values()]
