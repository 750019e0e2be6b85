"""What all attacks share: the world, what each command writes when left alone, cases, verdicts."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.forks import Ending, run, warm_up
from tests.attack.judge import Files, files_below, refusal, success, unharmed
from tests.attack.world import COMMANDS, Command, lay_out, make_world


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case.

    Attributes:
        what: what was done, for people who want to do it again.
        outcome: a short word for counting.
        problem: what was wrong; empty if nothing.
    """

    what: str
    outcome: str
    problem: str = ""


@dataclass(frozen=True)
class Alone:
    """What a command does when it is left alone.

    Attributes:
        files: its outputs.
        volatile: those that differ from run to run (statistics with times).
        seconds: how long it takes.
        printed: what it prints, if that is its result.
    """

    files: Files
    volatile: frozenset[str]
    seconds: float
    printed: str = ""


@dataclass
class Case:
    """A command laid out in a folder of its own."""

    command: Command
    folder: Path
    alone: Alone
    inputs: Files = field(default_factory=dict)
    outputs: Files = field(default_factory=dict)

    def note_files(self) -> None:
        """Remember what lies in the folders now; what fails must leave them like this."""
        self.inputs = files_below(self.folder / "in")
        self.outputs = files_below(self.folder / "out")

    def run(self, arguments: list[str] | None = None, **options: object) -> Ending:
        """Run the command, or other arguments, in the case's folder."""
        stdin = self.command.stdin
        return run(
            self.command.placed(self.folder) if arguments is None else arguments,
            tmp=self.folder / "tmp",
            stdin=self.folder / "in" / stdin if stdin else None,
            stdout=self.folder / "stdout" if self.command.prints else None,
            **options,  # type: ignore[arg-type]
        )

    def printed(self) -> str:
        """What the command has printed, if that is its result; for any folder of a case."""
        if not self.command.prints:
            return ""
        return (self.folder / "stdout").read_text().replace(str(self.folder), "CASE")

    def run_verify(self) -> int | None:
        """Exit status of ``db verify`` on the database that is in ``out``."""
        return self.run(["db", "verify", "-d", str(self.folder / "out" / "db")]).status

    def refused(self, ending: Ending, allowed: tuple[int, ...] = (2,)) -> str:
        """What is wrong with a refusal or failure; empty if nothing."""
        return refusal(ending, allowed) or unharmed(self.folder, self.inputs, self.outputs)

    def succeeded(self) -> str:
        """What is wrong with the outputs, which have to be those of the command left alone."""
        if self.printed() != self.alone.printed:
            return f"printed other than it should: {self.printed()[:300]!r}"
        return success(self.folder, self.inputs, self.alone.files, self.alone.volatile)


class Arena:
    """A folder with the world and a place for cases.

    Args:
        root: a new folder.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.world = root / "world"
        make_world(self.world, self._make)
        self.alone = {command.name: self._left_alone(command) for command in COMMANDS}

    def _make(self, words: list[str]) -> int | None:
        """Run a command here, so that later ones find all imported and its kernels loaded."""
        if words[0] == "train":
            import sklearn.ensemble  # noqa: F401
        if words[:2] in (["index", "build"], ["train", "fit"]):  # OpenMP does not survive a fork
            for name in ("in", "tmp"):
                (self.root / "making" / name).mkdir(parents=True, exist_ok=True)
            return run(words, tmp=self.root / "making" / "tmp").status
        warm_up([words])
        return 0

    def _left_alone(self, command: Command) -> Alone:
        found: list[Files] = []
        seconds, printed = 0.0, ""
        for turn in range(2):
            with self.case(command, f"alone-{turn}") as case:
                ending = case.run()
                if ending.status != 0:
                    raise RuntimeError(f"{command.name}: {ending.status}: {ending.stderr}")
                found.append(files_below(case.folder / "out"))
                seconds, printed = ending.seconds, case.printed()
        differ = frozenset(name for name in found[0] if found[0][name] != found[1].get(name))
        return Alone(found[0], differ, seconds, printed)

    def keep(self, case: Case) -> Path:
        """Keep a copy of a case beyond the end, with what its command should have written."""
        kept = Path(tempfile.mkdtemp(prefix=f"ngsgpu-attack-{case.folder.name}-"))
        shutil.copytree(case.folder, kept / "case")
        for name, data in case.alone.files.items():
            (kept / "expected" / name).parent.mkdir(parents=True, exist_ok=True)
            (kept / "expected" / name).write_bytes(data)
        return kept

    @contextmanager
    def case(self, command: Command, name: str) -> Iterator[Case]:
        """A command laid out in a new folder, which is removed in the end."""
        folder = self.root / name
        alone = getattr(self, "alone", {}).get(command.name, Alone({}, frozenset(), 0.0))
        try:
            lay_out(self.world, command, folder)
            case = Case(command, folder, alone)
            case.note_files()
            yield case
        finally:
            shutil.rmtree(folder, ignore_errors=True)
