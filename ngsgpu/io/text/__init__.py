"""FASTA, FASTQ and tables as batches of records and blocks of lines."""
