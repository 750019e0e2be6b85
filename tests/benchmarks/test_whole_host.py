"""The benchmark of a whole host, on a tiny one, with a stand-in for deacon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import whole_host

STAND_IN = """#!/usr/bin/env python3
import json, shutil, sys
words = sys.argv[1:]
if words == ["--version"]:
    print("deacon 9.8.7")
elif words[0] == "index":
    shutil.copy(words[2], words[words.index("-o") + 1])
else:
    index, first, second = words[2:5]
    shutil.copy(first, words[words.index("-o") + 1])
    shutil.copy(second, words[words.index("-O") + 1])
    with open(words[words.index("-s") + 1], "w") as file:
        json.dump({"time": 0.25, "seqs_removed": 0}, file)
"""
"""Takes no read for the host's."""


def test_ngsgpu_beside_deacon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "deacon"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    out = tmp_path / "out.json"
    options = ["--bases", "60e3", "--part", "20e3", "--pairs", "200", "-t", "1", "--repeats", "1"]
    forms = ["--indexes", "whole", "--forms", "gz", "plain"]
    assert (
        whole_host.main([*options, *forms, "--work", str(tmp_path / "work"), "-o", str(out)]) == 0
    )
    found = json.loads(out.read_text())
    assert found["deacon"] == "9.8.7"
    assert list(found["indexes"]) == ["whole", "whole, deacon", "whole, deacon, frozen"]
    names = ["whole, cpu", "whole, deacon", "whole, deacon, frozen"]
    assert list(found["runs"]) == [f"{name}{form}" for name in names for form in ("", ", plain")]
    for name, own in found["runs"].items():
        assert own["others_kept"] == found["pairs"]["others"] == 100
        assert own["host_left"] == (100 if "deacon" in name else 0)
    assert found["runs"]["whole, deacon"]["runs"][0]["own_s"] == 0.25
    assert "| whole, deacon, plain |" in whole_host.table(found)
