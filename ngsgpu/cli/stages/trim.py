"""``ngsgpu trim``: cut adapters and poor ends off reads, and leave out poor reads."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Annotated

from ngsgpu.cli.options import FirstMates, RecordRun, SecondMates
from ngsgpu.cli.run import open_run, run_or_plan
from ngsgpu.declared.options import INPUT, OUTPUT, RUN, flag, option
from ngsgpu.declared.parameters import Options
from ngsgpu.errors import NOTHING_LEFT
from ngsgpu.trim.outputs import TrimOutputs
from ngsgpu.trim.params import TrimParameters

logger = logging.getLogger("ngsgpu")

_Threads = Annotated[
    int, option(..., "N", "Worker threads; 0: all CPUs.", "-w", "--thread", "--threads", group=RUN)
]
_Quiet = Annotated[bool, flag("Print only errors.", "--quiet", default=..., group=RUN)]
_Level = Annotated[
    int,
    option(
        ...,
        "N",
        "Level of compressed outputs (names ending in .gz or .zst), from 1 (fast) to 12 (small).",
        "-z",
        "--compression",
        "--compress-level",
        group=OUTPUT,
    ),
]


@dataclass(frozen=True, kw_only=True)
class TrimRun(RecordRun):
    """A run of trimming; short names of options are fastp's."""

    threads: _Threads = 0
    compress_level: _Level = 1
    quiet: _Quiet = False


def trim(
    in1: FirstMates = None,
    in2: SecondMates = None,
    interleaved: bool = flag("-i holds interleaved pairs.", "--interleaved-in", group=INPUT),
    phred64: bool = flag(
        "Qualities of the input are Phred+64; those of the output are Phred+33.",
        "-6",
        "--phred64",
        group=INPUT,
    ),
    *,
    outputs: TrimOutputs,
    trimming: Options[TrimParameters],
    run: TrimRun,
) -> int:
    """Trim adapters and poor ends of reads, and leave out poor reads.

    Does what fastp does, with the names of its options (- and _ are the same in them), and writes
    its JSON. Input is FASTQ, plain, gzip, BGZF, bzip2, xz or zstd, or BAM or CRAM; output names
    ending in .gz (BGZF) or .zst are compressed. - is standard input or output. The order of the
    reads is kept.

    Pairs:   ngsgpu trim -i R1.fq.gz -I R2.fq.gz -o T1.fq.gz -O T2.fq.gz -j trim.json

    Reads:   ngsgpu trim -i R.fq.gz -o T.fq.gz
    """
    with open_run(run, "ngsgpu.io.gpu.parse", "ngsgpu.trim.gpu") as options:
        from ngsgpu.trim.stage import plan_files, trim_files

        parameters = TrimParameters(**trimming.given)
        if "trim_tail1" in trimming.given and not run.threads:
            logger.warning(
                "`trim_tail1` %d cuts bases off the end of every read, as fastp does; the number "
                "of threads is `threads`",
                parameters.trim_tail1,
            )
        statistics = run_or_plan(
            run, options, run.stats,
            lambda: trim_files(
                in1 or [], in2 or [], outputs, interleaved=interleaved, parameters=parameters,
                phred64=phred64, stats=run.stats, options=options,
            ),
            lambda: plan_files(
                in1 or [], in2 or [], interleaved=interleaved, parameters=parameters,
                options=options,
            ),
        )  # fmt: skip
    lost_all = statistics is not None and statistics.reads["total"] and not statistics.reads["kept"]
    return NOTHING_LEFT if lost_all and not parameters.fastp else 0


trim.underscores = True  # type: ignore[attr-defined]

trim.refused = {  # type: ignore[attr-defined]
    "-h.*|--html(=.*)?": (
        "fastp's page of HTML (-h, --html) is not written; leave the option out: the JSON of -j "
        "has its figures, which MultiQC shows. --help, or -h as the last word, prints the help"
    )
}
"""Patterns of options of fastp that end a run before it begins, and what is said then."""
