"""FASTQ to and from GPU memory."""
