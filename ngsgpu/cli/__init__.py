"""The command line: one module per command, which parses, validates and calls the package.

``adapter`` makes commands from functions, ``options`` and ``run`` hold what many share; then follow
the commands themselves: ``stages``, ``classification``, ``studies`` and ``machine``.

Only the module of the command that is called is imported. At module level, commands import only
the standard library, click, ``ngsgpu.errors`` and what declares parameters; heavy imports happen
inside the command, while CUDA starts.

Other packages add commands as entry points of the group ``ngsgpu.commands``, each a function that
declares its parameters as ours do.

Results go to files or standard output, messages through the logger ``ngsgpu`` to standard error.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any, Final

import click

from ngsgpu._version import __version__
from ngsgpu.cli import standard
from ngsgpu.cli.adapter import Entry, Group, as_typed
from ngsgpu.cli.hints import one_line
from ngsgpu.cli.options import WORDS
from ngsgpu.ending import Terminated, handle_termination, leave, message_of, status_of
from ngsgpu.errors import OUT_OF_MEMORY, NgsgpuError, NoReaderError, is_out_of_memory

_GROUPS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Clean reads": {
        "trim": (
            "stages.trim:trim",
            "Trim adapters and poor ends of reads, and leave out poor reads.",
        ),
        "deplete": (
            "stages.deplete:deplete",
            "Take the reads of a host (human, for example) out of FASTQ files.",
        ),
        "deplete-index": (
            "stages.deplete:deplete_index",
            "Index the genome of a host for ngsgpu deplete.",
        ),
        "deplete-index union": (
            "stages.deplete:union",
            "Index the k-mers that are in any of several indexes.",
        ),
        "deplete-index diff": (
            "stages.deplete:diff",
            "Index the k-mers of the first index that are in none of the others.",
        ),
        "deplete-index intersect": (
            "stages.deplete:intersect",
            "Index the k-mers that are in all of several indexes.",
        ),
        "deplete-index info": ("stages.deplete:info", "Show what an index holds."),
        "adapters": (
            "stages.adapters:adapters",
            "Check reads, and look for adapters and tails of G in a sample of them.",
        ),
        "run": (".chains.command:run", "Run several steps over the same reads, in one process."),
    },
    "Correct and join reads": {
        "correct": ("stages.correct:correct", "Correct substitution errors in Illumina reads."),
        "merge": ("stages.merge:merge", "Merge overlapping read pairs."),
        "extend": ("stages.extend:extend", "Extend read pairs to long reads (CAREx)."),
    },
    "Classify reads": {
        "classify": (
            "classification.classify:classify",
            "Classify reads by the minhash features they share with reference sequences "
            "(MetaCache).",
        ),
        "classify-merge": (
            "classification.classify:classify_merge",
            "Classify the reads of a sample from the candidates of all partitions.",
        ),
        "classify-table": (
            "classification.classify:classify_table",
            "Merge the Kraken-style reports of several samples into tables of taxa by samples.",
        ),
        "extract": (
            "classification.extract:extract",
            "Write the reads of taxa, by the calls of a classification.",
        ),
        "db": ("classification.db:COMMANDS", "Build and inspect classification databases."),
    },
    "Count k-mers and assemble": {
        "assemble": ("stages.assemble:assemble", "Assemble the reads of an isolate into contigs."),
        "unitigs": (
            "stages.unitigs:unitigs",
            "Compact the de Bruijn graph of reads or genomes into unitigs.",
        ),
        "kmers": ("stages.kmers:COMMANDS", "Count k-mers, and use the counts."),
        "index": ("stages.index:COMMANDS", "Index references, and find exact matches in them."),
    },
    "Evaluate and report": {
        "report": ("studies.report:report", "Write a self-contained HTML report of a study."),
        "evaluate": ("studies.evaluate:COMMANDS", "Compare results with the truth."),
        "train": (
            "studies.train:COMMANDS",
            "Train the forests of ngsgpu correct --model on simulated reads.",
        ),
        "workflow": ("studies.workflow:COMMANDS", "Begin a study with the Snakemake workflow."),
    },
    "Set up the machine": {
        "doctor": (
            "machine.doctor:doctor",
            "Check the installation and the hardware, and explain how to fix problems.",
        ),
        "compile": (
            "machine.compile:compile",
            "Compile the kernels before they are needed, as for a container image.",
        ),
        "gpu": ("machine.gpu:COMMANDS", "List GPUs and lease them to programs."),
    },
}

COMMANDS: Final = {
    name: Entry(place, summary, group)
    for group, commands in _GROUPS.items()
    for name, (place, summary) in commands.items()
}
"""All commands and groups of them, in the order of the help."""


def _print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(f"ngsgpu {__version__}")
        ctx.exit()


app = Group(
    COMMANDS,
    registry="ngsgpu.commands",
    name="ngsgpu",
    help="Trim, correct, merge, extend and classify Illumina short reads; evaluate the results.",
    epilog="Exit status: 0 success, 1 failure while running, 2 wrong usage or unreadable input, "
    "3 too little memory of the host or GPU, 4 more reads of a host than --max-host, "
    "130 interrupted, 143 terminated, 128 + N ended by signal N.",
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Print the version.",
        )
    ],
    callback=lambda: _log_to_stderr(),
)


def _log_to_stderr() -> None:
    """Send the messages of the logger ``ngsgpu`` from level INFO up to standard error."""
    import logging

    class Stderr(logging.StreamHandler[Any]):
        """Look up standard error for each line, since progress bars replace it."""

        @property
        def stream(self) -> Any:
            return sys.stderr

        @stream.setter
        def stream(self, _: Any) -> None:
            pass

    class Worded(logging.Formatter):
        """Name options where the core names parameters."""

        def format(self, record: logging.LogRecord) -> str:
            return as_typed(super().format(record))

    logger = logging.getLogger("ngsgpu")
    if not logger.handlers:
        handler = Stderr()
        handler.setFormatter(Worded("ngsgpu: %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: success; 1: failure; 2: wrong usage or unreadable input; 3: too little memory; 4: more reads
    of a host than allowed; 130: interrupted (Ctrl-C); 143: terminated (SIGTERM); 128 + N: ended by
    signal N. Unexpected errors from the environment (memory, files, numbers) print one line;
    NGSGPU_DEBUG=1 shows the traceback. Bugs always show theirs.

    Args:
        arguments: command-line arguments; ``sys.argv[1:]`` by default.
    """
    try:
        with handle_termination(), _blaming_changed_files():
            status = _run(sys.argv[1:] if arguments is None else arguments)
            if sys.stdout is not None:
                sys.stdout.flush()
    except NoReaderError:
        return _without_reader()
    except NgsgpuError as error:
        standard.say_error(str(error))
        return error.exit_status
    except KeyboardInterrupt:
        print(message_of(signal.SIGINT), file=sys.stderr)
        return status_of(signal.SIGINT)
    except Terminated as error:
        print(message_of(error.number), file=sys.stderr)
        return status_of(error.number)
    except BrokenPipeError:
        return _without_reader()
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        standard.say_error(one_line(error, sys.argv[1:] if arguments is None else arguments))
        return error.exit_code
    except (MemoryError, OSError, ValueError, OverflowError, ImportError, RuntimeError) as error:
        return _unforeseen(error)
    return status


