"""What the report says of a run is true of that run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from ngsgpu.report.drawing import thousands
from ngsgpu.report.exports.methods import Methods
from ngsgpu.report.files import Json
from ngsgpu.report.palette import SAMPLES
from ngsgpu.report.sections.quality import _most_frequent
from ngsgpu.report.spread import MANY_SAMPLES
from ngsgpu.report.summary import missing_table


def test_a_peak_where_mates_cease_to_overlap_is_no_fragment_length() -> None:
    def reads(peak: int) -> Json:
        histogram = [0] * 200 + [5] * 69
        return Json(Path("a.json"), {"insert_size": {"peak": peak, "histogram": histogram}})

    assert _most_frequent(reads(268)) is None
    assert _most_frequent(reads(240)) == 240


def test_ticks_of_small_axes_differ() -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        figure = Figure()
        axes = figure.subplots()
        axes.set_xlim(0, 1)
        thousands(axes.xaxis)
        figure.draw_without_rendering()
        shown = [tick.get_text() for tick in axes.get_xticklabels()]
    assert len(set(shown)) == len(shown) > 3


def test_what_all_samples_lack_is_said_once() -> None:
    def sample(name: str, *missing: str) -> Any:
        return SimpleNamespace(sample=SimpleNamespace(name=name, label=name), missing=list(missing))

    same = [sample(name, f"truth ({name}.json is not there)") for name in ("a1", "b2", "c3")]
    assert missing_table(cast(Any, same)) == [("all samples", ["truth (SAMPLE.json is not there)"])]
    others = [*same[:2], sample("d4", "depth (d4.tsv is not there)"), sample("e5")]
    assert missing_table(cast(Any, others)) == [
        ("a1 and b2", ["truth (SAMPLE.json is not there)"]),
        ("d4", ["depth (d4.tsv is not there)"]),
    ]


def test_samples_that_are_shown_one_by_one_have_different_colours() -> None:
    assert len(set(SAMPLES)) == len(SAMPLES) >= MANY_SAMPLES


def test_methods_name_care_alone_only_where_it_alone_decided() -> None:
    def said(**given: Any) -> str:
        own = Methods.__new__(Methods)
        own.sources = []
        return own._decides([Json(Path("a.json"), {"parameters": given})])

    assert said(classic=True) == "decides as CARE [1] does"
    assert "forest" in said(classic=False, model="auto")
    assert "forest" not in said(classic=False, model="none")
