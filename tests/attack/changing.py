"""Inputs that change while they are read: the result is of one version, or there is none."""

from __future__ import annotations

import gzip
import itertools
import os
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.attack.arena import Arena, Case, Verdict
from tests.attack.judge import Files, files_below, refusal, success, unharmed
from tests.attack.world import COMMANDS, Command

_READS: Final = (".fq", ".fq.gz", ".fna")
_COMMANDS: Final = [
    command for command in COMMANDS if any(name.endswith(_READS) for name in command.inputs)
]


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Run a command and change one of its inputs on the way."""
    command = source.choice(_COMMANDS)
    path_in = source.choice([own for own in command.inputs if own.endswith(_READS)])
    change = source.choice(_CHANGES)
    data = (arena.world / path_in).read_bytes()
    steps = change(_text(data, path_in), source)
    versions = [_packed(text, path_in) for text in steps]
    allowed = [arena.alone[command.name].files]
    allowed += _results(arena, command, name, path_in, versions)
    with arena.case(command, name) as case:
        delay = source.uniform(0, 1.0) * case.alone.seconds
        what = f"{command.name}: {path_in} after {delay:.3f} s: {change.__name__.strip('_')}"
        path = case.folder / "in" / path_in
        ending = case.run(meanwhile=(delay, lambda: _change(path, versions, change)))
        if path.read_bytes() != versions[-1]:  # it ended before
            _change(path, versions, change)
        inputs = files_below(case.folder / "in")
        if ending.status == 0:
            return Verdict(what, "used", _of_no_version(case, inputs, allowed))
        problem = refusal(ending) or unharmed(case.folder, inputs, case.outputs)
        return Verdict(what, "refused", problem and f"{problem}: {ending.stderr[-300:]}")


def _of_no_version(case: Case, inputs: Files, allowed: Iterable[Files]) -> str:
    problems = [success(case.folder, inputs, own, case.alone.volatile) for own in allowed]
    return "" if "" in problems else f"of no version of the input: {problems[-1]}"


def _results(
    arena: Arena, command: Command, name: str, path_in: str, versions: list[bytes]
) -> list[Files]:
    """What the command writes for each version, where it takes it."""
    found = []
    for number, version in enumerate(versions):
        with arena.case(command, f"{name}-{number}") as case:
            (case.folder / "in" / path_in).write_bytes(version)
            if case.run().status == 0:
                found.append(files_below(case.folder / "out"))
    return found


def _change(path: Path, versions: list[bytes], change: Callable[..., object]) -> None:
    """Bring a file to its versions, one after the other."""
    for number, version in enumerate(versions):
        if change is _rewritten or (change is _replaced_and_appended and number == 1):
            path.write_bytes(version)
        elif change is _cut:
            os.truncate(path, len(version))
        elif change is _appended:
            with path.open("ab") as file:
                file.write(version[path.stat().st_size :])
        else:
            other = path.with_name("other")
            other.write_bytes(version)
            other.replace(path)


def _text(data: bytes, name: str) -> bytes:
    return gzip.decompress(data) if name.endswith(".gz") else data


def _packed(text: bytes, name: str) -> bytes:
    return gzip.compress(text, 1, mtime=0) if name.endswith(".gz") else text


def _records(text: bytes) -> list[list[bytes]]:
    lines = text.splitlines(keepends=True)
    if text.startswith(b">"):
        starts = [i for i, line in enumerate(lines) if line.startswith(b">")] + [len(lines)]
        return [lines[a:b] for a, b in itertools.pairwise(starts)]
    return [lines[at : at + 4] for at in range(0, len(lines), 4)]


def _joined(records: Iterable[list[bytes]]) -> bytes:
    return b"".join(line for record in records for line in record)


def _other_bases(text: bytes, source: random.Random) -> bytes:
    """The same records with the bases of about half of them turned around."""
    records = _records(text)
    for record in records:
        if source.random() < 0.5:
            bases = record[1].rstrip(b"\r\n")
            record[1] = bases[::-1] + record[1][len(bases) :]
    return _joined(records)


def _rewritten(text: bytes, source: random.Random) -> list[bytes]:
    return [_other_bases(text, source)]


def _replaced(text: bytes, source: random.Random) -> list[bytes]:
    return [_other_bases(text, source)]


def _replaced_and_appended(text: bytes, source: random.Random) -> list[bytes]:
    other = _other_bases(text, source)
    return [other, other + _joined(_records(other)[:5])]


def _appended(text: bytes, source: random.Random) -> list[bytes]:
    return [text + _joined(_records(text)[: source.randrange(1, 20)])]


def _cut(text: bytes, source: random.Random) -> list[bytes]:
    records = _records(text)
    return [_joined(records[: source.randrange(len(records))])]


_CHANGES: Final[list[Callable[[bytes, random.Random], list[bytes]]]] = [
    _rewritten, _replaced, _replaced_and_appended, _appended, _cut,
]  # fmt: skip
