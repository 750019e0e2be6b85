"""``ngsgpu correct``: correct substitution errors in reads."""

from __future__ import annotations

from typing import Any, Literal

from ngsgpu.cli.options import (
    FirstOutputs,
    QualityBits,
    ReadsOrFirstMates,
    SecondMates,
    SecondOutputs,
    StageRun,
)
from ngsgpu.cli.run import open_run, phred, say, show_plan
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import Prefix, Read
from ngsgpu.errors import UsageError


def correct(
    *,
    in1: ReadsOrFirstMates = None,
    in2: SecondMates = None,
    out1: FirstOutputs = None,
    out2: SecondOutputs = None,
    interleaved: bool = flag("-i and -o hold interleaved pairs.", "--interleaved"),
    coverage: float | None = option(
        None,
        "X",
        "Sequencing depth (reads per genome position); auto estimates it from the k-mer spectrum.",
        word="auto",
    ),
    method: Literal["msa", "spectrum"] = option(
        "msa",
        "msa|spectrum",
        "msa: align overlapping reads (CARE); spectrum: replace rare k-mers by frequent ones, "
        "faster and in less memory.",
    ),
    kmer: int | None = option(
        None,
        "K",
        "k-mer length: of the minhash tables, 8 to 32; with --method spectrum 11 to 31, and by "
        "default chosen by the size of the genome.",
        shown_default="20",
    ),
    hashes: int = option(
        48,
        "N",
        "Hash functions, one table each, 1 to 255; more find more overlaps but need more memory "
        "(10 bytes per read and table).",
    ),
    quality_bits: QualityBits = 8,
    model: Read = option(
        "none",
        "none|default|FILE",
        "Trained forests that decide where an alignment is unclear: none (fixed thresholds), "
        "default (those that come with ngsgpu), or a file of ngsgpu train export.",
    ),
    anchor_threshold: float | None = option(
        None,
        "P",
        "With --model, least probability at which a base of the read itself is changed.",
        shown_default="the model's",
    ),
    candidate_threshold: float | None = option(
        None,
        "P",
        "The same for a base of an overlapping read.",
        shown_default="the model's",
    ),
    keep_variants: int | None = option(
        None,
        "N",
        "A base on which N reads agree (at Q20 or above, from different fragments) is an allele "
        "and never changed; auto: as many as the errors of the reads do not explain, at least 3.",
        word="auto",
    ),
    classic: bool = flag("Decide as CARE 2.3 does; keeps no variants.", "--classic"),
    min_count: int | None = option(
        None,
        "N",
        "With --method spectrum, count from which a k-mer is solid; auto: from the histogram.",
        word="auto",
    ),
    rule: Literal["search", "voting", "exhaustive"] = option(
        "search",
        "search|voting|exhaustive",
        "With --method spectrum: search by qualities, vote as CUDA-EC does, or try every change "
        "of one base as GPU-Euler does.",
    ),
    membership: Literal["exact", "bloom"] = option(
        "exact",
        "exact|bloom",
        "With --method spectrum, how solid k-mers are kept: a table, or a Bloom filter.",
        "--filter",
    ),
    mutations: int | None = option(
        None,
        "N",
        "With --rule voting or exhaustive, most changes of a k-mer or read: 1 or 2.",
        shown_default="2",
    ),
    max_changes: int | None = option(
        None,
        "N",
        "With --method spectrum and --rule search, most changes in any 20 bases, 1 to 20.",
        shown_default="4",
    ),
    trim: bool = flag(
        "With --method spectrum, cut reads that are not corrected to their longest part of solid "
        "k-mers; leave out reads (pairs) without any.",
        "--trim",
    ),
    split: Prefix | None = option(
        None,
        "PREFIX",
        "With --method spectrum, also write the reads by class: error_free, fixed, trimmed, "
        "discarded; a pair has the class of its worse mate.",
    ),
    mask: bool = flag("Write N where a base would be changed.", "--mask"),
    quality: bool = flag(
        "Set the qualities of changed bases: Q20 (of N: Q2), or the lower one of the nearest "
        "unchanged bases if that is less.",
        "--quality",
    ),
    run: StageRun,
) -> None:
    """Correct substitution errors in Illumina reads.

    Only bases change: read order, names, comments, line endings and (without --quality)
    qualities are preserved.
    Input is FASTQ or FASTA, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM; output names
    ending in .gz (BGZF) or .zst are compressed. - is standard input or output. Give all lanes of a
    library in one run: the method relies on coverage.

    Single reads:   ngsgpu correct -i reads.fq.gz -o corrected.fq.gz

    Pairs:          ngsgpu correct -i R1.fq -I R2.fq -o C1.fq -O C2.fq
    """
    if method == "spectrum":
        _refuse(
            "for --method msa; leave it out with --method spectrum",
            classic=classic,
            model=model != "none",
            anchor_threshold=anchor_threshold is not None,
            candidate_threshold=candidate_threshold is not None,
            coverage=coverage is not None,
            keep_variants=keep_variants is not None,
            hashes=hashes != 48,
            seed=run.seed != 0,
        )
        if rule == "search":
            _refuse("for --rule voting or exhaustive; add it", mutations=mutations is not None)
        else:
            _refuse(
                f"for --rule search; leave it out with {rule}", max_changes=max_changes is not None
            )
        from ngsgpu.cli.spectrum import SpectrumFiles, correct_by_spectrum

        correct_by_spectrum(
            SpectrumFiles(in1 or [], out1 or [], in2 or [], out2 or [], interleaved, trim, split),
            run,
            kmer=kmer,
            min_count=min_count,
            rule=rule,
            filter=membership,
            mutations=2 if mutations is None else mutations,
            max_changes=4 if max_changes is None else max_changes,
            quality_bits=quality_bits,
            mask=mask,
            quality=quality,
        )
        return
    _refuse(
        "for --method spectrum; add it",
        min_count=min_count is not None,
        rule=rule != "search",
        filter=membership != "exact",
        mutations=mutations is not None,
        max_changes=max_changes is not None,
        trim=trim,
        split=split is not None,
    )
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.readset.gpu",
        "ngsgpu.minhash.gpu",
        "ngsgpu.correct.gpu",
        lease=not run.dry_run,
    ) as (chosen, options):
        from ngsgpu.correct import (
            CorrectionParameters,
            MinhashParameters,
            correct_files,
            plan_files,
        )
        from ngsgpu.correct.gpu_plan import plan_for_this_gpu

        parameters = CorrectionParameters(
            coverage=coverage,
            minhash=MinhashParameters(
                kmer=20 if kmer is None else kmer, hashes=hashes, seed=run.seed
            ),
            quality_bits=quality_bits,
            model=model,
            anchor_threshold=anchor_threshold,
            candidate_threshold=candidate_threshold,
            classic=classic,
            mask=mask,
            quality=quality,
            keep_variants=keep_variants,
        )
        settings: dict[str, Any] = {
            "interleaved": interleaved,
            "parameters": parameters,
            "phred_offset": phred(run.phred_offset),
            "options": options,
        }
        if run.dry_run:
            plan = plan_files(in1 or [], in2 or [], **settings)
            show_plan(chosen, plan, parameters, options, plan_for_this_gpu)
            return
        statistics = correct_files(
            in1 or [], out1 or [], in2 or [], out2 or [], stats=run.stats, **settings
        )
        say(statistics, run.quiet)


def _refuse(purpose: str, **given: bool) -> None:
    """Refuse options that would change nothing.

    Args:
        purpose: what they are for, and what to do.
        given: whether each of them is given.

    Raises:
        UsageError: names the first that is.
    """
    for name in (name for name, is_given in given.items() if is_given):
        raise UsageError(f"--{name.replace('_', '-')} is {purpose}")
