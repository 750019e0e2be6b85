"""Signals at any moment: nothing half-written, nothing left, at once; all outputs or none."""

from __future__ import annotations

import random
import signal
from typing import Final

from ngsgpu.ending import SIGNALS, message_of, status_of
from ngsgpu.io.output.commit import finish_commits
from tests.attack.arena import Arena, Case, Verdict
from tests.attack.forks import Ending
from tests.attack.judge import Files, files_below
from tests.attack.world import COMMANDS

_LONGEST: Final = 2.0
_AS_REFUSED: Final = Ending(2, "ngsgpu: error: as if", 0.0)
_ASKING: Final = sorted(SIGNALS)
_OFTEN: Final = (signal.SIGINT, signal.SIGTERM)


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Run a command, over older outputs half of the time, and send a signal on the way."""
    command = source.choice(COMMANDS)
    number = int(source.choice((signal.SIGKILL, *_OFTEN, source.choice(_ASKING))))
    with arena.case(command, name) as case:
        # Often at the end, where outputs get their names.
        end = source.choice((0.0, 0.85))
        delay = source.uniform(end, 1.05) * case.alone.seconds
        what = f"{command.name}: signal {number} after {delay:.3f} s"
        if source.random() < 0.5:
            _put_older_outputs(case)
            what += ", over older outputs"
        ending = case.run(signal_after=(number, delay))
        if ending.status == 0:
            return Verdict(what, "was done", case.succeeded())
        if number == signal.SIGKILL:
            return Verdict(what, "killed", _after_kill(case, ending))
        return Verdict(what, "stopped", _after_request(case, ending, number))


def _put_older_outputs(case: Case) -> None:
    for name in case.alone.files:
        path = case.folder / "out" / name
        if "/" not in name and not path.exists():  # folders are replaced by their like alone
            path.write_bytes(b"older\n")
    case.note_files()


def _after_request(case: Case, ending: Ending, number: int) -> str:
    # A signal that comes when all outputs have their names finds them all there, and whole.
    all_or_nothing = "" if not case.succeeded() else case.refused(_AS_REFUSED)
    if ending.status == -number and number != signal.SIGINT and not all_or_nothing:
        return ""  # before anything was begun, or when all was done: the system's own way to end
    if ending.status != status_of(number):
        return f"exit status {ending.status}: {ending.stderr[-200:]}"
    if ending.stderr.splitlines()[-1:] != [message_of(number)]:
        return f"said {ending.stderr[-200:]!r}"
    if ending.since_signal is not None and ending.since_signal > _LONGEST:
        return f"ended {ending.since_signal:.1f} s after the signal"
    return all_or_nothing


def _after_kill(case: Case, ending: Ending) -> str:
    if ending.status != -signal.SIGKILL:
        return f"exit status {ending.status}: {ending.stderr[-200:]}"
    after = files_below(case.folder / "out")
    # What the whole run removes (a database's older generation, once the new one is in place) may
    # be gone, some of it or all; that the database needs none of it is verified below.
    removed = set(case.outputs) - set(case.alone.files)
    if gone := set(case.outputs) - removed - set(after):
        return f"gone: {sorted(gone)[0]}"
    for name, data in after.items():
        is_whole = data in (case.outputs.get(name), case.alone.files.get(name))
        is_statistics = name in case.alone.volatile and data[-2:] == b"}\n"
        is_emptied = name.endswith("/") and any(file.startswith(name) for file in removed)
        if not (is_whole or is_statistics or is_emptied or _is_temporary(name)):
            return f"half-written: {name}"
    if not case.command.before and (problem := _mixed(case, after)):
        return problem
    if case.command.before and (status := case.run_verify()):
        return f"db verify after the kill: {status}"
    if case.command.before:
        return ""  # what was changed may be there or not: changing it again would differ
    if case.command.name.startswith("db build") and not case.succeeded():
        return ""  # it was done: parts that are built again get other names
    again = case.run()
    if again.status != 0:
        return f"the next run: {again.status}: {again.stderr[-200:]}"
    return case.succeeded()


def _mixed(case: Case, after: Files) -> str:
    """Outputs of which some are new and some are not, unless the next run makes all of them so."""
    if len(_states(case, after)) < 2:
        return ""
    # What the next run of any of the outputs does before all else.
    finish_commits(case.folder / "out")
    finished = files_below(case.folder / "out")
    if _states(case, finished) == {"new"}:
        return ""
    return f"some outputs of several: {[name for name in after if not _is_temporary(name)]}"


def _states(case: Case, files: Files) -> set[str]:
    states = set()
    for name, new in case.alone.files.items():
        older = case.outputs.get(name)
        if older != new:
            states.add("older" if files.get(name) == older else "new")
    return states


def _is_temporary(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
