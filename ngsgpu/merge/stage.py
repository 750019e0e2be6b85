"""Merging as a stage: what is made of some pairs, and runs from files to files."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ngsgpu.device.plan import HostPlan
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import ReadFiles, pair_inputs
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.merge.cpu import Outputs, Tally, merge_records, new_counts
from ngsgpu.merge.outputs import MergeOutputs
from ngsgpu.merge.params import MergeParameters
from ngsgpu.merge.qualities import Tables
from ngsgpu.merge.rules import Rules
from ngsgpu.merge.sample import Learned, learn, take_sample, unlearned
from ngsgpu.merge.stats import MergeStatistics
from ngsgpu.run.options import RunOptions
from ngsgpu.run.plan import plan_records
from ngsgpu.run.record import Batch, Made, RecordDriver, RecordStage, Task

if TYPE_CHECKING:
    from ngsgpu.merge.gpu import MergingKernels

logger = logging.getLogger("ngsgpu")

MANY_BEYOND = 0.5
"""Part of the merged pairs that may overlap by more than ``max_overlap`` without a warning."""

_SLACK = 64
"""Bytes by which an output may exceed its input: a final line feed missing from the input."""


def merge_files(
    in1: Paths,
    in2: Paths = (),
    outputs: MergeOutputs | None = None,
    *,
    interleaved: bool = False,
    parameters: MergeParameters | None = None,
    phred_offset: PhredOffset = "auto",
    options: RunOptions | None = None,
) -> MergeStatistics:
    """Merge the overlapping pairs of files.

    Args:
        in1: files of first mates, or of interleaved mates; ``-`` is standard input. Several are
            concatenated.
        in2: files of second mates, as many as ``in1``, or none.
        outputs: output files; names ending in ``.gz`` or ``.zst`` are compressed.
        interleaved: whether ``in1`` holds both mates.
        parameters: merging parameters.
        phred_offset: 33, 64, or ``auto`` (33, but input that looks like 64 is refused).
        options: threads and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: files or parameters are inconsistent.
        OutputError: an output cannot be written; none was.
    """
    lanes = _lanes(in1, in2, interleaved)
    outputs = outputs or MergeOutputs()
    options = options or RunOptions()
    stage = Merging(outputs, parameters or MergeParameters(), phred_offset, options.threads)
    driver = RecordDriver(
        lanes,
        list(outputs.reads.values()),
        options,
        texts=outputs.text_paths,
        stats=outputs.stats,
    )
    statistics = driver.run(stage)
    _warn(statistics)
    return statistics


def plan_files(
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    options: RunOptions | None = None,
) -> HostPlan:
    """Plan the memory of ``merge_files``, whose arguments these are.

    Raises:
        UsageError: the files are inconsistent.
    """
    return plan_records(Merging.WORK, _lanes(in1, in2, interleaved), options or RunOptions())


def _lanes(in1: Paths, in2: Paths, interleaved: bool) -> list[ReadFiles]:
    lanes = pair_inputs(in1, in2, interleaved=interleaved, option="interleaved_in")
    if not lanes[0].paired:
        raise UsageError(
            "merging needs both mates; give second mates with `in2`, or `interleaved_in` "
            "if `in1` holds both"
        )
    return lanes


class Merging(RecordStage[MergeStatistics]):
    """Makes one read of both mates, where they overlap.

    Args:
        outputs: what is written.
        parameters: merging parameters.
        phred_offset: 33, 64 or ``auto``.
        threads: threads that learn from the first pairs.

    Raises:
        UsageError: outputs and parameters contradict each other.
    """

    NAME = "merge"
    DOING = WORK = "merging"
    LONG_READS = "long reads need none"
    NEEDS_QUALITIES = True

    def __init__(
        self,
        outputs: MergeOutputs,
        parameters: MergeParameters,
        phred_offset: PhredOffset,
        threads: int,
    ) -> None:
        outputs.check(parameters)
        self._outputs = outputs
        self._targets = {number: index for index, number in enumerate(outputs.reads)}
        self._parameters = parameters
        self.phred_offset = phred_offset
        self._threads = threads
        self._learned: Learned | None = None
        self._rules: Rules
        self._tables: Tables

    def learn(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """See ``RecordStage``; of a number for ``max_overlap`` there is nothing to learn."""
        parameters = self._parameters
        offset = 33 if self.phred_offset == "auto" else self.phred_offset
        if parameters.max_overlap is not None:
            self._rules = parameters.rules(parameters.max_overlap, offset)
            self._tables = unlearned(parameters, offset)
            return batches
        sample, batches = take_sample(batches)
        if parameters.overlap == "likelihood":
            rules = parameters.rules(sample.longest, offset)
            learned = learn(sample, parameters, rules, self._threads)
            self._rules, self._tables, self._learned = learned
            return batches
        most = parameters.automatic_max_overlap(sample.mean_length, sample.longest)
        logger.info("max-overlap: %d bases", most)
        self._rules, self._tables = parameters.rules(most, offset), unlearned(parameters, offset)
        return batches

    def targets(self, lane: ReadFiles) -> Mapping[int, int]:
        """See ``RecordStage``."""
        return self._targets

    def no_counts(self) -> Tally:
        """See ``RecordStage``."""
        return Tally()

    def on_cpu(self, task: Task) -> Made:
        """See ``RecordStage``."""
        (mates1, mates2), _, begin, end, _ = task
        rules, wanted = self._rules, self._outputs.wanted
        rooms = [_output_bytes(mates, begin, end) for mates in (mates1, mates2)]
        merged = 0 if rules.correct_only else sum(rooms)
        first, second = rooms if wanted.unmerged else (0, 0)
        if wanted.interleaved:
            first, second = first + second, 0
        outputs = Outputs(
            np.empty(merged, dtype=np.uint8),
            np.empty(first, dtype=np.uint8),
            np.empty(second, dtype=np.uint8),
            wanted.unmerged,
            wanted.interleaved,
        )
        longest = sum(int(mates.seq_len[begin:end].max()) for mates in (mates1, mates2))
        counts = new_counts(longest)
        sizes = merge_records(rules, self._tables, mates1, mates2, begin, end, outputs, counts)
        return Made([room[:size] for room, size in zip(outputs[:3], sizes, strict=True)], counts)

    def on_gpu(self, chunk_bytes: int) -> MergingKernels:
        """See ``RecordStage``."""
        from ngsgpu.merge.gpu import MergingKernels

        return MergingKernels(self._rules, self._tables, self._outputs.wanted, chunk_bytes)

    def texts(self, counts: Tally) -> Iterable[str]:
        """See ``RecordStage``."""
        return self._outputs.texts(counts).values()

    def statistics(self, options: RunOptions, backend: str, counts: Tally) -> MergeStatistics:
        """See ``RecordStage``."""
        statistics = MergeStatistics.begun(
            options,
            backend,
            self._parameters,
            parameters={"phred_offset": self.phred_offset},
            learned={} if self._learned is None else self._learned.for_statistics(),
            max_overlap={
                "value": self._rules.max_overlap,
                "automatic": self._parameters.max_overlap is None,
            },
        )
        statistics.count(counts)
        return statistics


def _output_bytes(mates: Mates, begin: int, end: int) -> int:
    """Maximum size of rewritten records: header, two lines, six other bytes."""
    headers = mates.header_end[begin:end] - mates.header_start[begin:end]
    bases = mates.seq_len[begin:end].sum(dtype=np.int64)
    return int(headers.sum() + 2 * bases) + 6 * (end - begin) + _SLACK


def _warn(statistics: MergeStatistics) -> None:
    """Warn if most overlaps exceed the scored length."""
    merged, beyond = (statistics.pairs[name] for name in ("merged", "beyond_max_overlap"))
    if merged and beyond > MANY_BEYOND * merged:
        logger.warning(
            "%.1f %% of the overlaps are longer than `max_overlap=%d`, beyond which they are "
            "scored too low; give `max_overlap` auto",
            100 * beyond / merged,
            statistics.max_overlap["value"],
        )
