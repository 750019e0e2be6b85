"""The steps of ``graph`` and ``tour`` on a GPU, with identical results.

The spanning forest and the walk are the CPU's, as in the source; the arrays come home for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.assemble.euler.graph import EulerGraph
from ngsgpu.assemble.euler.tour import CircuitGraph
from ngsgpu.device.cuda.kernels import KernelModule
from ngsgpu.device.cuda.sort import radix_argsort
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import to_device
from ngsgpu.device.plan import Allocation, plan_on_gpu
from ngsgpu.device.team import limited_gpu_memory

KERNELS: Final = KernelModule("ngsgpu.assemble.euler")
MOST_EDGES: Final = (1 << 31) - 1
"""Of a graph: places are int32."""

_EDGE_BYTES: Final = 144
"""GPU memory for an edge while the graph is made: words, their copies and sorting."""


@contextmanager
def on_gpu(edges: int, limit: int | None) -> Iterator[None]:
    """Buffers for a graph, by its number of edges, in the current GPU's memory.

    Args:
        edges: at most.
        limit: GPU memory that may be used, in bytes; None: free memory.

    Raises:
        DeviceMemoryError: the graph does not fit.
        DeviceError: CUDA fails.
    """
    with limited_gpu_memory(limit), cuda_errors("following an Euler tour on the GPU"):
        plan_on_gpu(
            f"the graph of {edges:,} edges", limit, Allocation("edges", _EDGE_BYTES * edges),
            beyond=f"{MOST_EDGES:,} edges" if edges > MOST_EDGES else "",
        ).check()  # fmt: skip
        yield


@contextmanager
def done() -> Iterator[None]:
    """Wait at the end for what was launched in the block."""
    import cupy

    yield
    cupy.cuda.get_current_stream().synchronize()


def euler_graph(kmers: NDArray[np.uint64], counts: NDArray[np.uint16], length: int) -> EulerGraph:
    """As ``graph.euler_graph``; the arrays are CuPy's."""
    import cupy

    own, own_counts = to_device(np.ascontiguousarray(kmers[:, 0])), to_device(counts)
    turned = cupy.empty_like(own)
    KERNELS.launch_threads("turn_all", len(own), own, np.int64(len(own)), np.int32(length), turned)
    other = cupy.flatnonzero(turned != own)
    edges = cupy.concatenate((own, turned[other]))
    counted = cupy.concatenate((own_counts, own_counts[other]))
    del own, turned
    counted = counted[radix_argsort(edges)]
    tails = (edges << np.uint64(2)) | (edges >> np.uint64(62))
    entering = radix_argsort(tails).astype(cupy.int32)
    ones = np.uint64(((1 << 2 * (length - 1)) - 1) << (64 - 2 * (length - 1)))
    tails &= ones
    heads = edges & ones
    vertices = _distinct(cupy.concatenate((_distinct(heads), _distinct(tails))))
    sinks = cupy.empty(len(edges), dtype=cupy.int32)
    sinks[entering] = cupy.searchsorted(vertices, tails).astype(cupy.int32)
    leave_starts, enter_starts = _starts(heads, vertices), _starts(tails, vertices)
    return EulerGraph(length, edges, counted, vertices, sinks, leave_starts, enter_starts, entering)


def _distinct(words: Any) -> Any:
    """Distinct words, ascending."""
    import cupy

    words = words.copy()
    words.sort()
    first = cupy.ones(len(words), dtype=cupy.bool_)
    first[1:] = words[1:] != words[:-1]
    return words[cupy.flatnonzero(first)]


def _starts(ascending: Any, vertices: Any) -> Any:
    """First row of each vertex among prefixes or suffixes, and their number, int32[n + 1]."""
    import cupy

    starts = cupy.empty(len(vertices) + 1, dtype=cupy.int32)
    starts[:-1] = cupy.searchsorted(ascending, vertices)
    starts[-1:] = len(ascending)
    return starts


def assign_successors(graph: EulerGraph) -> Any:
    """As ``tour.assign_successors``."""
    import cupy

    successors = cupy.full(len(graph.edges), -1, dtype=cupy.int32)
    size = np.int64(len(graph.vertices))
    lists = (graph.enter_starts, graph.entering, graph.leave_starts)
    KERNELS.launch_threads("pair_edges", int(size), *lists, size, successors)
    return successors


def find_components(successors: Any) -> Any:
    """As ``tour.find_components``."""
    import cupy

    labels = cupy.arange(len(successors), dtype=cupy.int32)
    size = np.int64(len(labels))
    differ, moved = (cupy.ones(1, dtype=cupy.int32) for _ in range(2))
    while int(differ[0]):
        differ[...] = 0
        KERNELS.launch_threads("hook_roots", len(labels), successors, size, labels, differ)
        moved[...] = 1
        while int(moved[0]):
            moved[...] = 0
            KERNELS.launch_threads("jump_up", len(labels), size, labels, moved)
    return labels


def circuit_graph(graph: EulerGraph, labels: Any) -> CircuitGraph:
    """As ``tour.circuit_graph``, on the host."""
    import cupy

    first, second = graph.entering[:-1], graph.entering[1:]
    joined = (graph.sinks[first] == graph.sinks[second]) & (labels[first] != labels[second])
    places = cupy.flatnonzero(joined)
    own, other = labels[first[places]].get(), labels[second[places]].get()
    low, high = np.minimum(own, other), np.maximum(own, other)
    on_host = places.get()
    order = np.lexsort((on_host, high, low))
    return CircuitGraph(low[order], high[order], on_host[order])


def swipe(graph: EulerGraph, places: NDArray[np.int64], successors: Any) -> None:
    """As ``tour.swipe``."""
    import cupy

    marks = cupy.zeros(len(graph.edges), dtype=cupy.uint8)
    marks[to_device(places)] = 1
    size = np.int64(len(graph.vertices))
    KERNELS.launch_threads(
        "exchange", int(size), graph.enter_starts, graph.entering, marks, size, successors
    )


def on_host(graph: EulerGraph) -> EulerGraph:
    """The graph with NumPy's arrays."""
    arrays = {own.name: getattr(graph, own.name).get() for own in fields(graph)[1:]}
    return replace(graph, **arrays)
