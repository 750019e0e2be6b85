"""Trimming as a stage: what is made of some records, and runs from files to files."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu._version import __version__
from ngsgpu.device.plan import Allocation, HostPlan
from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.inputs import ReadFiles, pair_inputs
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.pairs import Mates
from ngsgpu.io.text.reader import read_batches
from ngsgpu.run.options import RunOptions
from ngsgpu.run.plan import plan_records
from ngsgpu.run.record import Batch, Made, RecordDriver, RecordStage, Task
from ngsgpu.trim.adapters import is_two_coloured
from ngsgpu.trim.counts import Counts, Tally
from ngsgpu.trim.cpu import FAILED, KEPT1, KEPT2, UNPAIRED1, UNPAIRED2, Room, trim_records
from ngsgpu.trim.detect import SAMPLE_BASES, detected, detected_by_fastp, is_enough
from ngsgpu.trim.duplicates import Duplicates, table_bytes
from ngsgpu.trim.outputs import TrimOutputs
from ngsgpu.trim.params import AUTO, TrimParameters
from ngsgpu.trim.records import lacks_index
from ngsgpu.trim.report import report_of
from ngsgpu.trim.rules import Rules, rules_of
from ngsgpu.trim.stats import TrimStatistics, cuts_of

if TYPE_CHECKING:
    from ngsgpu.trim.gpu import TrimmingKernels, Wanted

logger = logging.getLogger("ngsgpu")

_SHORTEST_OTHER = 6
"""Shorter sequences of ``adapter_fasta`` would be found everywhere."""

_SAMPLE_BYTES = 4 * SAMPLE_BASES
"""Text of the reads that an adapter is detected from, and once more the text of one mate."""

_REASON_BYTES = 32
_SLACK = 64


def trim_files(
    in1: Paths,
    in2: Paths = (),
    outputs: TrimOutputs | None = None,
    *,
    interleaved: bool = False,
    parameters: TrimParameters | None = None,
    phred64: bool = False,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> TrimStatistics:
    """Trim the reads of files, and keep those that are good enough.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates; ``-`` is standard
            input. Several are concatenated.
        in2: files of second mates, as many as ``in1``, or none.
        outputs: output files.
        interleaved: whether ``in1`` holds both mates.
        parameters: what is trimmed and kept.
        phred64: whether qualities are Phred+64; those of the outputs are Phred+33.
        stats: JSON file for the statistics.
        options: threads and so on.

    Raises:
        InputError: an input cannot be read; no output was written.
        UsageError: files or parameters are inconsistent.
        OutputError: an output cannot be written; none was.
    """
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    parameters, outputs = parameters or TrimParameters(), outputs or TrimOutputs()
    options = options or RunOptions()
    stage = Trimming(outputs, parameters, lanes[0].paired, phred64, options)
    fasta = parameters.adapter_fasta
    driver = RecordDriver(
        lanes,
        list(outputs.numbers.values()),
        options,
        texts=outputs.texts,
        stats=stats,
        also_read=[] if fasta is None else [fasta],
    )
    statistics = driver.run(stage)
    for warning in statistics.warnings():
        logger.warning("%s", warning)
    return statistics


def plan_files(
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: TrimParameters | None = None,
    options: RunOptions | None = None,
) -> HostPlan:
    """Plan the memory of ``trim_files``, whose arguments these are.

    Raises:
        UsageError: the files are inconsistent.
    """
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    parameters, options = parameters or TrimParameters(), options or RunOptions()
    paired = lanes[0].paired
    paired, own = lanes[0].paired, []
    if any(parameters.detects(paired, second) for second in (False, True)):
        own.append(Allocation("first reads", _SAMPLE_BYTES << paired))
    if parameters.evaluates_duplication:
        own.append(Allocation("duplicates", table_bytes(parameters.duplication_level)))
    return plan_records(Trimming.WORK, lanes, options, *own)


class Trimming(RecordStage[TrimStatistics]):
    """Trims reads and keeps those that are good enough.

    Args:
        outputs: what is written.
        parameters: what is trimmed and kept.
        paired: whether reads have mates.
        phred64: whether qualities are Phred+64.
        options: of the run.

    Raises:
        UsageError: outputs and parameters do not fit the reads.
        InputError: ``adapter_fasta`` cannot be read.
    """

    NAME = "trim"
    DOING = WORK = "trimming"
    NEEDS_QUALITIES = True

    def __init__(
        self,
        outputs: TrimOutputs,
        parameters: TrimParameters,
        paired: bool,
        phred64: bool,
        options: RunOptions,
    ) -> None:
        outputs.check(paired)
        if not paired and parameters.umi and parameters.umi_loc in ("index2", "read2"):
            raise UsageError(f"`umi_loc` {parameters.umi_loc} is for pairs")
        self.phred_offset: Literal[33, 64] = 64 if phred64 else 33
        self._outputs = outputs
        self._targets = {number: index for index, number in enumerate(outputs.numbers)}
        self._parameters = parameters
        self._paired = paired
        self._command = outputs.titled(options.command)
        self._others = _sequences_of(parameters.adapter_fasta)
        self._duplicates: Duplicates | None = None
        self._adapters = parameters.adapter_sequence, parameters.second_adapter
        self._two_colours = False
        self._rules: Rules

    def learn(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """See ``RecordStage``: the instrument, and adapters that are to be detected."""
        own = self._parameters
        looked_at: list[Batch] = []
        detects = [own.detects(self._paired, mate == 1) for mate in (0, 1)]
        for batch in batches:
            looked_at.append(batch)
            if not any(detects) or all(
                is_enough(looked_at, own) for own in range(len(batch.mates))
            ):
                break
        if looked_at:
            name = _first_name(looked_at[0].mates[0])
            self._two_colours = is_two_coloured(name, as_fastp=own.fastp)
        if any(detects):
            self._adapters = self._detected(looked_at, detects)
        self._rules = rules_of(
            own,
            paired=self._paired,
            two_colours=self._two_colours,
            adapters=self._adapters,
            others=self._others,
            is_64=self.phred_offset == 64,
        )
        if looked_at and not own.fastp:
            self._check_index(looked_at[0])
        if own.evaluates_duplication:
            self._duplicates = Duplicates(own.duplication_level)
        return chain(looked_at, batches)

    def _check_index(self, batch: Batch) -> None:
        """Refuse reads of which already the first has no index in its name, if it is a UMI."""
        first, second = batch.mates[0], batch.mates[-1]
        if len(first.header_start) and lacks_index(first, second, self._paired, 0, self._rules):
            raise InputError(
                batch.lane.inputs[0],
                f"the name {_first_name(first).decode('latin-1')} has no index of bases behind its "
                "last colon or #",
                f"`umi_loc` {self._parameters.umi_loc} needs one; see `umi_loc` for other places",
                record=1,
                line=1,
            )

    def _detected(self, looked_at: list[Batch], wanted: list[bool]) -> tuple[str, str]:
        """The adapters of both mates, of which the wanted ones are looked for."""
        find = detected_by_fastp if self._parameters.fastp else detected
        found = find(looked_at, wanted, self._parameters.trim_tail1)
        for mate in np.flatnonzero(wanted).tolist():
            of = f" of mates {mate + 1}" if self._paired else ""
            logger.info("adapter%s: %s", of, found[mate] or "none detected")
        first, second = np.where(wanted, found, self._adapters).tolist()
        return first, second

    def targets(self, lane: ReadFiles) -> Mapping[int, int]:
        """See ``RecordStage``."""
        return self._targets

    def no_counts(self) -> Counts:
        """See ``RecordStage``."""
        return Counts()

    def prepare(self, task: Task) -> Task:
        """See ``RecordStage``: duplicates are found in the order of the reads."""
        if not self._parameters.dedup:
            return task
        assert self._duplicates is not None
        return task._replace(prepared=self._duplicates.find(task.mates, task.begin, task.end))

    def on_cpu(self, task: Task) -> Made:
        """See ``RecordStage``."""
        mates, _, begin, end, prepared = task
        leaves_out, count = np.zeros(0, dtype=np.bool_), 0
        if prepared is not None:
            leaves_out, count = prepared
        elif self._duplicates is not None:
            _, count = self._duplicates.find(mates, begin, end)
        first, second = mates[0], mates[-1]
        longest = max(int(own.seq_len[begin:end].max(initial=0)) for own in mates)
        tally = Tally.none(longest, len(mates))
        room = self._room(mates, begin, end)
        sizes = trim_records(
            first, second, self._paired, begin, end, longest, self._rules, leaves_out, room, tally
        )
        adapters = _adapters_in(room)
        pieces = [out[:size] for out, size in zip(room.outputs, sizes, strict=False)]
        return Made(pieces, Counts.of(tally, adapters, count))

    def _room(self, mates: tuple[Mates, ...], begin: int, end: int) -> Room:
        wanted = self._outputs.numbers
        tag = self._tag_bytes(mates, begin, end)
        bytes_of = [_bytes(own, begin, end, tag) for own in mates]
        interleaved = self._paired and KEPT2 not in wanted
        whole = sum(bytes_of)

        def out(number: int, size: int = whole) -> NDArray[np.uint8]:
            return np.empty(size if number in wanted or number == KEPT1 else 0, dtype=np.uint8)

        bases = sum(int(own.seq_len[begin:end].sum(dtype=np.int64)) for own in mates)
        longest = int(np.diff(self._rules.adapter_ends[:3]).max(initial=0))
        return Room(
            (
                out(KEPT1, whole if interleaved else bytes_of[0]),
                out(KEPT2, bytes_of[-1]),
                out(UNPAIRED1),
                out(UNPAIRED2),
                out(FAILED),
            ),
            (UNPAIRED1 in wanted, UNPAIRED2 in wanted, FAILED in wanted),
            interleaved,
            np.empty(bases + 2 * longest * (end - begin), dtype=np.uint8),
            np.zeros((end - begin, 2), dtype=np.int64),
            np.empty(tag, dtype=np.uint8),
        )

    def _tag_bytes(self, mates: tuple[Mates, ...], begin: int, end: int) -> int:
        """Bytes that a UMI takes in a name, at most: parts of both mates' names or reads."""
        own = self._parameters
        if not own.umi:
            return 0
        names = [each.header_end[begin:end] - each.header_start[begin:end] for each in mates]
        longest = max(int(each.max(initial=0)) for each in names)
        return 2 * (longest + own.umi_len) + len(own.umi_prefix) + 4

    def gpu_room(self, memory: int) -> int:
        """See ``RecordStage``; batches may take more than other stages'."""
        from ngsgpu.run.record_gpu import MEMORY_PER_CHUNK_BYTE

        return MEMORY_PER_CHUNK_BYTE * self._wanted.chunk_within(self._rules, memory)

    def on_gpu(self, chunk_bytes: int) -> TrimmingKernels:
        """See ``RecordStage``."""
        from ngsgpu.trim.gpu import TrimmingKernels

        return TrimmingKernels(self._rules, self._wanted, chunk_bytes)

    @property
    def _wanted(self) -> Wanted:
        from ngsgpu.trim.gpu import Wanted

        return Wanted(
            outputs=frozenset(self._outputs.numbers),
            notes=self._outputs.json is not None,
            paired=self._paired,
            duplicates=self._duplicates,
            dedup=self._parameters.dedup,
        )

    def texts(self, counts: Counts) -> Iterable[str]:
        """See ``RecordStage``."""
        if self._outputs.json is None:
            return ()
        return [
            report_of(
                counts,
                self._parameters,
                paired=self._paired,
                adapters=self._adapters,
                version=f"0.23.2, by ngsgpu {__version__}",
                command=self._command,
                cuts={} if self._parameters.fastp else cuts_of(self._rules, self._paired),
            )
        ]

    def statistics(self, options: RunOptions, backend: str, counts: Counts) -> TrimStatistics:
        """See ``RecordStage``."""
        statistics = TrimStatistics.begun(
            options,
            backend,
            self._parameters,
            parameters={"phred_offset": self.phred_offset},
            paired=self._paired,
            adapters={
                "sequences": [own for own in self._adapters if own not in ("", AUTO)],
            },
            duplicates=counts.duplicates if self._duplicates is not None else None,
            two_colours=self._two_colours,
            cuts=cuts_of(self._rules, self._paired),
        )
        statistics.count(counts)
        return statistics


