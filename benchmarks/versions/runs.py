"""Runs a command with both versions and compares what they wrote."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.versions.cases import Case
from benchmarks.versions.inputs import digest

SIDES: Final = ("old", "new")
UNSTABLE: Final = {"version", "time_s", "device", "job", "memory", "gpu_memory"}
"""Keys of JSON objects whose values depend on the version, the machine or the time."""


@dataclass(frozen=True)
class Result:
    """What a command ended with; the last line it printed, wall and CPU time in seconds."""

    status: int
    message: str
    wall: float
    cpu: float


@dataclass
class Outcome:
    """What became of a case.

    Attributes:
        case: the command.
        status: exit status of the old version.
        message: the last line it printed.
        differences: what is not the same, a line each.
        messages: what both said, where it is not the same.
        repetitions: seconds of each version in each repetition, wall time and CPU time.
    """

    case: Case
    status: int
    message: str
    differences: list[str]
    messages: list[str] = field(default_factory=list)
    repetitions: list[dict[str, tuple[float, float]]] = field(default_factory=list)

    def ratio(self, clock: int) -> float:
        """Median of new / old over all repetitions; of wall time (clock 0) or CPU time (1)."""
        return median(run["new"][clock] / run["old"][clock] for run in self.repetitions)


class Bench:
    """Two versions and the folders that they write to.

    Args:
        work: has the folder ``inputs`` and gets a folder for each version.
        checkouts: where the versions are, old and new.
        times: how often each command is repeated to compare times; 0 for once, without them.
        commit: of the old version, whose outputs of an earlier comparison in ``work`` then serve
            again if their inputs are the same; None if they must not.
    """

    def __init__(
        self, work: Path, checkouts: tuple[Path, Path], times: int, commit: str | None
    ) -> None:
        self._work, self._times, self._commit = work, times, commit
        self._keys: dict[str, str] = {}
        self._checkouts = dict(zip(SIDES, checkouts, strict=True))

    def outcome(self, case: Case, row: int, *, is_timed: bool) -> Outcome:
        """Run a case with both versions.

        Args:
            case: what to run.
            is_timed: whether to repeat it.
            row: commands of different rows may run at the same time; each has its own GPU leases.
        """
        if self._times == 0 and "cuda" not in case.argv:
            with ThreadPoolExecutor(2) as pool:
                runs = [pool.submit(run, case, row) for run in (self._old, self._new)]
                old, new = (run.result() for run in runs)
        else:
            old, new = self._old(case, row), self._new(case, row)
        outcome = Outcome(case, old.status, old.message, [])
        if old.status != new.status:
            outcome.differences.append(f"exit status {old.status}, now {new.status}")
        places = [re.findall(r"(?:record|line) ([\d,]+)", own.message) for own in (old, new)]
        if old.status and places[0] != places[1]:
            outcome.differences.append("the error names another record or line")
        if (old.status or new.status) and old.message != new.message:
            outcome.messages = [old.message, new.message]
        folders = [self._work / side / case.name for side in SIDES]
        outcome.differences += different_files(*folders)
        for repetition in range(self._times if is_timed and old.status == new.status == 0 else 0):
            # Each version is the first every other time.
            order = SIDES if repetition % 2 else SIDES[::-1]
            taken = {side: self._run(case, side, row) for side in order}
            outcome.repetitions.append({side: (own.wall, own.cpu) for side, own in taken.items()})
        return outcome

    def _new(self, case: Case, row: int) -> Result:
        return self._run(case, "new", row)

    def _old(self, case: Case, row: int) -> Result:
        """Run a case with the old version unless that was done before."""
        key = self._keys[case.name] = self._key(case)
        note = self._work / "old" / f"{case.name}.json"
        if self._commit and note.exists():
            known = json.loads(note.read_text())
            if known["key"] == key:
                return Result(**known["result"])
        result = self._run(case, "old", row)
        note.write_text(json.dumps({"key": key, "result": asdict(result)}))
        return result

    def _key(self, case: Case) -> str:
        """A digest of the old version, the command, its inputs, and what these were made by."""
        parts = [str(self._commit), *case.argv, *(self._keys[name] for name in sorted(case.needs))]
        inputs = [word for word in case.argv if word.startswith("../inputs/")]
        parts += [digest(self._work / "old" / word) for word in inputs]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def _run(self, case: Case, side: str, row: int) -> Result:
        """Run a case with one version, in an empty folder or a copy of another case's."""
        home = self._work / side
        folder = home / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if case.copied and (home / case.copied).exists():
            shutil.copytree(home / case.copied, folder)
        folder.mkdir(exist_ok=True)
        locks = self._work / "locks" / f"{side}-{row}"
        locks.mkdir(parents=True, exist_ok=True)
        environment = os.environ | {
            "PYTHONPATH": str(self._checkouts[side]), "NGSGPU_LOCK_DIR": str(locks),
            "COLUMNS": "100",
        }  # fmt: skip
        # -P: the folder is none to import from.
        command = [sys.executable, "-P", "-m", "ngsgpu", *case.argv]
        says = self._work / f"{side}-{row}.txt"
        with says.open("wb") as errors:
            begin = time.perf_counter()
            # Standard output is a file where it is data, else a part of the messages.
            with (home / case.stdout).open("wb") if case.stdout else says.open("ab") as output:
                process = subprocess.Popen(
                    command, cwd=home, env=environment, stdin=subprocess.DEVNULL,
                    stdout=output, stderr=errors,
                )  # fmt: skip
                _, ended, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - begin
        process.returncode = status = os.waitstatus_to_exitcode(ended)
        # Before the error, steps are logged with the time that they took.
        message = "".join(says.read_text(errors="replace").splitlines(keepends=True)[-1:])
        return Result(status, message.strip(), wall, usage.ru_utime + usage.ru_stime)


