#!/usr/bin/env python3
"""Draw where the time goes in a chain and in its commands, docs/images/chain.svg.

    scripts/draw_chain.py             draw it
    scripts/draw_chain.py --check     only say whether it is up to date

The figures are medians of RESULT, as benchmarks/chains.py writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
DRAWING: Final = ROOT / "docs/images/chain.svg"
RESULT: Final = ROOT / "benchmarks/results/2026-11-25_chain_L_h100.json"

WIDTH, LEFT, RIGHT = 760, 110, 70
TOP, BAR, GAP = 34, 34, 22
COLOURS: Final = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d9da1")
STYLE: Final = """
  text { font-family: sans-serif; font-size: 13px; fill: #1b2a38; }
  .inside { fill: #ffffff; text-anchor: middle; }
  .axis { font-size: 11px; fill: #4b5d6e; text-anchor: middle; }
  line { stroke: #c3ced8; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e3e9ee; } .axis { fill: #a8b5c0; } line { stroke: #46525d; }
  }
"""

Part = tuple[str, float]


def bars(result: dict[str, Any]) -> dict[str, list[Part]]:
    """Name and seconds of the parts of both ways."""
    single = [
        (name, median(own["wall_s"] for own in runs)) for name, runs in result["commands"].items()
    ]
    runs = result["chain"]
    chain = [
        (name, median(own["steps"][at]["time_s"] for own in runs))
        for at, (name, _) in enumerate(single)
    ]
    rest = median(own["wall_s"] - sum(step["time_s"] for step in own["steps"]) for own in runs)
    return {"commands": single, "chain": [*chain, ("start and end", rest)]}


def drawing(result: dict[str, Any]) -> str:
    """The picture."""
    found = bars(result)
    longest = max(sum(seconds for _, seconds in parts) for parts in found.values())
    scale = (WIDTH - LEFT - RIGHT) / longest
    height = TOP + len(found) * (BAR + GAP) + 24
    names = list(dict.fromkeys(name for parts in found.values() for name, _ in parts))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-label="Seconds of each command, and of each step of the chain">',
        f"<style>{STYLE}</style>",
    ]
    bottom = height - 24
    for second in range(0, int(longest) + 1, 5):
        x = LEFT + second * scale
        lines.append(f'<line x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"/>')
        lines.append(f'<text class="axis" x="{x:.1f}" y="{bottom + 16}">{second} s</text>')
    for row, (title, parts) in enumerate(found.items()):
        x, y = float(LEFT), TOP + row * (BAR + GAP)
        lines.append(f'<text x="0" y="{y + BAR / 2 + 5}">{title}</text>')
        for name, seconds in parts:
            width, colour = seconds * scale, COLOURS[names.index(name)]
            lines.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{colour}">'
                f"<title>{name}: {seconds:.1f} s</title></rect>"
            )
            if width > 9 * len(name):
                place = f'x="{x + width / 2:.1f}" y="{y + BAR / 2 + 5}"'
                lines.append(f'<text class="inside" {place}>{name}</text>')
            x += width
        total = sum(seconds for _, seconds in parts)
        lines.append(f'<text x="{x + 8:.1f}" y="{y + BAR / 2 + 5}">{total:.1f} s</text>')
    x = float(LEFT)
    for name, colour in zip(names, COLOURS, strict=False):
        lines.append(f'<rect x="{x:.1f}" y="4" width="12" height="12" fill="{colour}"/>')
        lines.append(f'<text x="{x + 18:.1f}" y="15">{name}</text>')
        x += 40 + 7.5 * len(name)
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    """Draw, or compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only say whether it is current")
    text = drawing(json.loads(RESULT.read_text()))
    if not parser.parse_args().check:
        DRAWING.write_text(text)
        return 0
    if not DRAWING.exists() or DRAWING.read_text() != text:
        print(f"{DRAWING} is out of date: run scripts/draw_chain.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
