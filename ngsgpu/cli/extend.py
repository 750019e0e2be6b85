"""``ngsgpu extend``: connect the reads of pairs to long reads."""

from __future__ import annotations

from typing import Any, Literal

from ngsgpu.cli.options import FirstMates, InterleavedInput, QualityBits, SecondMates, StageRun
from ngsgpu.cli.run import open_run, phred, say, show_plan
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import Written
from ngsgpu.errors import UsageError


def extend(
    *,
    in1: FirstMates = None,
    in2: SecondMates = None,
    out: Written | None = option(None, "FILE", "Extended reads.", "-o", "--out"),
    remaining1: Written | None = option(
        None, "FILE", "First mates of unconnected pairs; both mates without --remaining2."
    ),
    remaining2: Written | None = option(None, "FILE", "Second mates of unconnected pairs."),
    interleaved: InterleavedInput = False,
    library: Literal["pe", "mp"] = option(
        "pe",
        "pe|mp",
        "Mate orientation: inward (pe, paired ends) or outward (mp, mate pairs).",
    ),
    insert_size: float | None = option(
        None, "N", "Mean insert size (fragment length, reads included).", shown_default="estimated"
    ),
    insert_sd: float | None = option(
        None, "N", "Standard deviation of the insert size.", shown_default="estimated"
    ),
    min_length: int | None = option(
        None, "N", "Minimum fragment length to connect.", shown_default="mean - 4 SD"
    ),
    max_length: int | None = option(
        None, "N", "Maximum fragment length to connect.", shown_default="mean + 4 SD"
    ),
    strict: int = option(
        0,
        "0|1|2",
        "2: both directions must reach the mate with the same sequence; 1: one may stop early if "
        "it agrees as far as it got; 0: one direction suffices.",
    ),
    gap_mismatches: int = option(0, "N", "Mismatches allowed between the two gap sequences."),
    confirm_ratio: float = option(
        0.5, "X", "Fraction of the gap the other direction must cover to confirm it."
    ),
    confirm_matches: float = option(0.95, "X", "Identity required over that fraction."),
    merge_overlap: int = option(
        40, "N", "Overlap that joins two unfinished extensions (--strict 0)."
    ),
    outward: bool = flag("Also extend pairs outward.", "--outward"),
    kmer: int = option(20, "K", "k-mer length of the tables, 8 to 32."),
    hashes: int = option(
        4,
        "N",
        "Hash functions, one table each (17 bytes per read and table); 2 suffice for corrected "
        "reads.",
    ),
    step: int = option(20, "N", "Maximum bases appended per step, 1 to 64."),
    min_reads: int = option(3, "N", "Minimum reads covering an appended base."),
    min_overlap: int = option(50, "N", "Minimum overlap with another read, 50 or more."),
    min_overlap_ratio: float = option(
        0.5, "X", "Minimum overlap as a fraction of the anchor read."
    ),
    max_mismatch_ratio: float = option(
        0.05, "X", "Maximum mismatches as a fraction of the overlap."
    ),
    quality_bits: QualityBits = 8,
    gap_quality: int | None = option(
        None,
        "Q",
        "Quality of all bases outside the two reads.",
        shown_default="from the supporting reads",
    ),
    fasta: bool = flag("Write FASTA, as always for FASTA input.", "--fasta"),
    include_remaining: bool = flag("Also write unconnected pairs to -o.", "--include-remaining"),
    unsorted: bool = flag("Write reads as they finish, not in input order.", "--unsorted"),
    run: StageRun,
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

    parameters = ExtensionParameters(
        ends=EndParameters(kmer=kmer, hashes=hashes, seed=run.seed),
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
        mate_pairs=library == "mp",
    )
    if out is None and not run.dry_run:
        raise UsageError("no output given; name one with -o")
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.minhash.ends_gpu",
        "ngsgpu.extend.gpu",
        lease=not run.dry_run,
    ) as (chosen, options):
        settings: dict[str, Any] = {
            "interleaved": interleaved,
            "parameters": parameters,
            "phred_offset": phred(run.phred_offset),
            "options": options,
        }
        if run.dry_run or out is None:
            plan = plan_files(in1 or [], in2 or [], **settings)
            show_plan(chosen, plan, parameters, options, plan_for_this_gpu)
            return
        outputs = ExtensionOutputs(
            out,
            remaining1,
            remaining2,
            run.stats,
            fasta=fasta,
            include_remaining=include_remaining,
            sort=not unsorted,
            gap_quality=gap_quality,
        )
        statistics = extend_files(in1 or [], in2 or [], outputs=outputs, **settings)
        say(statistics, run.quiet)
