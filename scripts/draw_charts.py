#!/usr/bin/env python3
"""Draw the charts of docs/images from the files in benchmarks/results.

scripts/draw_charts.py             draw them
scripts/draw_charts.py --check     only say whether they are up to date
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.charts import accuracy, chain, contigs, density, forms, human, others, pipeline  # noqa: E402
from scripts.made import write_or_check  # noqa: E402


def _result(name: str) -> Any:
    return json.loads((ROOT / "benchmarks/results" / f"{name}.json").read_text())


def charts() -> dict[Path, str]:
    """Each picture by its file."""
    drawn = {
        "accuracy": accuracy.draw(_result(accuracy.RESULT)),
        "chain": chain.draw(_result(chain.RESULT)),
        "contigs": contigs.draw(_result(contigs.RESULT)),
        "density": density.draw(_result(density.RESULT)),
        "forms": forms.draw(_result(forms.RESULT)),
        "others": others.draw({name: _result(name) for name in others.RESULTS}),
        "pipeline": pipeline.draw(),
    }
    if found := sorted((ROOT / "benchmarks/results").glob(f"*{human.SUFFIX}.json")):
        drawn["human"] = human.draw(_result(found[-1].stem))
    return {ROOT / "docs/images" / f"{name}.svg": text for name, text in drawn.items()}


def main() -> int:
    """Draw, or compare; return the exit status."""
    return write_or_check("scripts/draw_charts.py", __doc__ or "", charts)


if __name__ == "__main__":
    sys.exit(main())
