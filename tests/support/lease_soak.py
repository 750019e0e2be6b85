"""Leases under attack: thousands of processes ask for GPUs, are killed, and share them never.

Holders are forks of one process. Each asks for one to three GPUs, takes a witness file for each of
them, which must not be there, and ends in one of several ways; some run as another user, with
another umask. A neighbour meanwhile removes and replaces what lies in the folder of locks, holds
the gate and tickets, and writes rubbish::

    python -m tests.support.lease_soak --leases 10000 --seed 1

What counts as booked twice: a witness file is there whose owner was neither killed nor has ended.
Files of killed holders are removed when the parent has seen them dead, and waited for until then.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ngsgpu.device import leases as product
from ngsgpu.device.gpus import gpus_of_driver
from ngsgpu.device.leases import folder as lock_folder

GPUS: Final = tuple(f"GPU-{letter * 8}" for letter in "abcdef")
AT_ONCE: Final = 8
PATIENCE: Final = 60.0
NOBODY: Final = 65534
FATES: Final = {
    "releases": 50, "just ends": 15, "kills itself": 10, "has heir": 5,
    "is killed": 10, "is killed holding": 10,
}  # fmt: skip
"""How processes end, and how often of a hundred times."""


@dataclass
class Counts:
    """What came of it.

    Attributes:
        leases: how many were taken.
        jobs: how the processes that asked were meant to end, and how many.
        killed_waiting: of those that were killed, how many had no lease yet.
        twice: what was booked twice, a line each; empty if all is well.
        failed: processes that ended otherwise, a line each; empty if all is well.
        deeds: what the neighbour did, and how often.
        seconds: how long it took.
    """

    leases: int = 0
    jobs: Counter[str] = field(default_factory=Counter)
    killed_waiting: int = 0
    twice: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    deeds: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """Whether nothing was booked twice, and nothing failed."""
        return not (self.twice or self.failed)


class Place:
    """The files of a soak, below a folder that all users may enter."""

    def __init__(self, root: Path) -> None:
        root.chmod(0o755)
        self.root = root
        self.locks = root / "locks"
        for name in ("witness", "doomed", "twice", "taken", "failed"):
            (root / name).mkdir()
            (root / name).chmod(0o777)

    def mark(self, kind: str, job: int, text: str = "") -> None:
        """Note something of a job."""
        (self.root / kind / str(job)).write_text(text)

    def marked(self, kind: str, job: int | str) -> bool:
        """Whether it was noted."""
        return (self.root / kind / str(job)).exists()

    def lines(self, kind: str) -> list[str]:
        """What was noted of all jobs."""
        return [f"job {path.name}: {path.read_text()}" for path in (self.root / kind).iterdir()]

    def claim(self, uuid: str, job: int) -> None:
        """Take the witness file of a GPU, or note that another job has it."""
        own, path = self.root / "witness" / f".{job}-{uuid}", self.root / "witness" / uuid
        own.write_text(str(job))
        own.chmod(0o644)
        end = time.monotonic() + PATIENCE
        while True:
            try:
                path.hardlink_to(own)
                break
            except FileExistsError:
                owner = ""
                with contextlib.suppress(FileNotFoundError):
                    owner = path.read_text()
                waited = time.monotonic() > end
                if owner and (waited or not self.marked("doomed", owner)):
                    self.mark("twice", job, f"{uuid} is job {owner}'s")
                    break
                time.sleep(0.001)
        own.unlink()

    def disclaim(self, uuid: str, job: int) -> None:
        """Remove a witness file, if it is this job's."""
        path = self.root / "witness" / uuid
        with contextlib.suppress(FileNotFoundError):
            if path.read_text() == str(job):
                path.unlink()


