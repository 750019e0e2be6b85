"""``ngsgpu assemble``: contigs from reads."""

from __future__ import annotations

from enum import StrEnum

from ngsgpu.cli.options import (
    FirstMates,
    InterleavedInput,
    Memory,
    Paths,
    PhredChoice,
    PhredOffsetOption,
    Quiet,
    SecondMates,
    StatsFile,
    Threads,
    option,
)
from ngsgpu.cli.run import cpu_options, number_or, phred, say
from ngsgpu.errors import UsageError


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
    gfa: str | None = option(None, "FILE", "Graph with the contigs' paths, GFA 1."),
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
        "Leave out k-mers of the first length that occur fewer times; auto: than at half of the "
        "valley of the histogram.",
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
    phred_offset: PhredOffsetOption = PhredChoice.auto,
    threads: Threads = 0,
    memory: Memory = None,
    quiet: Quiet = False,
) -> None:
    """Assemble the reads of an isolate into contigs.

    Reads are counted and compacted at the first k; the graph is cleaned; reads threaded through it
    make the graph of the next k, and so on. Output names ending in .gz are compressed.

    ngsgpu assemble -i R1.fq.gz -I R2.fq.gz -o contigs.fa --gfa graph.gfa
    """
    from ngsgpu.assemble.contigs import AssemblyParameters, assemble_files

    parameters = AssemblyParameters(
        kmers=_kmers(kmers),
        min_abundance=number_or("auto", min_abundance, int, "--min-abundance"),
        min_quality=min_quality,
        bubbles=bubbles.value,
        min_contig=min_contig,
    )
    statistics = assemble_files(
        in1 or [],
        out,
        in2 or [],
        single=single or [],
        interleaved=interleaved,
        graph=gfa,
        stats=stats,
        parameters=parameters,
        phred_offset=phred(phred_offset),
        options=cpu_options(threads, memory, quiet),
    )
    say(statistics, quiet)


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
