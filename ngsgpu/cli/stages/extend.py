"""``ngsgpu extend``: connect the reads of pairs to long reads."""

from __future__ import annotations

from typing import Any, Literal

from ngsgpu.cli.options import FirstMates, InterleavedInput, SecondMates, StageRun
from ngsgpu.cli.run import open_run, phred, run_or_plan
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import Written
from ngsgpu.errors import UsageError
from ngsgpu.extend.params import ExtensionParameters


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
    extension: Options[ExtensionParameters],
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
    parameters = extension.make(mate_pairs=library == "mp")
    if out is None and not run.dry_run:
        raise UsageError("no output given; name one with -o")
    kernels = ("ngsgpu.io.gpu.parse", "ngsgpu.minhash.ends_gpu", "ngsgpu.extend.gpu")
    with open_run(run, *kernels) as options:
        from ngsgpu.extend.outputs import ExtensionOutputs
        from ngsgpu.extend.stage import extend_files, plan_files

        settings: dict[str, Any] = {
            "interleaved": interleaved,
            "parameters": parameters,
            "phred_offset": phred(run.phred_offset),
            "options": options,
        }
        outputs = ExtensionOutputs(
            out or "",
            remaining1,
            remaining2,
            run.stats,
            fasta=fasta,
            include_remaining=include_remaining,
            sort=not unsorted,
            gap_quality=gap_quality,
        )
        run_or_plan(
            run, options, run.stats,
            lambda: extend_files(in1 or [], in2 or [], outputs=outputs, **settings),
            lambda: plan_files(in1 or [], in2 or [], **settings),
        )  # fmt: skip
