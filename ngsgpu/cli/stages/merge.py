"""``ngsgpu merge``: merge overlapping read pairs."""

from __future__ import annotations

from ngsgpu.cli.options import FirstMates, PhredOffsetOption, RecordRun, SecondMates
from ngsgpu.cli.run import open_run, phred, run_or_plan
from ngsgpu.declared.options import INPUT, OUTPUT, flag, option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import Prefix, Written
from ngsgpu.errors import UsageError
from ngsgpu.merge.params import MergeParameters


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
    compress: bool = flag(
        "With --flash-prefix: compress the reads.", "-z", "--compress", group=OUTPUT
    ),
    to_stdout: bool = flag(
        "Write merged reads to standard output, as -o - does.", "-c", "--to-stdout", group=OUTPUT
    ),
    interleaved_in: bool = flag("-i holds interleaved pairs.", "--interleaved-in", group=INPUT),
    interleaved_out: bool = flag(
        "Write unmerged pairs interleaved to --unmerged1.", "--interleaved-out", group=OUTPUT
    ),
    flash: bool = flag(
        "Merge by FLASH's method with its defaults: --overlap flash --quality flash -M 65; with "
        "--flash-prefix, files byte-identical to FLASH's.",
        "--flash",
        group="Overlaps",
    ),
    hist: Written | None = option(None, "FILE", "Write the length histogram of the merged reads."),
    histogram: Written | None = option(
        None, "FILE", "Write the length histogram of the merged reads, drawn with asterisks."
    ),
    ihist: Written | None = option(
        None, "FILE", "Write fragment lengths as BBMap does, for MultiQC."
    ),
    phred_offset: PhredOffsetOption = "auto",
    *,
    merging: Options[MergeParameters],
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
    from ngsgpu.merge.outputs import MergeOutputs

    given = merging.given
    parameters = MergeParameters.flash(**given) if flash else MergeParameters(**given)
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
            by_direction=parameters.allow_outies,
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
    if not run.dry_run:
        outputs.check(parameters)
    with open_run(run, "ngsgpu.io.gpu.parse", "ngsgpu.merge.gpu") as options:
        from ngsgpu.merge.stage import merge_files, plan_files

        run_or_plan(
            run, options, run.stats,
            lambda: merge_files(
                in1 or [], in2 or [], outputs, interleaved=interleaved_in, parameters=parameters,
                phred_offset=phred(phred_offset), options=options,
            ),
            lambda: plan_files(in1 or [], in2 or [], interleaved=interleaved_in, options=options),
        )  # fmt: skip
