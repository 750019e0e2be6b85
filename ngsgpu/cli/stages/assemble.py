"""``ngsgpu assemble``: contigs from reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ngsgpu.assemble.contigs.params import AssemblyParameters
from ngsgpu.cli.options import (
    FirstMates,
    InterleavedInput,
    Memory,
    PhredOffsetOption,
    RecordRun,
    SecondMates,
)
from ngsgpu.cli.run import open_run, phred, run_or_plan
from ngsgpu.declared.options import option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import Reads, Written
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.assemble.euler import EulerParameters

_COUNTING = ("ngsgpu.io.gpu.parse", "ngsgpu.kmers.gpu")


@dataclass(frozen=True, kw_only=True)
class AssemblyRun(RecordRun):
    """A run that assembles."""

    phred_offset: PhredOffsetOption = "auto"
    memory: Memory = None


def assemble(
    in1: FirstMates = None,
    in2: SecondMates = None,
    single: list[Reads] | None = option(
        None,
        "FILE",
        "More single reads, of any length, such as merged or extended pairs.",
        "-s",
        "--single",
    ),
    interleaved: InterleavedInput = False,
    out: Written | None = option(
        None, "FILE", "Contigs, FASTA; - is standard output.", "-o", "--out"
    ),
    method: Literal["growth", "euler"] = option(
        "growth",
        "growth|euler",
        "Cleaned graphs of growing k; or an Euler tour of error-free reads, as GPU-Euler's.",
    ),
    gfa: Written | None = option(None, "FILE", "Graph with the contigs' paths, GFA 1."),
    scaffolds: Written | None = option(
        None, "FILE", "Contigs joined by pairs, with N between, FASTA."
    ),
    coverage: Written | None = option(
        None, "FILE", "Reads over each base of the contigs, bedGraph."
    ),
    min_abundance: int | None = option(
        None,
        "N|auto",
        "Leave out k-mers of the first length that occur fewer times; auto: 2, or 1 where "
        "coverage is low; for --method euler 1.",
        word="auto",
        least=1,
    ),
    *,
    assembly: Options[AssemblyParameters],
    run: AssemblyRun,
) -> None:
    """Assemble the reads of an isolate into contigs.

    Reads are counted and compacted at the first k; the graph is cleaned; reads threaded through it
    make the graph of the next k, and so on. Output names ending in .gz or .zst are
    compressed.

    ngsgpu assemble -i R1.fq.gz -I R2.fq.gz -o contigs.fa --gfa graph.gfa
    """
    paths = [*(in1 or []), *(in2 or []), *(single or [])]
    if method == "euler":
        outputs = {"gfa": gfa, "scaffolds": scaffolds, "coverage": coverage}
        given = [name for name, path in outputs.items() if path is not None]
        given += [name for name in ("min_quality", "bubbles", "names") if name in assembly.given]
        if given:
            raise UsageError(f"--method euler has no `{given[0]}`; leave it out")
        _assemble_along_tour(paths, out, _euler(assembly.given, min_abundance), run)
        return
    counted = {} if min_abundance is None else {"min_abundance": min_abundance}
    parameters = assembly.make(**counted)
    with open_run(run, *_COUNTING, "ngsgpu.assemble.gpu") as options:
        from ngsgpu.assemble.contigs.run import assemble_files, plan_files

        run_or_plan(
            run, options, run.stats,
            lambda: assemble_files(
                in1 or [], out, in2 or [], single=single or [], interleaved=interleaved, gfa=gfa,
                scaffolds=scaffolds, coverage=coverage, stats=run.stats, parameters=parameters,
                phred_offset=phred(run.phred_offset), options=options,
            ),
            lambda: plan_files(paths, parameters, options),
        )  # fmt: skip


def _assemble_along_tour(
    paths: list[str], out: str | None, parameters: EulerParameters, run: AssemblyRun
) -> None:
    with open_run(run, *_COUNTING, "ngsgpu.assemble.euler.gpu") as options:
        from ngsgpu.assemble.euler.pipeline import assemble_euler, plan_files

        run_or_plan(
            run, options, run.stats,
            lambda: assemble_euler(
                paths, out, parameters, stats=run.stats, phred_offset=phred(run.phred_offset),
                options=options,
            ),
            lambda: plan_files(paths, parameters, options),
        )  # fmt: skip


def _euler(given: Mapping[str, Any], min_abundance: int | None) -> EulerParameters:
    """Parameters of the Euler tour; ``auto`` is 31, and every k-mer."""
    from ngsgpu.assemble.euler import EulerParameters

    (length, *others) = given.get("kmers") or (31,)
    if others:
        raise UsageError("--method euler takes one k-mer length (-k 31)")
    return EulerParameters(
        length=length,
        min_abundance=1 if min_abundance is None else min_abundance,
        min_contig=given.get("min_contig", 200),
    )
