"""An error in a thread of any pool reaches the caller, stops the other threads, leaves nothing."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ngsgpu
from ngsgpu.cli import main
from tests.support.classify.world import World, make_world
from tests.support.extend.data import INSERT, simulated_pairs, write_pairs
from tests.support.io.records import bgzf, write
from tests.support.merge import data as merge_data

SHARED = ("pool.py", "contextlib.py")
PACKAGE = Path(ngsgpu.__file__).parent


class InjectedError(Exception):
    """What a task fails with."""


class Pools:
    """Counts the tasks of each pool by the module that makes it, and fails one of them.

    Attributes:
        tasks: tasks that ran, of each module.
        failing: the module one of whose tasks fails.
        at: which task of it fails, counted from 0.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tasks: Counter[str] = Counter()
        self.failing: str | None = None
        self.at = 0
        self._lock = threading.Lock()
        begin, submit = ThreadPoolExecutor.__init__, ThreadPoolExecutor.submit

        def made(pool: Any, *arguments: Any, **options: Any) -> None:
            begin(pool, *arguments, **options)
            frame = sys._getframe(1)
            while frame.f_back and Path(frame.f_code.co_filename).name in SHARED:
                frame = frame.f_back
            path = Path(frame.f_code.co_filename)
            own = path.is_relative_to(PACKAGE)
            pool.module = str(path.relative_to(PACKAGE)) if own else ""

        def wrapped(
            pool: Any, work: Callable[..., Any], /, *arguments: Any, **options: Any
        ) -> Future[Any]:
            def task(*arguments: Any, **options: Any) -> Any:
                with self._lock:
                    number = self.tasks[pool.module]
                    self.tasks[pool.module] += 1
                if pool.module == self.failing and number == self.at:
                    raise InjectedError
                return work(*arguments, **options)

            return submit(pool, task, *arguments, **options)

        monkeypatch.setattr(ThreadPoolExecutor, "__init__", made)
        monkeypatch.setattr(ThreadPoolExecutor, "submit", wrapped)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("world"))


def commands(folder: Path, world: World) -> dict[str, list[str]]:
    """Each command that works with several threads; outputs go to ``folder / "out"``."""
    (folder / "x").mkdir()
    (folder / "m").mkdir()
    (folder / "out").mkdir()
    out = str(folder / "out")
    plain = write_pairs(folder / "x", simulated_pairs())
    first, second = (str(write(path.with_suffix(".gz"), bgzf(path.read_bytes()))) for path in plain)
    merge1, merge2 = map(str, merge_data.write_pairs(folder / "m", merge_data.simulated_pairs(1)))
    references = [*map(str, world.references), "--taxonomy", str(world.taxonomy)]
    database = ["db", "build", *references, "--map", str(world.map), "-t", "3"]
    if not (world.folder / "db").exists():
        assert main([*database, "-d", str(world.folder / "db"), "-q"]) == 0
    reads = str(world.fastq("pool.fq", world.reads))
    return {
        "correct": ["correct", "-i", first, "-I", second, "-o", f"{out}/1.fq.gz",
                    "-O", f"{out}/2.fq.gz"],
        "extend": ["extend", "-i", first, "-I", second, "-o", f"{out}/e.fq.gz",
                   "--insert-size", str(INSERT), "--insert-sd", "8"],
        "merge": ["merge", "-i", merge1, "-I", merge2, "-o", f"{out}/m.fq.gz"],
        "kmers": ["kmers", "spectrum", "-i", first, "-o", f"{out}/k.tsv"],
        "db build": [*database, "-d", f"{out}/db", "--partitions", "2"],
        "classify": ["classify", "-d", str(world.folder / "db"), "-i", reads, "-o", f"{out}/c.tsv"],
    }  # fmt: skip


@pytest.mark.parametrize("name", ["correct", "extend", "merge", "kmers", "db build", "classify"])
def test_an_error_in_a_pool(
    name: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = commands(tmp_path, world)[name]
    command += [] if name == "kmers" else ["-q"]
    command += [] if name == "db build" else ["-t", "3"]
    before = threading.enumerate()
    pools = Pools(monkeypatch)
    assert main(command) == 0
    modules = {module: count for module, count in pools.tasks.items() if module}
    print(name, modules)
    assert modules
    for path in sorted((tmp_path / "out").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for module, count in modules.items():
        for at in {0, count - 1}:
            pools.tasks.clear()
            pools.failing, pools.at = module, at
            with pytest.raises(InjectedError):
                main(command)
            assert pools.tasks[module] <= count
            gc.collect()  # generators that the error's frames held
            left = [thread for thread in threading.enumerate() if thread not in before]
            for thread in left:  # the one that waits for signals may still be ending
                thread.join(10)
            assert [thread for thread in left if thread.is_alive()] == []
            assert list((tmp_path / "out").iterdir()) == [], (module, at)