def _bytes(mates: Mates, begin: int, end: int, tag: int) -> int:
    """Maximum size of written records: as they are, with a UMI and a reason."""
    own = int((mates.record_end[begin:end] - mates.header_start[begin:end]).sum())
    return own + (_REASON_BYTES + 6 + tag) * (end - begin) + _SLACK


def _first_name(mates: Mates) -> bytes:
    if len(mates.header_start) == 0:
        return b""
    return bytes(mates.data[mates.header_start[0] - 1 : mates.header_end[0]])


def _sequences_of(fasta: str | Path | None) -> list[str]:
    """Sequences of a FASTA file that are long enough, in the order of their names."""
    if fasta is None:
        return []
    found: dict[str, str] = {}
    for batch in read_batches(fasta, threads=1, phred_offset=33):
        for i in range(len(batch)):
            name = bytes(batch.data[batch.header_start[i] : batch.header_end[i]])
            text = bytes(batch.data[batch.seq_start[i] : batch.seq_end[i]])
            found[name.decode("latin-1")] = "".join(text.decode("latin-1").split()).upper()
    long = [found[name] for name in sorted(found) if len(found[name]) >= _SHORTEST_OTHER]
    if not long:
        raise InputError(
            fasta, f"no sequence has {_SHORTEST_OTHER} bases", "give the sequences of adapters"
        )
    return long


def _adapters_in(room: Room) -> tuple[Counter[bytes], Counter[bytes]]:
    """What was cut off first and second mates, and how often."""
    sizes = room.adapter_sizes
    ends = np.cumsum(sizes).reshape(sizes.shape)
    text = room.adapters[: ends[-1, -1] if len(ends) else 0].tobytes()
    found: list[Counter[bytes]] = []
    for mate in (0, 1):
        there: NDArray[np.bool_] = sizes[:, mate] > 0
        places = zip((ends - sizes)[there, mate].tolist(), ends[there, mate].tolist(), strict=True)
        found.append(Counter(text[start:end] for start, end in places))
    return found[0], found[1]
