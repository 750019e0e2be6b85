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
    Path | None, typer.Option("--json", metavar="FILE", help="Write all results here.")
]
Threads = Annotated[
    int, typer.Option("-t", "--threads", min=1, metavar="N", help="Threads that decompress.")
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
        typer.Option("--interleaved", help="--in1 and --out1 hold both mates of pairs, in turn."),
    ] = False,
    alignments: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="ART's .aln files, or a SAM of the reads before correction: tell which reads "
            "have insertions or deletions. Without them the sequences decide.",
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
            help="Name of the sample for MultiQC.",
            show_default="PREFIX's last part",
        ),
    ] = None,
    threads: Threads = 1,
) -> None:
    """Count corrected, missed and newly made errors against the true reads.

    Prints a table: TP, FP, FN, TN, sensitivity, specificity, precision and false positives per
    million corrections, for reads without indels and, apart, for reads with indels.
    """
    if sample is not None and mqc_prefix is None:
        raise UsageError("--sample names the sample for MultiQC; give --mqc-prefix too")

    from ngsgpu.evaluate.correction import evaluate_correction
    from ngsgpu.evaluate.table import print_table
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
        print_table(evaluation)
        write(document, *content)


def classification(
    classified: Annotated[
        list[Path],
        typer.Option(
            metavar="FILE",
            help="Table of reads of ngsgpu classify, Kraken's lines or MetaCache's output; repeat "
            "to compare several.",
        ),
    ],
    taxonomy: Annotated[
        Path, typer.Option(metavar="DIR", help="NCBI's nodes.dmp, names.dmp and merged.dmp.")
    ],
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table with columns read (or label: what names begin with) and taxid; also "
            "genus_taxid and the like for taxa that the taxonomy lacks.",
        ),
    ] = None,
    references: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The database, or names and taxids of its sequences: sensitivity then counts only "
            "reads whose taxon has one.",
        ),
    ] = None,
    composition: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Taxids and shares of what the sample is made of, to compare abundances with.",
            show_default="the reads of the truth",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="What to call each file of --classified, in turn.",
            show_default="the file's name",
        ),
    ] = None,
    rank: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RANK",
            help="A rank to compare at; repeat for more.",
            show_default="species, genus, family, order, class, phylum and domain",
        ),
    ] = None,
    abundance_rank: Annotated[
        str, typer.Option(metavar="RANK", help="Rank of the abundances.")
    ] = "species",
    json_path: JsonFile = None,
) -> None:
    """Judge calls of reads by where the reads come from.

    Prints precision, sensitivity and F1 at each rank, and how far the abundances are from the
    sample's composition.
    """
    if truth is None and composition is None:
        raise UsageError("there is nothing to compare with; give --truth, --composition or both")
    names = [path.name for path in classified] if name is None else name
    if len(names) != len(classified):
        raise UsageError(f"{len(classified)} files of --classified, but {len(names)} of --name")

    from ngsgpu.classify.abundance import rank_code
    from ngsgpu.classify.taxonomy import load_taxonomy
    from ngsgpu.evaluate.classification import DEFAULT_RANKS, evaluate_classification
    from ngsgpu.evaluate.table import print_ranks

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
        print_ranks(evaluation)
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
            min=1, metavar="N", help="Pairs with so many common bases count as overlapping."
        ),
    ] = 10,
    json_path: JsonFile = None,
    threads: Threads = 1,
) -> None:
    """Compare merged reads with the fragments they came from.

    Prints a table: pairs merged to the right length, to a wrong one, or not at all; error rates of
    the reads and of the merged reads. The file of --json also has the errors seen at each quality.
    """
    from ngsgpu.evaluate.merging import evaluate_merging
    from ngsgpu.evaluate.table import print_rows

    with _outputs(json_path) as write:
        evaluation = evaluate_merging(
            truth, in1, in2, merged, min_overlap=min_overlap, threads=threads
        )
        print_rows("Merging against the truth", ("", ""), evaluation.rows())
        write(evaluation.document())


def extension(
    reference: Annotated[
        Path,
        typer.Option(metavar="FILE", help="FASTA that the reads come from or are aligned to."),
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
            help="For real reads: SAM, BAM or CRAM of the extended reads, in their order.",
        ),
    ] = None,
    read_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="With --alignments: length of the reads at both ends, where headers do not tell.",
        ),
    ] = None,
    pairs: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="With --alignments: pairs that were to be extended."),
    ] = 0,
    json_path: JsonFile = None,
) -> None:
    """Compare the gaps of extended reads with the true ones.

    Prints a table: connected pairs, error-free gaps, error rate in gaps with and without
    differences of length, lengths. Extended reads of any program will do; where a header does not
    say read1=A-B read2=C-D, the reads are taken to lie at both ends.
    """
    if (alignments is None) == (not truth):
        raise UsageError("give either --truth (simulated reads) or --alignments (real reads)")

    from ngsgpu.evaluate.extension import evaluate_extension
    from ngsgpu.evaluate.extension_mapped import evaluate_mapped
    from ngsgpu.evaluate.table import print_rows

    with _outputs(json_path) as write:
        if alignments is not None:
            evaluation = evaluate_mapped(
                alignments, reference, extended, read_length=read_length, pairs=pairs
            )
        else:
            evaluation = evaluate_extension(truth or [], reference, extended)
        print_rows("Extension", ("", ""), evaluation.rows())
        write(evaluation.document())


@contextlib.contextmanager
def _outputs(json_path: Path | None, others: Sequence[Path] = ()) -> Iterator[Callable[..., None]]:
    """Open the outputs before the work; gives what writes them after the table was printed.

    They appear only if standard output took the table.
    """
    import json

    from ngsgpu.io.writer import OutputSet

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
