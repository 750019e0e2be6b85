"""``ngsgpu evaluate``: compare results with the truth."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ngsgpu.errors import UsageError

JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write all results to this file.")
]
Threads = Annotated[
    int, typer.Option("-t", "--threads", min=1, metavar="N", help="Decompression threads.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, help="Compare results with the truth.")
    group.command(name="correction")(correction)
    group.command(name="classification")(classification)
    group.command(name="merging")(merging)
    group.command(name="extension")(extension)
    app.add_typer(group, name="evaluate")


def correction(
    truth: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="SAM, BAM or CRAM of the error-free reads (art_illumina -ef)."
        ),
    ],
    in1: Annotated[
        list[Path],
        typer.Option(
            "-i", "--in1", metavar="FILE", help="Reads before correction; repeat for lanes."
        ),
    ],
    out1: Annotated[
        list[Path],
        typer.Option(
            "-o",
            "--out1",
            metavar="FILE",
            help="The same reads after correction, in the same order.",
        ),
    ],
    in2: Annotated[
        list[Path] | None,
        typer.Option("-I", "--in2", metavar="FILE", help="Second mates before correction."),
    ] = None,
    out2: Annotated[
        list[Path] | None,
        typer.Option("-O", "--out2", metavar="FILE", help="Second mates after correction."),
    ] = None,
    interleaved: Annotated[
        bool,
        typer.Option("--interleaved", help="--in1 and --out1 hold interleaved pairs."),
    ] = False,
    alignments: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="ART's .aln files, or a SAM of the uncorrected reads, to find the reads with "
            "insertions or deletions. Without them, indels are inferred from the sequences.",
        ),
    ] = None,
    json_path: JsonFile = None,
    mqc_prefix: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX",
            help="Write MultiQC content to PREFIX.ngsgpu_correction_mqc.json and "
            "PREFIX.ngsgpu_correction_generalstats_mqc.json.",
        ),
    ] = None,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Sample name for MultiQC.",
            show_default="last component of PREFIX",
        ),
    ] = None,
    threads: Threads = 1,
) -> None:
    """Count corrected, missed and introduced errors against the error-free reads.

    Prints TP, FP, FN, TN, sensitivity, specificity, precision and false positives per million
    corrections, separately for reads without and with indels.
    """
    if sample is not None and mqc_prefix is None:
        raise UsageError("--sample names the sample for MultiQC; it needs --mqc-prefix")

    from ngsgpu.evaluate.correction import evaluate_correction
    from ngsgpu.evaluate.output import print_tables
    from ngsgpu.report import multiqc

    paths = [] if mqc_prefix is None else multiqc.paths_of(mqc_prefix, multiqc.CORRECTION)
    with _outputs(json_path, paths) as write:
        evaluation = evaluate_correction(
            truth,
            in1,
            out1,
            in2,
            out2,
            interleaved=interleaved,
            alignments=alignments,
            threads=threads,
        )
        document = evaluation.document()
        content: tuple[str, ...] = ()
        if mqc_prefix is not None:
            content = multiqc.evaluation_content(document, sample or Path(mqc_prefix).name)
        print_tables(evaluation.tables())
        write(document, *content)


def classification(
    classified: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Per-read output of ngsgpu classify, Kraken or MetaCache; repeat to compare "
            "several.",
        ),
    ],
    taxonomy: Annotated[
        Path, typer.Option(metavar="DIR", help="NCBI nodes.dmp, names.dmp and merged.dmp.")
    ],
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table with columns read (or label, a prefix of read names) and taxid; optionally "
            "genus_taxid and so on for taxa missing from the taxonomy.",
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The database, or a table of its sequence names and taxids: sensitivity then "
            "counts only reads whose taxon is in the database.",
        ),
    ] = None,
    composition: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Taxids and fractions of the sample's true composition, to compare abundances "
            "with.",
            show_default="from the reads of --truth",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Label for each --classified file, in order.",
            show_default="file name",
        ),
    ] = None,
    rank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RANK",
            help="Rank to evaluate; repeat for more.",
            show_default="species, genus, family, order, class, phylum and domain",
        ),
    ] = None,
    abundance_rank: Annotated[
        str, typer.Option(metavar="RANK", help="Rank of the abundances.")
    ] = "species",
    json_path: JsonFile = None,
) -> None:
    """Compare read classifications with the true taxa.

    Prints precision, sensitivity and F1 at each rank, and the distance between estimated and true
    abundances.
    """
    if truth is None and composition is None:
        raise UsageError("nothing to compare with; give --truth, --composition or both")
    names = [path.name for path in classified] if name is None else name
    if len(names) != len(classified):
        raise UsageError(f"{len(classified)} --classified files but {len(names)} --name labels")

    from ngsgpu.classify.call.abundance import rank_code
    from ngsgpu.evaluate.classification import DEFAULT_RANKS, evaluate_classification
    from ngsgpu.evaluate.output import print_tables
    from ngsgpu.taxonomy.dump import load_taxonomy

    ranks = rank or list(DEFAULT_RANKS)
    for word in (*ranks, abundance_rank):
        rank_code(word)
    with _outputs(json_path) as write:
        evaluation = evaluate_classification(
            list(zip(names, classified, strict=True)),
            load_taxonomy(taxonomy),
            truth=truth,
            references=references,
            composition=composition,
            ranks=ranks,
            abundance_rank=abundance_rank,
        )
        print_tables(evaluation.tables())
        write(evaluation.document())


def merging(
    truth: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE", help="SAM, BAM or CRAM of the error-free pairs (art_illumina -ef)."
        ),
    ],
    in1: Annotated[
        list[Path],
        typer.Option("-i", "--in1", metavar="FILE", help="First mates; repeat for lanes."),
    ],
    in2: Annotated[list[Path], typer.Option("-I", "--in2", metavar="FILE", help="Second mates.")],
    merged: Annotated[
        list[Path],
        typer.Option(
            "-m", "--merged", metavar="FILE", help="Merged reads, in the order of the pairs."
        ),
    ],
    min_overlap: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Pairs sharing at least this many bases count as overlapping."
        ),
    ] = 10,
    json_path: JsonFile = None,
    threads: Threads = 1,
) -> None:
    """Compare merged reads with the fragments they came from.

    Prints the pairs merged to the correct length, to a wrong length or not at all, and the error
    rates of input and merged reads. --json also reports the errors at each quality.
    """
    from ngsgpu.evaluate.merging import evaluate_merging
    from ngsgpu.evaluate.output import print_tables

    with _outputs(json_path) as write:
        evaluation = evaluate_merging(
            truth, in1, in2, merged, min_overlap=min_overlap, threads=threads
        )
        print_tables(evaluation.tables())
        write(evaluation.document())


def extension(
    reference: Annotated[
        Path,
        typer.Option(metavar="FILE", help="FASTA the reads were simulated from or aligned to."),
    ],
    extended: Annotated[
        list[Path], typer.Option(metavar="FILE", help="Extended reads; repeat for several files.")
    ],
    truth: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="SAM, BAM or CRAM of the error-free reads (art_illumina -ef)."
        ),
    ] = None,
    alignments: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="For real reads: SAM, BAM or CRAM of the extended reads, in input order.",
        ),
    ] = None,
    read_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --alignments: length of the two end reads, if headers lack their positions.",
        ),
    ] = None,
    pairs: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="With --alignments: number of input pairs."),
    ] = 0,
    json_path: JsonFile = None,
) -> None:
    """Compare the filled gaps of extended reads with the true sequence.

    Prints connected pairs, error-free gaps, the error rate in gaps with and without length
    differences, and lengths. Accepts extended reads from any program; without read1=A-B read2=C-D
    in the header, the two reads are assumed to be at the ends.
    """
    if (alignments is None) == (not truth):
        raise UsageError("give either --truth (simulated reads) or --alignments (real reads)")

    from ngsgpu.evaluate.extension import evaluate_extension, evaluate_mapped
    from ngsgpu.evaluate.output import print_tables

    with _outputs(json_path) as write:
        if alignments is not None:
            evaluation = evaluate_mapped(
                alignments, reference, extended, read_length=read_length, pairs=pairs
            )
        else:
            evaluation = evaluate_extension(truth or [], reference, extended)
        print_tables(evaluation.tables())
        write(evaluation.document())


@contextlib.contextmanager
def _outputs(json_path: Path | None, others: Sequence[Path] = ()) -> Iterator[Callable[..., None]]:
    """Open the outputs before the evaluation; yield the function that writes them.

    They are published only if the table reached standard output.
    """
    import json

    from ngsgpu.io.output.writer import OutputSet

    paths = [*([] if json_path is None else [json_path]), *others]

    with OutputSet(paths) as outputs:

        def write(document: dict[str, Any], *texts: str) -> None:
            if json_path is not None:
                texts = (json.dumps(document) + "\n", *texts)
            for index, text in enumerate(texts):
                outputs.write(index, text.encode())
            if sys.stdout is not None:
                sys.stdout.flush()

        yield write
