"""Reads of BAM and CRAM files as FASTQ text, the same bytes as ``samtools fastq``.

``bam`` cuts an inflated BAM file into pieces of whole records, ``fastq`` turns those to text;
``cram`` has htslib turn a CRAM file to BAM.
"""
