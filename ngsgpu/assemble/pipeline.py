"""From files or a k-mer database to files of unitigs."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
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
from ngsgpu.errors import DeviceMemoryError, UsageError, output_error
from ngsgpu.io.output.atomic import AtomicFile, check_distinct, commit_all
from ngsgpu.io.output.temporary import temporary_folder
from ngsgpu.io.paths import Paths, is_stream, listed, own_descriptor
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.kmers import KmerDatabase, Source, count_files, kmers_on_gpu, open_database
from ngsgpu.kmers.count import most_letters
from ngsgpu.kmers.count import plan_files as plan_counting
from ngsgpu.kmers.model import valley_of
from ngsgpu.pool import map_all
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions, on_backend
from ngsgpu.run.plan import in_turn
from ngsgpu.run.progress import Progress
from ngsgpu.run.statistics import statistics_file

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
    started = time.monotonic()
    parameters = parameters or UnitigParameters()
    options = options or RunOptions()
    if bool(paths) == (database is not None):
        raise UsageError(_NO_INPUT)
    if (colors is None) != (not color):
        raise UsageError("`color` and `colors` belong together: the samples, and the table")
    color_names(color)
    outputs = [path for path in (out, gfa, colors) if path is not None]
    if not outputs:
        raise UsageError("no output given; name a file with `out` or `gfa`")
    check_distinct(list(paths), [*outputs, *([] if stats is None else [stats])])
    with contextlib.ExitStack() as opened, statistics_file(stats) as complete:
        files = [opened.enter_context(AtomicFile(path)) for path in outputs]
        writes = iter([file.write for file in files])
        fasta, segments, table = (
            next(writes) if path is not None else None for path in (out, gfa, colors)
        )

        def run(options: RunOptions) -> UnitigSummary:
            begin = time.monotonic()
            solid = solid_of(
                paths, outputs[0], database, parameters, phred_offset, options,
                on_gpu=colors is None,
            )  # fmt: skip
            times = {"kmers": round(time.monotonic() - begin, 3)}
            unitigs = _write(solid, fasta, segments, table, color, options, times)
            return summary_of(unitigs, solid.k, solid.least, parameters, options, times)

        # What fails on the GPU does so before anything is written.
        summary = on_backend(
            options,
            lambda: run(replace(options, may_fall_back=False)),
            lambda: run(replace(options, backend="cpu")),
            may_begin_again=lambda: not any(map(is_stream, paths)),
        )
        summary.time_s["total"] = round(time.monotonic() - started, 3)
        commit_all([*files, *complete(summary)])
    return summary


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
    paths: Sequence[str | Path],
    output: str | Path,
    database: str | Path | None,
    parameters: UnitigParameters,
    phred_offset: PhredOffset,
    options: RunOptions,
    *,
    on_gpu: bool,
) -> Solid:
    """The k-mers of a graph.

    Args:
        paths: see ``write_unitigs``.
        output: what does not fit into memory goes to a temporary folder beside it.
        database: see ``write_unitigs``.
        parameters: likewise.
        phred_offset: likewise.
        options: likewise.
        on_gpu: whether k-mers that are counted on a GPU may stay there.

    Raises:
        InputError: a file or the database cannot be read.
        OutputError: the temporary folder cannot be written.
        DeviceError: the GPU failed, and the CPU may not take over.
        HostMemoryError: the memory is too small.
    """
    name = str(database or paths[0])
    chosen = parameters.min_abundance

    def choose(histogram: NDArray[np.int64]) -> int:
        nonlocal chosen
        chosen = _valley(histogram, name)
        return chosen

    least = None if parameters.min_abundance else choose
    if on_gpu and database is None and options.backend == "cuda":
        kept, source = kmers_on_gpu(
            paths, parameters.counted(), beside=_beside(output), phred_offset=phred_offset,
            options=options, least=least,
        )  # fmt: skip
        return Solid(parameters.kmer, chosen or 0, *kept.together(), source)
    counting: AbstractContextManager[KmerDatabase]
    if database is not None:
        counting = contextlib.nullcontext(open_database(database, options.threads))
    else:
        counting = _counted(paths, _beside(output), parameters, phred_offset, options, least)
    with counting as counted:
        k = counted.parameters.kmer
        check_odd(k)
        chosen = chosen or _abundance(counted, name, options.threads)
        return Solid(k, chosen, *solid_kmers(counted, chosen, options), counted.source)


@contextlib.contextmanager
def _counted(
    paths: Sequence[str | Path],
    beside: Path,
    parameters: UnitigParameters,
    phred_offset: PhredOffset,
    options: RunOptions,
    least: Callable[[NDArray[np.int64]], int] | None,
) -> Iterator[KmerDatabase]:
    """The files' k-mers in a database beside a path; ``least`` is that of ``count_files``."""
    try:
        with temporary_folder(beside) as folder:
            place = folder / "kmers"
            count_files(
                paths,
                place,
                parameters.counted(),
                phred_offset=phred_offset,
                options=options,
                least=least,
            )
            yield open_database(place, options.threads, check=False)
    except OSError as error:
        raise output_error(beside, error) from error


def _beside(output: str | Path) -> Path:
    """A name in the folder of an output, or in the current one if that is a stream."""
    own = Path(output).resolve()
    streams = own_descriptor(output, standard=1) is not None or (own.exists() and not own.is_file())
    return Path.cwd() / "unitigs.kmers" if streams else own.with_name(f"{own.name}.kmers")


def _write(
    solid: Solid,
    fasta: Callable[[memoryview], None] | None,
    gfa: Callable[[memoryview], None] | None,
    colors: Callable[[bytes], None] | None,
    color: Sequence[str | Path],
    options: RunOptions,
    times: dict[str, float],
) -> Unitigs:
    """Write the unitigs; ``times`` gets the seconds of the steps."""
    with Progress(options.progress) as progress:
        with progress.stage("compacting", unit="k-mers") as stage:
            graph, unitigs = compacted(solid, options, walked=colors is not None)
            stage.advance(len(solid.counts))
            times["compacting"] = round(stage.seconds, 3)
        with progress.stage("writing", unit="unitigs") as stage:
            write_text(graph, unitigs, fasta, gfa, options.threads)
            if colors is not None:
                for text in color_lines(graph, unitigs, color, options.threads):
                    colors(text)
            stage.advance(len(unitigs))
            times["writing"] = round(stage.seconds, 3)
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
    if bool(listed(paths)) == (database is not None):
        raise UsageError(_NO_INPUT)
    if database is not None:
        opened = open_database(database, check=False)
        counted = opened.parameters
        graph = plan_graph(len(opened), counted.kmer, counted.words, options)
        return in_turn("compacting", compacting=graph)
    return in_turn("compacting", **plan_steps(paths, parameters, options))


def plan_steps(
    paths: Paths, parameters: UnitigParameters, options: RunOptions
) -> dict[str, HostPlan]:
    """Plan the memory of counting the k-mers of files, and of the largest graph they may have.

    Args:
        paths: FASTQ or FASTA files.
        parameters: which k-mers make the graph.
        options: threads and memory budget.
    """
    counted = parameters.counted()
    letters = most_letters(listed(paths))
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
