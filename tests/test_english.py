"""Phrases that read as if translated, and what to write instead, in all that people read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("ngsgpu", "workflow", "scripts", "benchmarks", "config", "docs", "envs", "nextflow")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml")
KINDS = {".py", ".cu", ".cuh", ".smk", ".sh", ".md", ".rst", ".yaml", ".yml", ".nf", ".toml", ""}

INSTEAD = {
    r"those of a read set": "the read lengths of a read set",
    r"\bat home\b": "on the host",
    r"to the same numbers": "with identical results",
    r"\bis_outdone\b": "has_stronger_predecessors",
    r"\bends_when_asked\b": "handle_termination",
    r"\bundisturbed\b": "defer_signals",
    r"\bin no time\b": "in O(1), immediately",
    r"\b(do|see to|of|for) what comes\b": "the next records, the remaining reads",
    r"\bsee that (all|every|each)\b": "verify that all",
    # "mended" is a key of a JSON output and a heading of its table.
    r"\bmend(s|ing)?\b|(?<![\"'`])(?<!errors )\bmended\b": "corrected, repaired",
    r"\berrors a (base|read)\b": "errors per base",
    r"\bone more for every\b": "beyond the table, extrapolate linearly",
    r"\bso many\b": "a number of, or the parameter's name",
    r"\bwhat is had\b": "the results, the reads that exist",
    r"\bof (its|their) own\b": "separate, or nothing",
    r"\b(is|are|be|been|was|were) told\b(?! (apart|from))": "given, reported, called with",
    r"\bwhat there is\b": "the existing results",
    r"\b(reads|bases|mates|kernels|files)' of\b": "of the reads",
    r"def (grown|raised|joined)\b": "a verb for what acts, a noun for what returns",
    r'"""(It|Its|They|Their|This|These|That|Those|He|She|His|Her|We|You)\b': "a verb or a noun",
}
BANNED = re.compile("|".join(f"(?:{pattern})" for pattern in INSTEAD).replace(" ", r"\s"))
MARGIN = re.compile(r"\n[ \t]*(?:#|//)?[ \t]*")


def texts() -> Iterator[Path]:
    """The files of the repository that people read, results of measurements and tests aside."""
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            inner = path.relative_to(ROOT).parts
            if path.suffix in KINDS and path.is_file() and not {"results", "prebuilt"} & {*inner}:
                yield path
    yield from (ROOT / page for page in PAGES)


def test_no_phrase_reads_translated() -> None:
    found = []
    for path in texts():
        text = MARGIN.sub("\n", path.read_text("utf-8", "replace"))
        for match in BANNED.finditer(text):
            phrase = " ".join(match.group().split())
            meant = next(new for old, new in INSTEAD.items() if re.match(old, phrase))
            place = f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}"
            found.append(f"{place}: {phrase!r}; write: {meant}")
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "is_banned"),
    [
        ("a table of so many k-mers", True),
        ("in a process of its own", True),
        ("copies can be told apart", False),
        ("a callback that is told the size", True),
        ('totals["mended"]', False),
        ("errors that it mended", True),
        ("in a process of its\n    # own", True),
        ('    """That of a read set."""', True),
        ('    """That-like reads', True),
        ('    """Thatched roofs', False),
        ("def joined(parts)", True),
        ("joined = 1", False),
    ],
)
def test_what_is_found(line: str, is_banned: bool) -> None:
    assert bool(BANNED.search(MARGIN.sub("\n", line))) == is_banned
