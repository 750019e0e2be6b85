"""``ngsgpu unitigs``: the compacted de Bruijn graph of reads."""

from __future__ import annotations

from ngsgpu.assemble.params import UnitigParameters
from ngsgpu.cli.options import CountRun, StatsFile
from ngsgpu.cli.run import open_run, phred, run_or_plan
from ngsgpu.declared.options import option
from ngsgpu.declared.parameters import Options
from ngsgpu.declared.roles import ReadDatabase, Reads, Written
from ngsgpu.errors import UsageError


def unitigs(
    in1: list[Reads] | None = option(
        None, "FILE", "Reads or sequences; repeat for more.", "-i", "--in1"
    ),
    in2: list[Reads] | None = option(
        None, "FILE", "More reads, for example second mates; repeatable.", "-I", "--in2"
    ),
    database: ReadDatabase | None = option(
        None, "DIR", "K-mer database instead of reads (ngsgpu kmers count).", "-d", "--database"
    ),
    out: Written | None = option(
        None, "FILE", "Unitigs, FASTA; - is standard output.", "-o", "--out"
    ),
    gfa: Written | None = option(None, "FILE", "Graph, GFA 1."),
    color: list[ReadDatabase] | None = option(
        None, "DIR", "K-mer database of a sample, for --colors; repeat for more.", "--color"
    ),
    colors: Written | None = option(
        None,
        "FILE",
        "Table: how many k-mers of each unitig the --color databases have, and how often.",
    ),
    stats: StatsFile = None,
    *,
    graph: Options[UnitigParameters],
    run: CountRun,
) -> None:
    """Compact the de Bruijn graph of reads or genomes into unitigs.

    A unitig is a longest path of k-mers without an alternative, both strands as one. FASTA headers
    have BCALM's fields: length, sum and mean of the k-mers' counts, and links. The GFA has the same
    graph, for Bandage and the like.

    ngsgpu unitigs -i R1.fq.gz -I R2.fq.gz -k 31 -o unitigs.fa --gfa unitigs.gfa
    """
    if database is not None:
        for name in ("kmer", "min_quality"):
            if name in graph.given:
                raise UsageError(f"`{name}` is for reads; a database has its own")
    parameters = graph.make()
    with open_run(
        run,
        "ngsgpu.io.gpu.parse",
        "ngsgpu.kmers.gpu",
        "ngsgpu.assemble.gpu",
        "ngsgpu.assemble.text",
    ) as options:
        from ngsgpu.assemble.pipeline import plan_files, write_unitigs

        paths = [*(in1 or []), *(in2 or [])]
        run_or_plan(
            run, options, stats,
            lambda: write_unitigs(
                paths, out, gfa, parameters, database=database, colors=colors, color=color or [],
                stats=stats, phred_offset=phred(run.phred_offset), options=options,
            ),
            lambda: plan_files(paths, parameters, options, database=database),
        )  # fmt: skip
