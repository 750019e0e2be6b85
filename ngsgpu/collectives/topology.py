"""How the GPUs of a host are linked: read from a file, from what nvidia-smi prints, or by name.

Nodes 0 to n - 1 are GPUs, further ones are switches (NVSwitch, PCIe switches, CPUs), which hold no
data. A link has a number of lanes in each direction; in a step of a plan each lane carries a chunk.
"""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from ngsgpu.errors import InputError, UsageError
from ngsgpu.io.output.manifest import parse_json

Link = tuple[int, int]

_MOST_NVLINKS: Final = 18
"""NVLinks of a GPU (Hopper); a row with more is of GPUs at a switch, listed once for each peer."""

_NEARNESS: Final = (("PIX",), ("PXB",), ("PHB", "NODE"), ("SYS",))
"""What two GPUs share, the nearest first: a PCIe switch, several, a CPU, or none of these."""

_REMEDY: Final = (
    "give what nvidia-smi topo -m prints, or JSON with gpus and links ([from, to, lanes]); "
    "see docs/gpu.md"
)


@dataclass(frozen=True)
class Topology:
    """GPUs, switches and links.

    Attributes:
        name: of the topology.
        gpus: number of GPUs.
        lanes: of each link, by its nodes; both directions are there.
        routes: between GPUs, without others on the way: by their numbers, the links in their order.
    """

    name: str
    gpus: int
    lanes: Mapping[Link, int]
    routes: Mapping[Link, tuple[Link, ...]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "routes", _routes(self.gpus, self.lanes))

    def width(self, way: Link) -> int:
        """Chunks that a transfer between two GPUs can carry in a step."""
        return min(self.lanes[link] for link in self.routes[way])

    def is_connected(self) -> bool:
        """Whether data gets from each GPU to all others."""
        reached, waiting = {0}, [0]
        while waiting:
            own = waiting.pop()
            near = {to for at, to in self.routes if at == own} - reached
            reached |= near
            waiting += near
        return len(reached) == self.gpus


def _routes(gpus: int, lanes: Mapping[Link, int]) -> dict[Link, tuple[Link, ...]]:
    """Shortest ways between GPUs over switches."""
    near: dict[int, list[int]] = {}
    for at, to in sorted(lanes):
        near.setdefault(at, []).append(to)
    routes: dict[Link, tuple[Link, ...]] = {}
    for start in range(gpus):
        ways: dict[int, tuple[Link, ...]] = {start: ()}
        waiting = deque([start])
        while waiting:
            at = waiting.popleft()
            for to in near.get(at, []):
                if to not in ways:
                    ways[to] = (*ways[at], (at, to))
                    if to >= gpus:
                        waiting.append(to)
        routes.update({(start, to): way for to, way in ways.items() if way and to < gpus})
    return routes


def example_names() -> list[str]:
    """Topologies that come with the package."""
    folder = files("ngsgpu.collectives") / "topologies"
    return sorted(own.name.removesuffix(".json") for own in folder.iterdir() if ".json" in own.name)


def read_topology(source: str) -> Topology:
    """Read a topology.

    Args:
        source: name of an example, or a file: JSON, or what ``nvidia-smi topo -m`` prints.

    Raises:
        InputError: there is none, or it does not connect its GPUs.
    """
    if source in example_names():
        text = (files("ngsgpu.collectives") / "topologies" / f"{source}.json").read_text()
        return parse_topology(text, source)
    try:
        text = Path(source).read_text()
    except (OSError, UnicodeDecodeError) as error:
        remedy = f"give a file, or one of {', '.join(example_names())}"
        raise InputError(source, "cannot be read as a topology", remedy) from error
    return parse_topology(text, source)


