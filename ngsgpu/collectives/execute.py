"""Scatter, gather and all-to-all of arrays on the GPUs of a team, from one thread.

All calls are asynchronous: they begin after what was ordered on each GPU's current stream, and what
is ordered on it later begins when its data has come and its own has left. Results do not depend on
the way that data takes.

There are four ways. ``pull``: a kernel on each GPU reads all it gets from the memory of the others,
which takes the fewest calls and so is fastest for little data. ``copies``: peer copies, each pair
of GPUs on a separate stream, by a plan or direct. ``nccl``: NCCL's grouped sends and receives.
``host``: through pinned host memory, where GPUs cannot access each other's.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ngsgpu.collectives.peers import Peers
from ngsgpu.collectives.plan import Plan
from ngsgpu.collectives.transfers import (
    Place,
    Transfers,
    direct_transfers,
    host_transfers,
    planned_transfers,
    starts_to_receive,
    starts_to_send,
)
from ngsgpu.device.team import Team

Way = Literal["auto", "pull", "copies", "nccl", "host"]
WAYS: Final[tuple[Way, ...]] = get_args(Way)

MOST_PULLED: Final = 8
"""GPUs that a pulling kernel reads from at most."""

PULL_BYTES: Final = 8 << 20
"""Most bytes that a GPU gets by a pulling kernel if the way is not given."""

_LOG = logging.getLogger(__name__)
_Buffers = dict[str, list[Any]]


class Exchange:
    """Collective operations of a team of GPUs.

    Args:
        team: the GPUs; one may be in it more than once, except for NCCL.
        plan: of all-to-all, that was checked, for data that is not pulled; None: direct copies.
        way: see the module; ``auto`` chooses by size and by what works here.
        devices: does the work; by default CUDA.

    Attributes:
        team: the GPUs.

    Raises:
        DeviceError: the given way does not work here; the message says why and what to do.
        ValueError: the plan is not an all-to-all between this number of GPUs.
    """

    def __init__(
        self,
        team: Team,
        plan: Plan | None = None,
        way: Way = "auto",
        *,
        devices: Peers | None = None,
    ) -> None:
        if way not in WAYS:
            raise ValueError(f"{way!r} is none of {', '.join(WAYS)}")
        if plan is not None and (plan.kind, plan.gpus) != ("all2all", len(team)):
            raise ValueError(f"a plan of {plan.kind} for {plan.gpus} GPUs, not {len(team)}")
        self.team = team
        self._plan = plan
        self._devices = devices or Peers(team)
        self._way: Way = way
        if way in ("pull", "copies"):
            self._devices.need_access()
        elif way == "nccl":
            self._devices.need_nccl()
        elif way == "auto" and (problem := self._devices.no_access()):
            self._way = "host" if self._devices.no_nccl() else "nccl"
            how = "NCCL" if self._way == "nccl" else "pinned host memory"
            _LOG.info("%s; data goes between them through %s", problem, how)

    def __len__(self) -> int:
        return len(self.team)

    @property
    def has_access(self) -> bool:
        """Whether all GPUs can access each other's memory, in kernels too."""
        return self._devices.no_access() is None

    def all_to_all(
        self,
        arrays: Sequence[Any],
        counts: ArrayLike,
        out: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Give each GPU what all GPUs, itself included, have for it.

        Args:
            arrays: on each GPU a contiguous CuPy array of any type, the same on all, in which
                values for GPU 0 come first, then those for GPU 1, and so on.
            counts: int[n, n]; GPU i has ``counts[i, j]`` values for GPU j. Any may be 0.
            out: on each GPU a contiguous array with room for its values; by default new ones,
                from the allocator of this thread.

        Returns:
            On each GPU its values: those of GPU 0 in their order, then those of GPU 1, and so on.

        Raises:
            ValueError: arrays and counts do not fit each other.
            DeviceError: CUDA or NCCL fails.
        """
        own = np.asarray(counts, dtype=np.int64)
        gpus = len(self.team)
        # Small exchanges take as long as Python's calls, and NumPy's are slow for so few numbers.
        rows = own.tolist()
        if own.shape != (gpus, gpus) or min(map(min, rows), default=0) < 0:
            raise ValueError(f"counts must be a matrix of {gpus} x {gpus} numbers from 0 on")
        dtype = np.dtype(arrays[0].dtype)
        self._check(arrays, list(map(sum, rows)), dtype, "sends")
        wanted = list(map(sum, zip(*rows, strict=True)))
        with self._devices.errors("copying between GPUs"):
            if out is None:
                out = [self._devices.empty(gpu, wanted[gpu], dtype) for gpu in range(gpus)]
            self._check(out, wanted, dtype, "gets")
            results = [array[:size] for array, size in zip(out, wanted, strict=True)]
            self._move({"send": list(arrays), "receive": results}, own * dtype.itemsize)
        return results

    def scatter(
        self, array: Any, counts: Sequence[int], main: int = 0, out: Sequence[Any] | None = None
    ) -> list[Any]:
        """Divide an array of one GPU over all.

        Args:
            array: on GPU ``main``, contiguous: values for GPU 0 first, then those for GPU 1, ...
            counts: values of each GPU.
            main: number of the GPU in the team.
            out: as for ``all_to_all``.

        Returns:
            On each GPU its values.

        Raises:
            ValueError, DeviceError: as for ``all_to_all``.
        """
        matrix = np.zeros((len(self.team), len(self.team)), dtype=np.int64)
        matrix[main] = counts
        return self.all_to_all(self._with_empty(array, main), matrix, out)

    def gather(self, arrays: Sequence[Any], main: int = 0, out: Any = None) -> Any:
        """Join arrays of all GPUs, whole, on one, in the order of the GPUs.

        Args:
            arrays: on each GPU a contiguous array of the same type.
            main: number of the GPU in the team.
            out: on GPU ``main``, with room for all; by default a new one.

        Raises:
            ValueError, DeviceError: as for ``all_to_all``.
        """
        matrix = np.zeros((len(self.team), len(self.team)), dtype=np.int64)
        matrix[:, main] = [len(array) for array in arrays]
        into = None if out is None else self._with_empty(out, main)
        return self.all_to_all(arrays, matrix, into)[main]

    def _with_empty(self, array: Any, main: int) -> list[Any]:
        return [
            array if gpu == main else self._devices.empty(gpu, 0, array.dtype)
            for gpu in range(len(self.team))
        ]

    def _check(
        self, arrays: Sequence[Any], wanted: Sequence[int], dtype: np.dtype[Any], does: str
    ) -> None:
        if len(arrays) != len(self.team):
            raise ValueError(f"{len(arrays)} arrays for {len(self.team)} GPUs")
        for gpu, (array, size) in enumerate(zip(arrays, wanted, strict=True)):
            if array.dtype != dtype or array.ndim != 1 or not array.flags.c_contiguous:
                raise ValueError(f"GPU {gpu}: the array must be contiguous and of {dtype}")
            if len(array) < size:
                raise ValueError(f"GPU {gpu} {does} {size} values, and its array has {len(array)}")
            self._devices.check_home(gpu, array)

    def _move(self, buffers: _Buffers, sizes: NDArray[np.int64]) -> None:
        with self._devices.issuing():
            if self._way == "nccl":
                self._devices.nccl_exchange(buffers, sizes)
            elif self._pulls(rows := sizes.tolist()):
                _pull(self._devices, buffers, rows)
            else:
                _copy(self._devices, buffers, self._transfers(sizes))

    def _pulls(self, sizes: list[list[int]]) -> bool:
        if len(sizes) > MOST_PULLED or self._way not in ("auto", "pull"):
            return False
        columns = enumerate(zip(*sizes, strict=True))
        return self._way == "pull" or all(
            sum(column) - column[gpu] <= PULL_BYTES for gpu, column in columns
        )

    def _transfers(self, sizes: NDArray[np.int64]) -> Transfers:
        if self._way == "host":
            return host_transfers(sizes)
        if self._plan is not None:
            return planned_transfers(self._plan, sizes)
        return direct_transfers(sizes)


def _pull(devices: Any, buffers: _Buffers, sizes: list[list[int]]) -> None:
    """Launch a kernel on each GPU that gets data, which reads it where it is."""
    gpus = len(sizes)
    sends = [list(accumulate(row, initial=0)) for row in sizes]
    here = [devices.current(gpu) for gpu in range(gpus)]
    sources = [[i for i in range(gpus) if i != gpu and sizes[i][gpu] > 0] for gpu in range(gpus)]
    senders = sorted({i for own in sources for i in own})
    ready = {gpu: devices.record(here[gpu]) for gpu in senders}
    for gpu in range(gpus):
        parts = [(Place(i, "send", sends[i][gpu]), sizes[i][gpu]) for i in range(gpus)]
        if not any(size for _, size in parts):
            continue
        for i in sources[gpu]:
            devices.wait(here[gpu], ready[i])
        devices.pull(here[gpu], Place(gpu, "receive", 0), parts, buffers)
    for gpu in range(gpus):
        if sources[gpu]:
            done = devices.record(here[gpu])
            for i in sources[gpu]:
                devices.wait(here[i], done)


def _copy(devices: Any, buffers: _Buffers, transfers: Transfers) -> None:
    """Issue copies, each on the stream of its way, and let the GPUs' own streams wait for them."""
    sizes = transfers.sizes
    gpus = len(sizes)
    here = [devices.current(gpu) for gpu in range(gpus)]
    own = dict(buffers)
    own["staging"] = [devices.staging(node, size) for node, size in enumerate(transfers.staging)]
    ways = list(dict.fromkeys((one.source.node, one.to.node) for one in transfers.copies))
    lanes = {way: devices.lane(*way) for way in ways}
    busy = sorted({node for way in ways for node in way if node < gpus})
    ready = {gpu: devices.record(here[gpu]) for gpu in busy}
    for way, lane in lanes.items():
        for node in dict.fromkeys(way):
            if node < gpus:
                devices.wait(lane, ready[node])
    awaited = {number for one in transfers.copies for number in one.after}
    ended: dict[int, tuple[Any, Any]] = {}
    for number, one in enumerate(transfers.copies):
        lane = lanes[one.source.node, one.to.node]
        for before in one.after:
            other, event = ended[before]
            if other is not lane:
                devices.wait(lane, event)
        devices.copy(lane, one.to, one.source, one.size, own)
        if number in awaited:
            ended[number] = lane, devices.record(lane)
    sends, receives = starts_to_send(sizes), starts_to_receive(sizes)
    for gpu in range(gpus):
        if size := int(sizes[gpu, gpu]):
            to = Place(gpu, "receive", int(receives[gpu, gpu]))
            devices.copy(here[gpu], to, Place(gpu, "send", int(sends[gpu, gpu])), size, own)
    for way, lane in lanes.items():
        done = devices.record(lane)
        for node in dict.fromkeys(way):
            if node < gpus:
                devices.wait(here[node], done)
    devices.keep(own["staging"][gpus], here)
