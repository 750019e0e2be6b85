"""``ngsgpu doctor``: check the installation and the hardware."""

from __future__ import annotations

import click

from ngsgpu.declared.options import flag


def doctor(
    json: bool = flag("Print JSON instead of text.", "--json"),
) -> int:
    """Check the installation and the hardware, and explain how to fix problems.

    The exit status is 0 if ngsgpu can correct reads on this machine, otherwise 1.
    """
    from ngsgpu.cli.adapter import as_typed
    from ngsgpu.device.diagnosis import as_dict, as_text, diagnose

    diagnosis = diagnose()
    if json:
        from json import dumps

        click.echo(as_typed(dumps(as_dict(diagnosis), indent=2)))
    else:
        click.echo(as_typed(as_text(diagnosis)))
    return 1 if diagnosis.problems else 0
