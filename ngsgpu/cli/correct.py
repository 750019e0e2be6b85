"""``ngsgpu correct``: correct substitution errors in reads."""

from __future__ import annotations

import importlib
from typing import Any, Literal

from ngsgpu.cli.options import FirstOutputs, ReadsOrFirstMates, SecondMates, SecondOutputs, StageRun
from ngsgpu.cli.run import open_run, phred, say, show_plan
from ngsgpu.correct.params import CorrectionParameters
from ngsgpu.declared.options import flag, option
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
    interleaved: bool = flag("-i and -o hold interleaved pairs.", "--interleaved"),
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
    ),
    split: Prefix | None = option(
        None,
        "PREFIX",
        "With --method spectrum, also write the reads by class: error_free, fixed, trimmed, "
        "discarded; a pair has the class of its worse mate.",
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
    other, given = (msa, spectrum) if method == "spectrum" else (spectrum, msa)
    for name in other.given:
        if name not in given.given and not (method == "spectrum" and name == "kmer"):
            raise UsageError(f"`{name}` has no effect with --method {method}; leave it out")
    if method == "msa" and (trim or split is not None):
        name = "trim" if trim else "split"
        raise UsageError(f"`{name}` is for --method spectrum; add it")
    if method == "spectrum":
        idle = "max_changes" if spectrum.given.get("rule", "search") != "search" else "mutations"
        if idle in spectrum.given:
            rules = "voting or exhaustive" if idle == "mutations" else "search"
            raise UsageError(f"`{idle}` is for --rule {rules}; leave it out, or add that")
    _run(method, msa, spectrum, run, files=(in1 or [], out1 or [], in2 or [], out2 or []),
         interleaved=interleaved, trim=trim, split=split)  # fmt: skip


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
    with open_run(run, *(f"ngsgpu.{module}" for module in kernels), lease=not run.dry_run) as (
        backend,
        options,
    ):
        stage: Any = importlib.import_module(f"ngsgpu.{own[1]}.stage")
        plans: Any = importlib.import_module(f"ngsgpu.{own[1]}.gpu_plan")
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
        if run.dry_run:
            plan = stage.plan_files(files[0], files[2], **settings)
            show_plan(backend, plan, parameters, options, plans.plan_for_this_gpu)
            return
        say(stage.correct_files(*files, stats=run.stats, **more, **settings), run.quiet)
