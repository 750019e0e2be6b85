"""From files of error-free reads to contigs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.euler import tour
from ngsgpu.assemble.euler.contigs import Contigs, find_contigs, write_contigs
from ngsgpu.assemble.euler.graph import EulerGraph, Places, euler_graph
from ngsgpu.assemble.euler.params import EulerParameters
from ngsgpu.assemble.stats import sizes_of
from ngsgpu.device.plan import UP_TO, Allocation, HostPlan
from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.atomic import check_distinct
from ngsgpu.io.output.temporary import temporary_folder
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, listed, own_descriptor
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers import KmerDatabase, count_files, open_database
from ngsgpu.kmers.count import most_letters
from ngsgpu.kmers.count import plan_files as plan_counting
from ngsgpu.kmers.stats import Observed
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions, on_backend
from ngsgpu.run.plan import in_turn
from ngsgpu.run.progress import Progress
from ngsgpu.run.statistics import RunStatistics, with_statistics
from ngsgpu.run.trimming import warn_of_adapters

_NO_INPUT: Final = "no reads given; name files with `in1`"
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
    paths = listed(paths)
    parameters = parameters or EulerParameters()
    options = options or RunOptions()
    if not paths:
        raise UsageError(_NO_INPUT)
    if out is None:
        raise UsageError("no output given; name a file with `out`")
    check_distinct(list(paths), [str(path) for path in (out, stats) if path is not None])

    def write(files: OutputSet) -> EulerStatistics:
        times: dict[str, float] = {}
        sample = ReadSample()
        with (
            _counted(paths, out, parameters, phred_offset, options, times, sample) as database,
            Progress(options.progress) as progress,
        ):
            lanes = [ReadFiles((str(path),)) for path in paths]
            adapters = warn_of_adapters(sample, lanes, "contigs may end in adapters")
            found = _tour(database, parameters.length, options, _Steps(progress, times))
            with _Steps(progress, times)("contigs"):
                contigs = find_contigs(found.graph, found.successors, parameters.min_contig)
                write_contigs(
                    found.graph,
                    found.successors,
                    contigs,
                    lambda text: files.write(0, text),
                    options.threads,
                )
        return EulerStatistics.begun(
            options,
            found.backend,
            parameters,
            graph=found.sizes,
            contigs=_sizes(contigs, parameters.length),
            adapters=adapters,
            time_s=times,
        )

    return with_statistics([str(out)], stats, options, write)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Stages whose seconds are kept; called with a name."""

    progress: Progress
    times: dict[str, float]

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        with self.progress.stage(name, unit="edges") as stage:
            yield
            self.times[name] = round(stage.seconds, 4)


@contextmanager
def _counted(
    paths: Sequence[str | Path],
    out: str | Path,
    parameters: EulerParameters,
    phred_offset: PhredOffset,
    options: RunOptions,
    times: dict[str, float],
    sample: ReadSample,
) -> Iterator[KmerDatabase]:
    """The l-mers of the files, beside the output, or in the current folder for a stream."""
    own = Path(out).resolve()
    is_stream = own_descriptor(out, standard=1) is not None or (own.exists() and not own.is_file())
    beside = Path.cwd() / "euler.kmers" if is_stream else own.with_name(f"{own.name}.kmers")
    begin = time.monotonic()
    try:
        with temporary_folder(beside) as folder:
            place = folder / "kmers"
            count_files(
                paths, place, parameters.counted(), phred_offset=phred_offset, options=options,
                observed=Observed(sample),
            )  # fmt: skip
            times["counting"] = round(time.monotonic() - begin, 4)
            yield open_database(place, options.threads, check=False)
    except OSError as error:
        raise output_error(beside, error) from error


class _Found(NamedTuple):
    """The graph, what follows each edge, how large all is, and the backend that found it."""

    graph: EulerGraph
    successors: Places
    sizes: dict[str, int]
    backend: str


def plan_files(paths: Paths, parameters: EulerParameters, options: RunOptions) -> HostPlan:
    """Plan the memory of ``assemble_euler`` on the CPU, whose arguments these are.

    Raises:
        UsageError: there is no file.
    """
    paths = listed(paths)
    if not paths:
        raise UsageError(_NO_INPUT)
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


def _tour(database: KmerDatabase, length: int, options: RunOptions, timed: _Steps) -> _Found:
    plan_tour(2 * len(database), options).check()
    if len(database) == 0:
        return _found(database, length, options, timed)
    return on_backend(
        options,
        lambda: _found_on_gpu(database, length, options, timed),
        lambda: _found(database, length, options, timed),
    )


def _found(database: KmerDatabase, length: int, options: RunOptions, timed: _Steps) -> _Found:
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
    database: KmerDatabase, length: int, options: RunOptions, timed: _Steps
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


def _sizes(contigs: Contigs, length: int) -> dict[str, int]:
    return sizes_of(contigs.sizes + (length - 1))
