"""``ngsgpu correct``: correct substitution errors in reads."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Literal

from ngsgpu.cli.options import FirstOutputs, ReadsOrFirstMates, SecondMates, SecondOutputs, StageRun
from ngsgpu.cli.run import open_run, phred, run_or_plan
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.declared.options import INPUT, flag, option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import Prefix
from ngsgpu.errors import UsageError
from ngsgpu.spectrum.params import SpectrumParameters


def correct(
    *,
    in1: ReadsOrFirstMates = None,
    in2: SecondMates = None,
    out1: FirstOutputs = None,
    out2: SecondOutputs = None,
    interleaved: bool = flag("-i and -o hold interleaved pairs.", "--interleaved", group=INPUT),
    method: Literal["msa", "spectrum"] = option(
        "msa",
        "msa|spectrum",
        "msa: align overlapping reads (CARE); spectrum: replace rare k-mers by frequent ones, "
        "faster and in less memory.",
    ),
    msa: Options[CorrectionParameters],
    spectrum: Options[SpectrumParameters],
    trim: bool = flag(
        "With --method spectrum, cut reads that are not corrected to their longest part of solid "
        "k-mers; leave out reads (pairs) without any.",
        "--trim",
        group="k-mers (--method spectrum)",
    ),
    split: Prefix | None = option(
        None,
        "PREFIX",
        "With --method spectrum, also write the reads by class: error_free, fixed, trimmed, "
        "discarded; a pair has the class of its worse mate.",
        group="k-mers (--method spectrum)",
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
    _refuse_what_has_no_effect(method, msa.given, spectrum.given, trim, split)
    _run(method, msa, spectrum, run, files=(in1 or [], out1 or [], in2 or [], out2 or []),
         interleaved=interleaved, trim=trim, split=split)  # fmt: skip


def _refuse_what_has_no_effect(
    method: str,
    msa: Mapping[str, Any],
    spectrum: Mapping[str, Any],
    trim: bool,
    split: str | None,
) -> None:
    """Refuse options that change nothing, by what was given of the options of both methods.

    Raises:
        UsageError: names the first.
    """
    if method == "msa":
        own = {"trim": trim, "split": split is not None}
        given = [name for name in spectrum if name not in msa]
        given += [name for name, is_given in own.items() if is_given]
        purpose = "for --method spectrum; add it"
    else:
        given = [name for name in msa if name not in spectrum and name != "kmer"]
        purpose = "for --method msa; leave it out with --method spectrum"
        rule = spectrum.get("rule", "search")
        if not given and rule == "search" and "mutations" in spectrum:
            given, purpose = ["mutations"], "for --rule voting or exhaustive; add it"
        elif not given and rule != "search" and "max_changes" in spectrum:
            given, purpose = ["max_changes"], f"for --rule search; leave it out with {rule}"
    for name in given:
        raise UsageError(f"`{name}` is {purpose}")


def _run(
    method: str,
    msa: Options[CorrectionParameters],
    spectrum: Options[SpectrumParameters],
    run: StageRun,
    *,
    files: tuple[list[str], list[str], list[str], list[str]],
    interleaved: bool,
    trim: bool,
    split: str | None,
) -> None:
    """Correct by one of the methods, or print the plan."""
    own = ("minhash", "correct") if method == "msa" else ("kmers", "spectrum")
    kernels = ("io.gpu.parse", "readset.gpu", *(f"{stage}.gpu" for stage in own))
    with open_run(run, *(f"ngsgpu.{module}" for module in kernels)) as options:
        stage: Any = importlib.import_module(f"ngsgpu.{own[1]}.stage")
        if method == "msa":
            parameters: Any = msa.make()
            more: dict[str, Any] = {}
        else:
            parameters = spectrum.make(kmer=msa.given.get("kmer"))
            more = {"trim": trim, "split": split}
        settings: dict[str, Any] = {
            "interleaved": interleaved,
            "parameters": parameters,
            "phred_offset": phred(run.phred_offset),
            "options": options,
        }
        run_or_plan(
            run, options, run.stats,
            lambda: stage.correct_files(*files, stats=run.stats, **more, **settings),
            lambda: stage.plan_files(files[0], files[2], **settings),
        )  # fmt: skip