def _without_reader() -> int:
    """End quietly, for the reader of standard output has (``| head``); return the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 1


def _run(arguments: list[str]) -> int:
    """Run a command; what it returns, if anything, is the exit status."""
    try:
        with app.make_context("ngsgpu", list(arguments)) as context:
            context.meta[WORDS] = arguments
            status = app.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    return status if isinstance(status, int) else 0


@contextlib.contextmanager
def _blaming_changed_files() -> Iterator[None]:
    """Name a mapped file that was cut or changed under a run as the cause, whatever failed then."""
    if (mapped := sys.modules.get("ngsgpu.io.mapped")) is not None:
        mapped.begin_run()
    try:
        yield
        if (mapped := sys.modules.get("ngsgpu.io.mapped")) is not None:
            mapped.check_reads()  # of what was printed
    except Exception:
        if (mapped := sys.modules.get("ngsgpu.io.mapped")) is not None:
            mapped.check_mapped()
        raise


_LONGEST_CAUSE: Final = 120
_OF_NAMES: Final = {
    errno.EACCES: "ask its owner for access (chmod +r, and +x for folders)",
    errno.EPERM: "ask its owner for access",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "check its links",
    errno.ENOTDIR: "check the path",
}
"""Errors of a file that was named, whoever met them, and what to do."""


def _unforeseen(error: Exception) -> int:
    """Print one line about an unexpected error; return the exit status."""
    causes = list(_causes(error))
    if os.environ.get("NGSGPU_DEBUG"):
        raise error
    if any(map(is_out_of_memory, causes)):
        standard.say_error(_out_of_memory(error))
        return OUT_OF_MEMORY
    if isinstance(error, RuntimeError):
        raise error
    if isinstance(error, OSError) and error.filename and error.errno in _OF_NAMES:
        cause = os.strerror(error.errno).lower()
        standard.say_error(f"{os.fsdecode(error.filename)}: {cause}; {_OF_NAMES[error.errno]}")
        return 2
    what = " ".join(f"{type(error).__name__}: {error}".split())
    remedy = "set NGSGPU_DEBUG=1 to see where it happened, and report it"
    standard.say_error(f"unexpected {what}; {remedy}")
    return 1


def _out_of_memory(error: Exception) -> str:
    """The message for a run out of memory: the requested size, if known, and the remedy."""
    cause = " ".join(str(error).split())
    cause = cause if len(cause) <= _LONGEST_CAUSE else ""  # libraries write essays
    return (
        f"memory ran out{f' ({cause})' if cause else ''}; use fewer threads (-t 1), give less "
        "data at a time, or run it where more memory is granted (ulimit -v, the job's limit)"
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def main_cli() -> None:
    """Entry point of the ``ngsgpu`` script."""
    standard.prepare()
    leave(main())
