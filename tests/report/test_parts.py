"""Numbers in words, binned spectra, and MultiQC content."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import UsageError
from ngsgpu.report import words
from ngsgpu.report.exports import multiqc
from ngsgpu.report.sections.correction import plots
from ngsgpu.report.sections.correction.plots import Spectrum
from tests.support.report import statistics


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, words.NOTHING), (4.21, "4.2 s"), (99.94, "99.9 s"), (100, "1 min 40 s"),
     (3540, "59 min 00 s"), (7500, "2 h 05 min")],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    assert words.duration(seconds) == text


def test_other_words() -> None:
    assert words.mebibytes(1023) == "1,023 MiB"
    assert words.mebibytes(1536) == "1.50 GiB"
    assert words.rate(0.000296) == "0.0296 %"
    assert words.rate(0.0) == "0 %"
    assert words.share(1, 0) == words.NOTHING
    assert words.number_words(1, "sample") == "one sample"
    assert words.number_words(12, "sample") == "12 samples"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.flat({"a": {"b": [1, 2], "c": True}, "d": None}) == {
        "a.b": "1, 2", "a.c": "yes", "d": "not set",
    }  # fmt: skip


@given(st.dictionaries(st.integers(1, 3000), st.integers(0, 10**6), max_size=40))
def test_bins_hold_all_kmers(histogram: dict[int, int]) -> None:
    rows = sorted(histogram.items())
    spectrum = Spectrum(
        21,
        0.5,
        np.array([m for m, _ in rows], dtype=np.int64),
        np.array([c for _, c in rows], dtype=np.int64),
    )
    at, height = plots.binned(spectrum)
    assert (height > 0).all() and (np.diff(at) > 0).all()
    low = {m: c for m, c in rows if m <= 16 and c}
    assert {round(m): h * 0.5 for m, h in zip(at, height, strict=True) if m <= 16} == pytest.approx(
        low
    )
    if not any(c for _, c in rows):
        assert len(at) == 0


@given(st.lists(st.integers(0, 100), min_size=1, max_size=30))
def test_window_sums(counts: list[int]) -> None:
    found = plots._window(np.array(counts, dtype=np.float64))
    assert found.tolist() == [sum(counts[max(0, i - 2) : i + 3]) for i in range(len(counts))]


def test_multiqc_content_of_a_correction(tmp_path: Path) -> None:
    paths = multiqc.write_content(statistics(), str(tmp_path / "s"), "ecoli")
    assert [path.name for path in paths] == [
        "s.ngsgpu_correct_mqc.json", "s.ngsgpu_correct_generalstats_mqc.json",
    ]  # fmt: skip
    bars, columns = (json.loads(path.read_text()) for path in paths)
    assert bars["data"] == {"ecoli": {"corrected": 1200, "left": 800}}
    expected = pytest.approx({"coverage": 29.9, "corrected_bases": 0.945})
    assert columns["data"]["ecoli"] == expected
    assert {name for entry in columns["pconfig"] for name in entry} == set(columns["data"]["ecoli"])


def test_multiqc_content_without_reads(tmp_path: Path) -> None:
    empty = statistics(
        reads={"total": 0, "bases": 0}, corrected={"reads": 0, "bases": 0},
        coverage={"value": None},
    )  # fmt: skip
    _, columns = multiqc.write_content(empty, str(tmp_path / "s"), "ecoli")
    assert json.loads(columns.read_text())["data"] == {"ecoli": {}}


@pytest.mark.parametrize(
    ("document", "kind", "bars", "columns"),
    [
        (
            {"schema": "ngsgpu.merge", "pairs": {"total": 8, "merged": 2},
             "insert_size": {"mean": 150.5}},
            "ngsgpu_merge", {"merged": 2, "left": 6}, {"merged": 25.0, "insert_size": 150.5},
        ),
        (
            {"schema": "ngsgpu.extend", "pairs": {"total": 8, "connected": 6, "remaining": 2},
             "insert": {"mean": None}},
            "ngsgpu_extend", {"connected": 6, "remaining": 2}, {"connected": 75.0},
        ),
    ],
)  # fmt: skip
def test_multiqc_content_of_other_stages(
    tmp_path: Path, document: dict, kind: str, bars: dict, columns: dict
) -> None:
    paths = multiqc.write_content(document, str(tmp_path / "s"), "ecoli")
    assert list(paths) == multiqc.paths_of(str(tmp_path / "s"), kind)
    found = [json.loads(path.read_text())["data"]["ecoli"] for path in paths]
    assert found == [bars, columns]


@pytest.mark.parametrize(
    "document",
    [
        {"schema": "ngsgpu.merge", "pairs": {"total": 8, "merged": 0},
         "insert_size": {"mean": 0.0}},
        {"schema": "ngsgpu.extend", "pairs": {"total": 0, "connected": 0, "remaining": 0},
         "insert": {"mean": 1.0}},
    ],
)  # fmt: skip
def test_multiqc_content_has_no_length_of_no_pair(tmp_path: Path, document: dict) -> None:
    _, columns = multiqc.write_content(document, str(tmp_path / "s"), "ecoli")
    found = json.loads(columns.read_text())["data"]["ecoli"]
    assert not {"insert", "insert_size"} & found.keys()


def test_multiqc_content_of_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no MultiQC content for statistics of ngsgpu\.kmers"):
        multiqc.write_content({"schema": "ngsgpu.kmers"}, str(tmp_path / "s"), "x")
