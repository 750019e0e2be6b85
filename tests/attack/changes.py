"""Databases and indexes that change while they are read: the old answer or the new one."""

from __future__ import annotations

import os
import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu.classify.database.folder import _named_parts, _parts, _values_of
from tests.attack.arena import Arena, Case, Verdict
from tests.attack.forks import Ending, run
from tests.attack.judge import Files, difference, files_below
from tests.attack.world import BY_NAME

_READS: Final = 3


@dataclass(frozen=True)
class Changer:
    """What changes an input to another one and back again.

    Attributes:
        there: arguments that change it.
        back: arguments that undo this.
        readers: names of the commands that read it.
    """

    there: str
    back: str
    readers: tuple[str, ...]


CHANGERS: Final = (
    Changer(
        "db add -q -t 1 IN/more.fna -d IN/db --map IN/map.tsv", "db remove -q -t 1 g3 -d IN/db",
        ("classify", "classify", "classify partition", "db stats", "db info", "db verify",
         "evaluate classification"),
    ),
    Changer(
        "kmers count -q -t 1 -i IN/r2.fq -k 21 -o IN/counts1",
        "kmers count -q -t 1 -i IN/r1.fq -k 21 -o IN/counts1",
        ("kmers dump", "kmers query", "kmers histo", "kmers info", "unitigs of counts"),
    ),
    Changer("index build -q -t 1 IN/refs/g2.fna -o IN/ref",
            "index build -q -t 1 IN/refs/g0.fna -o IN/ref", ("index query bwa",)),
    Changer("index build -q -t 1 --format fm IN/refs/g2.fna -o IN/index",
            "index build -q -t 1 --format fm IN/refs/g0.fna -o IN/index", ("index query",)),
    Changer("deplete-index -q -t 1 IN/refs/g2.fna -o IN/host.idx",
            "deplete-index -q -t 1 IN/refs/g1.fna -o IN/host.idx", ("deplete",)),
)  # fmt: skip
_NEEDED: Final = ("more.fna", "map.tsv", "r1.fq", "r2.fq", "refs")

_answers: dict[tuple[str, str], tuple[Files, str]] = {}
"""What commands answer after a change, by their names and the change."""


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Read what another process changes, there and back again, all the time."""
    changer = source.choice((CHANGERS[0], CHANGERS[0], CHANGERS[0], *CHANGERS))
    command = BY_NAME[source.choice(changer.readers)]
    what = f"{command.name} beside {changer.there.split(' -')[0]}"
    with arena.case(command, name) as case:
        for needed in _NEEDED:
            _copy(arena.world / needed, case.folder / "in" / needed)
        there, back = (_placed(line, case.folder) for line in (changer.there, changer.back))
        after = _after_change(arena, case, changer)
        stop = case.folder / "stop"
        child = os.fork()
        if child == 0:
            _change(case.folder, stop, there, back)
        try:
            problem = ""
            for _ in range(_READS):
                problem = problem or _read(case, after)
        finally:
            stop.write_text("")
            _, raw = os.waitpid(child, 0)
        if not problem and os.waitstatus_to_exitcode(raw) != 0:
            problem = f"the change: {(case.folder / 'change.txt').read_text()[-300:]}"
        return Verdict(what, "read", problem or _left(case.folder, there, back))


def _read(case: Case, after: tuple[Files, str]) -> str:
    """Run the command once; what is wrong with its outputs, which are of one state or the other."""
    shutil.rmtree(case.folder / "out")
    (case.folder / "out").mkdir()
    ending = case.run()
    if ending.status != 0:
        return f"exit status {ending.status}: {ending.stderr[-300:]}"
    found, printed = files_below(case.folder / "out"), case.printed()
    differences = []
    for files, text in ((case.alone.files, case.alone.printed), after):
        for volatile in case.alone.volatile:
            found[volatile] = files[volatile]
        same = _without_sizes(printed) == _without_sizes(text)
        differences.append(difference(files, found) or ("" if same else "printed"))
    return "" if "" in differences else f"of neither state: {differences}"


def _without_sizes(printed: str) -> str:
    """What was printed without the size of the manifest, which has the number of its changes."""
    return re.sub(r"^bytes( per base)?  .*$", "", printed, flags=re.MULTILINE)


def _after_change(arena: Arena, case: Case, changer: Changer) -> tuple[Files, str]:
    """What a command answers after the change, when it is left alone."""
    key = case.command.name, changer.there
    if key not in _answers:
        with arena.case(case.command, f"{case.folder.name}-after") as other:
            for needed in _NEEDED:
                _copy(arena.world / needed, other.folder / "in" / needed)
            for own in (run(_placed(changer.there, other.folder), tmp=other.folder / "tmp"),
                        other.run()):  # fmt: skip
                if own.status != 0:
                    raise RuntimeError(own.stderr)
            _answers[key] = files_below(other.folder / "out"), other.printed()
    return _answers[key]


def _change(folder: Path, stop: Path, there: list[str], back: list[str]) -> None:
    """Change and change back until told to stop; ends the process."""
    tmp = folder / "changer" / "tmp"
    for name in ("tmp", "in"):
        (folder / "changer" / name).mkdir(parents=True)
    status = 0
    try:
        while not stop.exists() and status == 0:
            for arguments in (there, back):
                ending: Ending = run(arguments, tmp=tmp)
                if ending.status != 0:
                    status = 1
                    (folder / "change.txt").write_text(f"{ending.status}: {ending.stderr}")
                    break
    finally:
        os._exit(status)


def _left(folder: Path, there: list[str], back: list[str]) -> str:
    """What is left of older versions after a change beside which nobody reads."""
    for arguments in (there, back):
        ending = run(arguments, tmp=folder / "tmp")
        if ending.status != 0:
            return f"another change: {ending.status}: {ending.stderr[-300:]}"
    hidden = [path.name for path in (folder / "in").rglob(".*")]
    if hidden:
        return f"left in in/: {hidden}"
    database = folder / "in" / "db"
    if database.exists():
        left = set(_parts(database)) - _named_parts(_values_of(database / "manifest.json"))
        return f"left in in/db: {sorted(left)}" if left else ""
    return ""


def _placed(line: str, folder: Path) -> list[str]:
    return [str(folder / "in" / w[3:]) if w.startswith("IN/") else w for w in line.split()]


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copy2(source, target)