def hold(place: Place, job: int, fate: str, dice: random.Random) -> None:
    """What a process does that asks for GPUs."""
    if os.geteuid() == 0 and dice.random() < 0.5:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    os.umask(dice.choice((0o022, 0o077)))
    lease = product.lease_gpus(dice.randint(1, 3), wait=PATIENCE)
    place.mark("taken", job)
    uuids = [device.uuid for device in lease.devices]
    for uuid in uuids:
        place.claim(uuid, job)
    if fate == "has heir" and os.fork() > 0:
        # The child has inherited the lease and keeps it.
        os.kill(os.getpid(), signal.SIGKILL)
    if fate == "kills itself":
        place.mark("doomed", job)
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(PATIENCE if fate == "is killed holding" else dice.expovariate(200))
    for uuid in uuids:
        place.disclaim(uuid, job)
    if fate == "releases":
        lease.release()


class Neighbour:
    """Does to the folder of locks what another user may do, and what only its owner may."""

    def __init__(self, place: Place, dice: random.Random) -> None:
        self.locks, self.dice = place.locks, dice
        self.deeds: Counter[str] = Counter()
        self.ended = False

    def run(self) -> Counter[str]:
        """Until SIGTERM."""
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "ended", True))
        deeds = (self.remove, self.rename, self.scribble, self.hold_gate, self.hold_ticket,
                 self.replace, self.move_folder)  # fmt: skip
        while not self.ended:
            deed = self.dice.choice(deeds)
            with contextlib.suppress(OSError):
                deed()
                self.deeds[deed.__name__] += 1
            time.sleep(self.dice.expovariate(100))
        return self.deeds

    def _any(self) -> Path:
        names = [f"{uuid}.lock" for uuid in GPUS] + ["gate.lock"]
        tickets = list(self.locks.glob("*.ticket"))
        return self.dice.choice([*tickets, *(self.locks / name for name in names)])

    def remove(self) -> None:
        self._any().unlink()

    def rename(self) -> None:
        self._any().rename(self.locks / f"x{self.dice.randrange(5)}")

    def scribble(self) -> None:
        rubbish = (b"[" * 50_000, b'{"pid": 1' + b"0" * 40 + b"}", b"\x1b[2J", bytes(range(256)))
        file = os.open(self._any(), os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, self.dice.choice(rubbish), 0)
        finally:
            os.close(file)

    def _hold(self, path: Path, flags: int = 0) -> None:
        file = os.open(path, os.O_RDWR | os.O_NONBLOCK | flags, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            time.sleep(self.dice.uniform(0, 0.05))
        finally:
            os.close(file)

    def hold_gate(self) -> None:
        self._hold(self.locks / "gate.lock")

    def hold_ticket(self) -> None:
        number = self.dice.choice(("0", "999999999999", str(time.time_ns()), "9" * 19))
        path = self.locks / f"waiting-{number}.ticket"
        path.write_text(json.dumps({"names": GPUS, "count": self.dice.choice((1, 6, 10**30))}))
        self._hold(path)
        path.unlink()

    def replace(self) -> None:
        path = self._any()
        path.unlink()
        kind = self.dice.randrange(4)
        if kind == 0:
            path.mkdir()
        elif kind == 1:
            os.mkfifo(path)
        elif kind == 2:
            path.symlink_to("/dev/null")
        else:
            path.touch(0)
        time.sleep(self.dice.uniform(0, 0.05))
        if kind == 0:
            path.rmdir()
        else:
            path.unlink()

    def move_folder(self) -> None:
        if self.dice.random() < 0.05:
            self.locks.rename(self.locks.with_name(f"gone{time.time_ns()}"))


class Soak:
    """A parent of many holders."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place, self.seed = place, seed
        self.dice = random.Random(seed)
        self.counts = Counts()
        self._running: dict[int, tuple[int, str, float]] = {}
        self._job = 0

    def run(self, leases: int, *, neighbour: bool) -> None:
        """Go on until so many more leases were taken."""
        before = len(list((self.place.root / "taken").iterdir()))
        other, report = self._neighbour() if neighbour else (0, 0)
        while len(list((self.place.root / "taken").iterdir())) - before < leases:
            for _ in range(50):
                while len(self._running) < AT_ONCE:
                    self._start()
                self._step()
        while self._running:
            self._step()
        if other:
            os.kill(other, signal.SIGTERM)
            with os.fdopen(report) as file:
                self.counts.deeds.update(json.load(file))
            os.waitpid(other, 0)

    def _fork(self, label: str) -> int:
        pid = os.fork()
        if pid == 0:
            # What the product says of its waiting is of no interest.
            os.dup2(os.open(self.place.root / f"{label}.log", os.O_WRONLY | os.O_CREAT), 2)
        return pid

    def _neighbour(self) -> tuple[int, int]:
        report, write = os.pipe()
        pid = self._fork("neighbour")
        if pid == 0:
            deeds = Neighbour(self.place, random.Random(self.seed + 1)).run()
            os.write(write, json.dumps(deeds).encode())
            os._exit(0)
        os.close(write)
        return pid, report

    def _start(self) -> None:
        self._job += 1
        job = self._job
        fate = self.dice.choices(list(FATES), list(FATES.values()))[0]
        pid = self._fork("jobs")
        if pid == 0:
            try:
                hold(self.place, job, fate, random.Random(f"{self.seed}:{job}"))
            except BaseException as error:
                self.place.mark("failed", job, f"{type(error).__name__}: {error}")
            os._exit(0)
        end = time.monotonic() + self.dice.uniform(0, 0.15)
        self._running[pid] = job, fate, end
        self.counts.jobs[fate] += 1

    def _step(self) -> None:
        """Kill whose time has come, and bury the dead."""
        for pid, (job, fate, end) in list(self._running.items()):
            holding = fate == "is killed holding" and self.place.marked("taken", job)
            if holding or (fate == "is killed" and time.monotonic() > end):
                time.sleep(self.dice.choice((0, 0, 0.001, 0.003)))
                self.place.mark("doomed", job)
                os.kill(pid, signal.SIGKILL)
                self._running[pid] = job, "doomed", end
        while self._running:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid in self._running:
                job, fate, _ = self._running.pop(pid)
                self._bury(job, fate)
        time.sleep(0.001)

    def _bury(self, job: int, fate: str) -> None:
        if fate == "has heir":
            return  # which removes the witness files itself
        for uuid in GPUS:
            self.place.disclaim(uuid, job)
        for path in (self.place.root / "witness").glob(f".{job}-*"):
            path.unlink(missing_ok=True)
        if fate == "doomed" and not self.place.marked("taken", job):
            self.counts.killed_waiting += 1

    def finish(self) -> Counts:
        """See that everything is free again, and count."""
        product.lease_gpus(len(GPUS), wait=PATIENCE).release()
        left = [path.name for path in (self.place.root / "witness").iterdir()]
        self.counts.failed += self.place.lines("failed") + [f"{name} was left" for name in left]
        self.counts.twice += self.place.lines("twice")
        self.counts.leases = len(list((self.place.root / "taken").iterdir()))
        return self.counts


def soak(leases: int, seed: int, *, neighbours: tuple[bool, ...] = (False, True)) -> Counts:
    """Take so many leases, in equal parts with and without a neighbour.

    Changes the environment of the process: run it in one of its own, without threads.
    """
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ngsgpu-leases-") as folder:
        place = Place(Path(folder))
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(GPUS)
        os.environ["NGSGPU_LOCK_DIR"] = str(place.locks)
        os.environ["PATH"] = folder  # no driver is asked
        os.environ.pop("NGSGPU_LEASE", None)
        gpus_of_driver.cache_clear()
        gpus_of_driver()
        lock_folder._GATE_PATIENCE = 1.0
        running = Soak(place, seed)
        for neighbour in neighbours:
            running.run(-(-leases // len(neighbours)), neighbour=neighbour)
        counts = running.finish()
    counts.seconds = round(time.monotonic() - began, 1)
    return counts


def main() -> int:
    """Run a soak and print what came of it as JSON; 1 if anything was booked twice or failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--leases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    counts = soak(arguments.leases, arguments.seed)
    print(json.dumps(vars(counts), indent=1))
    return 0 if counts.good else 1


if __name__ == "__main__":
    sys.exit(main())
