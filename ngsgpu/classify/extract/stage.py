"""Extraction as a stage: what is made of some records and their calls."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ngsgpu.classify.extract.calls import CallReader, Calls
from ngsgpu.classify.extract.kernels import first_other, is_among
from ngsgpu.classify.extract.params import ExtractionParameters
from ngsgpu.device.plan import HostPlan
from ngsgpu.errors import UsageError
from ngsgpu.io.inputs import ReadFiles, pair_inputs, plan_lanes
from ngsgpu.io.paths import Paths
from ngsgpu.io.text.copy import kept_records
from ngsgpu.io.text.pairs import Mates
from ngsgpu.run.options import RunOptions
from ngsgpu.run.plan import plan_records
from ngsgpu.run.record import Made, RecordDriver, RecordStage, Task
from ngsgpu.run.statistics import RunStatistics
from ngsgpu.taxonomy.tree import Taxonomy

logger = logging.getLogger("ngsgpu")


@dataclass(slots=True, kw_only=True)
class ExtractionStatistics(RunStatistics):
    """Counts and resources of an extraction; see also ``RunStatistics``.

    Attributes:
        taxa: how many taxids were looked for, with those below.
        paired: whether the reads have mates.
        reads: ``total``, and ``kept`` in the outputs; each of a pair counts.
    """

    SCHEMA = "ngsgpu.extract"
    taxa: int = 0
    paired: bool = False
    reads: dict[str, int] = field(default_factory=dict)

    def summary(self) -> list[str]:
        """A short text summary."""
        total, kept = self.reads["total"], self.reads["kept"]
        share = 100 * kept / max(1, total)
        return [f"{total:,} reads, {kept:,} written ({share:.2f} %)", self.resources()]


def extract_files(
    calls: str | Path,
    in1: Paths,
    out1: Paths,
    in2: Paths = (),
    out2: Paths = (),
    *,
    interleaved: bool = False,
    parameters: ExtractionParameters,
    taxonomy: Taxonomy | None = None,
    stats: str | Path | None = None,
    options: RunOptions | None = None,
) -> ExtractionStatistics:
    """Write the reads whose calls are of some taxa, as they are; mates stay together.

    Args:
        calls: table of calls of these reads, in their order.
        in1: files of single reads, of first mates, or of interleaved mates.
        out1: one output for each of ``in1``, or one for all.
        in2: files of second mates, as many as ``in1``, or none.
        out2: outputs for ``in2``.
        interleaved: whether ``in1`` holds both mates.
        parameters: which taxa.
        taxonomy: for the taxa below them.
        stats: JSON file for the statistics.
        options: threads and so on.

    Raises:
        InputError: an input cannot be read, or the table is of other reads; no output was written.
        UsageError: a taxon is unknown, or the taxa below it are.
        OutputError: an output cannot be written; none was.
    """
    lanes, outputs = plan_lanes(in1, in2, out1, out2, interleaved=interleaved)
    options = options or RunOptions()
    driver = RecordDriver(lanes, outputs, options, stats=stats, also_read=[calls])
    wanted = taxids_of(parameters, taxonomy)
    reader = CallReader(calls, options.threads)
    return driver.run(Extraction(reader, wanted, parameters, lanes[0]))


def plan_files(
    in1: Paths,
    in2: Paths = (),
    *,
    interleaved: bool = False,
    options: RunOptions | None = None,
) -> HostPlan:
    """Plan the memory of ``extract_files``, whose arguments these are.

    Raises:
        UsageError: the files are inconsistent.
    """
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    return plan_records(Extraction.WORK, lanes, options or RunOptions())


def taxids_of(parameters: ExtractionParameters, taxonomy: Taxonomy | None) -> NDArray[np.int64]:
    """The taxids that are looked for, int64, ascending; with those merged into them, by a taxonomy.

    Raises:
        UsageError: a taxon is not in the taxonomy, or there is none.
    """
    taxa, others = (
        np.array(own, dtype=np.int64) for own in (parameters.taxa, parameters.exclude or ())
    )
    if taxonomy is not None:
        below = parameters.with_children
        taxa, others = (_all_taxids(taxonomy, own, below=below) for own in (taxa, others))
    elif parameters.with_children:
        raise UsageError("taxa below others need a taxonomy; give `database` or `taxonomy`")
    return np.setdiff1d(taxa, others)


def _all_taxids(taxonomy: Taxonomy, taxids: NDArray[np.int64], *, below: bool) -> NDArray[np.int64]:
    """Taxids with all that stand for the same taxa or, if asked for, for taxa below; 0 has none."""
    known = taxids[taxids > 0]
    nodes = taxonomy.indices_of(known)
    if (nodes < 0).any():
        raise UsageError(f"taxon {known[nodes < 0][0]} is not in the taxonomy")
    inside = taxonomy.below(nodes) if below else np.isin(np.arange(len(taxonomy)), nodes)
    merged = taxonomy.merged_taxid[inside[taxonomy.merged_index]]
    return np.concatenate([taxids[taxids == 0], taxonomy.taxid[inside], merged])


class Extraction(RecordStage[ExtractionStatistics]):
    """Keeps the records with wanted calls.

    Args:
        calls: of all reads, in order.
        taxids: int64, ascending: the wanted ones.
        parameters: what the user asked for.
        lane: one of those that are read, which are alike.
    """

    NAME = "extract"
    DOING = "extracting"
    WORK = "extraction"
    phred_offset: Literal[33] = 33
    """The reader then takes any qualities; they are only copied."""

    def __init__(
        self,
        calls: CallReader,
        taxids: NDArray[np.int64],
        parameters: ExtractionParameters,
        lane: ReadFiles,
    ) -> None:
        self._calls, self._taxids = calls, taxids
        self._parameters, self._lane = parameters, lane

    def no_counts(self) -> NDArray[np.int64]:
        """Units, and those that are kept."""
        return np.zeros(2, dtype=np.int64)

    def prepare(self, task: Task) -> Task:
        """Add the calls."""
        units = task.end - task.begin
        taken = self._calls.take(units)
        if sum(map(len, taken)) < units:
            raise self._calls.unequal(f"has {self._calls.done:,} calls, and there are more reads")
        return task._replace(prepared=taken)

    def on_cpu(self, task: Task) -> Made:
        """See ``RecordStage``."""
        first, begin = task.mates[0], task.begin
        kept = np.empty(task.end - begin, dtype=np.bool_)
        at = 0
        for calls in task.prepared:
            self._check_names(first, begin + at, calls, task.lane)
            kept[at : at + len(calls)] = is_among(calls.taxid, self._taxids)
            at += len(calls)
        if self._parameters.invert:
            np.logical_not(kept, out=kept)
        pieces = kept_records(task.mates, begin, kept, interleaved=task.lane.interleaved)
        return Made(pieces, np.array([len(kept), np.count_nonzero(kept)]))

    def _check_names(self, mates: Mates, begin: int, calls: Calls, lane: ReadFiles) -> None:
        other = first_other(mates, begin, calls.text, calls.name_start, calls.name_end)
        if other >= 0:
            name = calls.text[calls.name_start[other] : calls.name_end[other]]
            shown = name.tobytes().decode("utf-8", "replace")
            raise self._calls.unequal(
                f"call {calls.first + other + 1:,} is of {shown!r}, and the read in "
                f"{lane.inputs[0]} is another"
            )

    def statistics(
        self, options: RunOptions, backend: str, counts: NDArray[np.int64]
    ) -> ExtractionStatistics:
        """See ``RecordStage``.

        Raises:
            InputError: there are calls of more reads.
        """
        self._calls.check_end()
        if counts[0] and not (counts[0] - counts[1] if self._parameters.invert else counts[1]):
            itself = "" if self._parameters.with_children else " itself"
            asked = ", ".join(map(str, self._parameters.taxa))
            logger.warning("no read is called as taxon %s%s", asked, itself)
        mates = 2 if self._lane.paired else 1
        return ExtractionStatistics.begun(
            options,
            backend,
            self._parameters,
            taxa=len(self._taxids),
            paired=self._lane.paired,
            reads={"total": mates * int(counts[0]), "kept": mates * int(counts[1])},
        )
