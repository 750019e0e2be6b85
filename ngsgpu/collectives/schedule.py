"""Plans of given paths: direct ones, and those around rings [Kobus 2023, section 4.4]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ngsgpu.collectives.plan import ONE, Kind, Plan, demands, fitted
from ngsgpu.collectives.topology import Link, Topology
from ngsgpu.errors import UsageError


def direct_plan(kind: Kind, topology: Topology, main: int = 0, chunks: int = 1) -> Plan:
    """Each chunk goes the shortest way, over other GPUs only where no link leads past them.

    Args:
        kind: scatter, gather or all-to-all.
        topology: GPUs and links.
        main: GPU that scatters or gathers.
        chunks: chunks of each pair of GPUs.
    """
    ways = []
    for shift in range(1, topology.gpus):
        for start, to in demands(kind, topology.gpus, main):
            if (to - start) % topology.gpus == shift:
                ways += [_shortest(topology, start, to)] * chunks
    return scheduled(kind, topology, main, chunks, ways)


def one_step_plan(kind: Kind, topology: Topology, main: int = 0, chunks: int = 1) -> Plan | None:
    """All transfers at once, which share the links; None if a pair of GPUs has no link.

    Args:
        kind: scatter, gather or all-to-all.
        topology: GPUs and links.
        main: GPU that scatters or gathers.
        chunks: chunks of each pair of GPUs.
    """
    pairs = demands(kind, topology.gpus, main)
    if any(pair not in topology.routes for pair in pairs):
        return None
    paths = tuple(sorted(pair for pair in pairs for _ in range(chunks)))
    return fitted(Plan(kind, topology.gpus, main, chunks, ONE, paths), topology)


def ring_plan(kind: Kind, topology: Topology, main: int = 0) -> Plan:
    """Chunks go around rings of links, each the shorter way; half of the opposite ones either way.

    Args:
        kind: scatter, gather or all-to-all.
        topology: GPUs and links.
        main: GPU that scatters or gathers.

    Raises:
        UsageError: the links are not made of rings through all GPUs.
    """
    rings = find_rings(topology)
    size = topology.gpus
    ways = []
    for start, to in demands(kind, size, main):
        for ring in rings:
            begin = ring.index(start)
            distance = (ring.index(to) - begin) % size
            signs = (
                (1, -1) if 2 * distance == size else ((1, 1) if 2 * distance < size else (-1, -1))
            )
            for sign in signs:
                length = distance if sign > 0 else size - distance
                ways.append([ring[(begin + sign * i) % size] for i in range(length + 1)])
    return scheduled(kind, topology, main, 2 * len(rings), ways)


def scheduled(
    kind: Kind, topology: Topology, main: int, chunks: int, ways: Sequence[Sequence[int]]
) -> Plan:
    """Give each chunk the earliest steps in which its links have room, the longest ways first.

    Args:
        kind: the operation.
        topology: of the GPUs.
        main: where scatter begins and gather ends.
        chunks: of what one GPU has for another.
        ways: GPUs that each chunk passes.
    """
    used: list[Counter[Link]] = []
    moves: list[list[int]] = []
    order = sorted(range(len(ways)), key=lambda i: (-len(ways[i]), i))
    for i in order:
        steps: list[int] = []
        step = 0
        for link in zip(ways[i], ways[i][1:], strict=False):
            route = topology.routes[link]
            while True:
                if step == len(used):
                    used.append(Counter())
                if all(used[step][own] < topology.lanes[own] for own in route):
                    break
                step += 1
            used[step].update(route)
            steps.append(step)
            step += 1
        moves.append(steps)
    paths = []
    for i, steps in zip(order, moves, strict=True):
        path, at = [ways[i][0]], 0
        for step in range(len(used)):
            at += at < len(steps) and steps[at] == step
            path.append(ways[i][at])
        paths.append(tuple(path))
    return Plan(kind, topology.gpus, main, chunks, ONE * len(used), tuple(sorted(paths)))


def find_rings(topology: Topology) -> list[list[int]]:
    """Rings through all GPUs that use each lane once.

    Raises:
        UsageError: there are none.
    """
    size = topology.gpus
    left = Counter({link: count for link, count in topology.lanes.items() if link[0] < link[1]})
    degrees: Counter[int] = Counter()
    for link, count in left.items():
        degrees.update({link[0]: count, link[1]: count})
    rings: list[list[int]] = []
    even = {degrees[gpu] for gpu in range(size)}
    if size < 3 or any(gpu >= size for gpu in degrees) or len(even) > 1 or min(even) % 2:
        raise _no_rings(topology)
    if not _find_rings(left, size, rings, min(even) // 2):
        raise _no_rings(topology)
    return rings


def _no_rings(topology: Topology) -> UsageError:
    return UsageError(
        f"the links of {topology.name} are not made of rings through all GPUs; use "
        "`method='optimal'` or direct"
    )


def _find_rings(left: Counter[Link], size: int, rings: list[list[int]], wanted: int) -> bool:
    """Take rings out of the lanes that are left, by trial."""
    if len(rings) == wanted:
        return True

    def extend(ring: list[int]) -> bool:
        if len(ring) == size:
            close = _link(ring[-1], 0)
            if left[close] == 0:
                return False
            left[close] -= 1
            rings.append(list(ring))
            if _find_rings(left, size, rings, wanted):
                return True
            rings.pop()
            left[close] += 1
            return False
        for to in range(1, size):
            link = _link(ring[-1], to)
            if to not in ring and left[link] > 0:
                left[link] -= 1
                if extend([*ring, to]):
                    return True
                left[link] += 1
        return False

    return extend([0])


def _link(a: int, b: int) -> Link:
    return (a, b) if a < b else (b, a)


def _shortest(topology: Topology, start: int, to: int) -> list[int]:
    """GPUs on the way; of equal ones the widest, then the first."""
    best: dict[int, tuple[int, int, list[int]]] = {start: (0, 0, [start])}
    waiting = [start]
    while waiting and to not in best:
        found: dict[int, tuple[int, int, list[int]]] = {}
        for at in waiting:
            for way in topology.routes:
                if way[0] != at or way[1] in best:
                    continue
                hops, width, path = best[at]
                own = (hops + 1, width - topology.width(way), [*path, way[1]])
                if way[1] not in found or own < found[way[1]]:
                    found[way[1]] = own
        best |= found
        waiting = sorted(found)
    return best[to][2]
