#!/usr/bin/env python3
"""Draw the map of the package's rooms, docs/images/rooms.svg, from its imports.

    scripts/draw_rooms.py             draw it
    scripts/draw_rooms.py --check     only say whether it is up to date

A floor is a layer of the import-linter contracts in pyproject.toml, and a room a package or module
of it; a room with a separate contract holds smaller floors. Each room names the rooms it
imports: Python imports, wherever they stand in a file, and the CUDA headers included by its .cu and
.cuh files, which the linter does not see. The exit status is 1 if one of these is not below it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.made import write_or_check  # noqa: E402

DRAWING = ROOT / "docs/images/rooms.svg"
PACKAGE = "ngsgpu"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"](ngsgpu/[^>"]+)[>"]', re.MULTILINE)

WIDTH, GAP, PADDING = 960, 6, 8
LINE, SMALL_LINE = 16, 13
LETTER = 5.9
"""Width of a letter of the small type, in pixels, about."""

STYLE = """
  text { font-family: sans-serif; font-size: 13px; fill: #1b2a38; }
  .small { font-size: 10.5px; fill: #4b5d6e; }
  rect { fill: #eef3f7; stroke: #8fa5b7; }
  .inner rect { fill: #ffffff; stroke: #b9c8d4; }
"""


@dataclass(frozen=True)
class Room:
    """A package or module, and the layers inside it.

    Attributes:
        name: dotted, as ``ngsgpu.io``.
        imports: names of the rooms beside it that it imports, in the order of the layers.
        floors: the layers inside, upper ones first; empty where there are none.
    """

    name: str
    imports: list[str]
    floors: list[list[Room]]


def read_layers() -> dict[str, list[list[str]]]:
    """The layers of each package that has a contract of its rooms, upper ones first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers: dict[str, list[list[str]]] = {}
    for contract in settings["contracts"]:
        if contract["type"] == "layers":
            for container in contract["containers"]:
                folder = ROOT / container.replace(".", "/")
                there = {path.name.partition(".")[0] for path in folder.iterdir()}
                floors = [
                    [name for name in re.findall(r"\w+", layer) if name in there]
                    for layer in contract["layers"]
                ]
                layers[container] = list(filter(None, floors))
    return layers


def read_imports() -> dict[str, set[str]]:
    """What each file imports or includes of the package; dotted names, of files without suffix."""
    imports: dict[str, set[str]] = {}
    for path in sorted((ROOT / PACKAGE).rglob("*")):
        if path.suffix == ".py":
            found = set(python_imports(path.read_text()))
        elif path.suffix in (".cu", ".cuh"):
            headers = INCLUDE.findall(path.read_text())
            found = {header.rpartition(".")[0].replace("/", ".") for header in headers}
        else:
            continue
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        imports.setdefault(name, set()).update(found)
    return imports


def python_imports(source: str) -> Iterator[str]:
    """Names of the package that a file imports; of ``from a import b`` both a and a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def make_floors(
    container: str, layers: dict[str, list[list[str]]], imports: dict[str, set[str]], up: list[str]
) -> list[list[Room]]:
    """The rooms of a package, floor by floor; imports that do not lead downwards go to ``up``."""
    levels = {
        f"{container}.{name}": level
        for level, floor in enumerate(layers.get(container, []))
        for name in floor
    }

    def room_of(name: str) -> str | None:
        room = container + "." + name.removeprefix(f"{container}.").partition(".")[0]
        return room if name.startswith(f"{container}.") and room in levels else None

    uses: dict[str, set[str]] = {room: set() for room in levels}
    for file, names in imports.items():
        importer = room_of(file)
        if importer:
            uses[importer] |= {room for name in names if (room := room_of(name))} - {importer}
    floors: dict[int, list[Room]] = {}
    for room, level in levels.items():
        used = sorted(uses[room], key=lambda name: (levels[name], name))
        up += [f"{room} imports {other}" for other in used if levels[other] <= level]
        inside = make_floors(room, layers, imports, up)
        floors.setdefault(level, []).append(Room(room, used, inside))
    return list(floors.values())


def wrapped(room: Room, width: float) -> list[str]:
    """The names of the imported rooms, in lines that fit a width."""
    lines: list[str] = []
    for name in room.imports:
        word = name.rpartition(".")[2]
        if lines and len(lines[-1]) + len(word) + 1 <= (width - 2 * PADDING) / LETTER:
            lines[-1] += f" {word}"
        else:
            lines.append(word if lines else f"→ {word}")
    return lines


def height_of(room: Room, width: float) -> float:
    """The height of a room that has a width."""
    own = 2 * PADDING + LINE + SMALL_LINE * len(wrapped(room, width))
    return own + sum(height + GAP for height in floor_heights(room.floors, width - 2 * PADDING))


def floor_heights(floors: list[list[Room]], width: float) -> list[float]:
    """The height of each floor: that of its highest room."""
    return [max(height_of(room, room_width(floor, width)) for room in floor) for floor in floors]


def room_width(floor: list[Room], width: float) -> float:
    """The width of each room of a floor."""
    return (width - GAP * (len(floor) - 1)) / len(floor)


def draw_floors(floors: list[list[Room]], left: float, top: float, width: float) -> Iterator[str]:
    """The SVG elements of floors, one below the other."""
    for floor, height in zip(floors, floor_heights(floors, width), strict=True):
        own_width = room_width(floor, width)
        for number, room in enumerate(floor):
            yield from draw_room(room, left + number * (own_width + GAP), top, own_width, height)
        top += height + GAP


def draw_room(room: Room, left: float, top: float, width: float, height: float) -> Iterator[str]:
    """The SVG elements of a room and what is inside."""
    x, y = left + PADDING, top + PADDING + LINE - 4
    yield f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="3"/>'
    yield f'<text x="{x:.0f}" y="{y:.0f}">{escape(room.name.rpartition(".")[2])}</text>'
    for line in wrapped(room, width):
        y += SMALL_LINE
        yield f'<text class="small" x="{x:.0f}" y="{y:.0f}">{escape(line)}</text>'
    if room.floors:
        yield '<g class="inner">'
        yield from draw_floors(room.floors, x, y + PADDING, width - 2 * PADDING)
        yield "</g>"


def drawing(floors: list[list[Room]]) -> str:
    """The map as SVG."""
    height = sum(height + GAP for height in floor_heights(floors, WIDTH - 2)) + 2
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}">',
        "<title>The rooms of ngsgpu: each imports only rooms of the floors below it</title>",
        f"<style>{STYLE}</style>",
        *draw_floors(floors, 1, 1, WIDTH - 2),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Draw, or compare; return the exit status."""
    up: list[str] = []

    def made() -> dict[Path, str]:
        return {DRAWING: drawing(make_floors(PACKAGE, read_layers(), read_imports(), up))}

    status = write_or_check("scripts/draw_rooms.py", __doc__ or "", made)
    for line in up:
        print(f"draw_rooms: {line}", file=sys.stderr)
    return int(bool(up)) or status


if __name__ == "__main__":
    sys.exit(main())
