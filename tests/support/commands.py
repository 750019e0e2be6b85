"""The command line called from Python, and what it leaves."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ngsgpu.cli import main


@dataclass(frozen=True)
class Done:
    """A finished command."""

    status: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The one line that says what is wrong."""
        lines = [line for line in self.err.splitlines() if "error: " in line]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0].removeprefix("ngsgpu: error: ")


class Commands:
    """Runs ``ngsgpu`` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Done:
        self._capsys.readouterr()
        status = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Done(status, captured.out, captured.err)

    def correct(self, *arguments: object) -> Done:
        return self("correct", "--threads", 2, *arguments)

    def corrects(self, *arguments: object) -> Done:
        """As ``correct``, and it has to succeed."""
        done = self.correct(*arguments)
        assert done.status == 0, done.err
        return done


def read_json(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def keeps_input(process: int, folder: Path) -> bool:
    """Whether a process has a file without a name open in a folder."""
    files = Path(f"/proc/{process}/fd")
    targets = []
    for file in files.iterdir():
        with suppress(OSError):
            targets.append(str(file.readlink()))
    return any(name.startswith(f"{folder}/") and name.endswith("(deleted)") for name in targets)
