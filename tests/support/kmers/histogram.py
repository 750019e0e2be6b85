"""The histogram of files' k-mers as a run counts it where no database is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers import CountParameters, Source
from ngsgpu.kmers.count import count_into
from ngsgpu.kmers.database import Tally
from ngsgpu.kmers.stats import CountStatistics
from ngsgpu.run.driver import FilesDriver, folder_beside
from ngsgpu.run.options import RunOptions
from ngsgpu.run.progress import Run


class Histogram(NamedTuple):
    by_count: NDArray[np.int64]
    source: Source


def histogram_of_files(
    paths: list[Path],
    parameters: CountParameters,
    *,
    beside: Path,
    options: RunOptions | None = None,
    **how: Any,
) -> Histogram:
    """All of it, which the file of a histogram does not have."""
    done: list[Histogram] = []

    def counted(run: Run[CountParameters], files: OutputSet) -> CountStatistics:
        tally = Tally()
        with folder_beside(beside) as folder:
            source = count_into(tally, run, paths, run.parameters, folder, ReadSample())
        done.append(Histogram(tally.histogram, source))
        return CountStatistics.after(run, sequences=0, bases=0, kmers=0, distinct=0)

    FilesDriver(CountParameters).run_files(
        paths, (), counted, parameters=parameters, options=options, stats=None, **how
    )
    return done[-1]
