"""Files that scripts make from others: written, or only compared (``--check``)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]


def write_or_check(script: str, about: str, files: Callable[[], Mapping[Path, str]]) -> int:
    """Write files, or with ``--check`` say which are out of date; return the exit status.

    Args:
        script: the command that writes them.
        about: what it does, on the first line.
        files: makes the text of each file.
    """
    parser = argparse.ArgumentParser(prog=script, description=about.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check = parser.parse_args().check
    stale = [
        (path, text)
        for path, text in files().items()
        if not path.exists() or path.read_text() != text
    ]
    for path, text in stale:
        if check:
            place = path.relative_to(ROOT)
            print(f"{place} is out of date: run {script}", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return int(check and bool(stale))
