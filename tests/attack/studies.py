"""Damaged studies: ``report`` makes a page, or says in a line what is wrong and writes nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from tests.attack.arena import Arena, Verdict
from tests.attack.forks import run
from tests.attack.judge import refusal
from tests.support.report import write_json, write_text
from tests.support.report_results import (
    ABUNDANCE,
    CLASSIFICATION,
    COVERAGE,
    ENGINE_CURVE,
    ENGINES,
    EVIDENCE,
    EXTENDED_QUAST,
    KRAKEN,
    MAPPED,
    MERGING,
)
from tests.support.report_studies import write_study

_STRANGE: Final[tuple[Any, ...]] = (
    None, True, -1, 0, 1.5, 1e308, 10**20, 10**400, float("nan"), float("inf"), "", "x", "1",
    "\0", "\ud800", "a\x1b[2J", "x" * 300, "../../..", [], {}, [[]], [1, "x"], [None], {"": 1},
    {"x": {"x": []}}, [[1, 2, 3]], [{}],
)  # fmt: skip
_CELLS: Final = ("", "-1", "0", "0.5", "nan", "inf", "1e400", "9" * 30, "9" * 5000, "x", "\u00b2",
                 "-", ",", "1,,2", "\0")  # fmt: skip


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Damage some files of a study and report it."""
    folder = arena.root / name
    try:
        for name in ("tmp", "in"):
            (folder / name).mkdir(parents=True)
        manifest = make_study(folder / "study")
        what = "; ".join(damage(folder / "study", source) for _ in range(source.choice((1, 1, 3))))
        page, tables = folder / "report.html", folder / "tables"
        words = ["report", str(manifest), "-o", str(page), "--tables", str(tables)]
        ending = run([*words, "--methods", str(folder / "methods.md")], tmp=folder / "tmp")
        if ending.status == 0:
            return Verdict(what, "reported", _problem(page))
        left = [name for name in ("report.html", "methods.md") if (folder / name).exists()]
        left += [str(path.relative_to(folder)) for own in (tables, folder / "tmp", folder / "in")
                 for path in own.glob("*")]  # fmt: skip
        problem = refusal(ending) or (f"it left {left}" if left else "")
        return Verdict(what, "refused", problem and f"{problem}: {ending.stderr[-600:]}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _problem(page: Path) -> str:
    try:
        HTMLParser().feed(page.read_text("utf-8"))
    except ValueError as error:
        return f"the page is damaged: {error}"
    return "" if "</html>" in page.read_text("utf-8") else "the page has no end"


def make_study(folder: Path) -> Path:
    """Write a study with results of every kind; give its manifest."""
    manifest = write_study(folder, ("single", "paired", "failed"))
    document = json.loads(manifest.read_text())
    home, names = folder / "s02", document["samples"][1]["files"]
    for key, found in (("mapped", MAPPED), ("merging", MERGING)):
        names[key] = str(write_json(home / f"{key}.json", found).relative_to(folder))
    unitigs = {"schema": "ngsgpu.unitigs", "schema_version": 1, "kmer": 21, "n50": 90, "unitigs": 8}
    path = write_json(home / "unitigs.json", unitigs)
    names["unitigs"] = {"raw": str(path.relative_to(folder))}
    texts = {
        "quast_extended": EXTENDED_QUAST,
        "quast_engines": ENGINES,
        "quast_curves": ENGINE_CURVE.format(kind="nx"),
    }
    for key, text in texts.items():
        names[key] = str(write_text(home / f"{key}.txt", text).relative_to(folder))
    calls = {"report": KRAKEN, "abundance": ABUNDANCE, "coverage": COVERAGE, "evidence": EVIDENCE}
    files = {key: write_text(home / f"gut/{key}.tsv", text) for key, text in calls.items()}
    files["evaluation"] = write_json(home / "gut/evaluation.json", CLASSIFICATION)
    head = {"schema": "ngsgpu.classify", "schema_version": 1, "queries": {"paired": True}}
    moments = dict.fromkeys(("asked", "started", "ended"), "2026-11-22T12:00:00.000Z")
    gpu = {"uuid": "GPU-a", "leased": moments["asked"], "until": "2026-11-22T12:01:00.000Z"}
    job = {"host": "node", "lease": "1", "gpus": [gpu], **moments}
    files["stats"] = write_json(home / "gut/stats.json", head | {"job": job})
    names["classification"]["gut"] = {
        key: str(path.relative_to(folder)) for key, path in files.items()
    }
    facts = {"targets": 9, "bases": 900, "taxa": 5, "without_taxon": 1, "partitions": [{}]}
    write_json(folder / "gut.json", facts)
    document |= {
        "databases": {"gut": "gut.json"},
        "jobs": {"classify_reads": {"one/s02": "s02/gut/stats.json"}},
        "config": {"correct": {"extra": "-t 2"}, "assemble": {"kmers": "auto"}},
        "versions": {"fastp": "0.23.2"},
        "machine": {"cores": 2},
    }
    document["samples"][1] |= {"kind": "simulated", "parameters": {"art": {"coverage": 30}}}
    return write_json(manifest, document)


def damage(folder: Path, source: random.Random) -> str:
    """Damage a file of a study; give what was done."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    path = source.choice([*files, *[folder / "study.json"] * 8])
    if not path.is_file():
        return f"{path.name} is gone already"
    is_json = path.read_bytes()[:1] == b"{"
    ways: list[Callable[[Path, random.Random], str]] = [_bytes, _cut, _place]
    ways += [_value] * 9 + [_nest] if is_json else [_cell] * 7
    return f"{path.relative_to(folder)}: {source.choice(ways)(path, source)}"


def _bytes(path: Path, source: random.Random) -> str:
    data = bytearray(path.read_bytes() or b"\0")
    for _ in range(source.choice((1, 1, 20))):
        data[source.randrange(len(data))] = source.choice(
            (0, 9, 10, 13, 0x80, source.randrange(256))
        )
    path.write_bytes(data)
    return "bytes"


def _cut(path: Path, source: random.Random) -> str:
    size = source.choice((0, source.randrange(max(1, path.stat().st_size))))
    os.truncate(path, size)
    return f"cut to {size}"


def _place(path: Path, source: random.Random) -> str:
    """Something else in its place."""
    path.unlink()
    what = source.choice(("folder", "dangling", "looping", "pipe", "gone"))
    if what == "folder":
        path.mkdir()
    elif what in ("dangling", "looping"):
        path.symlink_to("nowhere" if what == "dangling" else path.name)
    elif what == "pipe":
        os.mkfifo(path)
    return what


def _nest(path: Path, source: random.Random) -> str:
    deep = source.choice((150, 600, 3000, 100_000))
    begin, end = source.choice((("[", "]"), ('{"a":', "}")))
    key = source.choice(("config", "parameters", "samples", "time_s", "job", "more"))
    inside = f"{begin * deep}0{end * deep}"
    path.write_text(f'{path.read_text().rstrip()[:-1]}, "{key}": {inside}}}')
    return f"{key} nested {deep} deep"


def _value(path: Path, source: random.Random) -> str:
    """Another value, or none, at one place of a JSON document."""
    try:
        document = json.loads(path.read_text())
    except (ValueError, RecursionError):
        return _bytes(path, source)
    if not document:
        return _bytes(path, source)
    at, steps = document, []
    while True:
        key = source.choice(list(at) if isinstance(at, dict) else range(len(at)))
        steps.append(str(key))
        inner = at[key]
        if not (isinstance(inner, dict | list) and inner and source.random() < 0.8):
            break
        at = inner
    kind = source.choice(("value", "value", "value", "none", "twice", "name"))
    value = source.choice(_STRANGE)
    if kind == "value":
        at[key] = value
    elif kind == "none":
        del at[key]
    elif isinstance(at, list):
        at.append(inner)
    else:
        at[source.choice(("\ud800", "", "x", "\0"))] = at.pop(key) if kind == "name" else inner
    write_json(path, document)
    return f"{kind} {'.'.join(steps)} {str(value)[:40]!r}"


def _cell(path: Path, source: random.Random) -> str:
    """Another cell, line or ending of a text file."""
    lines = path.read_bytes().split(b"\n")
    at = source.randrange(len(lines))
    kind = source.choice(("cell", "cell", "cell", "gone", "twice", "deeper", "no header", "crlf"))
    if kind == "cell":
        cells = lines[at].split(b"\t")
        cells[source.randrange(len(cells))] = source.choice(_CELLS).encode()
        lines[at] = b"\t".join(cells)
    elif kind == "gone":
        del lines[at]
    elif kind == "twice":
        lines.insert(at, lines[at])
    elif kind == "deeper":
        head, _, name = lines[at].rpartition(b"\t")
        lines[at + 1 : at + 1] = [head + b"\t" + b"  " * n + name for n in range(4, 1200)]
    elif kind == "no header":
        del lines[0]
    path.write_bytes((b"\r\n" if kind == "crlf" else b"\n").join(lines))
    return f"{kind} in line {at + 1}"
