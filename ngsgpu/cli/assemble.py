"""``ngsgpu assemble``: contigs from reads."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from ngsgpu.cli.options import (
    BackendChoice,
    BackendOption,
    CompressLevel,
    Compute,
    FirstMates,
    InterleavedInput,
    Memory,
    OneGpu,
    OneGpuMemory,
    Paths,
    PhredChoice,
    PhredOffsetOption,
    Quiet,
    SecondMates,
    StatsFile,
    Threads,
    option,
)
from ngsgpu.cli.run import number_or, open_run, phred, say
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.assemble.euler import EulerParameters


class MethodChoice(StrEnum):
    """Values of ``--method``."""

    growth = "growth"
    euler = "euler"


class BubbleChoice(StrEnum):
    """Values of ``--bubbles``."""

    errors = "errors"
    merge = "merge"
    keep = "keep"


def assemble(
    in1: FirstMates = None,
    in2: SecondMates = None,
    single: Paths | None = option(
        None,
        "FILE",
        "More single reads, of any length, such as merged or extended pairs.",
        "-s",
        "--single",
    ),
    interleaved: InterleavedInput = False,
    out: str | None = option(None, "FILE", "Contigs, FASTA; - is standard output.", "-o", "--out"),
    method: MethodChoice = option(
        MethodChoice.growth,
        "growth|euler",
        "Cleaned graphs of growing k; or an Euler tour of error-free reads, as GPU-Euler's.",
    ),
    gfa: str | None = option(None, "FILE", "Graph with the contigs' paths, GFA 1."),
    scaffolds: str | None = option(None, "FILE", "Contigs joined by pairs, with N between, FASTA."),
    coverage: str | None = option(None, "FILE", "Reads over each base of the contigs, bedGraph."),
    kmers: str = option(
        "auto",
        "K,K,...|auto",
        "k-mer lengths, odd, ascending; auto: by the reads.",
        "-k",
        "--kmers",
    ),
    min_abundance: str = option(
        "auto",
        "N|auto",
        "Leave out k-mers of the first length that occur fewer times; auto: 2, for "
        "--method euler 1.",
    ),
    min_quality: int = option(0, "Q", "Do not count k-mers that have a base of lower quality."),
    bubbles: BubbleChoice = option(
        BubbleChoice.errors,
        "errors|merge|keep",
        "Alternatives of like length: drop those as rare as errors, all but the most frequent, or "
        "none.",
    ),
    min_contig: int = option(200, "N", "Leave out shorter contigs."),
    stats: StatsFile = None,
    compress_level: CompressLevel = 1,
    phred_offset: PhredOffsetOption = PhredChoice.auto,
    threads: Threads = 0,
    backend: BackendOption = BackendChoice.auto,
    gpus: OneGpu = None,
    memory: Memory = None,
    gpu_memory: OneGpuMemory = None,
    quiet: Quiet = False,
) -> None:
    """Assemble the reads of an isolate into contigs.

    Reads are counted and compacted at the first k; the graph is cleaned; reads threaded through it
    make the graph of the next k, and so on. Output names ending in .gz or .zst are
    compressed.

    ngsgpu assemble -i R1.fq.gz -I R2.fq.gz -o contigs.fa --gfa graph.gfa
    """
    if method is MethodChoice.euler:
        for name, is_given in (
            ("--gfa", gfa is not None),
            ("--scaffolds", scaffolds is not None),
            ("--coverage", coverage is not None),
            ("--min-quality", min_quality > 0),
            ("--bubbles", bubbles is not BubbleChoice.errors),
        ):
            if is_given:
                raise UsageError(f"--method euler has no {name}; leave it out")
        from ngsgpu.assemble.euler import assemble_euler

        with open_run(
            Compute(threads, backend, gpus, gpu_memory, quiet, memory, compress_level),
            "ngsgpu.io.gpu.parse",
            "ngsgpu.kmers.gpu",
            "ngsgpu.assemble.euler.gpu",
            max_gpus=1,
        ) as (_, run):
            tour = assemble_euler(
                [*(in1 or []), *(in2 or []), *(single or [])],
                out,
                _euler(_kmers(kmers), min_abundance, min_contig),
                stats=stats,
                phred_offset=phred(phred_offset),
                options=run,
            )
            say(tour, quiet)
        return
    from ngsgpu.assemble.contigs import AssemblyParameters, assemble_files

    least = number_or("auto", min_abundance, int, "--min-abundance")
    parameters = AssemblyParameters(
        kmers=_kmers(kmers),
        min_abundance=2 if least is None else least,
        min_quality=min_quality,
        bubbles=bubbles.value,
        min_contig=min_contig,
    )
    with open_run(
        Compute(threads, backend, gpus, gpu_memory, quiet, memory, compress_level),
        "ngsgpu.io.gpu.parse",
        "ngsgpu.kmers.gpu",
        "ngsgpu.assemble.gpu",
        max_gpus=1,
    ) as (_, run):
        statistics = assemble_files(
            in1 or [],
            out,
            in2 or [],
            single=single or [],
            interleaved=interleaved,
            graph=gfa,
            scaffolds=scaffolds,
            coverage=coverage,
            stats=stats,
            parameters=parameters,
            phred_offset=phred(phred_offset),
            options=run,
        )
        say(statistics, quiet)


def _euler(kmers: tuple[int, ...] | None, min_abundance: str, min_contig: int) -> EulerParameters:
    """Parameters of the Euler tour; ``auto`` is 31, and every k-mer."""
    from ngsgpu.assemble.euler import EulerParameters

    if kmers is not None and len(kmers) != 1:
        raise UsageError("--method euler takes one k-mer length (-k 31)")
    least = number_or("auto", min_abundance, int, "--min-abundance")
    return EulerParameters(
        length=31 if kmers is None else kmers[0],
        min_abundance=1 if least is None else least,
        min_contig=min_contig,
    )


def _kmers(text: str) -> tuple[int, ...] | None:
    """Numbers with commas between, or None for ``auto``."""
    if text == "auto":
        return None
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise UsageError(
            f"--kmers must be auto or numbers such as 31,51,71, not {text!r}"
        ) from None
