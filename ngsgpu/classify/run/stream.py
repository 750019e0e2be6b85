"""Samples that come one by one, to a database that was opened once.

A row of a sheet is a sample. It is classified when its line is there, its outputs appear when it
ends, and a line says so; a sample that fails is reported, and the next one is taken. Between two
samples nothing is kept but the names of those that are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ngsgpu.classify.run.pipeline import Classifier
from ngsgpu.classify.run.samples import (
    ClassificationStatistics,
    SampleOutputs,
    sample_of_row,
    sample_rows,
)
from ngsgpu.errors import InputError, NgsgpuError, UsageError
from ngsgpu.io.paths import check_distinct
from ngsgpu.io.text.reader import PhredOffset

COLUMNS: Final = ("sample", "status", "queries", "classified", "seconds", "message")
"""Of the lines with results; status is ``done`` or ``failed``."""


def check_stream(outputs: SampleOutputs) -> None:
    """Refuse outputs that samples would share; raises UsageError."""
    outputs.check(2)
    for own in outputs.formats("samples"):
        if own.name in outputs.shared:
            raise UsageError(
                f"with `samples='-'` there is no last sample: put {{sample}} into `{own.name}`"
            )


def classify_stream(
    classifier: Classifier,
    lines: Iterable[str],
    outputs: SampleOutputs,
    result: Callable[[str], None],
    done: Callable[[ClassificationStatistics], None] = lambda _: None,
    *,
    also_read: Sequence[str] = (),
    phred_offset: PhredOffset = "auto",
) -> list[int]:
    """Classify the samples of a sheet as its lines come.

    Args:
        classifier: with its database.
        lines: of standard input: names of the columns, then a sample a line
            (``samples.sample_of_row``).
        outputs: files of each sample.
        result: called with a line of ``COLUMNS`` for each sample.
        done: called with the statistics of each sample that did not fail.
        also_read: files and directories that no output may replace.
        phred_offset: as for ``read_batches``.

    Returns:
        Exit statuses of the samples that failed.

    Raises:
        InputError: the first line does not name the columns.
        UsageError: outputs would be shared.
    """
    check_stream(outputs)
    result("\t".join(COLUMNS))
    known: set[str] = set()
    failures: list[int] = []

    def fail(error: NgsgpuError, name: str = "") -> None:
        failures.append(error.exit_status)
        result("\t".join((name, "failed", "", "", "", str(error))))

    for line, row in sample_rows("-", lines, fail):
        name = row.get("sample", "")
        try:
            sample = sample_of_row("-", line, row)
            inputs = [path for lane in sample.lanes for path in lane.inputs]
            if "-" in inputs:
                cause = "reads cannot come from standard input, which has the samples"
                raise InputError("-", cause, "name a file", line=line)
            if name in known:
                raise InputError(
                    "-", f"the sample {name} has been classified already",
                    "name all of its lanes in one line, separated by ';'", line=line,
                )  # fmt: skip
            check_distinct([], outputs.of_samples([name]), also_read=also_read)
            (statistics,) = classifier.classify([sample], outputs, phred_offset=phred_offset)
        except NgsgpuError as error:
            fail(error, name)
            continue
        known.add(name)
        queries = statistics.queries
        counts = (queries["total"], queries.get("classified", ""), statistics.time_s["total"])
        result("\t".join((name, "done", *map(str, counts), "")))
        done(statistics)
    return failures
