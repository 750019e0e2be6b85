"""Ungapped alignment of reads and multiple alignments (MSAs), for CPU and GPU."""