def different_files(old: Path, new: Path) -> list[str]:
    """Files that only one of two folders has, and those whose content differs, a line each."""
    files = [
        {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        for folder in (old, new)
    ]
    lines = [f"{name}: no more written" for name in sorted(files[0] - files[1])]
    lines += [f"{name}: written now" for name in sorted(files[1] - files[0])]
    for name in sorted(files[0] & files[1]):
        contents = [(folder / name).read_bytes() for folder in (old, new)]
        if contents[0] != contents[1]:
            difference = describe_difference(*contents, is_json=name.endswith("json"))
            lines += [f"{name}: {difference}"] if difference else []
    return lines


def describe_difference(old: bytes, new: bytes, *, is_json: bool) -> str | None:
    """Where two contents differ first; None if only in entries of JSON that may differ."""
    if is_json:
        found = _different_entry(_parsed(old), _parsed(new), "")
        if found is None:
            return None
        return f"entry {found}"
    start = ""
    if old.startswith(b"\x1f\x8b") and new.startswith(b"\x1f\x8b"):
        try:
            old, new = gzip.decompress(old), gzip.decompress(new)
        except (OSError, EOFError, zlib.error) as error:
            return f"cannot be decompressed: {error}"
        if old == new:
            return "compressed differently, the same content"
        start = "decompressed, "
    end = min(len(old), len(new))
    at = next((at for at in range(0, end, 4096) if old[at : at + 4096] != new[at : at + 4096]), end)
    at = next((i for i in range(at, min(at + 4096, end)) if old[i] != new[i]), end)
    line = old.count(b"\n", 0, at) + 1
    return f"{start}byte {at:,} of {len(old):,}, now {len(new):,} (line {line:,})"


def _parsed(content: bytes) -> Any:
    """The JSON document, or what is no JSON as it is."""
    try:
        return json.loads(content)
    except ValueError:
        return content


def _different_entry(old: Any, new: Any, path: str) -> str | None:
    """The path of the first entry that differs and must not; None if there is none."""
    if isinstance(old, dict) and isinstance(new, dict):
        if list(old) != list(new):
            return f"{path}/ (keys or their order)"
        found = (
            _different_entry(old[key], new[key], f"{path}/{key}")
            for key in old
            if key not in UNSTABLE
        )
        return next(filter(None, found), None)
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return next(
            filter(None, (_different_entry(*pair, f"{path}/{at}") for at, pair in pairs)), None
        )
    return None if old == new else path or "/"
