"""From files of error-free reads to contigs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.euler import tour
from ngsgpu.assemble.euler.contigs import find_contigs, write_contigs
from ngsgpu.assemble.euler.graph import EulerGraph, Places, euler_graph
from ngsgpu.assemble.euler.params import EulerParameters
from ngsgpu.assemble.stats import sizes_of
from ngsgpu.device.plan import UP_TO, Allocation, HostPlan
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers import KmerDatabase
from ngsgpu.kmers.count import count_to, most_letters, plan_counting
from ngsgpu.run.driver import FilesDriver, folder_beside
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.plan import in_turn
from ngsgpu.run.progress import Run
from ngsgpu.run.statistics import RunStatistics
from ngsgpu.run.trimming import warn_of_adapters

_EDGE_BYTES: Final = 96
"""Memory for an edge while its graph is made: sorted words, places and vertices."""


@dataclass(slots=True, kw_only=True)
class EulerStatistics(RunStatistics):
    """What was assembled, and how; see also ``RunStatistics``.

    Attributes:
        graph: ``edges``, ``vertices``; ``components`` of the successor graph; ``circuit_edges``,
            and ``tree_edges``, at which successors were exchanged.
        contigs: ``number``, ``bases``, ``longest``, ``n50`` of those that were written.
        adapters: what a sample of the reads says of adapters, see ``ngsgpu.run.adapters``.
    """

    SCHEMA = "ngsgpu.assemble.euler"
    graph: dict[str, int] = field(default_factory=dict)
    contigs: dict[str, int] = field(default_factory=dict)
    adapters: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """Lines for people."""
        own, graph = self.contigs, self.graph
        return [
            f"{graph['edges']:,} edges, {graph['vertices']:,} vertices, {graph['components']:,} "
            f"paths and circuits, {graph['tree_edges']:,} exchanges",
            f"{own['number']:,} contigs of {own['bases']:,} bases, both strands; longest "
            f"{own['longest']:,}, N50 {own['n50']:,}",
            self.resources(),
        ]


def assemble_euler(
    paths: Paths,
    out: str | Path | None,
    parameters: EulerParameters | None = None,
    *,
    stats: str | Path | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> EulerStatistics:
    """Assemble error-free reads along an Euler tour.

    Args:
        paths: FASTQ or FASTA files; ``-`` is standard input.
        out: FASTA file of contigs.
        parameters: of the graph and the contigs.
        stats: JSON file for the statistics.
        phred_offset: of the qualities.
        options: backend, threads, memory and progress; do not affect the contigs.

    Raises:
        InputError: a file cannot be read.
        DeviceError: the GPU failed, and the CPU may not take over.
        OutputError: an output cannot be written; none is then.
        HostMemoryError: the memory is too small.
        UsageError: there is no input, or no output.
    """
    paths = _DRIVER.given(paths)
    if out is None:
        raise UsageError("no output given; name a file with `out`")

    def assembled(run: Run[EulerParameters], files: OutputSet) -> EulerStatistics:
        parameters, sample = run.parameters, ReadSample()
        with folder_beside(out) as folder:
            with run.timed("counting"):
                database = count_to(folder, run, paths, parameters.counted(), sample)
            lanes = [ReadFiles((str(path),)) for path in paths]
            adapters = warn_of_adapters(sample, lanes, "contigs may end in adapters")
            found = _tour(database, parameters.length, run)
            with _timed(run, "contigs"):
                contigs = find_contigs(found.graph, found.successors, parameters.min_contig)
                write_contigs(
                    found.graph,
                    found.successors,
                    contigs,
                    partial(files.write, 0),
                    run.options.threads,
                )
        return EulerStatistics.begun(
            run.options,
            found.backend,
            parameters,
            graph=found.sizes,
            contigs=sizes_of(contigs.sizes + (parameters.length - 1)),
            adapters=adapters,
            **run.entries(),
        )

    return _DRIVER.run_files(
        paths, [out], assembled, parameters=parameters, options=options, stats=stats,
        phred_offset=phred_offset, packs=True,
    )  # fmt: skip


_Timed = Callable[[str], AbstractContextManager[object]]


class _Found(NamedTuple):
    """The graph, what follows each edge, how large all is, and the backend that found it."""

    graph: EulerGraph
    successors: Places
    sizes: dict[str, int]
    backend: str


def _plan(
    paths: Sequence[str | Path], parameters: EulerParameters, options: RunOptions
) -> HostPlan:
    letters = most_letters(paths)
    edges = 2 * (options.budget if letters is None else letters)
    counting = plan_counting(paths, parameters.counted(), options)
    return in_turn("assembling", counting=counting, tour=plan_tour(edges, options))


def plan_tour(edges: int, options: RunOptions) -> HostPlan:
    """Plan the memory of a graph, by its number of edges."""
    return HostPlan(
        doing=f"the graph of {edges:,} edges",
        about=UP_TO,
        allocations=(
            Allocation("program", INTERPRETER_BYTES),
            Allocation("edges", edges * _EDGE_BYTES),
        ),
        budget=options.budget,
    )


def _tour(database: KmerDatabase, length: int, run: Run[EulerParameters]) -> _Found:
    plan_tour(2 * len(database), run.options).check()
    timed = partial(_timed, run)
    if run.backend == "cuda" and len(database) > 0:
        return _found_on_gpu(database, length, run.options, timed)
    return _found(database, length, run.options, timed)


def _timed(run: Run[EulerParameters], name: str) -> AbstractContextManager[object]:
    """A step that is shown by its name in the statistics."""
    return run.step(name, name, unit="edges")


def _found(database: KmerDatabase, length: int, options: RunOptions, timed: _Timed) -> _Found:
    """``_tour`` on the CPU."""
    with timed("graph"):
        graph = euler_graph(database.kmers, database.counts, length)
    with timed("successors"):
        successors = tour.assign_successors(graph, options.threads)
    with timed("components"):
        labels = tour.find_components(successors, options.threads)
    with timed("circuits"):
        circuits = tour.circuit_graph(graph, labels)
    with timed("tree"):
        tree = tour.spanning_tree(circuits, len(graph.edges))
    with timed("swipe"):
        tour.swipe(graph, tree, successors, options.threads)
    return _Found(graph, successors, _described(graph, labels, circuits, tree), "cpu")


def _found_on_gpu(
    database: KmerDatabase, length: int, options: RunOptions, timed: _Timed
) -> _Found:
    """``_tour`` on the current GPU; each step ends when the GPU has done it."""
    from ngsgpu.assemble.euler import gpu

    with gpu.on_gpu(2 * len(database), options.gpu_memory):
        with timed("graph"), gpu.done():
            graph = gpu.euler_graph(database.kmers, database.counts, length)
        with timed("successors"), gpu.done():
            successors = gpu.assign_successors(graph)
        with timed("components"), gpu.done():
            labels = gpu.find_components(successors)
        with timed("circuits"), gpu.done():
            circuits = gpu.circuit_graph(graph, labels)
        with timed("tree"):
            tree = tour.spanning_tree(circuits, len(graph.edges))
        with timed("swipe"), gpu.done():
            gpu.swipe(graph, tree, successors)
        with timed("home"):
            own, after, named = gpu.on_host(graph), successors.get(), labels.get()
    return _Found(own, after, _described(own, named, circuits, tree), "cuda")


def _described(
    graph: EulerGraph, labels: Places, circuits: tour.CircuitGraph, tree: NDArray[np.int64]
) -> dict[str, int]:
    """Sizes of the graphs."""
    return {
        "edges": len(graph.edges),
        "vertices": len(graph.vertices),
        "components": int(np.count_nonzero(labels == np.arange(len(labels)))),
        "circuit_edges": len(circuits.places),
        "tree_edges": len(tree),
    }


_DRIVER: Final = FilesDriver(EulerParameters, plan=_plan)
plan_files = _DRIVER.plan_files