def topology_of_host() -> Topology:
    """The topology of this machine, as nvidia-smi prints it.

    Raises:
        UsageError: nvidia-smi does not answer.
        InputError: there is only one GPU.
    """
    try:
        done = subprocess.run(
            ["nvidia-smi", "topo", "-m"], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UsageError(
            "nvidia-smi topo -m does not answer; name links with `topology`"
        ) from error
    return parse_topology(done.stdout, "this machine")


def parse_topology(text: str, name: str) -> Topology:
    """Read a topology from text; see ``read_topology``.

    Raises:
        InputError: the text is none, or not all GPUs are connected.
    """
    try:
        found = _from_json(parse_json(text), name) if text.lstrip()[:1] == "{" else None
        found = found or _from_matrix(text, name)
    except (ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise InputError(name, "is no topology", _REMEDY) from error
    if not found.is_connected():
        raise InputError(name, "not all GPUs are connected", "add the links that are missing")
    return found


def _from_json(values: dict[str, Any], name: str) -> Topology:
    gpus = int(values["gpus"])
    links = [(int(a), int(b), int(lanes)) for a, b, lanes in values["links"]]
    if not 2 <= gpus <= 64 or any(a == b or min(a, b) < 0 for a, b, _ in links):
        raise ValueError
    return Topology(str(values.get("name", name)), gpus, _both_ways(links))


def _both_ways(links: Iterable[tuple[int, int, int]]) -> dict[Link, int]:
    lanes: dict[Link, int] = {}
    for a, b, count in links:
        if count < 1:
            raise ValueError
        for link in ((a, b), (b, a)):
            lanes[link] = lanes.get(link, 0) + count
    return lanes


def _from_matrix(text: str, name: str) -> Topology:
    """Of ``nvidia-smi topo -m``: NVLinks, and PCIe too if they do not connect all GPUs.

    A lane of PCIe counts as much as one of NVLink: 16 lanes of generation 4 are as fast as one.
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    rows = [line.split() for line in text.splitlines() if re.match(r"GPU\d+\s", line)]
    gpus = len(rows)
    cells = [row[1 : gpus + 1] for row in rows]
    if gpus < 2 or any(cells[gpu][gpu] != "X" for gpu in range(gpus)):
        raise ValueError
    pairs = [(a, b) for a in range(gpus) for b in range(a + 1, gpus)]
    nvlinks = {(a, b): int(cells[a][b][2:]) for a, b in pairs if cells[a][b].startswith("NV")}
    if len(nvlinks) == len(pairs) and len(set(nvlinks.values())) == 1:
        lanes = nvlinks[0, 1]
        if lanes * (gpus - 1) > _MOST_NVLINKS:
            star = [(gpu, gpus, lanes) for gpu in range(gpus)]
            return Topology(name, gpus, _both_ways(star))
    links = [(a, b, count) for (a, b), count in nvlinks.items()]
    direct = Topology(name, gpus, _both_ways(links))
    if direct.is_connected():
        return direct
    return Topology(name, gpus, _both_ways([*links, *_tree(cells)]))


def _tree(cells: list[list[str]]) -> list[tuple[int, int, int]]:
    """PCIe: GPUs that share something are at one switch, and the switches at further ones."""
    groups = [(gpu, {gpu}) for gpu in range(len(cells))]
    links: list[tuple[int, int, int]] = []
    shared: set[str] = set()
    number = len(cells)
    for words in _NEARNESS:
        shared |= set(words)
        if words is _NEARNESS[-1]:  # what GPUs with NVLinks share of PCIe is not said
            shared |= {cell for row in cells for cell in row if cell.startswith("NV")}
        joined: list[list[tuple[int, set[int]]]] = []
        for node, own in groups:
            first = min(own)
            place = next(
                (other for other in joined if cells[min(other[0][1])][first] in shared), None
            )
            joined.append([(node, own)]) if place is None else place.append((node, own))
        groups = []
        for members in joined:
            if len(members) == 1:
                groups.append(members[0])
                continue
            links += [(node, number, 1) for node, _ in members]
            groups.append((number, set().union(*(own for _, own in members))))
            number += 1
    if len(groups) > 1:
        raise ValueError
    return links
