"""The references of the report: as the repository has them elsewhere, and one text of each."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ngsgpu.report.exports.methods import SOURCES
from ngsgpu.report.model import Study
from ngsgpu.report.render import render_report
from tests.support.report import Page

ROOT = Path(__file__).parents[2]
CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]


@pytest.mark.parametrize(
    ("key", "author", "year"),
    [("carex", "Kallenborn", 2024), ("care", "Kallenborn", 2022), ("abundance", "Kobus", 2023),
     ("flash", "Magoč", 2011)],
)  # fmt: skip
def test_titles_are_those_of_the_citation_file(key: str, author: str, year: int) -> None:
    title = next(
        own["title"]
        for own in CITED
        if own["authors"][0]["family-names"] == author and own["year"] == year
    )
    assert f". {title}. " in SOURCES[key] and f"({year})" in SOURCES[key]


@pytest.mark.parametrize("page", ["correct.md", "extend.md"])
def test_dissertation_is_named_alike_in_the_documentation(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"Kallenborn: ([^.]*)\. Dissertation", text)
    assert found == [SOURCES["carex"].removeprefix("Kallenborn F. ").partition(". Diss")[0]]


def test_page_has_the_same_references(study: Study) -> None:
    text = Page(render_report(study)).text
    assert SOURCES["carex"].rstrip(".") + "; chapter 5 and tables A.1 to A.3." in text
    assert SOURCES["quast"] in text and SOURCES["art"] in text
