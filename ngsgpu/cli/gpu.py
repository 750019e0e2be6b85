"""``ngsgpu gpu``: which GPUs there are, who holds them, and running programs on free ones."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(
        help="Show GPUs and lease them to programs.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command(name="list")(list_gpus)
    group.command(
        name="run",
        # Everything from the first word that is no option belongs to the program.
        context_settings={"allow_interspersed_args": False},
    )(run)
    app.add_typer(group, name="gpu")


def list_gpus(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show the GPUs that can be leased and who holds them.

    They are those that CUDA_VISIBLE_DEVICES names, or all.
    """
    from ngsgpu.device.leases import holders, lock_folder, pool
    from ngsgpu.device.locks import FolderUnusableError
    from ngsgpu.device.memory import format_size

    devices = pool()
    try:
        held = holders(devices)
        problem = None
    except FolderUnusableError as error:
        held = [None] * len(devices)
        problem = f"no locks in {lock_folder()}: {error}"
    if json:
        from json import dumps

        rows = [
            {
                "entry": device.entry,
                "uuid": device.uuid,
                "name": device.gpu.name if device.gpu else None,
                "memory": device.gpu.memory if device.gpu else None,
                "free_memory": device.gpu.free if device.gpu else None,
                "held_by": holder,
            }
            for device, holder in zip(devices, held, strict=True)
        ]
        typer.echo(dumps({"lock_folder": str(lock_folder()), "gpus": rows}, indent=2))
    else:
        for device, holder in zip(devices, held, strict=True):
            memory = ""
            if device.gpu:
                memory = (
                    f", {format_size(device.gpu.free)} free of {format_size(device.gpu.memory)}"
                )
            state = f"held by {holder}" if holder else "free"
            typer.echo(f"{device}{memory}: {state}")
        if not devices:
            typer.echo("no GPU can be seen")
    if problem:
        typer.echo(f"ngsgpu: {problem}", err=True)


def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", show_default=False)],
    count: Annotated[
        int, typer.Option("-n", "--gpus", metavar="K", help="GPUs to lease; 0 hides them all.")
    ] = 1,
    wait: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            help="Seconds to wait for free ones; 0: not at all.",
            show_default="as long as it takes",
        ),
    ] = None,
) -> None:
    """Run any program on GPUs that nobody else has leased.

    The program sees them alone, by CUDA_VISIBLE_DEVICES. They are free again when it and
    everything that it started have ended. The exit status is the program's.

    Example:   ngsgpu gpu run -n 2 -- python train.py
    """
    from ngsgpu.device.launcher import run_on_gpus

    raise typer.Exit(run_on_gpus(command, count, wait))
