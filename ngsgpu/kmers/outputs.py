"""What ``ngsgpu kmers count`` writes: a database, a histogram, statistics, all of them or none."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.output.atomic import AtomicFile, commit_all
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.kmers.count import count_files, histogram_of_files
from ngsgpu.kmers.database import Source
from ngsgpu.kmers.params import CountParameters
from ngsgpu.kmers.stats import CountStatistics, Observed
from ngsgpu.kmers.text import SHOWN_COUNTS, histogram_lines
from ngsgpu.run.options import RunOptions
from ngsgpu.run.statistics import statistics_file
from ngsgpu.run.trimming import warn_of_adapters


def write_counts(
    first: Sequence[str],
    second: Sequence[str],
    out: str | None,
    histo_file: str | None,
    parameters: CountParameters,
    *,
    stats: str | None,
    phred_offset: PhredOffset,
    options: RunOptions,
) -> CountStatistics:
    """Count the k-mers of files into a database, a histogram, or both.

    Args:
        first: files of reads or first mates, or of other sequences.
        second: further files, which may be those of second mates.
        out: folder of the database.
        histo_file: file of the histogram; ``-`` is standard output.
        parameters: which k-mers are counted.
        stats: JSON file for the statistics.
        phred_offset: of the qualities.
        options: backend, threads, memory and progress; do not affect the result.

    Raises:
        UsageError: there is no input, or neither database nor histogram.
        NgsgpuError: as of ``count_files``.
    """
    if out is None and histo_file is None:
        raise UsageError("no output given; name a folder with `out`, or a file with `histo_file`")
    started = time.monotonic()
    paths, observed = [*first, *second], Observed()
    done: list[CountStatistics] = []
    with contextlib.ExitStack() as opened:
        shown = None if histo_file is None else opened.enter_context(AtomicFile(histo_file))
        complete = opened.enter_context(statistics_file(stats))

        def filled(
            source: Source, distinct: int, by_count: Callable[[], NDArray[np.int64]]
        ) -> list[AtomicFile]:
            """The files besides the database, with their contents but not their names."""
            if shown is not None:
                for line in histogram_lines(by_count(), SHOWN_COUNTS):
                    shown.write(line.encode())
            summary = CountStatistics.begun(
                options,
                observed.backend,
                parameters,
                sequences=source.sequences,
                bases=source.bases,
                kmers=source.kmers,
                distinct=distinct,
                adapters=_adapters(observed, first, second),
                time_s={"total": round(time.monotonic() - started, 3)},
            )
            done.append(summary)
            if shown is not None:
                shown.close()
            return [*([] if shown is None else [shown]), *complete(summary)]

        if out is not None:
            count_files(
                paths, out, parameters, phred_offset=phred_offset, options=options,
                observed=observed,
                also=lambda own: filled(
                    own.source, len(own), lambda: own.histogram(options.threads)
                ),
            )  # fmt: skip
        else:
            beside = Path.cwd() / "kmers" if histo_file == "-" else Path(str(histo_file))
            tally, source = histogram_of_files(
                paths, parameters, beside=beside, phred_offset=phred_offset, options=options,
                observed=observed,
            )  # fmt: skip
            commit_all(filled(source, int(tally.sum()), lambda: tally))
    return done[0]


def _adapters(observed: Observed, first: Sequence[str], second: Sequence[str]) -> dict[str, object]:
    """What the sample of the reads says of adapters, with a warning if there are many."""
    # A file of second mates for each of first ones is the rule, but none is known to be one.
    paired = len(second) == len(first)
    lanes = zip(first, second, strict=True) if paired else ((path,) for path in [*first, *second])
    files = [ReadFiles(tuple(lane)) for lane in lanes]
    return warn_of_adapters(observed.sample, files, "their k-mers are counted as well")
