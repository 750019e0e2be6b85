"""Chains: changed files of steps and sheets, strange values of options, and kills on the way."""

from __future__ import annotations

import os
import random
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ngsgpu.chains import places
from ngsgpu.chains.flow import WIRINGS
from ngsgpu.chains.run import command_named
from tests.attack.arena import Arena, Verdict
from tests.attack.forks import Ending, run
from tests.attack.judge import Files, difference, files_below, refusal
from tests.attack.mutations import mutate
from tests.attack.world import Command, lay_out

_INPUTS: Final = "IN/r1.fq IN/r2.fq IN/r1.fq.gz IN/sheet.tsv IN/host.idx IN/db"
_FILES: Final = {
    "chain.yaml": "steps:\n  - trim: {cut_tail: true, report_title: 2026-05-01}\n"
    "  - deplete: {index: host.idx, keep: true}\n  - merge: {min_overlap: 12}\n"
    "  - kmers: {k: 21, out: counts}\n",
    "chain.toml": "steps = ['trim', 'deplete', 'kmers']\n[deplete]\nindex = 'host.idx'\n"
    "[trim]\nlength_required = 20\n",
    "chain.json": '{"steps": ["trim", {"classify": {"database": "db", "report": "r.txt"}}]}',
}
_VALUES: Final = (
    "0", "-1", "1e999", ".nan", "0x" + "f" * 200, "1_000", "٣", "true", "no", "null", "[]",
    "[1, 2]", "{a: 1}", "2026-05-01", "''", '"a\\tb"', '"a\\nb"', '"\\0"', '"\\ud800"', "é", "-",
    "../x", "none/x", "/dev/null", "db", "r1.fq", "&a b", "*a", "!!int ''", "9" * 30, "'--help'",
    "[[1]]", "1.5", "-5G", "13", "abc", "'{sample}'", "'x{sample}{sample}'", "<<", "=",
)  # fmt: skip
_FAILS: Final = (1, 2, 3)
_NEEDED: Final = {"deplete": "index: host.idx", "classify": "database: db"}

_alone: dict[str, Files] = {}
"""What chains write that are left alone, by their names."""


class _Case:
    """Folders ``in``, ``out``, ``tmp`` and ``shm``, in place of /dev/shm, and chains in ``in``."""

    def __init__(self, arena: Arena, folder: Path) -> None:
        self.folder = folder
        lay_out(arena.world, Command("chain", _INPUTS), folder)
        (folder / "shm").mkdir()
        for name, text in _FILES.items():
            (folder / "in" / name).write_text(text)
        self.inputs = files_below(folder / "in")

    def run(self, chain: str, sheet: bool = False, **how: Any) -> Ending:
        """Run a chain of pairs or of the sheet, whose outputs are in ``out/o``."""
        reads = ["--samples", "sheet.tsv"] if sheet else ["-i", "r1.fq", "-I", "r2.fq"]
        if chain == "chain.toml" and not sheet:
            reads = ["-i", "r1.fq.gz"]
        words = ["run", chain, *reads, "-o", str(self.folder / "out/o"), "-q", "-t", "2"]

        def prepare() -> None:
            places._MEMORY = self.folder / "shm"  # type: ignore[misc]
            os.umask(0)

        return run([*words, "--backend", "cpu"], tmp=self.folder / "tmp", prepare=prepare, **how)

    def left(self) -> str:
        """What is wrong with the folders in which nothing may be new; empty if nothing."""
        for name, before in (("in", self.inputs), ("tmp", {}), ("shm", {})):
            if found := difference(before, files_below(self.folder / name)):
                return f"left in {name}/: {found}"
        hidden = [path.name for path in (self.folder / "out").rglob(".*ngsgpu-*")]
        return f"left in out/: {hidden[0]}" if hidden else ""

    def open_to_others(self) -> str:
        """The first temporary file or folder that others may read; empty if there is none."""
        for path in self.folder.rglob("*"):
            is_between = any(".ngsgpu-" in own and "shm" in str(path) for own in path.parts)
            if is_between and stat.S_IMODE(path.lstat().st_mode) & 0o077:
                return f"others may read {path.name}"
        return ""

    def outputs(self) -> dict[str, bytes]:
        return _lasting(files_below(self.folder / "out"))


