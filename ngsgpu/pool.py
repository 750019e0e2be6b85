"""Work on a stream of items by the threads of a pool, and what the threads share."""

from __future__ import annotations

import contextlib
import queue
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_ahead(
    pool: Executor,
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    ahead: int,
    *,
    in_order: bool = True,
) -> Generator[_Result, None, None]:
    """Yield the results of ``work`` on each item, with at most ``ahead`` items in flight.

    If a task fails or the consumer stops, waiting tasks are cancelled. An error raised by ``items``
    is raised after the results of the items before it.

    Args:
        pool: runs the work.
        work: the function to apply.
        items: consumed only as fast as results are.
        ahead: maximum number of items in flight.
        in_order: whether to yield results in the order of the items or as they complete.
    """
    running: deque[Future[_Result]] = deque()
    failure: Exception | None = None
    source = iter(items)
    try:
        while True:
            try:
                item = next(source)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            running.append(pool.submit(work, item))
            while len(running) >= ahead or (running and running[0].done()):
                yield _next(running, in_order).result()
        while running:
            yield _next(running, in_order).result()
        if failure is not None:
            raise failure
    finally:
        for future in running:
            future.cancel()


def parts_within(ends: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Cut things in a row into parts of limited size, or of one thing; yields begin and end.

    Args:
        ends: int64[n], the size of all things up to each one, which counts as well.
        most: size of a part, at most, if it has several things.
    """
    begin, before = 0, 0
    while begin < len(ends):
        end = max(begin + 1, int(ends.searchsorted(before + most, side="right")))
        yield begin, end
        begin, before = end, int(ends[end - 1])


@contextlib.contextmanager
def working(
    threads: int,
    work: Callable[[_Item], _Result],
    items: Iterable[_Item],
    *,
    ahead: int | None = None,
    in_order: bool = True,
    name: str = "work",
) -> Iterator[Iterator[_Result]]:
    """Results of ``work`` on each item, by a pool of threads that lasts for the block.

    If a task or the block fails, waiting tasks are cancelled, running ones are waited for, and the
    error is raised in the block.

    Args:
        threads: number of threads.
        work: the function to apply.
        items: consumed only as fast as results are.
        ahead: maximum number of items in flight; by default two per thread and two more.
        in_order: as for ``map_ahead``.
        name: of the threads, for debuggers.
    """
    most = 2 * threads + 2 if ahead is None else ahead
    with (
        ThreadPoolExecutor(threads, thread_name_prefix=f"ngsgpu-{name}") as pool,
        contextlib.closing(map_ahead(pool, work, items, most, in_order=in_order)) as results,
    ):
        yield results


def map_all(
    threads: int, work: Callable[[_Item], _Result], items: Iterable[_Item], *, name: str = "work"
) -> list[_Result]:
    """Results of ``work`` on all items, in their order; see ``working``."""
    with working(threads, work, items, ahead=sys.maxsize, name=name) as results:
        return list(results)


class Shared(Generic[_Item]):
    """Objects that threads borrow in turns, such as workspaces.

    Args:
        things: as many as there are concurrent threads.
    """

    def __init__(self, things: Iterable[_Item]) -> None:
        self.things = tuple(things)
        self._free: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        for thing in self.things:
            self._free.put(thing)

    @contextlib.contextmanager
    def borrowed(self) -> Iterator[_Item]:
        """One of them for the block, however that ends; waits until there is one."""
        thing = self._free.get()
        try:
            yield thing
        finally:
            self._free.put(thing)


def _next(running: deque[Future[_Result]], in_order: bool) -> Future[_Result]:
    """Take the first running task, or one that is done."""
    if in_order or running[0].done():
        return running.popleft()
    done = next(iter(wait(running, return_when=FIRST_COMPLETED).done))
    running.remove(done)
    return done
