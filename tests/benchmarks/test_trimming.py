"""Trimming beside fastp: both run, and what they write is compared."""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks.peers import trimming
from tests.support.io.records import fastq, write
from tests.support.trim.world import pairs


@pytest.mark.skipif(shutil.which("fastp") is None, reason="fastp is not installed")
def test_few_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = pairs(random.Random(1), 100)
    files = [write(tmp_path / f"{mate}.fq", fastq(own[mate] for own in made)) for mate in (0, 1)]
    words = ["trimming", *map(str, files), "--repeats", "1", "--work", str(tmp_path / "work")]
    monkeypatch.setattr(sys, "argv", [*words, "-o", str(tmp_path / "out.json")])
    monkeypatch.setattr(trimming, "head", lambda *schema: {"schema": schema[0]})
    assert trimming.main() == 0
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["differences"] == [] and document["pairs"] == 100
    table = capsys.readouterr().out.splitlines()
    assert len(table) == 2 + sum(len(trimming.programs(form, ["cpu"])) for form in trimming.FORMS)
