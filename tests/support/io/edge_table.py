"""What is expected of every file of the collection of awkward inputs, ``tests/data/edge``.

Each is either read exactly as pysam and pyfastx read it, or refused with this cause, at this
record and line.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parsed:
    records: int


@dataclass(frozen=True)
class Refused:
    cause: str
    record: int | None
    line: int | None


EXPECTED: dict[str, Parsed | Refused] = {
    "biojulia_fasta/AAC12660.fasta": Refused(
        "'Q' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/EFTU_BACSU.fasta": Refused(
        "'E' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/HUMBETGLOA.fasta": Parsed(1),
    "biojulia_fasta/P02456.fasta": Refused(
        "'Z' at position 6 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/alnfile.fasta": Refused(
        "'I' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/amino.fasta": Refused(
        "'F' at position 5 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/aster.fasta": Refused(
        "'P' at position 6 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/badfasta.fasta": Parsed(3),
    "biojulia_fasta/bug2901.fasta": Refused(
        "a gap '-' in the sequence at position 24 of the line", 3, 6
    ),
    "biojulia_fasta/centaurea.fasta": Parsed(1),
    "biojulia_fasta/cysprot.fasta": Refused(
        "'I' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/cysprot1.fasta": Refused(
        "'I' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/cysprot1a.fasta": Refused(
        "'I' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/cysprot1b.fasta": Refused(
        "'L' at position 5 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/dna1.fasta": Parsed(1),
    "biojulia_fasta/dna2.fasta": Parsed(2),
    "biojulia_fasta/dnaE-bsub-prot.fasta": Refused(
        "'I' at position 5 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/dnaE-bsub.fasta": Parsed(1),
    "biojulia_fasta/ecolitst.fasta": Refused(
        "'L' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/example1.txt": Refused(
        "a space in the sequence at position 21 of the line", 1, 22
    ),
    "biojulia_fasta/example2.txt": Parsed(1),
    "biojulia_fasta/f001.fasta": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/f002.fasta": Parsed(3),
    "biojulia_fasta/f003.fasta": Refused("begins with '#', neither FASTQ nor FASTA", 1, 1),
    "biojulia_fasta/fa01.fasta": Refused(
        "'P' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/forward_reverse_primers.fasta": Parsed(2),
    "biojulia_fasta/hs_owlmonkey.fasta": Refused(
        "a gap '-' in the sequence at position 28 of the line", 1, 2
    ),
    "biojulia_fasta/index.yml": Refused("begins with a blank line, neither FASTQ nor FASTA", 1, 1),
    "biojulia_fasta/lavender.fasta": Parsed(1),
    "biojulia_fasta/loveliesbleeding.fasta": Refused(
        "'L' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/lupine.fasta": Parsed(1),
    "biojulia_fasta/phlox.fasta": Parsed(1),
    "biojulia_fasta/pictogram.fasta": Parsed(14),
    "biojulia_fasta/rosemary.fasta": Refused(
        "'P' at position 3 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/sweetpea.fasta": Parsed(1),
    "biojulia_fasta/testaln.fasta": Refused(
        "'P' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/testaln2.fasta": Refused(
        "'P' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "biojulia_fasta/wisteria.fasta": Parsed(1),
    "biojulia_fastq/error_diff_ids.fastq": Refused(
        "the '+' line names 'SLXA-B3_649_FC8437_R1_1_1_850_124'",
        3,
        11,
    ),
    "biojulia_fastq/error_double_qual.fastq": Refused(
        "expected '@' at the start of a record, found '+'", 4, 13
    ),
    "biojulia_fastq/error_qual_del.fastq": Refused(
        "the byte 0x7f at position 13 is no quality", 4, 16
    ),
    "biojulia_fastq/error_qual_space.fastq": Refused(
        "a space in the qualities at position 19", 4, 16
    ),
    "biojulia_fastq/error_qual_tab.fastq": Refused("a tab in the qualities at position 11", 5, 20),
    "biojulia_fastq/error_qual_unit_sep.fastq": Refused(
        "the byte 0x1f at position 6 is no quality", 3, 12
    ),
    "biojulia_fastq/error_qual_vtab.fastq": Refused(
        "the byte 0x0b at position 11 is no quality", 1, 4
    ),
    "biojulia_fastq/error_short_qual.fastq": Refused("25 bases but 24 qualities", 3, 12),
    "biojulia_fastq/error_tabs.fastq": Refused(
        "a tab in the sequence at position 10 of the line", 1, 2
    ),
    "biojulia_fastq/error_trunc_at_plus.fastq": Refused("the file ends after the sequence", 5, 19),
    "biojulia_fastq/error_trunc_at_seq.fastq": Refused("the file ends after the sequence", 5, 19),
    "biojulia_fastq/error_trunc_in_plus.fastq": Refused("the file ends within the '+' line", 5, 19),
    "biojulia_fastq/error_trunc_in_qual.fastq": Refused("25 bases but 24 qualities", 5, 20),
    "biojulia_fastq/error_trunc_in_seq.fastq": Refused("the file ends within the sequence", 5, 18),
    "biojulia_fastq/error_trunc_in_title.fastq": Refused("the file ends within the header", 5, 17),
    "biojulia_fastq/example.fastq": Parsed(3),
    "biojulia_fastq/illumina_faked.fastq": Refused(
        "between '@' and 'h', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/illumina_full_range_as_illumina.fastq": Parsed(2),
    "biojulia_fastq/illumina_full_range_as_sanger.fastq": Parsed(2),
    "biojulia_fastq/illumina_full_range_as_solexa.fastq": Parsed(2),
    "biojulia_fastq/illumina_full_range_original_illumina.fastq": Parsed(2),
    "biojulia_fastq/longreads_as_sanger.fastq": Parsed(10),
    "biojulia_fastq/longreads_original_sanger.fastq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 1, 3
    ),
    "biojulia_fastq/misc_dna_as_sanger.fastq": Parsed(4),
    "biojulia_fastq/misc_dna_as_solexa.fastq": Refused(
        "between ';' and 'h', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/misc_rna_as_illumina.fastq": Refused(
        "between '@' and 'h', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/misc_rna_original_sanger.fastq": Parsed(4),
    "biojulia_fastq/sanger_93.fastq": Parsed(1),
    "biojulia_fastq/sanger_full_range_as_sanger.fastq": Parsed(2),
    "biojulia_fastq/sanger_full_range_as_solexa.fastq": Parsed(2),
    "biojulia_fastq/sanger_full_range_original_sanger.fastq": Parsed(2),
    "biojulia_fastq/solexa_example.fastq": Refused(
        "between 'Q' and 'Y', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/solexa_faked.fastq": Refused(
        "between ';' and 'h', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/solexa_full_range_as_sanger.fastq": Parsed(2),
    "biojulia_fastq/solexa_full_range_as_solexa.fastq": Parsed(2),
    "biojulia_fastq/solexa_full_range_original_solexa.fastq": Parsed(2),
    "biojulia_fastq/tricky.fastq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 4, 15
    ),
    "biojulia_fastq/wrapping_as_illumina.fastq": Refused(
        "between 'A' and 'e', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/wrapping_as_solexa.fastq": Refused(
        "between ';' and 'e', which looks like Phred+64", None, None
    ),
    "biojulia_fastq/wrapping_original_sanger.fastq": Refused(
        "the qualities go on in a second line: a wrapped FASTQ is not read", 1, 5
    ),
    "biopython_fasta/centaurea.nu": Parsed(1),
    "biopython_fasta/dups.fasta": Parsed(5),
    "biopython_fasta/elderberry.nu": Parsed(1),
    "biopython_fasta/f001": Refused("'E' at position 2 of the line is not a nucleotide code", 1, 2),
    "biopython_fasta/f002": Parsed(3),
    "biopython_fasta/flowers.pro.gz": Refused(
        "'L' at position 4 of the line is not a nucleotide code", 1, 2
    ),
    "biopython_fasta/lupine.nu": Parsed(1),
    "biopython_fasta/phlox.nu": Parsed(1),
    "biopython_fasta/rose.pro": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "biopython_fasta/rosemary.pro": Refused(
        "'P' at position 3 of the line is not a nucleotide code", 1, 2
    ),
    "biopython_fasta/wisteria.nu": Parsed(1),
    "biopython_quality/error_diff_ids.fastq": Refused(
        "the '+' line names 'SLXA-B3_649_FC8437_R1_1_1_850_124'",
        3,
        11,
    ),
    "biopython_quality/error_double_qual.fastq": Refused(
        "expected '@' at the start of a record, found '+'", 4, 13
    ),
    "biopython_quality/error_double_seq.fastq": Refused(
        "expected '+' after the sequence, found '@'", 4, 15
    ),
    "biopython_quality/error_long_qual.fastq": Refused("25 bases but 26 qualities", 4, 16),
    "biopython_quality/error_no_qual.fastq": Refused("25 bases but 0 qualities", 1, 4),
    "biopython_quality/error_qual_del.fastq": Refused(
        "the byte 0x7f at position 13 is no quality", 4, 16
    ),
    "biopython_quality/error_qual_escape.fastq": Refused(
        "the byte 0x1b at position 8 is no quality", 5, 20
    ),
    "biopython_quality/error_qual_null.fastq": Refused(
        "the byte 0x00 at position 4 is no quality", 1, 4
    ),
    "biopython_quality/error_qual_tab.fastq": Refused(
        "a tab in the qualities at position 11", 5, 20
    ),
    "biopython_quality/error_qual_unit_sep.fastq": Refused(
        "the byte 0x1f at position 6 is no quality", 3, 12
    ),
    "biopython_quality/error_qual_vtab.fastq": Refused(
        "the byte 0x0b at position 11 is no quality", 1, 4
    ),
    "biopython_quality/error_short_qual.fastq": Refused("25 bases but 24 qualities", 3, 12),
    "biopython_quality/error_spaces.fastq": Refused(
        "a space in the sequence at position 10 of the line", 1, 2
    ),
    "biopython_quality/error_tabs.fastq": Refused(
        "a tab in the sequence at position 10 of the line", 1, 2
    ),
    "biopython_quality/error_trunc_at_plus.fastq": Refused(
        "the file ends after the sequence", 5, 19
    ),
    "biopython_quality/error_trunc_at_qual.fastq": Refused(
        "the file ends within the qualities (25 bases but 0 qualities)", 5, 20
    ),
    "biopython_quality/error_trunc_at_seq.fastq": Refused(
        "the file ends after the sequence", 5, 19
    ),
    "biopython_quality/error_trunc_in_plus.fastq": Refused(
        "the file ends within the '+' line", 5, 19
    ),
    "biopython_quality/error_trunc_in_qual.fastq": Refused("25 bases but 24 qualities", 5, 20),
    "biopython_quality/error_trunc_in_seq.fastq": Refused(
        "the file ends within the sequence", 5, 18
    ),
    "biopython_quality/error_trunc_in_title.fastq": Refused(
        "the file ends within the header", 5, 17
    ),
    "biopython_quality/example.fasta": Parsed(3),
    "biopython_quality/example.fastq": Parsed(3),
    "biopython_quality/example.fastq.bgz": Parsed(3),
    "biopython_quality/example.fastq.gz": Parsed(3),
    "biopython_quality/example.qual": Refused(
        "'2' at position 1 of the line is not a nucleotide code", 1, 2
    ),
    "biopython_quality/example_dos.fastq.bgz": Parsed(3),
    "biopython_quality/illumina_faked.fastq": Refused(
        "between '@' and 'h', which looks like Phred+64", None, None
    ),
    "biopython_quality/illumina_full_range_as_illumina.fastq": Parsed(2),
    "biopython_quality/illumina_full_range_as_sanger.fastq": Parsed(2),
    "biopython_quality/illumina_full_range_as_solexa.fastq": Parsed(2),
    "biopython_quality/illumina_full_range_original_illumina.fastq": Parsed(2),
    "biopython_quality/longreads_as_illumina.fastq": Refused(
        "between '@' and 'h', which looks like Phred+64", None, None
    ),
    "biopython_quality/longreads_as_sanger.fastq": Parsed(10),
    "biopython_quality/longreads_as_solexa.fastq": Refused(
        "between ';' and 'h', which looks like Phred+64", None, None
    ),
    "biopython_quality/longreads_original_sanger.fastq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 1, 3
    ),
    "biopython_quality/misc_dna_as_solexa.fastq": Refused(
        "between ';' and 'h', which looks like Phred+64", None, None
    ),
    "biopython_quality/misc_rna_as_illumina.fastq": Refused(
        "between '@' and 'h', which looks like Phred+64", None, None
    ),
    "biopython_quality/misc_rna_as_sanger.fastq": Parsed(4),
    "biopython_quality/misc_rna_original_sanger.fastq": Parsed(4),
    "biopython_quality/sanger_faked.fastq": Parsed(1),
    "biopython_quality/sanger_full_range_as_illumina.fastq": Parsed(2),
    "biopython_quality/sanger_full_range_original_sanger.fastq": Parsed(2),
    "biopython_quality/solexa_example.fastq": Refused(
        "between 'Q' and 'Y', which looks like Phred+64", None, None
    ),
    "biopython_quality/solexa_faked.fastq": Refused(
        "between ';' and 'h', which looks like Phred+64", None, None
    ),
    "biopython_quality/solexa_full_range_as_illumina.fastq": Parsed(2),
    "biopython_quality/solexa_full_range_as_sanger.fastq": Parsed(2),
    "biopython_quality/solexa_full_range_as_solexa.fastq": Parsed(2),
    "biopython_quality/solexa_full_range_original_solexa.fastq": Parsed(2),
    "biopython_quality/tricky.fastq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 4, 15
    ),
    "biopython_quality/wrapping_as_illumina.fastq": Refused(
        "between 'A' and 'e', which looks like Phred+64", None, None
    ),
    "biopython_quality/wrapping_as_sanger.fastq": Parsed(3),
    "biopython_quality/wrapping_as_solexa.fastq": Refused(
        "between ';' and 'e', which looks like Phred+64", None, None
    ),
    "biopython_quality/wrapping_original_sanger.fastq": Refused(
        "the qualities go on in a second line: a wrapped FASTQ is not read", 1, 5
    ),
    "biopython_quality/zero_length.fastq": Parsed(5),
    "cutadapt/454.fa": Parsed(59),
    "cutadapt/action_lowercase.fasta": Parsed(7),
    "cutadapt/dos.fastq": Parsed(3),
    "cutadapt/empty.fasta": Parsed(0),
    "cutadapt/illumina5.fastq": Parsed(5),
    "cutadapt/interleaved.fastq": Parsed(10),
    "cutadapt/maxn.fasta": Parsed(6),
    "cutadapt/multiblock.fastq.bz2": Parsed(3),
    "cutadapt/multiblock.fastq.gz": Parsed(3),
    "cutadapt/polya.1.fasta": Parsed(4),
    "cutadapt/polya.2.fasta": Parsed(4),
    "cutadapt/prefix-adapter.fasta": Refused(
        "'^' at position 1 of the line is not a nucleotide code", 1, 2
    ),
    "cutadapt/simple.fastq": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "cutadapt/small.fastq": Parsed(3),
    "cutadapt/small.fastq.gz": Parsed(3),
    "cutadapt/small.fastq.xz": Parsed(3),
    "cutadapt/tooshort.fa": Parsed(5),
    "cutadapt/trimN3.fasta": Parsed(1),
    "cutadapt/trimN5.fasta": Parsed(1),
    "cutadapt/wildcard.fa": Parsed(2),
    "cutadapt/wildcardN.fa": Parsed(3),
    "cutadapt/wildcard_adapter.fa": Parsed(4),
    "cutadapt/withplus.fastq": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "dnaio/dos.fastq": Parsed(3),
    "dnaio/interleaved.fastq": Parsed(4),
    "dnaio/missingextension": Parsed(3),
    "dnaio/missingextension.gz": Parsed(3),
    "dnaio/paired.1.fastq": Parsed(4),
    "dnaio/paired.2.fastq": Parsed(4),
    "dnaio/simple.fasta": Refused("'E' at position 2 of the line is not a nucleotide code", 1, 2),
    "dnaio/simple.fasta.xz": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "dnaio/simple.fastq": Refused("'E' at position 2 of the line is not a nucleotide code", 1, 2),
    "dnaio/simple.fastq.bz2": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "dnaio/simple.fastq.xz": Refused(
        "'E' at position 2 of the line is not a nucleotide code", 1, 2
    ),
    "dnaio/small.fastq": Parsed(3),
    "dnaio/with_comment.fasta": Refused("begins with '#', neither FASTQ nor FASTA", 1, 1),
    "dnaio/withplus.fastq": Refused("'E' at position 2 of the line is not a nucleotide code", 1, 2),
    "fasten/R1.fastq": Parsed(4),
    "fasten/R2.fastq": Parsed(4),
    "fasten/four_reads.fasta": Parsed(4),
    "fasten/four_reads.gt_16_lines.fastq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 1, 3
    ),
    "fasten/four_reads.pe.fastq": Parsed(8),
    "htslib/UMI.fq": Parsed(7),
    "htslib/bgziptest.txt": Refused("begins with '1', neither FASTQ nor FASTA", 1, 1),
    "htslib/bgziptest.txt.gz": Refused("begins with '1', neither FASTQ nor FASTA", 1, 1),
    "htslib/faidx.fa": Parsed(6),
    "htslib/fastqs.fq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 39, 155
    ),
    "htslib/filter_casava.fa": Parsed(4),
    "htslib/filter_casava.fq": Parsed(4),
    "htslib/interleaved.fa": Parsed(10),
    "htslib/interleaved.fq": Parsed(10),
    "htslib/interleaved_casava.fa": Parsed(10),
    "htslib/interleaved_casava.fq": Parsed(10),
    "htslib/longline.fq": Parsed(1),
    "htslib/minimal.fq": Parsed(1),
    "htslib/multiline.fa": Parsed(2),
    "htslib/multiline.fq": Refused(
        "the sequence goes on in a second line: a wrapped FASTQ is not read", 1, 3
    ),
    "htslib/name2.fa": Parsed(4),
    "htslib/name2.fq": Parsed(4),
    "htslib/r1.fq": Parsed(5),
    "htslib/r2.fa": Parsed(5),
    "htslib/r2.fq": Parsed(5),
    "htslib/single.fa": Parsed(5),
    "htslib/single.fq": Parsed(5),
    "megahit/empty.fa": Parsed(0),
    "megahit/loop.fa": Parsed(2),
    "megahit/r4.fa": Parsed(2),
    "needletail/bad_header.fastq": Refused(
        "expected '@' at the start of a record, found '>'", 2, 5
    ),
    "needletail/random_tsv.fq": Refused("this looks like a SAM file", 2, 5),
    "needletail/test.fa.bz2": Parsed(2),
    "needletail/test.fa.gz": Parsed(2),
    "needletail/test.fa.xz": Parsed(2),
    "needletail/test.fa.zst": Parsed(2),
    "read_name_styles/hiseq_precasava_R1.fastq": Parsed(32),
    "read_name_styles/hiseq_precasava_R2.fastq": Parsed(32),
    "read_name_styles/hiseq_precasava_multilane_R2.fastq": Parsed(32),
    "read_name_styles/hiseq_precasava_sra_R1.fastq": Parsed(32),
    "read_name_styles/hiseq_precasava_sra_R2.fastq": Parsed(32),
    "read_name_styles/miseq_casava_R1.fastq": Parsed(32),
    "read_name_styles/miseq_casava_multilane_R2.fastq": Parsed(32),
    "read_name_styles/miseq_casava_sra_R1.fastq": Parsed(32),
    "read_name_styles/miseq_casava_sra_R2.fastq": Parsed(32),
    "skani/all_ns.fa": Parsed(1),
    "skani/empty_fasta.fa": Parsed(2),
}

PAIRS: dict[tuple[str, str], int | str] = {
    ("dnaio/paired.1.fastq", "dnaio/paired.2.fastq"): 4,
    ("fasten/R1.fastq", "fasten/R2.fastq"): 4,
    ("cutadapt/polya.1.fasta", "cutadapt/polya.2.fasta"): 4,
    ("htslib/r1.fq", "htslib/r2.fq"): 5,
    ("read_name_styles/hiseq_precasava_R1.fastq", "read_name_styles/hiseq_precasava_R2.fastq"): 32,
    (
        "read_name_styles/hiseq_precasava_R1.fastq",
        "read_name_styles/hiseq_precasava_multilane_R2.fastq",
    ): "not those of mates",
    (
        "read_name_styles/hiseq_precasava_sra_R1.fastq",
        "read_name_styles/hiseq_precasava_sra_R2.fastq",
    ): 32,
    (
        "read_name_styles/miseq_casava_R1.fastq",
        "read_name_styles/miseq_casava_multilane_R2.fastq",
    ): "not those of mates",
    (
        "read_name_styles/miseq_casava_sra_R1.fastq",
        "read_name_styles/miseq_casava_sra_R2.fastq",
    ): 32,
    (
        "read_name_styles/miseq_casava_R1.fastq",
        "read_name_styles/hiseq_precasava_R2.fastq",
    ): "not those of mates",
    ("fasten/R1.fastq", "fasten/R1.fastq"): "the same mate number",
    ("dnaio/small.fastq", "cutadapt/empty.fasta"): "ends after 0 records",
}
"""Files that are pairs: number of pairs, or the cause why they are refused."""

INTERLEAVED: dict[str, int | str] = {
    "cutadapt/interleaved.fastq": 5,
    "dnaio/interleaved.fastq": 2,
    "fasten/four_reads.pe.fastq": 4,
    "htslib/interleaved.fa": 5,
    "htslib/interleaved.fq": 5,
    "htslib/interleaved_casava.fa": 5,
    "htslib/interleaved_casava.fq": 5,
    "htslib/filter_casava.fq": 2,
    "megahit/r4.fa": "not those of mates",
    "dnaio/small.fastq": "not those of mates",
    "htslib/minimal.fq": "even number of records, but there are 1",
}
"""Files read as interleaved: number of pairs, or the cause why they are refused."""
