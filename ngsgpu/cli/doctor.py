"""``ngsgpu doctor``: what this machine offers to ngsgpu, what is missing, how to get it."""

from __future__ import annotations

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(name="doctor")(doctor)


def doctor(
    json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Show what this machine offers to ngsgpu, what is missing and how to get it.

    The exit status is 0 when reads can be corrected here and 1 when they cannot.
    """
    from ngsgpu.device.diagnosis import as_dict, as_text, diagnose

    diagnosis = diagnose()
    if json:
        from json import dumps

        typer.echo(dumps(as_dict(diagnosis), indent=2))
    else:
        typer.echo(as_text(diagnosis))
    if diagnosis.problems:
        raise typer.Exit(1)
