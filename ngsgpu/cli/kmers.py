"""``ngsgpu kmers``: the k-mer spectrum of reads."""

from __future__ import annotations

from ngsgpu.cli.options import Threads, flag, option
from ngsgpu.cli.run import thread_count


def kmers(
    in1: list[str] = option(
        ..., "FILE", "Reads or first mates; repeat for more files.", "-i", "--in1"
    ),
    in2: list[str] | None = option(
        None, "FILE", "Second mates; repeat for more files.", "-I", "--in2"
    ),
    out: str = option("-", "FILE", "Histogram file; - is standard output.", "-o", "--out"),
    kmer: int = option(21, "K", "k-mer length, 1 to 32.", "-k", "--kmer"),
    exact: bool = flag("Count all k-mers instead of a sample.", "--exact"),
    threads: Threads = 0,
) -> None:
    """Compute the k-mer spectrum of reads and estimate the coverage.

    The histogram lists each multiplicity with its number of distinct canonical k-mers. For large
    inputs only a sample of the k-mers is counted, each with all its occurrences. The first line
    gives the sampling rate and the estimated coverage (reads per genome position).
    """
    from ngsgpu.errors import UsageError
    from ngsgpu.io.output.atomic import check_distinct, write_text_atomically
    from ngsgpu.io.text.reader import read_batches
    from ngsgpu.readset import ReadSetBuilder
    from ngsgpu.readset.kmers import count_kmers, estimate_coverage

    if not 1 <= kmer <= 32:
        raise UsageError(f"--kmer must be from 1 to 32, not {kmer}")
    files = [*in1, *(in2 or [])]
    check_distinct(files, [out])
    threads = thread_count(threads)
    builder = ReadSetBuilder(paired=False, quality_bits=0, threads=threads)
    for path in files:
        for _ in builder.add_all((batch,) for batch in read_batches(path, threads=threads)):
            pass
    spectrum = count_kmers(builder.finish(), kmer, threads=threads, exact=exact)
    lines = [
        f"# k={kmer} sampled=1/{spectrum.sampled} coverage={estimate_coverage(spectrum):.2f}",
        "multiplicity\tcount",
    ]
    pairs = zip(spectrum.multiplicity.tolist(), spectrum.count.tolist(), strict=True)
    lines += [f"{multiplicity}\t{count}" for multiplicity, count in pairs]
    write_text_atomically(out, "\n".join(lines) + "\n")
