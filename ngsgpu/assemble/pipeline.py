"""From files or a k-mer database to files of unitigs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.chains import Unitigs, find_unitigs
from ngsgpu.assemble.colors import color_lines, color_names
from ngsgpu.assemble.graph import Graph, graph_of, index_bits, place_type, select
from ngsgpu.assemble.params import UnitigParameters, check_odd
from ngsgpu.assemble.stats import UnitigSummary, summary_of
from ngsgpu.assemble.text import write_text
from ngsgpu.device.plan import UP_TO, Allocation, HostPlan
from ngsgpu.errors import DeviceMemoryError, UsageError
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, listed
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers import KmerDatabase, Source, open_database
from ngsgpu.kmers.count import count_into, count_to, most_letters, plan_counting
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.model import valley_of
from ngsgpu.pool import map_all
from ngsgpu.run.driver import FilesDriver, folder_beside
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions
from ngsgpu.run.plan import in_turn
from ngsgpu.run.progress import Run

_LOG = logging.getLogger("ngsgpu")
_ROWS: Final = 1 << 22
_WITHOUT_VALLEY: Final = 2
"""Abundance at which k-mers count as true if the histogram has no valley."""

_NO_INPUT: Final = "give reads (`in1`) or a k-mer database (`database`)"
_TEXT_BYTES: Final = 64 << 20
"""Text that a thread writes, and what it is made of."""


def write_unitigs(
    paths: Paths,
    out: str | Path | None,
    gfa: str | Path | None = None,
    parameters: UnitigParameters | None = None,
    *,
    database: str | Path | None = None,
    colors: str | Path | None = None,
    color: Paths = (),
    stats: str | Path | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> UnitigSummary:
    """Write the unitigs of files or of a k-mer database.

    Args:
        paths: FASTQ or FASTA files; ``-`` is standard input.
        out: FASTA file.
        gfa: GFA file.
        parameters: which k-mers make the graph; of a database, its own k-mer length counts.
        database: k-mer database instead of files.
        colors: table of what samples have of each unitig; see ``color_lines``.
        color: k-mer databases of these samples.
        stats: JSON file for the statistics.
        phred_offset: of the qualities.
        options: backend, threads, memory and progress; do not affect the result.

    Returns:
        What was written.

    Raises:
        InputError: a file or the database cannot be read.
        DeviceError: the GPU failed, and the CPU may not take over.
        OutputError: an output cannot be written; none is then.
        HostMemoryError: the memory is too small.
        UsageError: there is no input, or no output, or the k-mer length is even, or samples have
            the same name.
    """
    paths, color = listed(paths), listed(color)
    if bool(paths) == (database is not None):
        raise UsageError(_NO_INPUT)
    if (colors is None) != (not color):
        raise UsageError("`color` and `colors` belong together: the samples, and the table")
    color_names(color)
    outputs = [path for path in (out, gfa, colors) if path is not None]
    if not outputs:
        raise UsageError("no output given; name a file with `out` or `gfa`")

    def written(run: Run[UnitigParameters], files: OutputSet) -> UnitigSummary:
        numbers = iter(range(len(outputs)))
        fasta, segments, table = (
            partial(files.write, next(numbers)) if path is not None else None
            for path in (out, gfa, colors)
        )
        with run.timed("kmers"):
            solid = solid_of(
                run, paths, outputs[0], run.parameters, database=database, on_gpu=colors is None
            )
        unitigs = _write(solid, fasta, segments, table, color, run)
        return summary_of(unitigs, solid.k, solid.least, run)

    return _DRIVER.run_files(
        paths, outputs, written, parameters=parameters, options=options, stats=stats,
        phred_offset=phred_offset,
    )  # fmt: skip


class Solid(NamedTuple):
    """The k-mers of a graph.

    Attributes:
        k: their length.
        least: lowest count.
        kmers: uint64[n, words], of NumPy or, on the GPU, CuPy.
        counts: uint16[n], likewise.
        source: what was counted.
    """

    k: int
    least: int
    kmers: Any
    counts: Any
    source: Source


def solid_of(
    run: Run[Any],
    paths: Sequence[str | Path],
    output: str | Path,
    parameters: UnitigParameters,
    *,
    database: str | Path | None = None,
    on_gpu: bool = True,
) -> Solid:
    """The k-mers of a graph, as a step of a run.

    Args:
        run: the run, whose backend counts.
        paths: see ``write_unitigs``.
        output: what does not fit into memory goes to a temporary folder beside it.
        parameters: see ``write_unitigs``.
        database: likewise.
        on_gpu: whether k-mers that are counted on a GPU may stay there.

    Raises:
        InputError: a file or the database cannot be read.
        OutputError: the temporary folder cannot be written.
        DeviceError: the GPU failed.
        HostMemoryError: the memory is too small.
    """
    name = str(database or paths[0])
    chosen = parameters.min_abundance
    threads = run.options.threads

    def choose(histogram: NDArray[np.int64]) -> int:
        nonlocal chosen
        chosen = _valley(histogram, name)
        return chosen

    def solid(counted: KmerDatabase) -> Solid:
        k = counted.parameters.kmer
        check_odd(k)
        least = chosen or _abundance(counted, name, threads)
        return Solid(k, least, *solid_kmers(counted, least, run.options), counted.source)

    if database is not None:
        return solid(open_database(database, threads))
    wanted, sample = parameters.counted(), ReadSample()
    least = None if parameters.min_abundance else choose
    with folder_beside(output) as folder:
        if on_gpu and run.backend == "cuda":
            kept = KeptKmers(wanted.words)
            source = count_into(kept, run, paths, wanted, folder, sample, least)
            return Solid(parameters.kmer, chosen or 0, *kept.together(), source)
        return solid(count_to(folder, run, paths, wanted, sample, least))


def _write(
    solid: Solid,
    fasta: Callable[[memoryview], None] | None,
    gfa: Callable[[memoryview], None] | None,
    colors: Callable[[bytes], None] | None,
    color: Sequence[str | Path],
    run: Run[UnitigParameters],
) -> Unitigs:
    threads = run.options.threads
    with run.step("compacting", "compacting", unit="k-mers") as stage:
        graph, unitigs = compacted(solid, run.options, walked=colors is not None)
        stage.advance(len(solid.counts))
    with run.step("writing", "writing", unit="unitigs") as stage:
        write_text(graph, unitigs, fasta, gfa, threads)
        if colors is not None:
            for text in color_lines(graph, unitigs, color, threads):
                colors(text)
        stage.advance(len(unitigs))
    return unitigs


def compacted(solid: Solid, options: RunOptions, *, walked: bool) -> tuple[Graph, Unitigs]:
    """The graph, with what walks along it need if there will be any, and its unitigs."""
    k, kmers, counts = solid.k, solid.kmers, solid.counts
    if options.backend == "cuda" and len(kmers) > 0:
        from ngsgpu.assemble.gpu import compact_on_gpu

        try:
            return compact_on_gpu(kmers, counts, k, limit=options.gpu_memory, neighbours=walked)
        except DeviceMemoryError as error:
            cause = str(error).partition(";")[0]
        _LOG.info("%s; compacting on the CPU", cause)
    if not isinstance(kmers, np.ndarray):
        plan_graph(len(kmers), k, kmers.shape[1], options).check()
        kmers, counts = kmers.get(), counts.get()
    graph = graph_of(kmers, counts, k, options.threads)
    return graph, find_unitigs(graph, options.threads)


def _abundance(database: KmerDatabase, path: str, threads: int) -> int:
    """Lowest count of true k-mers: as counted, else by the histogram."""
    counted = database.parameters.min_count
    if counted > 1:
        _LOG.info("`min_abundance=%d`, as the database was counted", counted)
        return counted
    return _valley(database.histogram(threads), path)


def _valley(histogram: NDArray[np.int64], path: str) -> int:
    """Lowest count of true k-mers, at the valley of a histogram."""
    valley = valley_of(histogram)
    if valley is None:
        _LOG.warning(
            "%s: the histogram has no valley between k-mers with errors and others; "
            "`min_abundance` is %d (give 1 for genomes)",
            path, _WITHOUT_VALLEY,
        )  # fmt: skip
        return _WITHOUT_VALLEY
    _LOG.info("`min_abundance=%d`, at the valley of the histogram", valley)
    return valley


def solid_kmers(
    database: KmerDatabase, least: int, options: RunOptions
) -> tuple[NDArray[np.uint64], NDArray[np.uint16]]:
    """The k-mers that are frequent enough, and their counts.

    Raises:
        HostMemoryError: there is no room for their graph.
    """
    words = database.parameters.words
    pieces = [(at, min(at + _ROWS, len(database))) for at in range(0, len(database), _ROWS)]

    def count(piece: tuple[int, int]) -> int:
        return int(np.count_nonzero(database.counts[slice(*piece)] >= least))

    sizes = map_all(options.threads, count, pieces, name="solid")
    places = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    plan_graph(int(places[-1]), database.parameters.kmer, words, options).check()
    kmers = np.empty((int(places[-1]), words), dtype=np.uint64)
    counts = np.empty(len(kmers), dtype=np.uint16)

    def take(number: int) -> None:
        piece = slice(*pieces[number])
        own = slice(*places[number : number + 2].tolist())
        select(database.kmers[piece], database.counts[piece], least, kmers[own], counts[own])

    map_all(options.threads, take, range(len(pieces)), name="solid")
    return kmers, counts


def plan_files(
    paths: Paths,
    parameters: UnitigParameters,
    options: RunOptions,
    *,
    database: str | Path | None = None,
) -> HostPlan:
    """Plan the memory of ``write_unitigs`` on the CPU, whose arguments these are.

    Raises:
        InputError: the database cannot be read.
        UsageError: there is no input.
    """
    if database is None:
        return _DRIVER.plan_files(paths, parameters, options)
    if listed(paths):
        raise UsageError(_NO_INPUT)
    opened = open_database(database, check=False)
    counted = opened.parameters
    graph = plan_graph(len(opened), counted.kmer, counted.words, options)
    return in_turn("compacting", compacting=graph)


def _plan(
    paths: Sequence[str | Path], parameters: UnitigParameters, options: RunOptions
) -> HostPlan:
    return in_turn("compacting", **plan_steps(paths, parameters, options))


def plan_steps(
    paths: Sequence[str | Path], parameters: UnitigParameters, options: RunOptions
) -> dict[str, HostPlan]:
    """Plan the memory of counting the k-mers of files, and of the largest graph they may have.

    Args:
        paths: FASTQ or FASTA files.
        parameters: which k-mers make the graph.
        options: threads and memory budget.
    """
    counted = parameters.counted()
    letters = most_letters(paths)
    kmers = (options.budget if letters is None else letters) // (parameters.min_abundance or 1)
    return {
        "counting": plan_counting(paths, counted, options),
        "compacting": plan_graph(kmers, counted.kmer, counted.words, options),
    }


def plan_graph(size: int, k: int, words: int, options: RunOptions) -> HostPlan:
    """Plan the memory of a graph: k-mers, neighbours, marks, and at worst a unitig each.

    Args:
        size: number of k-mers.
        k: their length.
        words: 64-bit words of a k-mer.
        options: threads and memory budget.
    """
    place = np.dtype(place_type(size)).itemsize
    node = 8 * words + 2 + 1 + 2 * place + 1 + place
    unitig = 4 * place + 4 * 8
    return HostPlan(
        doing=f"the graph of {size:,} k-mers",
        about=UP_TO,
        allocations=(
            Allocation("program", INTERPRETER_BYTES),
            Allocation("k-mers", size * node),
            Allocation("unitigs", size * unitig),
            Allocation("index", place * (1 << index_bits(size, k))),
            Allocation("text", options.threads * _TEXT_BYTES),
        ),
        budget=options.budget,
        remedies=("a higher `min_abundance`",),
    )


_DRIVER: Final = FilesDriver(UnitigParameters, plan=_plan, no_input=_NO_INPUT)
