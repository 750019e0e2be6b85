"""``ngsgpu index``: index references, and find exact matches in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from ngsgpu.cli.options import Compute, DryRun, Memory, OneGpuRun, StatsFile
from ngsgpu.cli.run import open_run, run_or_plan, say
from ngsgpu.declared.options import argument, option
from ngsgpu.declared.outputs import declare_output
from ngsgpu.declared.roles import Prefix, Read, ReadByName, Reads, Text, Written
from ngsgpu.suffix.params import QueryParameters

IndexGpuMemory = Annotated[
    Text | None,
    option(
        ...,
        "SIZE",
        "Memory budget per GPU; with less, suffixes are sorted in more buckets.",
        shown_default="free memory",
    ),
]


@dataclass(frozen=True, kw_only=True)
class IndexRun(Compute):
    """A run that sorts suffixes."""

    memory: Memory = None
    gpu_memory: IndexGpuMemory = None
    dry_run: DryRun = False


def build(
    reference: Annotated[
        Read,
        argument(..., "FASTA", "The sequences; - is standard input."),
    ],
    out: Prefix | None = option(
        None,
        "PREFIX",
        "Prefix of BWA's five files, or folder of another format.",
        "-o",
        "--out",
        shown_default="FASTA, as bwa index",
    ),
    kind: Literal["bwa", "fm", "bwt", "sa"] = option(
        "bwa",
        "bwa|fm|bwt|sa",
        "bwa: the files of bwa index; fm, bwt, sa: a folder of arrays with checksums, the FM index "
        "of both strands, or the Burrows-Wheeler transform or suffix array of the text.",
        "--format",
    ),
    stats: StatsFile = None,
    *,
    run: IndexRun,
) -> None:
    """Index a reference.

    The files of --format bwa equal those of bwa index (0.7.17), byte for byte, so that bwa and
    whatever reads its indexes can use them.

    ngsgpu index build reference.fa.gz -o reference
    """
    from ngsgpu.errors import UsageError
    from ngsgpu.suffix.build import build_index, plan_index

    if out is None and not run.dry_run:
        if kind != "bwa" or reference == "-":
            raise UsageError("name the index with -o")
        out = reference
        declare_output(f"{reference}.")  # beside it, never the reference itself
    kernels, most = (
        (("ngsgpu.suffix.gpu",), 1)
        if kind in ("sa", "bwt")
        else (("ngsgpu.suffix.gpu", "ngsgpu.suffix.bucket.text"), None)
    )
    with open_run(run, *kernels, max_gpus=most) as options:
        run_or_plan(
            run, options, stats,
            lambda: build_index(reference, out or "", kind, options, stats=stats),
            lambda: plan_index(reference, kind, options),
        )  # fmt: skip


def query(
    index: Annotated[
        ReadByName,
        argument(..., "PREFIX", "The index, of bwa or of ngsgpu index build."),
    ],
    in1: Annotated[
        list[Reads], option(..., "FILE", "Reads or sequences; repeat for more.", "-i", "--in1")
    ],
    out: Written = option("-", "FILE", "Matches (PAF); - is standard output.", "-o", "--out"),
    stats: StatsFile = None,
    *,
    parameters: QueryParameters,
    run: OneGpuRun,
) -> None:
    """Find the maximal exact matches of reads in a reference, on both strands.

    A match is maximal if no longer piece of the read around it is in the reference. Each place of
    a match is a line of PAF, in the order of the reads; nh:i: is the number of its places.

    ngsgpu index query reference -i reads.fq -o matches.paf
    """
    from ngsgpu.suffix.query.run import query_files

    with open_run(run, "ngsgpu.suffix.query.gpu") as options:
        say(query_files(index, in1, out, parameters, options, stats=stats), run.quiet)


COMMANDS: Final = {"build": build, "query": query}
