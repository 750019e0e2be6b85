"""``ngsgpu assemble``: contigs from reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ngsgpu.cli.options import (
    FirstMates,
    InterleavedInput,
    Memory,
    PhredOffsetOption,
    RecordRun,
    SecondMates,
)
from ngsgpu.cli.run import open_run, phred, say
from ngsgpu.declared.options import option
from ngsgpu.declared.roles import Reads, Text, Written
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.assemble.euler import EulerParameters


@dataclass(frozen=True, kw_only=True)
class AssemblyRun(RecordRun):
    """A run that assembles."""

    phred_offset: PhredOffsetOption = "auto"
    memory: Memory = None


def assemble(
    in1: FirstMates = None,
    in2: SecondMates = None,
    single: list[Reads] | None = option(
        None,
        "FILE",
        "More single reads, of any length, such as merged or extended pairs.",
        "-s",
        "--single",
    ),
    interleaved: InterleavedInput = False,
    out: Written | None = option(
        None, "FILE", "Contigs, FASTA; - is standard output.", "-o", "--out"
    ),
    method: Literal["growth", "euler"] = option(
        "growth",
        "growth|euler",
        "Cleaned graphs of growing k; or an Euler tour of error-free reads, as GPU-Euler's.",
    ),
    gfa: Written | None = option(None, "FILE", "Graph with the contigs' paths, GFA 1."),
    scaffolds: Written | None = option(
        None, "FILE", "Contigs joined by pairs, with N between, FASTA."
    ),
    coverage: Written | None = option(
        None, "FILE", "Reads over each base of the contigs, bedGraph."
    ),
    kmers: Text = option(
        "auto",
        "K,K,...|auto",
        "k-mer lengths, odd, ascending; auto: by the reads.",
        "-k",
        "--kmers",
    ),
    min_abundance: int | None = option(
        None,
        "N|auto",
        "Leave out k-mers of the first length that occur fewer times; auto: 2, for "
        "--method euler 1.",
        word="auto",
    ),
    min_quality: int = option(0, "Q", "Do not count k-mers that have a base of lower quality."),
    bubbles: Literal["errors", "merge", "keep"] = option(
        "errors",
        "errors|merge|keep",
        "Alternatives of like length: drop those as rare as errors, all but the most frequent, or "
        "none.",
    ),
    min_contig: int = option(200, "N", "Leave out shorter contigs."),
    *,
    run: AssemblyRun,
) -> None:
    """Assemble the reads of an isolate into contigs.

    Reads are counted and compacted at the first k; the graph is cleaned; reads threaded through it
    make the graph of the next k, and so on. Output names ending in .gz or .zst are
    compressed.

    ngsgpu assemble -i R1.fq.gz -I R2.fq.gz -o contigs.fa --gfa graph.gfa
    """
    if method == "euler":
        for name, is_given in (
            ("--gfa", gfa is not None),
            ("--scaffolds", scaffolds is not None),
            ("--coverage", coverage is not None),
            ("--min-quality", min_quality > 0),
            ("--bubbles", bubbles != "errors"),
        ):
            if is_given:
                raise UsageError(f"--method euler has no {name}; leave it out")
        from ngsgpu.assemble.euler import assemble_euler

        with open_run(
            run,
            "ngsgpu.io.gpu.parse",
            "ngsgpu.kmers.gpu",
            "ngsgpu.assemble.euler.gpu",
            max_gpus=1,
        ) as (_, options):
            tour = assemble_euler(
                [*(in1 or []), *(in2 or []), *(single or [])],
                out,
                _euler(_kmers(kmers), min_abundance, min_contig),
                stats=run.stats,
                phred_offset=phred(run.phred_offset),
                options=options,
            )
            say(tour, run.quiet)
        return
    from ngsgpu.assemble.contigs import AssemblyParameters, assemble_files

    parameters = AssemblyParameters(
        kmers=_kmers(kmers),
        min_abundance=2 if min_abundance is None else min_abundance,
        min_quality=min_quality,
        bubbles=bubbles,
        min_contig=min_contig,
    )
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.kmers.gpu",
        "ngsgpu.assemble.gpu",
        max_gpus=1,
    ) as (_, options):
        statistics = assemble_files(
            in1 or [],
            out,
            in2 or [],
            single=single or [],
            interleaved=interleaved,
            graph=gfa,
            scaffolds=scaffolds,
            coverage=coverage,
            stats=run.stats,
            parameters=parameters,
            phred_offset=phred(run.phred_offset),
            options=options,
        )
        say(statistics, run.quiet)


def _euler(
    kmers: tuple[int, ...] | None, min_abundance: int | None, min_contig: int
) -> EulerParameters:
    """Parameters of the Euler tour; ``auto`` is 31, and every k-mer."""
    from ngsgpu.assemble.euler import EulerParameters

    if kmers is not None and len(kmers) != 1:
        raise UsageError("--method euler takes one k-mer length (-k 31)")
    return EulerParameters(
        length=31 if kmers is None else kmers[0],
        min_abundance=1 if min_abundance is None else min_abundance,
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
