"""From files of reads to files of contigs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.contigs.coverage import bedgraph, coverage_of
from ngsgpu.assemble.contigs.files import Contig, contigs_of, fasta, gfa
from ngsgpu.assemble.contigs.growth import LOW_DEPTH, first_kmer, grow, low_start
from ngsgpu.assemble.contigs.joins.bridges import find_joins
from ngsgpu.assemble.contigs.joins.gaps import Insert, Libraries, libraries_of
from ngsgpu.assemble.contigs.joins.join import Join, bridged
from ngsgpu.assemble.contigs.joins.patches import patched
from ngsgpu.assemble.contigs.joins.unique import unique_pieces
from ngsgpu.assemble.contigs.params import MIN_ABUNDANCE, AssemblyParameters
from ngsgpu.assemble.contigs.pieces import DEPTH_UNIT, Paths, Pieces, pieces_of, without_ends
from ngsgpu.assemble.contigs.places import place_reads
from ngsgpu.assemble.contigs.reads import Reads, load_reads
from ngsgpu.assemble.contigs.scaffolds import scaffold_fasta, scaffolds_of
from ngsgpu.assemble.contigs.votes import corrected, corrected_paths, lone_ends, votes_on
from ngsgpu.assemble.contigs.walks import unsure_links
from ngsgpu.assemble.pipeline import compacted, plan_steps, solid_of
from ngsgpu.assemble.stats import sizes_of
from ngsgpu.device.plan import Allocation, HostPlan
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import (
    ReadFiles,
    pair_inputs,
    single_inputs,
    warn_of_long_reads,
    warn_of_mates,
)
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths as FilePaths
from ngsgpu.io.paths import listed
from ngsgpu.io.reread import unchanged
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.reader import read_batches
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers import Source
from ngsgpu.kmers.count import most_letters
from ngsgpu.run.driver import FilesDriver
from ngsgpu.run.options import INTERPRETER_BYTES, RunOptions, leave_gpus
from ngsgpu.run.plan import in_turn
from ngsgpu.run.progress import Run
from ngsgpu.run.statistics import RunStatistics
from ngsgpu.run.trimming import warn_of_adapters

_LOG = logging.getLogger("ngsgpu")
_SAMPLED: Final = 10_000
"""Reads whose lengths decide the first k."""

_READ_BYTES: Final = 12
_SHORT_RECORD: Final = 100
"""Bytes of a short read in a file, with its name and qualities."""

_LONGEST_FIRST: Final = 31
"""The first k, at most, if it is not given."""


@dataclass(slots=True, kw_only=True)
class AssemblyStatistics(RunStatistics):
    """What was assembled, and how; see also ``RunStatistics``.

    Attributes:
        reads: ``reads``, their ``bases``, and ``pairs``.
        rounds: the cleaned graph of each k, see ``Round``.
        insert_size: ``median``, ``deviation``, ``longest``, and the ``pairs`` that tell; null
            without pairs; of several files, those of which most pairs tell.
        coverage: ``is_low``, 1 if it is; and the ``min_abundance`` of the first graph's k-mers.
        joins: pieces joined over repeats, ``by_a_path`` of the graph, ``by_a_patch`` where there is
            none, or left ``open``.
        contigs: ``number``, ``bases``, ``longest``, ``n50``, ``circular``.
        adapters: what a sample of the reads says of adapters, see ``ngsgpu.run.adapters``.
    """

    SCHEMA = "ngsgpu.assemble"
    reads: dict[str, int] = field(default_factory=dict)
    rounds: list[dict[str, Any]] = field(default_factory=list)
    insert_size: dict[str, int] | None = None
    coverage: dict[str, int] = field(default_factory=dict)
    joins: dict[str, int] = field(default_factory=dict)
    contigs: dict[str, int] = field(default_factory=dict)
    adapters: dict[str, Any] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """Lines for people."""
        own = self.contigs
        kmers = ", ".join(str(each["kmer"]) for each in self.rounds)
        return [
            f"{self.reads['reads']:,} reads, k = {kmers}",
            f"{own['number']:,} contigs of {own['bases']:,} bases; longest {own['longest']:,}, "
            f"N50 {own['n50']:,}, {own['circular']} circular",
            self.resources(),
        ]


def assemble_files(
    in1: FilePaths,
    out: str | Path | None,
    in2: FilePaths = (),
    *,
    single: FilePaths = (),
    interleaved: bool = False,
    gfa: str | Path | None = None,
    scaffolds: str | Path | None = None,
    coverage: str | Path | None = None,
    stats: str | Path | None = None,
    parameters: AssemblyParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> AssemblyStatistics:
    """Assemble reads.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates.
        out: FASTA file of contigs.
        in2: files of second mates, as many as ``in1``, or none.
        single: files of more single reads.
        interleaved: whether ``in1`` holds both mates.
        gfa: GFA file.
        scaffolds: FASTA file of scaffolds.
        coverage: bedGraph file of reads over each base of the contigs.
        stats: JSON file for the statistics.
        parameters: of the assembly.
        phred_offset: of the qualities.
        options: threads and memory; do not affect the contigs.

    Raises:
        InputError: a file cannot be read, or changes meanwhile.
        OutputError: an output cannot be written; none is then.
        HostMemoryError: the memory is too small.
        UsageError: the files are inconsistent.
    """
    in1, in2, single = listed(in1), listed(in2), listed(single)
    lanes = pair_inputs(in1, in2, interleaved=interleaved) if in1 or not single else []
    lanes += single_inputs(single, "single")
    if out is None and gfa is None and scaffolds is None:
        raise UsageError("no output given; name a file with `out`, `gfa` or `scaffolds`")
    wanted = {
        "fasta": out,
        "gfa": gfa,
        "scaffolds": scaffolds,
        "coverage": coverage,
    }
    for lane in lanes:
        if not lane.is_regular:
            for path in lane.inputs:
                if (not Path(path).is_file() and Path(path).exists()) or path == "-":
                    raise UsageError(f"{path}: reads are read twice; name files, not streams")
    warn_of_mates(lanes)
    places = {name: at for at, name in enumerate(n for n, p in wanted.items() if p is not None)}

    inputs = [path for lane in lanes for path in lane.inputs]
    beside = next(path for path in wanted.values() if path is not None)

    def assembled(run: Run[AssemblyParameters], files: OutputSet) -> AssemblyStatistics:
        return _run(run, lanes, beside, files, places)

    return _DRIVER.run_files(
        inputs, [*wanted.values()], assembled, parameters=parameters, options=options, stats=stats,
        phred_offset=phred_offset, reading=unchanged(inputs), packs=True,
    )  # fmt: skip


def _run(
    run: Run[AssemblyParameters],
    lanes: list[ReadFiles],
    beside: str | Path,
    files: OutputSet,
    places: dict[str, int],
) -> AssemblyStatistics:
    parameters, options, progress = run.parameters, run.options, run.progress
    with run.timed("graph"):
        found = _first_graph(run, lanes, beside)
    pieces, source, is_low = found.pieces, found.source, found.is_low
    plan_reads(source, options).check()
    sample = ReadSample()
    with run.timed("assemble"):
        with progress.stage("reading", total=source.sequences, unit="reads") as stage:
            reads = load_reads(
                lanes,
                phred_offset=run.phred_offset,
                options=options,
                sample=sample,
                advance=stage.advance,
            )
        adapters = warn_of_adapters(sample, lanes, "contigs may end in adapters, or not be joined")
        warn_of_long_reads(
            source.sequences, source.bases, lanes, "assembly",
            "assemble long reads by a program that is made for them, such as Flye or hifiasm",
        )  # fmt: skip
        with progress.stage("assembling", unit="pieces") as stage:
            first = pieces.k
            pieces, rounds = grow(pieces, reads, parameters, options.threads, is_low=is_low)
            pieces, paths, insert, joins, cuts = _bridged(
                pieces, reads, lanes, parameters, options.threads, is_low=is_low
            )
            stage.advance(len(pieces))
    scale = _coverage_scale(reads, first)
    contigs = contigs_of(pieces, paths, parameters.min_contig, scale, cuts)
    names = parameters.names
    texts: dict[str, Callable[[], Iterator[bytes]]] = {
        "fasta": lambda: fasta(contigs, names),
        "gfa": lambda: gfa(pieces, contigs, scale, names),
        "scaffolds": lambda: scaffold_fasta(scaffolds_of(contigs, joins, names)),
        "coverage": lambda: bedgraph(
            [own.name(names) for own in contigs],
            coverage_of(contigs, reads, pieces.k, options.threads),
        ),
    }
    for name, make in texts.items():
        if name in places:
            for text in make():
                files.write(places[name], text)
    return AssemblyStatistics.after(
        run,
        coverage={"is_low": int(is_low), "min_abundance": found.least},
        reads={"reads": len(reads), "bases": source.bases, "pairs": reads.pairs},
        rounds=[asdict(each) for each in rounds],
        insert_size=None if insert is None else asdict(insert),
        joins={
            "by_a_path": sum(join.closed and not join.patched for join in joins),
            "by_a_patch": sum(join.patched for join in joins),
            "open": sum(not join.closed for join in joins),
        },
        contigs=_metrics(contigs),
        adapters=adapters,
    )


class _FirstGraph(NamedTuple):
    """The graph of the first k.

    Attributes:
        pieces: the graph.
        least: lowest count of its k-mers.
        is_low: whether coverage is low.
        source: what was counted.
    """

    pieces: Pieces
    least: int
    is_low: bool
    source: Source


def _first_graph(
    run: Run[AssemblyParameters], lanes: list[ReadFiles], beside: str | Path
) -> _FirstGraph:
    """The graph of the first k; that of a shorter one, if the first says that coverage is low."""
    paths = [path for lane in lanes for path in lane.inputs]
    parameters, options = run.parameters, run.options
    kmer = parameters.kmers[0] if parameters.kmers else _first_kmer(paths, run.phred_offset)
    least = parameters.min_abundance or MIN_ABUNDANCE

    def graph(kmer: int, least: int) -> tuple[Pieces, Source]:
        solid = solid_of(run, paths, beside, parameters.unitigs(kmer, least))
        made, unitigs = compacted(solid, options, walked=False)
        return pieces_of(made, unitigs, options.threads), solid.source

    pieces, source = graph(kmer, least)
    depth = pieces.typical_depth()
    is_low = 0 < depth < LOW_DEPTH * DEPTH_UNIT
    own = low_start(kmer, least, parameters) if is_low else (kmer, least)
    if own != (kmer, least):
        _LOG.info(
            "k-mers occur about %d times: coverage is low; beginning again with k = %d, and "
            "k-mers that occur at least %d times",
            depth // DEPTH_UNIT, *own,
        )  # fmt: skip
        pieces, source = graph(*own)
    if run.backend == "cuda":
        leave_gpus(options.gpus)  # nothing later needs them
    return _FirstGraph(pieces, own[1], is_low, source)


def _first_kmer(paths: list[str], phred_offset: PhredOffset) -> int:
    """The first k, by the reads at the beginning of the first file."""
    for batch in read_batches(paths[0], phred_offset=phred_offset):
        lengths = batch.seq_len[:_SAMPLED]
        return first_kmer(int(lengths.sum()), len(lengths))
    return first_kmer(0, 0)


def _plan(
    paths: Sequence[str | Path], parameters: AssemblyParameters, options: RunOptions
) -> HostPlan:
    kmer = parameters.kmers[0] if parameters.kmers else _LONGEST_FIRST
    steps = plan_steps(paths, parameters.unitigs(kmer, parameters.min_abundance), options)
    letters = most_letters(paths) or 0
    reads = plan_reads(Source(letters // _SHORT_RECORD, letters, 0, ()), options)
    graph = steps["compacting"]
    steps["compacting"] = replace(graph, allocations=(*reads.allocations, *graph.allocations))
    return in_turn("assembling", **steps)


def plan_reads(source: Source, options: RunOptions) -> HostPlan:
    """Plan the memory of the reads."""
    size = 2 * (source.bases // 4 + _READ_BYTES * source.sequences)
    return HostPlan(
        doing=f"assembling {source.sequences:,} reads",
        allocations=(Allocation("program", INTERPRETER_BYTES), Allocation("reads", size)),
        budget=options.budget,
    )


def _bridged(
    pieces: Pieces,
    reads: Reads,
    lanes: list[ReadFiles],
    parameters: AssemblyParameters,
    threads: int,
    *,
    is_low: bool,
) -> tuple[Pieces, Paths, Insert | None, list[Join], NDArray[np.int64]]:
    """The graph with patches, the paths of contigs with repeats bridged by pairs, and the joins.

    And what contigs leave out where they end; see ``contigs_of``.
    """
    insert, joins = None, []
    places = place_reads(pieces, reads, len(reads), threads)
    votes = votes_on(pieces, reads, places, threads)
    pieces = corrected(pieces, votes)
    unsure = unsure_links(pieces, reads, threads) if is_low else None
    ends = lone_ends(pieces, votes, unsure)
    if reads.pairs and len(pieces):
        libraries = libraries_of(pieces, places.of(2 * reads.pairs), reads.libraries)
        _warn_of_outward(libraries, lanes)
        # Of pairs of which the size is not known, no mate says where the other is.
        known = np.repeat(libraries.of_pair >= 0, 2)
        places = replace(
            places.of(len(known)), direction=np.where(known, places.direction[: len(known)], -1)
        )
        insert = libraries.main
    if insert is not None:
        least = parameters.min_pairs
        few = parameters.min_low_pairs if is_low else least
        read = int(reads.lengths.sum(dtype=np.int64)) // len(reads)
        unique = unique_pieces(pieces, read)
        joins = find_joins(pieces, places, libraries, unique, least, few, lone=is_low)
        pieces, joins = patched(pieces, joins, reads, places, libraries.longest, doubted=is_low)
        joins = [join for join in joins if join.closed or join.pairs >= few]
    # Patches have joined some ends, and other pieces are behind these.
    cuts = np.zeros((len(pieces), 2), dtype=np.int64)
    cuts[: len(ends)] = ends
    for join in joins:
        if join.patched:
            cuts[join.source >> 1, 1 - (join.source & 1)] = 0
            cuts[join.target >> 1, join.target & 1] = 0
    joins = [join if join.closed else _over(join, cuts) for join in joins]
    dead = np.diff(pieces.link_starts).reshape(-1, 2)[:, ::-1] == 0
    pieces = without_ends(pieces, np.where(dead, cuts, 0))
    paths = bridged(pieces, joins)
    if is_low:
        pieces = corrected_paths(pieces, paths, reads, threads)
    return pieces, paths, insert, joins, np.where(dead, 0, cuts)


def _over(join: Join, cuts: NDArray[np.int64]) -> Join:
    """An open join, with the bases that are cut from the ends between them."""
    source, target = (
        cuts[join.source >> 1, 1 - (join.source & 1)],
        cuts[join.target >> 1, join.target & 1],
    )
    return replace(join, gap=join.gap + int(source) + int(target))


def _warn_of_outward(libraries: Libraries, lanes: list[ReadFiles]) -> None:
    """Say that mate pairs do not join contigs."""
    paired = [lane for lane in lanes if lane.paired]
    for number in libraries.outward:
        _LOG.warning(
            "%s: the mates point away from each other, as those of mate pairs do, and are used as "
            "single reads; the reverse complements of both files would join contigs",
            " and ".join(paired[number].inputs),
        )


def _coverage_scale(reads: Reads, k: int) -> tuple[int, int]:
    """Reads per base for each k-mer per place, as a fraction."""
    return int(reads.lengths.sum(dtype=np.int64)), max(1, reads.windows(k))


def _metrics(contigs: list[Contig]) -> dict[str, int]:
    sizes = sizes_of([len(contig.bases) for contig in contigs])
    return sizes | {"circular": sum(contig.circular for contig in contigs)}


_DRIVER: Final = FilesDriver(AssemblyParameters, plan=_plan)
plan_files = _DRIVER.plan_files
