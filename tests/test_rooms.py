"""The map of the rooms is that of the imports, and the page about it names files that exist."""

import re
import subprocess
import sys
from pathlib import Path

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
