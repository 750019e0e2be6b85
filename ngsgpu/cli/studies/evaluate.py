"""``ngsgpu evaluate``: compare results with the truth."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import MultiqcPrefix, ReadPath, Text, WrittenPath
from ngsgpu.errors import UsageError
from ngsgpu.evaluate.mapped.params import Thresholds

JsonFile = Annotated[
    WrittenPath | None, option(..., "FILE", "Write all results to this file.", "--json")
]
Threads = Annotated[int, option(..., "N", "Decompression threads.", "-t", "--threads", least=1)]


def correction(
    truth: list[ReadPath] = option(
        ...,
        "FILE",
        "SAM, BAM or CRAM of the error-free reads (art_illumina -ef), or FASTQ or FASTA of them.",
    ),
    in1: list[ReadPath] = option(
        ..., "FILE", "Reads before correction; repeat for lanes.", "-i", "--in1"
    ),
    out1: list[ReadPath] = option(
        ..., "FILE", "The same reads after correction, in the same order.", "-o", "--out1"
    ),
    in2: list[ReadPath] | None = option(
        None, "FILE", "Second mates before correction.", "-I", "--in2"
    ),
    out2: list[ReadPath] | None = option(
        None, "FILE", "Second mates after correction.", "-O", "--out2"
    ),
    interleaved: bool = flag("--in1 and --out1 hold interleaved pairs.", "--interleaved"),
    alignments: list[ReadPath] | None = option(
        None,
        "FILE",
        "ART's .aln files, or a SAM of the uncorrected reads, to find the reads with insertions "
        "or deletions. Without them, indels are inferred from the sequences.",
    ),
    json_path: JsonFile = None,
    mqc_prefix: MultiqcPrefix | None = option(
        None,
        "PREFIX",
        "Write MultiQC content to PREFIX.ngsgpu_correction_mqc.json and "
        "PREFIX.ngsgpu_correction_generalstats_mqc.json.",
    ),
    sample: Text | None = option(
        None, "NAME", "Sample name for MultiQC.", shown_default="last component of PREFIX"
    ),
    threads: Threads = 1,
) -> None:
    """Count corrected, missed and introduced errors against the error-free reads.

    Prints TP, FP, FN, TN, sensitivity, specificity, precision and false positives per million
    corrections, separately for reads without and with indels.
    """
    if sample is not None and mqc_prefix is None:
        raise UsageError("--sample names the sample for MultiQC; it needs --mqc-prefix")

    from ngsgpu.evaluate.correction import evaluate_correction
    from ngsgpu.report.exports import multiqc

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
        content: tuple[str, ...] = ()
        if mqc_prefix is not None:
            name = sample or Path(mqc_prefix).name
            content = multiqc.evaluation_content(evaluation.document(), name)
        write(evaluation, *content)


def classification(
    classified: list[ReadPath] = option(
        ...,
        "FILE",
        "Per-read output of ngsgpu classify, Kraken or MetaCache; repeat to compare several.",
    ),
    taxonomy: ReadPath = option(..., "DIR", "NCBI nodes.dmp, names.dmp and merged.dmp."),
    truth: ReadPath | None = option(
        None,
        "FILE",
        "Table with columns read (or label, a prefix of read names) and taxid; optionally "
        "genus_taxid and so on for taxa missing from the taxonomy.",
    ),
    references: ReadPath | None = option(
        None,
        "FILE",
        "The database, or a table of its sequence names and taxids: sensitivity then counts only "
        "reads whose taxon is in the database.",
    ),
    composition: ReadPath | None = option(
        None,
        "FILE",
        "Taxids and fractions of the sample's true composition, to compare abundances with.",
        shown_default="from the reads of --truth",
    ),
    name: list[Text] | None = option(
        None,
        "NAME",
        "Label for each --classified file, in order.",
        "--name",
        shown_default="file name",
    ),
    rank: list[Text] | None = option(
        None,
        "RANK",
        "Rank to evaluate; repeat for more.",
        "--rank",
        shown_default="species, genus, family, order, class, phylum and domain",
    ),
    abundance_rank: Text = option("species", "RANK", "Rank of the abundances."),
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

    from ngsgpu.evaluate.classification import DEFAULT_RANKS, evaluate_classification
    from ngsgpu.taxonomy.dump import load_taxonomy
    from ngsgpu.taxonomy.ranks import rank_code

    ranks = rank or list(DEFAULT_RANKS)
    for word in (*ranks, abundance_rank):
        rank_code(word)
    with _outputs(json_path) as write:
        write(
            evaluate_classification(
                list(zip(names, classified, strict=True)), load_taxonomy(taxonomy), truth=truth,
                references=references, composition=composition, ranks=ranks,
                abundance_rank=abundance_rank,
            )
        )  # fmt: skip


def merging(
    truth: list[ReadPath] = option(
        ..., "FILE", "SAM, BAM or CRAM of the error-free pairs (art_illumina -ef)."
    ),
    in1: list[ReadPath] = option(..., "FILE", "First mates; repeat for lanes.", "-i", "--in1"),
    in2: list[ReadPath] = option(..., "FILE", "Second mates.", "-I", "--in2"),
    merged: list[ReadPath] = option(
        ..., "FILE", "Merged reads, in the order of the pairs.", "-m", "--merged"
    ),
    min_overlap: int = option(
        10, "N", "Pairs sharing at least this many bases count as overlapping.", least=1
    ),
    json_path: JsonFile = None,
    threads: Threads = 1,
) -> None:
    """Compare merged reads with the fragments they came from.

    Prints the pairs merged to the correct length, to a wrong length or not at all, and the error
    rates of input and merged reads. --json also reports the errors at each quality.
    """
    from ngsgpu.evaluate.merging import evaluate_merging

    with _outputs(json_path) as write:
        write(evaluate_merging(truth, in1, in2, merged, min_overlap=min_overlap, threads=threads))


def extension(
    reference: ReadPath = option(..., "FILE", "FASTA the reads were simulated from or aligned to."),
    extended: list[ReadPath] = option(..., "FILE", "Extended reads; repeat for several files."),
    truth: list[ReadPath] | None = option(
        None, "FILE", "SAM, BAM or CRAM of the error-free reads (art_illumina -ef)."
    ),
    alignments: ReadPath | None = option(
        None, "FILE", "For real reads: SAM, BAM or CRAM of the extended reads, in input order."
    ),
    read_length: int | None = option(
        None,
        "N",
        "With --alignments: length of the two end reads, if headers lack their positions.",
    ),
    pairs: int = option(0, "N", "With --alignments: number of input pairs.", least=0),
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

    with _outputs(json_path) as write:
        if alignments is not None:
            evaluation = evaluate_mapped(
                alignments, reference, extended, read_length=read_length, pairs=pairs
            )
        else:
            evaluation = evaluate_extension(truth or [], reference, extended)
        write(evaluation)


def mapped(
    *,
    reference: ReadPath = option(..., "FILE", "FASTA of the reads' genome, or of one like it."),
    in1: list[ReadPath] = option(
        ..., "FILE", "Raw reads or first mates; repeat for lanes.", "-i", "--in1"
    ),
    in2: list[ReadPath] | None = option(None, "FILE", "Second mates.", "-I", "--in2"),
    out1: list[ReadPath] | None = option(
        None, "FILE", "The same reads after correction, in the same order.", "-o", "--out1"
    ),
    out2: list[ReadPath] | None = option(
        None, "FILE", "Second mates after correction.", "-O", "--out2"
    ),
    merged: list[ReadPath] | None = option(
        None, "FILE", "Reads merged from these pairs, in their order.", "-m", "--merged"
    ),
    known: ReadPath | None = option(
        None, "FILE", "VCF or BCF of known variants, whose positions are not counted as errors."
    ),
    alignments: list[ReadPath] | None = option(
        None,
        "FILE",
        "SAM, BAM or CRAM of the raw reads in their order, as aligners write it; aligned here "
        "without it.",
    ),
    aligner: Literal["bwa", "minimap2"] = option(
        "bwa", "NAME", "Program that aligns the raw reads: bwa or minimap2."
    ),
    limits: Thresholds,
    json_path: JsonFile = None,
    threads: int = option(1, "N", "Threads of the aligner.", "-t", "--threads", least=1),
) -> None:
    """Compare corrected or merged real reads with a reference.

    The raw reads are aligned once; each corrected base is compared where its raw base lies. Prints
    mismatches, errors corrected and introduced, alleles and minority variants lost, the lengths of
    merged reads against those of the aligned fragments, and stated against seen errors.
    """
    if out1 is None and merged is None:
        raise UsageError("nothing to compare; give --out1, --merged or both")

    from ngsgpu.evaluate.mapped import evaluate_mapped_reads

    with _outputs(json_path) as write:
        write(
            evaluate_mapped_reads(
                reference, in1, in2, out1=out1, out2=out2, merged=merged, known=known,
                alignments=alignments, aligner=aligner, limits=limits, threads=threads,
            )
        )  # fmt: skip


def kmers(
    in1: list[ReadPath] = option(
        ..., "FILE", "Reads before correction; repeat for lanes.", "-i", "--in1"
    ),
    out1: list[ReadPath] = option(..., "FILE", "The same reads after correction.", "-o", "--out1"),
    in2: list[ReadPath] | None = option(
        None, "FILE", "Second mates before correction.", "-I", "--in2"
    ),
    out2: list[ReadPath] | None = option(
        None, "FILE", "Second mates after correction.", "-O", "--out2"
    ),
    reference: list[ReadPath] | None = option(
        None, "FILE", "FASTA of the genome, or FASTA or FASTQ of error-free reads; repeat for more."
    ),
    truth: list[ReadPath] | None = option(
        None, "FILE", "SAM, BAM or CRAM of the error-free reads (art_illumina -ef)."
    ),
    minority: list[ReadPath] | None = option(
        None, "FILE", "FASTA of a rarer strain, whose own k-mers are followed."
    ),
    kmer: int = option(21, "K", "k-mer length, 1 to 32.", "-k", "--kmer"),
    min_before: int = option(4, "N", "Raw reads with an own k-mer that counts.", least=1),
    min_after: int = option(3, "N", "Corrected reads with one that remains.", least=1),
    exact: bool = flag("Count all k-mers instead of a sample, where they are many.", "--exact"),
    json_path: JsonFile = None,
    threads: Threads = 1,
) -> None:
    """Count true k-mers lost by correction, by their coverage, and false ones introduced.

    With --minority, also the k-mers of a rarer strain of a mixture that remain. Of many k-mers a
    sample is counted, each with all its occurrences.
    """
    from ngsgpu.evaluate.kmers import evaluate_kmers

    with _outputs(json_path) as write:
        write(
            evaluate_kmers(
                [*in1, *(in2 or [])], [*out1, *(out2 or [])], reference=reference, truth=truth,
                minority=minority, k=kmer, min_before=min_before, min_after=min_after, exact=exact,
                threads=threads,
            )
        )  # fmt: skip


@contextlib.contextmanager
def _outputs(json_path: Path | None, others: Sequence[Path] = ()) -> Iterator[Callable[..., None]]:
    """Open the outputs before the evaluation; yield the function that prints and writes it.

    The files are published only if the table reached standard output.
    """
    import json

    from ngsgpu.evaluate.output import print_tables
    from ngsgpu.io.output.writer import OutputSet

    with OutputSet([*([] if json_path is None else [json_path]), *others]) as outputs:

        def write(evaluation: Any, *texts: str) -> None:
            print_tables(evaluation.tables())
            if json_path is not None:
                texts = (json.dumps(evaluation.document()) + "\n", *texts)
            for index, text in enumerate(texts):
                outputs.write(index, text.encode())
            if sys.stdout is not None:
                sys.stdout.flush()

        yield write


COMMANDS: Final = {
    "correction": correction,
    "classification": classification,
    "merging": merging,
    "extension": extension,
    "mapped": mapped,
    "kmers": kmers,
}
