"""``ngsgpu db serve``: a database that is opened once, for many commands."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import click

from ngsgpu.cli.classification import served
from ngsgpu.cli.classification.options import ClassifyRun, NoVerify, open_classify_run
from ngsgpu.cli.run import words
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import ReadDatabase, Written
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.classify.run.pipeline import Classifier

_READY: Final = "ready: "


def serve(
    *,
    database: Annotated[ReadDatabase, option(..., "DIR", "The database.", "-d", "--database")],
    socket: Written | None = option(
        None,
        "PATH",
        "Socket to listen at.",
        shown_default="by user and database, below $XDG_RUNTIME_DIR or $TMPDIR",
    ),
    only_partition: int | None = option(
        None, "K", "Open only this partition, for clients with the same option."
    ),
    idle_timeout: float | None = option(
        None, "SECONDS", "End after so long without a client.", shown_default="never", above=0
    ),
    detach: bool = flag(
        "Return when the server is ready; it goes on in the background.", "--detach"
    ),
    stop: bool = flag("End the server of the database; what it runs is cancelled.", "--stop"),
    no_verify: NoVerify = False,
    run: ClassifyRun,
) -> int | None:
    """Open a database once and serve it to many runs of `ngsgpu classify --server`.

    Clients must be of the same user and on the same machine. On the CPU, those run at the same time
    whose --threads fit into the server's; with GPUs, which the server leases until it ends, one
    after the other. Ends on Ctrl-C and SIGTERM, and cancels what it runs.

    Start it:           ngsgpu db serve -d DB --detach

    Use it:             ngsgpu classify -d DB --server -i R1.fq.gz -I R2.fq.gz -o calls.tsv

    End it:             ngsgpu db serve -d DB --stop
    """
    from ngsgpu.run.serve.client import stop as stop_server
    from ngsgpu.run.serve.place import default_socket

    place = default_socket(database) if socket is None else Path(socket)
    if stop:
        stop_server(place)
        return None
    if detach:
        return _detached()
    from ngsgpu.ending import Terminated

    try:
        _serve(place, database, only_partition, idle_timeout, run, verifies=not no_verify)
    except Terminated as error:
        if error.number != signal.SIGTERM:
            raise
        os._exit(0)  # as servers end, whatever threads of cancelled runs still wait for
    return None


def _serve(
    place: Path,
    database: str,
    only_partition: int | None,
    idle_timeout: float | None,
    run: ClassifyRun,
    *,
    verifies: bool,
) -> None:
    """Open a database and serve it, until a signal or the time without clients ends it."""
    from ngsgpu.ending import cleaned_up
    from ngsgpu.run.serve.server import Server

    identity = served.identity(database, only_partition)
    # Clients may connect from now on; they wait.
    server = Server(place.absolute())
    with cleaned_up(server.close), open_classify_run(run, database, only_partition) as options:
        from ngsgpu.classify.database.database import open_database
        from ngsgpu.classify.run.pipeline import Classifier

        wanted = None if only_partition is None else [only_partition]
        path = Path(database).absolute()
        opened = open_database(path, load=wanted, verified=verifies)
        classifier = Classifier(opened, partitions=wanted, options=options)
        if served.identity(database, only_partition) != identity:
            raise UsageError(f"{database} was changed while it was opened; start again")
        served.opened = served.Opened(classifier)
        _rehearse(classifier)
        backend = classifier.options.backend
        click.echo(f"{_READY}{database} ({backend}, {place})")
        sys.stdout.flush()
        server.serve(
            _work, identity,
            threads=options.threads, copies=options.backend == "cpu", idle=idle_timeout,
        )  # fmt: skip


def _work(words: list[str]) -> int:
    """Run a client's command, on standard streams that are the client's by now."""
    from ngsgpu.cli import main, standard

    standard.prepare()
    return main(words)


def _rehearse(classifier: Classifier) -> None:
    """Classify a read, so that kernels and modules are loaded before the first client comes."""
    from ngsgpu.classify.run.pipeline import Classifier
    from ngsgpu.classify.run.samples import SampleOutputs, one_sample
    from ngsgpu.io.output.atomic import write_text_atomically
    from ngsgpu.io.output.temporary import temporary_folder
    from ngsgpu.io.paths import temporary_place

    logger = logging.getLogger("ngsgpu")
    with temporary_folder(temporary_place() / "ngsgpu-serve") as folder:
        reads = folder / "read.fq"
        write_text_atomically(reads, f"@read\n{'ACGTTGCA' * 20}\n+\n{'I' * 160}\n")
        outputs = SampleOutputs(reads=f"{folder}/reads.tsv", report=f"{folder}/report.txt")
        sample = one_sample([str(reads)], [], interleaved=False, name=None)
        level = logger.level
        logger.setLevel(logging.ERROR)
        try:
            own = Classifier(
                classifier.engine.database, options=classifier.options, like=classifier
            )
            own.classify([sample], outputs)
        finally:
            logger.setLevel(level)


def _detached() -> int:
    """Start a server without a terminal; wait until it is ready, or has failed.

    Returns:
        The exit status.
    """
    import subprocess

    process = subprocess.Popen(
        [sys.executable, "-m", "ngsgpu", *(word for word in words() if word != "--detach")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(_READY):
            click.echo(line, nl=False)
            return 0
        click.echo(line, nl=False, err=True)
    return process.wait()
