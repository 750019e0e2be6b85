"""The command line: one module a command, each of which parses, validates and calls.

A command's module imports only the standard library, Typer and ``ngsgpu.errors`` at its top;
everything heavy is imported inside the command, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys

import typer

from ngsgpu._version import __version__
from ngsgpu.errors import NgsgpuError

app = typer.Typer(
    name="ngsgpu",
    help="Correct Illumina short reads, and measure the result, on GPUs and CPUs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    """Correct Illumina short reads, and measure the result, on GPUs and CPUs."""


def _register() -> None:
    from ngsgpu.cli import correct

    correct.register(app)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 (failed), 2 (wrong use), 130.

    Args:
        arguments: as in ``sys.argv[1:]``; taken from there when not given.
    """
    try:
        status = app(args=arguments, standalone_mode=False)
    except NgsgpuError as error:
        print(f"ngsgpu: error: {error}", file=sys.stderr)
        return error.exit_status
    except typer.Abort:
        return 130
    except KeyboardInterrupt:
        print("ngsgpu: interrupted; no output was written", file=sys.stderr)
        return 130
    except Exception as error:
        import click

        if isinstance(error, click.ClickException):
            error.show()
            return error.exit_code
        raise
    return status if isinstance(status, int) else 0


def main_cli() -> None:
    """Entry point of the ``ngsgpu`` script."""
    sys.exit(main())


_register()
