"""GPUs of one host that copy from each other: their streams, events and copies, by CUDA and NCCL.

Copies between GPUs are direct only where each has been given access to the other's memory;
otherwise CUDA takes them through the host, at a tenth of the speed.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple

import numpy as np

from ngsgpu.collectives.transfers import Place
from ngsgpu.device.cuda.kernels import THREADS, KernelModule, grid_for
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import pinned_empty
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceError

KERNELS: Final = KernelModule("ngsgpu.collectives")

SOURCES: Final = 8
"""GPUs that ``pull`` reads from; kSources of the kernels."""

_A_BLOCK: Final = 16 * THREADS
_BLOCKS: Final = 4
_BYTES: Final = 1  # ncclUint8
_ANY_DIRECTION: Final = 4  # cudaMemcpyDefault


def _nccl() -> Any:
    """CuPy's NCCL.

    Raises:
        ImportError: it cannot be loaded.
    """
    # Whole and first; see ``ngsgpu.device.startup``.
    import cupy  # noqa: F401

    return importlib.import_module("cupy.cuda.nccl")


class Lane(NamedTuple):
    """A stream.

    Attributes:
        device: number of its GPU in CUDA.
        stream: CuPy's stream.
    """

    device: int
    stream: Any


class Peers:
    """The GPUs of a team, with access to each other's memory; used from one thread at a time.

    Args:
        team: the GPUs.
    """

    def __init__(self, team: Team) -> None:
        self._ids = [int(device.id) for device in team.devices]
        self._devices = team.devices
        self._lanes: dict[tuple[int, int], Lane] = {}
        self._events: dict[int, list[Any]] = {number: [] for number in self._ids}
        self._used: dict[int, int] = {}
        self._now = -1
        self._nccl: list[Any] | None = None
        self._pinned: Any = np.empty(0, dtype=np.uint8)
        self._pending: list[Any] = []
        with cuda_errors("giving GPUs access to each other's memory"):
            self._without_access = self._give_access()

    def errors(self, doing: str) -> AbstractContextManager[None]:
        """Translates CUDA's errors inside of a block."""
        return cuda_errors(doing)

    # What works here

    def no_access(self) -> str | None:
        """Which GPUs cannot access each other's memory; None if all can."""
        if not self._without_access:
            return None
        pairs = ", ".join(f"{a} and {b}" for a, b in self._without_access)
        return f"GPUs without access to each other's memory: {pairs}"

    def need_access(self) -> None:
        """See that all GPUs can access each other's memory.

        Raises:
            DeviceError: some cannot.
        """
        if problem := self.no_access():
            raise DeviceError(
                f"{problem}; nvidia-smi topo -p2p r shows why; use the way host, or auto"
            )

    def no_nccl(self) -> str | None:
        """Why NCCL cannot be used; None if it can."""
        if len(set(self._ids)) < len(self._ids):
            return "NCCL needs different GPUs"
        with warnings.catch_warnings():
            # CuPy warns with many lines where the library is missing.
            warnings.simplefilter("ignore")
            try:
                nccl = _nccl()
            except ImportError as error:
                return f"NCCL cannot be loaded ({error}); pip install nvidia-nccl-cu13"
            if not nccl.available:
                return "NCCL is not installed; pip install nvidia-nccl-cu13, or -cu12 for CUDA 12"
        return None

    def need_nccl(self) -> None:
        """Set up NCCL.

        Raises:
            DeviceError: it is missing, or fails.
        """
        if problem := self.no_nccl():
            raise DeviceError(f"{problem}; or use the way copies, or auto")
        if self._nccl is None:
            nccl = _nccl()

            try:
                self._nccl = nccl.NcclCommunicator.initAll(self._ids)
            except nccl.NcclError as error:
                raise DeviceError(f"NCCL does not start ({error}); use the way copies") from error

    def _give_access(self) -> list[tuple[int, int]]:
        """Enable access in both directions; the pairs that have none."""
        from cupy import cuda

        different = sorted(set(self._ids))
        missing = []
        for a in different:
            for b in different:
                if a != b and not cuda.runtime.deviceCanAccessPeer(a, b):
                    missing.append((min(a, b), max(a, b)))
                elif a != b:
                    with cuda.Device(a):
                        _enable_access(b)
        return sorted(set(missing))

    # Memory

    def empty(self, gpu: int, size: int, dtype: np.dtype[Any]) -> Any:
        """An uninitialised array on a GPU.

        Args:
            gpu: number of the GPU.
            size: number of elements.
            dtype: type of the elements.
        """
        import cupy

        with self._devices[gpu]:
            return cupy.empty(size, dtype=dtype)

    def staging(self, node: int, size: int) -> Any:
        """An uninitialised array of bytes on a GPU, or of pinned memory on the host."""
        if node < len(self._ids):
            return self.empty(node, size, np.dtype(np.uint8)) if size else None
        if size:
            for event in self._pending:
                event.synchronize()
            if len(self._pinned) < size:
                self._pinned = pinned_empty(size)
        return self._pinned

    def keep(self, pinned: Any, here: Sequence[Lane]) -> None:
        """Use pinned memory for something else only after what is ordered on streams now."""
        if pinned is not None and len(pinned):
            from cupy import cuda

            self._pending = []
            for lane in here:
                self._go(lane.device)
                event = cuda.Event(disable_timing=True)
                event.record(lane.stream)
                self._pending.append(event)

    def check_home(self, gpu: int, array: Any) -> None:
        """See that an array is on its GPU.

        Raises:
            ValueError: it is not.
        """
        if array.size and array.device.id != self._ids[gpu]:
            raise ValueError(f"the array of GPU {gpu} is on another one")

    # Order

    @contextlib.contextmanager
    def issuing(self) -> Iterator[None]:
        """Issue one operation inside of a block, with few changes of the current GPU.

        Its events are used again in the next one: a wait is for what was recorded when it was
        issued.
        """
        from cupy import cuda

        before = self._now = int(cuda.runtime.getDevice())
        self._used = dict.fromkeys(self._ids, 0)
        try:
            yield
        finally:
            cuda.runtime.setDevice(before)

    def current(self, gpu: int) -> Lane:
        """The current stream of a GPU in this thread."""
        from cupy import cuda

        self._go(self._ids[gpu])
        return Lane(self._ids[gpu], cuda.get_current_stream())

    def lane(self, source: int, to: int) -> Lane:
        """The stream of a way, on the GPU that data leaves, or which it comes to from the host."""
        from cupy import cuda

        if (source, to) not in self._lanes:
            gpu = source if source < len(self._ids) else to
            self._go(self._ids[gpu])
            self._lanes[source, to] = Lane(self._ids[gpu], cuda.Stream(non_blocking=True))
        return self._lanes[source, to]

    def record(self, lane: Lane) -> Any:
        """An event after what is ordered on a stream now."""
        from cupy import cuda

        self._go(lane.device)
        own, place = self._events[lane.device], self._used[lane.device]
        self._used[lane.device] = place + 1
        if place == len(own):
            own.append(cuda.Event(disable_timing=True))
        cuda.runtime.eventRecord(own[place].ptr, lane.stream.ptr)
        return own[place]

    def wait(self, lane: Lane, event: Any) -> None:
        """Let what is ordered on a stream from now on wait for an event."""
        from cupy import cuda

        self._go(lane.device)
        cuda.runtime.streamWaitEvent(lane.stream.ptr, event.ptr)

    def _go(self, device: int) -> None:
        """Make a GPU current."""
        from cupy import cuda

        if self._now != device:
            cuda.runtime.setDevice(device)
            self._now = device

    # Data

    def copy(
        self, lane: Lane, to: Place, source: Place, size: int, buffers: dict[str, list[Any]]
    ) -> None:
        """Copy bytes on a stream.

        Args:
            lane: stream and device of the copy.
            to: place of the target.
            source: place of the source.
            size: number of bytes.
            buffers: arrays that places refer to, by name.
        """
        from cupy import cuda

        there, here = (_address(place, buffers) for place in (to, source))
        homes = [
            None if place.node == len(self._ids) else self._ids[place.node]
            for place in (to, source)
        ]
        self._go(lane.device)
        if None in homes or homes[0] == homes[1]:
            cuda.runtime.memcpyAsync(there, here, size, _ANY_DIRECTION, lane.stream.ptr)
        else:
            ends = (there, homes[0], here, homes[1])
            cuda.runtime.memcpyPeerAsync(*ends, size, lane.stream.ptr)

    def pull(
        self,
        lane: Lane,
        to: Place,
        parts: Sequence[tuple[Place, int]],
        buffers: dict[str, list[Any]],
    ) -> None:
        """Write parts, up to ``SOURCES`` places and bytes, one after the other, by a kernel.

        Args:
            lane: stream and device of the kernel.
            to: place of the target.
            parts: places and sizes in bytes of the sources.
            buffers: arrays that places refer to, by name.
        """
        nothing = SOURCES - len(parts)
        places = [np.uint64(_address(place, buffers) if size else 0) for place, size in parts]
        sizes = [np.int64(size) for _, size in parts]
        longest = max(size for _, size in parts)
        self._go(lane.device)
        (blocks,) = grid_for(longest, _A_BLOCK, _BLOCKS)
        KERNELS.launch(
            "pull",
            (blocks, len(parts)),
            (THREADS,),
            (np.uint64(_address(to, buffers)), *places, *[np.uint64(0)] * nothing,
             *sizes, *[np.int64(0)] * nothing),
            stream=lane.stream,
        )  # fmt: skip

    def nccl_exchange(self, buffers: dict[str, list[Any]], sizes: Any) -> None:
        """All-to-all of bytes by NCCL, on the current streams.

        Raises:
            DeviceError: NCCL fails.
        """
        self.need_nccl()
        nccl = _nccl()

        assert self._nccl is not None
        here = [self.current(gpu) for gpu in range(len(self._ids))]
        sends = np.cumsum(sizes, axis=1) - sizes
        receives = np.cumsum(sizes, axis=0) - sizes
        pairs = [(int(a), int(b)) for a, b in zip(*np.nonzero(sizes), strict=True)]
        try:
            nccl.groupStart()
            for a, b in pairs:
                if a == b:
                    continue
                size = int(sizes[a, b])
                source = _address(Place(a, "send", int(sends[a, b])), buffers)
                to = _address(Place(b, "receive", int(receives[a, b])), buffers)
                self._nccl[a].send(source, size, _BYTES, b, here[a].stream.ptr)
                self._nccl[b].recv(to, size, _BYTES, a, here[b].stream.ptr)
            nccl.groupEnd()
        except nccl.NcclError as error:
            raise DeviceError(f"NCCL: {error}; use the way copies") from error
        for a, b in pairs:
            if a == b:
                inside = Place(a, "send", int(sends[a, a]))
                there = Place(a, "receive", int(receives[a, a]))
                self.copy(here[a], there, inside, int(sizes[a, a]), buffers)


def _address(place: Place, buffers: dict[str, list[Any]]) -> int:
    """Address of a place."""
    array = buffers[place.buffer][place.node]
    data = array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
    return int(data) + place.at


def _enable_access(peer: int) -> None:
    """Let the current GPU access the memory of another one, as it perhaps does already."""
    from cupy import cuda

    # CuPy's own also clears CUDA's last error, which Thrust would take for its own.
    ensure = getattr(cuda.runtime, "_deviceEnsurePeerAccess", None)
    if ensure is not None:
        ensure(peer)
        return
    with contextlib.suppress(cuda.runtime.CUDARuntimeError):
        cuda.runtime.deviceEnablePeerAccess(peer)
