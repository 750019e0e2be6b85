"""The map of the rooms is that of the imports, and the page about it names files that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_map_is_up_to_date():
    command = [sys.executable, ROOT / "scripts/draw_rooms.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_files_on_the_page_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    paths = re.findall(r"`([\w/]+/[\w.]+\.(?:py|cuh?))`", page)
    assert len(paths) > 20
    missing = [
        path for path in paths if not any((ROOT / top / path).exists() for top in ("ngsgpu", "."))
    ]
    assert missing == []


def test_no_outputs_of_a_run_are_committed():
    """A command tried in the checkout leaves reads, a database or statistics there."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    tops = {path.partition("/")[0] for path in listed.stdout.splitlines() if "/" in path}
    assert tops <= {
        ".ci", ".github", ".test", "benchmarks", "config", "docs", "envs", "nextflow", "ngsgpu",
        "packaging", "scripts", "tests", "workflow", "wrappers",
    }  # fmt: skip
    files = {path for path in listed.stdout.splitlines() if "/" not in path}
    data = re.compile(r"\.(gz|fastq|fq|fasta|fa|tsv|txt|index|json|npy|bam)$")
    assert [name for name in sorted(files) if data.search(name)] == []
