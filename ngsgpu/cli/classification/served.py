"""``ngsgpu classify --server``: what the command and the server that runs it know of each other."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ngsgpu.cli.classification.options import ClassifyRun
from ngsgpu.cli.options import obey_quiet
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.classify.database.database import Database
    from ngsgpu.classify.run.pipeline import Classifier
    from ngsgpu.run.options import RunOptions


@dataclass(frozen=True)
class Opened:
    """What a server has open.

    Attributes:
        classifier: with the database.
    """

    classifier: Classifier

    @contextmanager
    def run(
        self, run: ClassifyRun, database: str | None, only_partition: int | None
    ) -> Iterator[RunOptions]:
        """Options of a client's run; counterpart of ``open_classify_run``.

        Raises:
            UsageError: the client wants another backend.
        """
        from ngsgpu.cli.run import thread_count, words

        del database, only_partition  # of which the client sent the identity
        obey_quiet(run.quiet)
        options = self.classifier.options
        if run.backend not in ("auto", options.backend):
            raise UsageError(
                f"the server has the database open for `backend='{options.backend}'`: leave out "
                f"`backend='{run.backend}'`, or `server`"
            )
        yield replace(
            options,
            threads=min(thread_count(run.threads), options.threads),
            progress=not run.quiet,
            may_fall_back=run.backend == "auto",
            command=("ngsgpu", *words()),
            compress_level=run.compress_level,
        )

    def database(self, name: str) -> Database:
        """The database, by the name that a client gives it."""
        from ngsgpu.io.mapped import adopt_mapped

        adopt_mapped()
        database, path = self.classifier.engine.database, Path(name)
        loaded = {
            number: replace(own, folder=path / own.folder.name)
            for number, own in database.loaded.items()
        }
        return replace(database, path=path, loaded=loaded)


opened: Opened | None = None
"""In a server, what it has open."""


def ask_server(
    server: str, database: str | None, partition: int | None, run: ClassifyRun, *, verifies: bool
) -> int:
    """Have a server run this command, and return its exit status.

    Args:
        server: its socket; empty: the usual one of the database.
        database: the database.
        partition: the only one to query; None: all.
        run: options of the run.
        verifies: whether the command wants checksums to be compared.

    Raises:
        UsageError: an option belongs to the server, or no server has the database open.
    """
    from ngsgpu.cli.run import thread_count, words
    from ngsgpu.run.rehearsal import end_rehearsal
    from ngsgpu.run.serve.client import ask
    from ngsgpu.run.serve.place import default_socket
    from ngsgpu.run.serve.request import Request

    if database is None:
        raise UsageError("`server` needs the database that it has open: give it with -d")
    if run.gpus is not None or run.gpu_memory is not None or not verifies:
        raise UsageError("--gpus, --gpu-memory and --no-verify are options of `ngsgpu db serve`")
    place = Path(server) if server else default_socket(database)
    threads = thread_count(run.threads)
    end_rehearsal([])
    return ask(place, Request(list(words()), identity(database, partition), threads))


def identity(database: str, partition: int | None) -> str:
    """Identity of what a server has open: the state of a database on the disk, and the partition.

    Raises:
        InputError: there is no database.
    """
    try:
        manifest = (Path(database) / "manifest.json").read_bytes()
    except OSError:
        from ngsgpu.classify.database.database import open_database

        open_database(database)  # which says what is wrong
        raise
    return f"{hashlib.sha256(manifest).hexdigest()} {'all' if partition is None else partition}"