def _lasting(files: Files) -> dict[str, bytes]:
    """Files without those that have times, or paths, in them."""
    ends = (".log", "stats.json", "fastp.json", "manifest.json")
    return {name: data for name, data in files.items() if not name.endswith(ends)}


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Attack a chain in one of the ways."""
    folder = arena.root / name
    try:
        ways: list[Callable[..., Verdict]] = [_changed, _changed, _strange, _strange, _sheet]
        return source.choice(ways)(_Case(arena, folder), source)
    finally:
        _remove(folder)


def kill(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Send a signal to a chain; the next one does all, and finds nothing in its way."""
    folder = arena.root / name
    try:
        case = _Case(arena, folder)
        chain = source.choice([*_FILES])
        if chain not in _alone:
            other = _Case(arena, arena.root / f"{name}-alone")
            if (status := other.run(chain).status) != 0:
                return Verdict(chain, "broken", f"exit status {status}")
            _alone[chain] = other.outputs()
            _remove(other.folder)
        number = source.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))
        ending = case.run(chain, signal_after=(number, source.uniform(0, 1.0)))
        what = f"{chain}: signal {number}"
        return Verdict(what, "killed", _after_signal(case, chain, number, ending))
    finally:
        _remove(folder)


def _after_signal(case: _Case, chain: str, number: int, ending: Ending) -> str:
    if "Traceback" in ending.stderr or ending.status is None:
        return f"{ending.status}: {ending.stderr[-300:]}"
    if problem := case.open_to_others():
        return problem
    if number != signal.SIGKILL and (problem := case.left()):
        return problem
    for name, data in case.outputs().items():
        is_temporary = any(part.startswith(".") for part in name.split("/"))
        if not is_temporary and name[-1] != "/" and data != _alone[chain].get(name):
            return f"half-written: {name}"
    again = case.run(chain)
    if again.status != 0:
        return f"the next run: {again.status}: {again.stderr[-300:]}"
    return case.left() or difference(_alone[chain], case.outputs())


def _changed(case: _Case, source: random.Random) -> Verdict:
    """A file of steps with some bytes changed."""
    chain = source.choice([*_FILES])
    path = case.folder / "in" / chain
    path.write_bytes(mutate(path.read_bytes(), source))
    return _judged(case, case.run(chain), f"{chain} changed", {chain: path.read_bytes()})


def _sheet(case: _Case, source: random.Random) -> Verdict:
    """A sheet with some bytes changed, or a strange cell."""
    path = case.folder / "in" / "sheet.tsv"
    data = path.read_bytes()
    if source.random() < 0.5:
        cells = data.split(b"\t")
        strange = (b"x" * 140_000, b'"', b"\0", b"a,b", b"\xe2\x80\xa8", b"\r", b"-", b"/dev/null")
        cells[source.randrange(len(cells))] = source.choice(strange)
        data = b"\t".join(cells)
    data = source.choice((b"", b"\xef\xbb\xbf")) + data
    path.write_bytes(source.choice((data, data.replace(b"\t", b","), mutate(data, source))))
    return _judged(case, case.run("chain.toml", True), "sheet changed", {}, {"sheet.tsv"})


def _strange(case: _Case, source: random.Random) -> Verdict:
    """A step with a strange value of one of its options: what it refuses, it refuses at once."""
    full = source.choice([*WIRINGS])
    name = full.split()[0]
    own = source.choice([own for own in command_named(full).parameters if own.name != "server"])
    option = source.choice((own.name, max(own.names, key=len, default=own.name).strip("-")))
    given = ", ".join(filter(None, [_NEEDED.get(name), f"{option}: {source.choice(_VALUES)}"]))
    text = f"steps:\n- adapters\n- {name}: {{{given}}}\n"
    (case.folder / "in" / "chain.yaml").write_text(text, errors="surrogatepass")
    ending = case.run("chain.yaml")
    verdict = _judged(case, ending, given, {}, {"chain.yaml"})
    began = files_below(case.folder / "out").get("o/adapters.stats.json")
    if not verdict.problem and ending.status == 2 and began is not None:
        return Verdict(given, "refused late", f"after a step: {ending.stderr[-300:]}")
    return verdict


def _judged(
    case: _Case, ending: Ending, what: str, changed: Files, ignored: set[str] | None = None
) -> Verdict:
    case.inputs = {**files_below(case.folder / "in"), **case.inputs, **changed}
    for name in ignored or ():
        case.inputs = {**case.inputs, name: (case.folder / "in" / name).read_bytes()}
    problem = case.left() or case.open_to_others()
    if ending.status in (0, 4):
        return Verdict(what, "used", problem)
    problem = refusal(ending, _FAILS) or problem
    return Verdict(what, "refused", problem and f"{problem}: {ending.stderr[-300:]}")


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
