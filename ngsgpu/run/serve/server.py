"""A server: requests in their order, with what it has opened."""

from __future__ import annotations

import gc
import json
import logging
import os
import selectors
import signal
import socket
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ngsgpu import ending
from ngsgpu.io.output.temporary import remove_all
from ngsgpu.run.serve.arriving import Arriving, RefusedError, refusal_of
from ngsgpu.run.serve.place import listening, peer
from ngsgpu.run.serve.request import Request, close

_MOST_ARRIVING: Final = 128
"""Clients whose requests are read at a time; more wait until they can connect."""

_PAUSE_SECONDS: Final = 0.01

_UNWIND_SECONDS: Final = 30
"""A cancelled command has so long to end in the server's process."""

_LOG = logging.getLogger("ngsgpu")


@dataclass(frozen=True)
class _Running:
    """A copy of the server that runs a request.

    Attributes:
        process: the copy.
        threads: that it was given.
    """

    process: int
    threads: int


class Server:
    """Runs commands of one user; a context manager, which listens inside of its block.

    Clients that connect before ``serve`` wait for it.

    Args:
        path: where its socket is.

    Raises:
        OutputError: no socket can be made there.
        UsageError: a server listens there already.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener = listening(path)
        self._own = path.lstat()
        self._process = os.getpid()
        self._listener.setblocking(False)
        self._arriving: set[Arriving] = set()
        self._waiting: deque[tuple[socket.socket, Request]] = deque()
        self._running: dict[int, _Running] = {}

    def close(self) -> None:
        """End what runs, and remove the socket; nothing in a copy of the process."""
        if os.getpid() != self._process:
            return
        for own in self._running.values():
            with suppress(ProcessLookupError):
                os.kill(own.process, signal.SIGTERM)
        with suppress(FileNotFoundError):
            if os.path.samestat(self._path.lstat(), self._own):
                self._path.unlink()
        self._listener.close()

    def serve(
        self,
        work: Callable[[list[str]], int],
        served: str,
        *,
        threads: int,
        copies: bool,
        idle: float | None = None,
    ) -> None:
        """Run requests, until there has been none for some time.

        Args:
            work: runs the words of a command and returns its exit status.
            served: identity of what is open.
            threads: that all requests share which run at a time.
            copies: whether each request runs in a copy of this process, several at a time.
            idle: seconds without a request after which it ends; None: never.
        """
        self._work, self._served, self._threads = work, served, threads
        run = self._copy if copies else self._run
        if copies:
            gc.collect()
            gc.freeze()  # so that no copy writes to what all share
        with selectors.DefaultSelector() as selector:
            self._selector = selector
            selector.register(self._listener, selectors.EVENT_READ)
            last = time.monotonic()
            while True:
                ends = [own.deadline for own in self._arriving]
                if idle is not None and not (self._running or self._waiting or ends):
                    ends = [last + idle]
                    if ends[0] <= time.monotonic():
                        return
                left = max(0.0, min(ends) - time.monotonic()) if ends else None
                for key, _ in selector.select(left):
                    last = time.monotonic()
                    if key.fileobj is self._listener:
                        self._accept()
                    elif isinstance(key.data, Arriving):
                        self._receive(key.data)
                    else:
                        self._end(key.fd)
                for late in [own for own in self._arriving if own.deadline <= time.monotonic()]:
                    self._refuse(late, "the request did not arrive in time")
                while self._waiting and (not copies or self._has_room()):
                    connection, request = self._waiting.popleft()
                    begin = time.monotonic()
                    with connection:
                        if not _is_gone(connection):
                            run(connection, request)
                    close(request.files)
                    last = time.monotonic()
                    for own in self._arriving:  # which nobody has read meanwhile
                        own.deadline += last - begin

    def _has_room(self) -> bool:
        """Whether the next request has threads to run on."""
        taken = sum(own.threads for own in self._running.values())
        return taken == 0 or taken + self._waiting[0][1].threads <= self._threads

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # the client has gone, or there are too many open files
            time.sleep(_PAUSE_SECONDS)
            return
        if peer(connection)[1] != os.getuid():
            connection.close()
            return
        arriving = Arriving(connection)
        self._arriving.add(arriving)
        self._selector.register(connection, selectors.EVENT_READ, arriving)
        if len(self._arriving) == _MOST_ARRIVING:
            self._selector.unregister(self._listener)

    def _receive(self, arriving: Arriving) -> None:
        """Take what has arrived of a request."""
        try:
            request = arriving.receive()
        except RefusedError as error:
            self._refuse(arriving, str(error))
            return
        if request is None:
            return
        if reason := refusal_of(request, self._served):
            close(request.files)
            self._refuse(arriving, reason)
            return
        self._forget(arriving)
        self._waiting.append((arriving.connection, request))

    def _refuse(self, arriving: Arriving, reason: str) -> None:
        self._forget(arriving)
        arriving.refuse(reason)

    def _forget(self, arriving: Arriving) -> None:
        """Wait for no more of a request."""
        if len(self._arriving) == _MOST_ARRIVING:
            self._selector.register(self._listener, selectors.EVENT_READ)
        self._arriving.remove(arriving)
        self._selector.unregister(arriving.connection)

    def _copy(self, connection: socket.socket, request: Request) -> None:
        """Run a request in a copy of this process."""
        ended, lives = os.pipe()
        with warnings.catch_warnings():
            # The only other thread waits for signals, and holds no lock.
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process:
            os.close(lives)
            self._running[ended] = _Running(process, request.threads)
            self._selector.register(ended, selectors.EVENT_READ)
            return
        try:
            ending.begin_again()
            self._listener.close()
            for arriving in self._arriving:
                arriving.close()
            for other, waiting in self._waiting:
                other.close()
                close(waiting.files)
            done = threading.Event()
            self._answer(connection, request, done, lambda number: os.kill(os.getpid(), number))
        finally:
            os._exit(0)

    def _end(self, ended: int) -> None:
        """Forget a copy that has ended."""
        self._selector.unregister(ended)
        os.close(ended)
        os.waitpid(self._running.pop(ended).process, 0)

    def _run(self, connection: socket.socket, request: Request) -> None:
        """Run a request in this process."""
        done = threading.Event()
        try:
            with ending.cancellable() as cancel:
                self._answer(connection, request, done, cancel)
        except (KeyboardInterrupt, ending.Terminated):
            if not ending.was_cancelled():
                raise
        finally:
            done.set()

    def _answer(
        self,
        connection: socket.socket,
        request: Request,
        done: threading.Event,
        cancel: Callable[[int], None],
    ) -> None:
        """Run a request, end it when its client goes, and tell the client the exit status.

        Args:
            connection: to the client.
            request: the request.
            done: is set when it has ended.
            cancel: called by another thread, with the number of a signal, to end it.
        """
        lock = threading.Lock()

        def watch() -> None:
            try:
                told = connection.recv(1)
            except OSError:  # its end
                told = b""
            number = told[0] if told and told[0] in ending.SIGNALS else signal.SIGTERM
            with lock:
                if done.is_set():
                    return
                cancel(number)
            if not done.wait(_UNWIND_SECONDS):
                _LOG.error("a cancelled command does not end; ending the server")
                ending.end(signal.SIGTERM)

        watching = threading.Thread(target=watch, name="ngsgpu-client", daemon=True)
        watching.start()
        answer: dict[str, object] = {"status": 1}
        try:
            with ExitStack() as stack:
                try:
                    words = stack.enter_context(request.taken_over())
                except (OSError, ValueError) as error:
                    answer = {"refused": f"the server cannot run this here: {error}"}
                    return
                try:
                    answer["status"] = self._work(words)
                finally:
                    remove_all()  # what a signal has kept from its end
        except KeyboardInterrupt:
            answer["status"] = ending.status_of(signal.SIGINT)
        except ending.Terminated as error:
            answer["status"] = ending.status_of(error.number)
        except Exception:
            traceback.print_exc()
        finally:
            with lock:
                done.set()
            with suppress(OSError):
                connection.sendall(json.dumps(answer).encode() + b"\n")
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            watching.join()


def _is_gone(connection: socket.socket) -> bool:
    """Whether a client has ended."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
