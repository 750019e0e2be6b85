"""Fast compression of reads: deflate blocks made for FASTQ and FASTA, the same on CPU and GPU.

In reads, what repeats is where it is expected, so no search is needed:

- A header, quality or other line is compared with the line four before it (a header of FASTA also
  with those two and three before, a separator that repeats the header with that): what both begin
  with is copied, and what both end with. Between, fields of headers are copied from the separator
  before them on.
- Equal neighbours in quality lines are copied from one byte before, as a run.
- Bases are literals. Only where a sample of a block's reads finds bases of earlier ones (amplicons,
  deep coverage of small genomes, sorted reads), all are looked up in a table of 16-mers.

Each block of BGZF has one deflate block with a Huffman code for its own symbols. All decisions are
made within a block, on integers, line by line.

Read ``symbols``, ``matches`` (what is copied), ``codes`` (Huffman codes), ``bits`` (a block's
bytes), ``blocks`` (BGZF); ``words`` has what Numba does not offer.
"""
