"""``ngsgpu merge``: merge overlapping read pairs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from ngsgpu.cli.options import (
    BackendChoice,
    BackendOption,
    FirstMates,
    PhredChoice,
    PhredOffsetOption,
    Quiet,
    SecondMates,
    StatsFile,
    Threads,
    obey_quiet,
)
from ngsgpu.cli.run import number_or, open_run, phred, thread_count
from ngsgpu.errors import UsageError


class QualityChoice(StrEnum):
    """Values of ``--quality``."""

    edgar = "edgar"
    flash = "flash"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="merge")(merge)


def merge(
    in1: FirstMates = None,
    in2: SecondMates = None,
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="FILE", help="Merged reads.")
    ] = None,
    unmerged1: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="First mates of unmerged pairs; without it, unmerged pairs are dropped.",
        ),
    ] = None,
    unmerged2: Annotated[
        str | None, typer.Option(metavar="FILE", help="Second mates of unmerged pairs.")
    ] = None,
    flash_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Write FLASH's five output files, under its names, in place of -o and --unmerged.",
        ),
    ] = None,
    compress: Annotated[
        bool, typer.Option("-z", "--compress", help="With --flash-prefix: compress the reads.")
    ] = False,
    to_stdout: Annotated[bool, typer.Option("-c", "--to-stdout", help="Same as -o -.")] = False,
    interleaved_in: Annotated[
        bool, typer.Option("--interleaved-in", help="-i holds interleaved pairs.")
    ] = False,
    interleaved_out: Annotated[
        bool,
        typer.Option("--interleaved-out", help="Write unmerged pairs interleaved to --unmerged1."),
    ] = False,
    min_overlap: Annotated[
        int, typer.Option("-m", "--min-overlap", metavar="N", help="Minimum overlap, in bases.")
    ] = 10,
    max_overlap: Annotated[
        str,
        typer.Option(
            "-M",
            "--max-overlap",
            metavar="N|auto",
            help="Score longer overlaps as if they had this length; auto: see --fragment-length.",
        ),
    ] = "65",
    max_mismatch_density: Annotated[
        float,
        typer.Option(
            "-x",
            "--max-mismatch-density",
            metavar="X",
            help="Maximum mismatches as a fraction of the scored overlap length.",
        ),
    ] = 0.25,
    read_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Mean read length for --max-overlap auto.",
            show_default="mean of the first 10,000 pairs",
        ),
    ] = None,
    fragment_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Mean fragment length for --max-overlap auto; without it, auto is the longest "
            "read of the first 10,000 pairs.",
        ),
    ] = None,
    fragment_deviation: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Standard deviation of the fragment length for --max-overlap auto.",
            show_default="a tenth of the fragment length",
        ),
    ] = None,
    allow_outies: Annotated[
        bool,
        typer.Option("--allow-outies", help="Also merge outward-facing pairs."),
    ] = False,
    trim_adapters: Annotated[
        bool,
        typer.Option(
            "--trim-adapters",
            help="Trim reads that run past the end of their fragment into the adapter.",
        ),
    ] = False,
    correct_only: Annotated[
        bool,
        typer.Option(
            "--correct-only",
            help="Do not merge: write all pairs to --unmerged1 and --unmerged2, corrected where "
            "the reads overlap.",
        ),
    ] = False,
    quality: Annotated[
        QualityChoice,
        typer.Option(
            metavar="edgar|flash",
            help="Qualities of merged bases: posterior error probabilities (edgar), or FLASH's "
            "rule with output byte-identical to FLASH's.",
        ),
    ] = QualityChoice.edgar,
    max_quality: Annotated[
        int, typer.Option(metavar="Q", help="With edgar: maximum quality in overlaps, 2 to 93.")
    ] = 41,
    cap_mismatch_quals: Annotated[
        bool,
        typer.Option(
            "--cap-mismatch-quals", help="With flash: cap qualities at 2 where the reads disagree."
        ),
    ] = False,
    hist: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write the length histogram of the merged reads."),
    ] = None,
    histogram: Annotated[
        str | None, typer.Option(metavar="FILE", help="The same histogram drawn with asterisks.")
    ] = None,
    ihist: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write fragment lengths in BBMap's ihist format."),
    ] = None,
    stats: StatsFile = None,
    phred_offset: PhredOffsetOption = PhredChoice.auto,
    threads: Threads = 0,
    backend: BackendOption = BackendChoice.auto,
    gpus: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="GPUs to use, at most 1; 0: none.",
            show_default="1 if available",
        ),
    ] = None,
    gpu_memory: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Memory budget for the GPU.", show_default="free memory"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Merge overlapping read pairs (FLASH).

    Among all sufficiently long overlaps of a pair, the one with the lowest mismatch density wins.
    Input is FASTQ, plain, gzip, BGZF, bzip2 or xz; output names ending in .gz are compressed
    (BGZF). - is standard input or output. The order of the pairs is kept.

    Merge:    ngsgpu merge -i R1.fq -I R2.fq -o M.fq --unmerged1 U1.fq --unmerged2 U2.fq

    FLASH:    ngsgpu merge -i R1.fq -I R2.fq --flash-prefix out --quality flash
    """
    from ngsgpu.merge import MergeOutputs, MergeParameters, merge_files

    obey_quiet(quiet)
    thread_count(threads)
    parameters = MergeParameters(
        min_overlap=min_overlap,
        max_overlap=number_or("auto", max_overlap, int, "--max-overlap"),
        max_mismatch_density=max_mismatch_density,
        allow_outies=allow_outies,
        quality=quality.value,
        cap_mismatch_quals=cap_mismatch_quals,
        max_quality=max_quality,
        trim_adapters=trim_adapters,
        correct_only=correct_only,
        read_length=read_length,
        fragment_length=fragment_length,
        fragment_deviation=fragment_deviation,
    )
    if to_stdout:
        if out is not None:
            raise UsageError("--to-stdout means -o -; give only one of them")
        out = "-"
    if flash_prefix is not None:
        if any(path is not None for path in (out, unmerged1, unmerged2, hist, histogram)):
            raise UsageError(
                "--flash-prefix names all outputs; omit -o, --to-stdout, --unmerged1, "
                "--unmerged2, --hist and --histogram"
            )
        outputs = MergeOutputs.of_flash(
            flash_prefix,
            interleaved=interleaved_out,
            compressed=compress,
            by_direction=allow_outies,
            ihist=ihist,
            stats=stats,
        )
    else:
        if compress:
            raise UsageError("--compress needs --flash-prefix; otherwise use names ending in .gz")
        if unmerged1 is not None and (unmerged2 is None) != interleaved_out:
            raise UsageError(
                "unmerged pairs go to both --unmerged1 and --unmerged2 or, with "
                "--interleaved-out, to --unmerged1 only"
            )
        outputs = MergeOutputs(out, unmerged1, unmerged2, hist, histogram, ihist, stats=stats)
    outputs.check(parameters)
    with open_run(
        "ngsgpu.io.gpu.parse",
        "ngsgpu.merge.gpu",
        threads=threads,
        backend=backend,
        gpus=gpus,
        gpu_memory=gpu_memory,
        quiet=quiet,
        max_gpus=1,
    ) as (_, options):
        statistics = merge_files(
            in1 or [],
            in2 or [],
            outputs,
            interleaved=interleaved_in,
            parameters=parameters,
            phred_offset=phred(phred_offset),
            options=options,
        )
        if not quiet:
            typer.echo("\n".join(statistics.summary()), err=True)
