"""The command line: one module per command, which parses, validates and calls the package.

At module level, commands import only the standard library, Typer and ``ngsgpu.errors``; heavy
imports happen inside the command to keep ``--help`` fast. Help is plain text for the same reason:
Typer's boxes would import rich.

Results go to files or standard output, messages through the logger ``ngsgpu`` to standard error.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import typer

from ngsgpu._version import __version__
from ngsgpu.cli import standard
from ngsgpu.ending import Terminated, handle_termination, leave, message_of, status_of
from ngsgpu.errors import OUT_OF_MEMORY, NgsgpuError, is_out_of_memory, out_of_memory


class _Application(typer.Typer):
    """Typer puts the commands together at every call; here once, which takes longer than most."""

    @functools.cached_property
    def _commands(self) -> Any:
        return typer.main.get_command(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._commands(*args, **kwargs)


app = _Application(
    name="ngsgpu",
    help="Correct, merge, extend and classify Illumina short reads, and evaluate the results.",
    epilog="Exit status: 0 success, 1 failure while running, 2 wrong usage or unreadable input, "
    "3 too little memory of the host or GPU, 130 interrupted, 143 terminated, 128 + N ended by "
    "signal N.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Click is bundled with Typer or a dependency, depending on Typer's version; find its base error.
_WrongUse: Any = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ngsgpu {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Correct, merge, extend and classify Illumina short reads, and evaluate the results."""
    _log_to_stderr()


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

    logger = logging.getLogger("ngsgpu")
    if not logger.handlers:
        handler = Stderr()
        handler.setFormatter(logging.Formatter("ngsgpu: %(message)s"))
        logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def _register() -> None:
    from ngsgpu.cli import (
        adapters,
        assemble,
        classify,
        compile,
        correct,
        db,
        deplete,
        doctor,
        evaluate,
        extend,
        gpu,
        index,
        kmers,
        merge,
        report,
        train,
        unitigs,
        workflow,
    )
    from ngsgpu.cli.files import guard
    from ngsgpu.cli.options import add_commands

    add_commands(app, correct.correct, extend.extend, merge.merge)
    add_commands(app, deplete.deplete, deplete.deplete_index, adapters.adapters)
    add_commands(app, unitigs.unitigs, assemble.assemble)
    add_commands(app, classify.classify, classify.classify_merge, classify.classify_table)
    add_commands(app, report.report, doctor.doctor, compile.compile)
    groups = {
        "db": db,
        "evaluate": evaluate,
        "gpu": gpu,
        "index": index,
        "kmers": kmers,
        "train": train,
        "workflow": workflow,
    }
    for name, group in groups.items():
        app.add_typer(group.app, name=name)
    guard(app)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0: success; 1: failure; 2: wrong usage or unreadable input; 3: too little memory; 130:
    interrupted (Ctrl-C); 143: terminated (SIGTERM); 128 + N: ended by signal N. Unexpected errors
    from the environment (memory, files, numbers) print one line; NGSGPU_DEBUG=1 shows the
    traceback. Bugs always show theirs.

    Args:
        arguments: command-line arguments; ``sys.argv[1:]`` by default.
    """
    try:
        with handle_termination(), _blaming_changed_files():
            status = app(args=arguments, standalone_mode=False)
            if sys.stdout is not None:
                sys.stdout.flush()
        if status == 130:  # Typer's status for Ctrl-C
            raise KeyboardInterrupt
    except NgsgpuError as error:
        standard.say_error(str(error))
        return error.exit_status
    except (typer.Abort, KeyboardInterrupt):
        print(message_of(signal.SIGINT), file=sys.stderr)
        return status_of(signal.SIGINT)
    except Terminated as error:
        print(message_of(error.number), file=sys.stderr)
        return status_of(error.number)
    except BrokenPipeError:
        # The reader of standard output has exited (``| head``).
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except _WrongUse as error:
        error.show()
        return int(error.exit_code)
    except (MemoryError, OSError, ValueError, OverflowError, ImportError, RuntimeError) as error:
        return _unforeseen(error)
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


def _unforeseen(error: Exception) -> int:
    """Print one line about an unexpected error; return the exit status."""
    causes = list(_causes(error))
    if os.environ.get("NGSGPU_DEBUG"):
        raise error
    if any(map(is_out_of_memory, causes)):
        standard.say_error(str(out_of_memory(error)))
        return OUT_OF_MEMORY
    if isinstance(error, RuntimeError):
        raise error
    what = " ".join(f"{type(error).__name__}: {error}".split())
    remedy = "set NGSGPU_DEBUG=1 to see where it happened, and report it"
    standard.say_error(f"unexpected {what}; {remedy}")
    return 1


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def main_cli() -> None:
    """Entry point of the ``ngsgpu`` script."""
    standard.prepare()
    leave(main())


_register()
