"""``ngsgpu extend``: connect the reads of pairs to long reads."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from ngsgpu.cli.options import (
    BackendChoice,
    BackendOption,
    DryRun,
    FirstMates,
    GpuMemory,
    Gpus,
    InterleavedInput,
    Memory,
    PhredChoice,
    PhredOffsetOption,
    QualityBits,
    Quiet,
    SecondMates,
    Seed,
    StatsFile,
    Threads,
    obey_quiet,
)
from ngsgpu.cli.run import open_run, phred, show_plan, thread_count
from ngsgpu.errors import UsageError


class LibraryChoice(StrEnum):
    """Values of ``--library``."""

    pe = "pe"
    mp = "mp"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="extend")(extend)


def extend(
    in1: FirstMates = None,
    in2: SecondMates = None,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="FILE", help="Extended reads.", show_default=False),
    ] = None,
    remaining1: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="First mates of unconnected pairs; both mates without --remaining2.",
        ),
    ] = None,
    remaining2: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Second mates of unconnected pairs."),
    ] = None,
    interleaved: InterleavedInput = False,
    library: Annotated[
        LibraryChoice,
        typer.Option(
            metavar="pe|mp",
            help="Mate orientation: inward (pe, paired ends) or outward (mp, mate pairs).",
        ),
    ] = LibraryChoice.pe,
    insert_size: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            help="Mean insert size (fragment length, reads included).",
            show_default="estimated",
        ),
    ] = None,
    insert_sd: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Standard deviation of the insert size.", show_default="estimated"
        ),
    ] = None,
    min_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Minimum fragment length to connect.",
            show_default="mean - 4 SD",
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Maximum fragment length to connect.",
            show_default="mean + 4 SD",
        ),
    ] = None,
    strict: Annotated[
        int,
        typer.Option(
            metavar="0|1|2",
            help="2: both directions must reach the mate with the same sequence; 1: one may stop "
            "early if it agrees as far as it got; 0: one direction suffices.",
        ),
    ] = 0,
    gap_mismatches: Annotated[
        int,
        typer.Option(metavar="N", help="Mismatches allowed between the two gap sequences."),
    ] = 0,
    confirm_ratio: Annotated[
        float,
        typer.Option(
            metavar="X", help="Fraction of the gap the other direction must cover to confirm it."
        ),
    ] = 0.5,
    confirm_matches: Annotated[
        float, typer.Option(metavar="X", help="Identity required over that fraction.")
    ] = 0.95,
    merge_overlap: Annotated[
        int,
        typer.Option(
            metavar="N", help="Overlap that joins two unfinished extensions (--strict 0)."
        ),
    ] = 40,
    outward: Annotated[bool, typer.Option("--outward", help="Also extend pairs outward.")] = False,
    kmer: Annotated[
        int, typer.Option(metavar="K", help="k-mer length of the tables, 8 to 32.")
    ] = 20,
    hashes: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Hash functions, one table each (17 bytes per read and table); 2 suffice for "
            "corrected reads.",
        ),
    ] = 4,
    step: Annotated[
        int, typer.Option(metavar="N", help="Maximum bases appended per step, 1 to 64.")
    ] = 20,
    min_reads: Annotated[
        int, typer.Option(metavar="N", help="Minimum reads covering an appended base.")
    ] = 3,
    min_overlap: Annotated[
        int, typer.Option(metavar="N", help="Minimum overlap with another read, 50 or more.")
    ] = 50,
    min_overlap_ratio: Annotated[
        float, typer.Option(metavar="X", help="Minimum overlap as a fraction of the anchor read.")
    ] = 0.5,
    max_mismatch_ratio: Annotated[
        float, typer.Option(metavar="X", help="Maximum mismatches as a fraction of the overlap.")
    ] = 0.05,
    quality_bits: QualityBits = 8,
    gap_quality: Annotated[
        int | None,
        typer.Option(
            metavar="Q",
            help="Quality of all bases outside the two reads.",
            show_default="from the supporting reads",
        ),
    ] = None,
    fasta: Annotated[bool, typer.Option("--fasta", help="Write extended reads as FASTA.")] = False,
    include_remaining: Annotated[
        bool,
        typer.Option("--include-remaining", help="Also write unconnected pairs to -o."),
    ] = False,
    unsorted: Annotated[
        bool, typer.Option("--unsorted", help="Write reads as they finish, not in input order.")
    ] = False,
    phred_offset: PhredOffsetOption = PhredChoice.auto,
    threads: Threads = 0,
    backend: BackendOption = BackendChoice.auto,
    gpus: Gpus = None,
    memory: Memory = None,
    gpu_memory: GpuMemory = None,
    stats: StatsFile = None,
    seed: Seed = 0,
    dry_run: DryRun = False,
    quiet: Quiet = False,
) -> None:
    """Extend read pairs to long reads (CAREx).

    Fill the gap between the two reads of a pair from the other reads of the run; no reference is
    needed. The bases of the pair itself do not change. Correct the reads first (ngsgpu correct),
    and give all lanes of a library in one run.

    Pairs:   ngsgpu extend -i R1.fq -I R2.fq -o extended.fq --remaining1 r1.fq --remaining2 r2.fq
    """
    from ngsgpu.extend import (
        EndParameters,
        ExtensionOutputs,
        ExtensionParameters,
        extend_files,
        plan_files,
    )
    from ngsgpu.extend.gpu_plan import plan_for_this_gpu

    obey_quiet(quiet)
    thread_count(threads)
    parameters = ExtensionParameters(
        ends=EndParameters(kmer=kmer, hashes=hashes, seed=seed),
        quality_bits=quality_bits,
        strict=strict,
        insert_mean=insert_size,
        insert_sd=insert_sd,
        min_length=min_length,
        max_length=max_length,
        step=step,
        min_reads=min_reads,
        min_overlap=min_overlap,
        min_overlap_ratio=min_overlap_ratio,
        max_mismatch_ratio=max_mismatch_ratio,
        gap_mismatches=gap_mismatches,
        confirm_ratio=confirm_ratio,
        confirm_matches=confirm_matches,
        merge_overlap=merge_overlap,
        outward=outward,
        mate_pairs=library is LibraryChoice.mp,
    )
    if out is None and not dry_run:
        raise UsageError("no output given; name one with -o")
    with open_run(
        "ngsgpu.io.gpu.parse",
        "ngsgpu.minhash.ends_gpu",
        "ngsgpu.extend.gpu",
        threads=threads,
        backend=backend,
        gpus=gpus,
        memory=memory,
        gpu_memory=gpu_memory,
        quiet=quiet,
        lease=not dry_run,
    ) as (chosen, options):
        settings: dict[str, Any] = {
            "interleaved": interleaved,
            "parameters": parameters,
            "phred_offset": phred(phred_offset),
            "options": options,
        }
        if dry_run or out is None:
            plan = plan_files(in1 or [], in2 or [], **settings)
            show_plan(chosen, plan, parameters, options, plan_for_this_gpu)
            return
        outputs = ExtensionOutputs(
            out,
            remaining1,
            remaining2,
            stats,
            fasta=fasta,
            include_remaining=include_remaining,
            sort=not unsorted,
            gap_quality=gap_quality,
        )
        statistics = extend_files(in1 or [], in2 or [], outputs=outputs, **settings)
        if not quiet:
            typer.echo("\n".join(statistics.summary()), err=True)
