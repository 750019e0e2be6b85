"""GPUs that correct one read set by its k-mers, step by step.

Each counts a part of the k-mers, by their hashes, of all reads. The first one makes the set of
solid k-mers from what all have counted, and the others copy it, as they do the reads; where these
do not fit on each, GPUs that are linked have them in common. Then each corrects the next range of
reads as soon as it is idle. The result does not depend on the number of GPUs.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.arena import ALIGNMENT, Arena, persistent
from ngsgpu.device.plan import Allocation, MemoryPlan
from ngsgpu.device.spread import share_bytes, spread_arena
from ngsgpu.device.team import Team, free_unused
from ngsgpu.io.output.edits import Edits
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.params import MAX_COUNT
from ngsgpu.pool import Shared, working
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu import DeviceReadSet, ReadMemory
from ngsgpu.readset.gpu_divided import (
    are_linked,
    budget_with_reads,
    common_arena,
    place_reads,
    where,
)
from ngsgpu.run.options import RunOptions
from ngsgpu.spectrum.cpu_run import RULES, SpectrumCorrections
from ngsgpu.spectrum.gpu import (
    Advance,
    DeviceSolid,
    Part,
    count_on_gpu,
    divide_kmers,
    make_solid_on_gpu,
    solid_bytes,
)
from ngsgpu.spectrum.gpu_correct import Corrector, Decisions, most_blocks, range_of
from ngsgpu.spectrum.gpu_plan import SPARE_BYTES, Demand, SpectrumGpuPlan, plan_team
from ngsgpu.spectrum.kmers.counts import Thresholds
from ngsgpu.spectrum.kmers.reads import scores_of_codes
from ngsgpu.spectrum.params import SpectrumParameters

_LOG = logging.getLogger("ngsgpu")


@dataclass(slots=True)
class _Held:
    """Arrays of one GPU."""

    reads: DeviceReadSet
    arena: Arena | None
    kept: KeptKmers | None = None
    solid: DeviceSolid | None = None

    @property
    def memory(self) -> Arena:
        """The memory for everything but the reads."""
        assert self.arena is not None
        return self.arena


class SpectrumTeam:
    """GPUs that correct one read set: ``place``, ``count``, ``make_solid``, ``correct``.

    Args:
        parameters: of the correction.
        options: budgets of memory, and the number of GPUs, from the current one on.

    Attributes:
        plan: of the memory of each; known after ``place``.
    """

    plan: SpectrumGpuPlan

    def __init__(self, parameters: SpectrumParameters, options: RunOptions) -> None:
        self._parameters = parameters
        self._options = options
        self._team = Team(options.gpus)
        self._held: list[_Held] = []
        self._in_common: Arena | None = None

    def close(self) -> None:
        """Free the memory, but for what others refer to."""
        self._held.clear()
        self._in_common = None

    def free_unused(self) -> None:
        """Return what CuPy keeps on each GPU."""
        self._team.each(lambda member: free_unused())

    def place(self, reads: ReadSet | DeviceReadSet) -> DeviceReadSet:
        """Plan, allocate all memory, and copy, move or divide the reads accordingly.

        Args:
            reads: on the host, on the first GPU, or divided.

        Returns:
            The reads as the first GPU has them.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        team = self._team
        self.plan = plan = self._planned(reads)
        _LOG.info("GPU memory: %s", plan.line())
        placed = place_reads(reads, team, plan, plan.moved_reads)
        if plan.divided_over > 1:
            self._in_common = common_arena(plan, team)
        self._held = team.each(lambda member: self._hold(placed[member]))
        return placed[0]

    def _planned(self, reads: ReadSet | DeviceReadSet) -> SpectrumGpuPlan:
        team, limit = self._team, self._options.gpu_memory

        def budget(member: int) -> int:
            return budget_with_reads(reads, member, len(team), limit)

        demand = Demand(
            reads=ReadMemory.of(reads),
            bases=reads.bases,
            parameters=self._parameters,
            budget=min(team.each(budget)),
            host_budget=self._options.budget,
            blocks=min(team.each(lambda member: most_blocks())),
            gpus=len(team),
            arrived=where(reads),
        )
        return plan_team(demand, linked=are_linked(team))

    def _hold(self, reads: DeviceReadSet) -> _Held:
        """Allocate the memory of a GPU for everything but its reads."""
        return _Held(reads, Arena(self.plan.arena))

    def count(self, k: int, advance: Advance = lambda kmers: None) -> NDArray[np.int64]:
        """Count the k-mers, and keep those that occur at least twice.

        Args:
            k: k-mer length.
            advance: called with the number of k-mers counted since the last call.

        Returns:
            The number of distinct k-mers by count, int64[65536].

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        with self._held[0].memory.in_use():
            shares = divide_kmers(self._held[0].reads, k, self.plan.rows, len(self._team))

        def count(member: int) -> NDArray[np.int64]:
            return self._count_some(member, k, shares[member], advance)

        histogram = np.zeros(MAX_COUNT + 1, dtype=np.int64)
        for own in self._team.at_once(count):
            histogram += own
        return histogram

    def _count_some(
        self, member: int, k: int, parts: list[Part], advance: Advance
    ) -> NDArray[np.int64]:
        held = self._held[member]
        with held.memory.in_use():
            held.kept = count_on_gpu(held.reads, k, parts, self.plan.kept, advance)
        self._team.devices[member].synchronize()  # the first GPU copies from this one
        return held.kept.histogram

    def make_solid(self, thresholds: Thresholds) -> None:
        """Make the set of solid k-mers, if there is room for it.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        kept = [held.kept for held in self._held if held.kept is not None]
        bloom = self._parameters.filter == "bloom"
        needed = solid_bytes(kept, thresholds.solid, bloom=bloom)
        first, keeping = self._held[0], persistent
        if self._in_common is not None:
            self._make_room(needed, kept)
            keeping = self._in_common.in_use
        else:
            if needed + SPARE_BYTES > first.memory.room:
                kept[0].move_to_host()
            self._require(needed, first.memory.room, kept)
        with first.memory.in_use():
            first.solid = make_solid_on_gpu(
                kept, thresholds.solid, thresholds.strong, bloom=bloom, keeping=keeping
            )
        self._team.devices[0].synchronize()  # other GPUs copy from this one
        kept.clear()
        self._team.each(self._share_solid)

    def _share_solid(self, member: int) -> None:
        """Have a GPU know the set that the first one has made."""
        held, made = self._held[member], self._held[0].solid
        held.kept = None
        if member > 0 and made is not None:
            with held.memory.in_use(), persistent():
                held.solid = made.on_current_device(divided=self._in_common is not None)
        self._team.devices[member].synchronize()

    def _make_room(self, needed: int, kept: list[KeptKmers]) -> None:
        """Have more of the memory in common, if the set is larger than was planned."""
        assert self._in_common is not None
        if needed <= self._in_common.room:
            return
        self._team.each(lambda member: kept[member].move_to_host())
        plan, gpus = self.plan, len(self._team)
        needed += ALIGNMENT
        share = share_bytes(needed, gpus)
        own = plan.arena + plan.tables - share
        self._require(share + SPARE_BYTES, plan.arena + plan.tables, kept)
        self._in_common = None
        for held in self._held:
            held.arena = None
        self.free_unused()
        self._in_common = spread_arena(needed, [device.id for device in self._team.devices])

        def hold(member: int) -> None:
            self._held[member].arena = Arena(own)

        self._team.each(hold)

    def _require(self, needed: int, room: int, kept: list[KeptKmers]) -> None:
        size = sum(own.size for own in kept)
        MemoryPlan(
            doing=f"the set of {size:,} k-mers",
            allocations=(Allocation("k-mers", needed),),
            budget=room,
        ).check()

    def correct(
        self, k: int, *, trim: bool = False, advance: Advance = lambda reads: None
    ) -> SpectrumCorrections:
        """Correct every read.

        Args:
            k: k-mer length.
            trim: whether reads are going to be trimmed; then nothing else of them changes.
            advance: called with the number of reads corrected since the last call.

        Raises:
            DeviceError: the memory does not suffice, or CUDA fails.
        """
        reads, gpus = self._held[0].reads.reads, len(self._team)
        size = range_of(reads, gpus, min(held.memory.room for held in self._held))
        ranges = list(pairwise([*range(0, reads, size), reads]))
        correctors = Shared(enumerate(self._team.each(lambda own: self._corrector(own, k, trim))))
        decisions = Decisions.allocate(reads)

        def correct(own: tuple[int, int]) -> list[NDArray[np.uint32]]:
            with (
                correctors.borrowed() as (member, corrector),
                self._team.devices[member],
                self._held[member].memory.in_use(),
            ):
                return corrector.correct(*own, decisions, advance)

        edits = [np.empty(0, dtype=np.uint32)]
        before = 0
        with working(gpus, correct, ranges, ahead=gpus + 1, name="gpu") as corrected:
            for (first, last), pieces in zip(ranges, corrected, strict=True):
                if before:
                    decisions.starts[first:last] += before
                before += sum(map(len, pieces))
                edits += pieces
        return SpectrumCorrections(
            Edits(decisions.starts, decisions.counts, np.concatenate(edits)),
            decisions.classes,
            decisions.begin,
            decisions.end,
        )

    def _corrector(self, member: int, k: int, trim: bool) -> Corrector:
        """The corrector of a GPU."""
        held, parameters = self._held[member], self._parameters
        assert held.solid is not None
        with held.memory.in_use():
            return Corrector(
                held.reads,
                held.solid,
                parameters.search_rules(k),
                rule=RULES[parameters.rule],
                mutations=parameters.mutations,
                trim=trim,
                scores=scores_of_codes(held.reads.quality_bits, held.reads.levels),
            )
