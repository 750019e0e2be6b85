"""Whether an evaluation of classifications has the form that the report's tables rely on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ngsgpu.errors import InputError


def check_evaluation(path: Path, document: Mapping[str, Any]) -> None:
    """Check the runs of an evaluation.

    Raises:
        InputError: one is not as ``ngsgpu evaluate classification`` writes it.
    """
    runs = document.get("runs", [])
    if not isinstance(runs, list):
        raise InputError(path, "runs is not a list", "make the file again")
    for number, run in enumerate(runs):
        if not _is_run(run):
            cause = f"runs[{number}] is not the evaluation of a run"
            raise InputError(path, cause, "make the file again")


def _is_run(run: Any) -> bool:
    if not isinstance(run, dict) or not isinstance(run.get("name"), str):
        return False
    curve, abundance = run.get("curve", {"ranks": {}}), run.get("abundance")
    return (
        _have_rates(run.get("ranks"), _is_value)
        and isinstance(curve, dict)
        and _have_rates(curve.get("ranks"), _are_values)
        and ("curve" not in run or run["ranks"].keys() <= curve["ranks"].keys())
        and (not abundance or _are_shares(abundance))
    )


def _have_rates(ranks: Any, is_rate: Callable[[Any], bool]) -> bool:
    """Whether every rank has a precision and a sensitivity."""
    return isinstance(ranks, dict) and all(
        isinstance(rates, dict)
        and {"precision", "sensitivity"} <= rates.keys()
        and all(is_rate(rates.get(name)) for name in ("precision", "sensitivity"))
        and _is_value(rates.get("f1"))
        and (is_rate is _is_value or len(rates["precision"]) == len(rates["sensitivity"]))
        for rates in ranks.values()
    )


def _are_shares(abundance: Any) -> bool:
    """Whether an abundance has its sums, and taxa with shares."""
    if not isinstance(abundance, dict) or not isinstance(abundance.get("taxa"), list):
        return False
    sums = (abundance.get(name, "") for name in ("false_positives", "deviation"))
    return all(map(_is_value, sums)) and all(
        isinstance(taxon, dict)
        and isinstance(taxon.get("name"), str)
        and all(_is_number(taxon.get(name)) for name in ("expected", "observed"))
        for taxon in abundance["taxa"]
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < math.inf


def _is_value(value: Any) -> bool:
    return value is None or _is_number(value)


def _are_values(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_value, value))
