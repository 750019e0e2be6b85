"""``ngsgpu doctor``: check the installation and the hardware."""

from __future__ import annotations

import typer


def doctor(
    json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Check the installation and the hardware, and explain how to fix problems.

    The exit status is 0 if ngsgpu can correct reads on this machine, otherwise 1.
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
