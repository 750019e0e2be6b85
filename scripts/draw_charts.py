#!/usr/bin/env python3
"""Draw the charts of docs/images from the files in benchmarks/results.

scripts/draw_charts.py             draw them
scripts/draw_charts.py --check     only say whether they are up to date
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.charts import accuracy, chain, contigs, density, forms, others  # noqa: E402


def _result(name: str) -> Any:
    return json.loads((ROOT / "benchmarks/results" / f"{name}.json").read_text())


def charts() -> dict[str, str]:
    """Each picture by its name."""
    return {
        "accuracy": accuracy.draw(_result(accuracy.RESULT)),
        "chain": chain.draw(_result(chain.RESULT)),
        "contigs": contigs.draw(_result(contigs.RESULT)),
        "density": density.draw(_result(density.RESULT)),
        "forms": forms.draw(_result(forms.RESULT)),
        "others": others.draw({name: _result(name) for name in others.RESULTS}),
    }


def main() -> int:
    """Draw, or compare; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    status = 0
    for name, text in charts().items():
        path = ROOT / "docs/images" / f"{name}.svg"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} is out of date: run scripts/draw_charts.py", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
