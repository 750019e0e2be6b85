"""``ngsgpu merge``: merge overlapping read pairs."""

from __future__ import annotations

from typing import Any, Literal

from ngsgpu.cli.options import FirstMates, PhredOffsetOption, RecordRun, SecondMates
from ngsgpu.cli.run import number_or, open_run, phred, say
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import Prefix, Text, Written
from ngsgpu.errors import UsageError


def merge(
    in1: FirstMates = None,
    in2: SecondMates = None,
    out: Written | None = option(None, "FILE", "Merged reads.", "-o", "--out"),
    unmerged1: Written | None = option(
        None, "FILE", "First mates of unmerged pairs; without it, unmerged pairs are dropped."
    ),
    unmerged2: Written | None = option(None, "FILE", "Second mates of unmerged pairs."),
    flash_prefix: Prefix | None = option(
        None,
        "PREFIX",
        "Write FLASH's five output files, under its names, in place of -o and --unmerged.",
    ),
    compress: bool = flag("With --flash-prefix: compress the reads.", "-z", "--compress"),
    to_stdout: bool = flag("Same as -o -.", "-c", "--to-stdout"),
    interleaved_in: bool = flag("-i holds interleaved pairs.", "--interleaved-in"),
    interleaved_out: bool = flag(
        "Write unmerged pairs interleaved to --unmerged1.", "--interleaved-out"
    ),
    flash: bool = flag(
        "FLASH's method and defaults: --overlap flash --quality flash -M 65; with --flash-prefix, "
        "files byte-identical to FLASH's.",
        "--flash",
    ),
    overlap: Literal["likelihood", "flash"] | None = option(
        None,
        "likelihood|flash",
        "Overlap that counts: likelier than chance and than the next-best one, by qualities, base "
        "composition and fragment lengths (likelihood), or with the lowest mismatch density.",
        shown_default="likelihood",
    ),
    min_overlap: int = option(
        10, "N", "Minimum overlap, in bases without N.", "-m", "--min-overlap"
    ),
    max_overlap: Text | None = option(
        None,
        "N|auto",
        "With --overlap flash: score longer overlaps as if they had this length; auto: see "
        "--fragment-length.",
        "-M",
        "--max-overlap",
        shown_default="auto; with --flash 65",
    ),
    max_mismatch_density: float | None = option(
        None,
        "X",
        "Maximum mismatches as a fraction of the (scored) overlap length.",
        "-x",
        "--max-mismatch-density",
        shown_default="0.3; with --overlap flash 0.25",
    ),
    read_length: int | None = option(
        None,
        "N",
        "Mean read length for --max-overlap auto.",
        shown_default="mean of the first 10,000 pairs",
    ),
    fragment_length: int | None = option(
        None,
        "N",
        "Mean fragment length for --max-overlap auto; without it, auto is the longest read of the "
        "first 10,000 pairs.",
    ),
    fragment_deviation: int | None = option(
        None,
        "N",
        "Standard deviation of the fragment length for --max-overlap auto.",
        shown_default="a tenth of the fragment length",
    ),
    allow_outies: bool = flag("Also merge outward-facing pairs.", "--allow-outies"),
    trim_adapters: bool = flag(
        "With --overlap flash: trim reads that run past the end of their fragment into the "
        "adapter; likelihood always does, except with --allow-outies.",
        "--trim-adapters",
    ),
    correct_only: bool = flag(
        "Do not merge: write all pairs to --unmerged1 and --unmerged2, corrected where the reads "
        "overlap.",
        "--correct-only",
    ),
    quality: Literal["calibrated", "edgar", "flash"] | None = option(
        None,
        "calibrated|edgar|flash",
        "Qualities of merged bases: posterior error probabilities, from qualities that the "
        "overlaps of the first pairs confirm (calibrated) or as stated (edgar), or FLASH's rule.",
        shown_default="calibrated; with --overlap flash edgar",
    ),
    max_quality: int = option(
        41, "Q", "With calibrated and edgar: maximum quality in overlaps, 2 to 93."
    ),
    mask_ties: bool = flag(
        "Write N where the mates disagree with equal quality, instead of the first mate's base.",
        "--mask-ties",
    ),
    cap_mismatch_quals: bool = flag(
        "With flash: cap qualities at 2 where the reads disagree.", "--cap-mismatch-quals"
    ),
    hist: Written | None = option(None, "FILE", "Write the length histogram of the merged reads."),
    histogram: Written | None = option(None, "FILE", "The same histogram drawn with asterisks."),
    ihist: Written | None = option(
        None, "FILE", "Write fragment lengths as BBMap does, for MultiQC."
    ),
    phred_offset: PhredOffsetOption = "auto",
    *,
    run: RecordRun,
) -> None:
    """Merge overlapping read pairs.

    Of all overlaps of a pair the likeliest is taken if it is likely enough; reads that run into the
    adapter are trimmed. --flash merges as FLASH does.
    Input is FASTQ, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM; output names ending in .gz
    (BGZF) or .zst are compressed. - is standard input or output. The order of the pairs is kept.

    Merge:    ngsgpu merge -i R1.fq -I R2.fq -o M.fq --unmerged1 U1.fq --unmerged2 U2.fq

    FLASH:    ngsgpu merge -i R1.fq -I R2.fq --flash-prefix out --flash
    """
    from ngsgpu.merge import MergeOutputs, MergeParameters, merge_files

    given: dict[str, Any] = {
        "overlap": overlap,
        "max_overlap": max_overlap,
        "max_mismatch_density": max_mismatch_density,
        "quality": quality,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if max_overlap is not None:
        given["max_overlap"] = number_or("auto", max_overlap, int, "--max-overlap")
    parameters = (MergeParameters.flash if flash else MergeParameters)(
        **given,
        min_overlap=min_overlap,
        allow_outies=allow_outies,
        cap_mismatch_quals=cap_mismatch_quals,
        max_quality=max_quality,
        mask_ties=mask_ties,
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
            stats=run.stats,
        )
    else:
        if compress:
            raise UsageError("--compress needs --flash-prefix; otherwise use names ending in .gz")
        if unmerged1 is not None and (unmerged2 is None) != interleaved_out:
            raise UsageError(
                "unmerged pairs go to both --unmerged1 and --unmerged2 or, with "
                "--interleaved-out, to --unmerged1 only"
            )
        outputs = MergeOutputs(out, unmerged1, unmerged2, hist, histogram, ihist, stats=run.stats)
    outputs.check(parameters)
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.merge.gpu",
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
        say(statistics, run.quiet)
