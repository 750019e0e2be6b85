"""``ngsgpu gpu``: list GPUs and their leases, and run programs on free GPUs."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(
        help="List GPUs and lease them to programs.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command(name="list")(list_gpus)
    group.command(
        name="run",
        # Everything from the first non-option word on belongs to the program.
        context_settings={"allow_interspersed_args": False},
    )(run)
    app.add_typer(group, name="gpu")


def list_gpus(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """List the GPUs that can be leased and their holders.

    Respects CUDA_VISIBLE_DEVICES.
    """
    from ngsgpu.device.leases import FolderUnusableError, holders, lock_folder, pool
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
            typer.echo("no GPU found")
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
            help="Seconds to wait for free GPUs; 0: do not wait.",
            show_default="no limit",
        ),
    ] = None,
) -> None:
    """Lease free GPUs and run any program on them.

    CUDA_VISIBLE_DEVICES restricts the program to its GPUs. The lease ends when the program and all
    its child processes have exited. The exit status is the program's.

    Example:   ngsgpu gpu run -n 2 -- python train.py
    """
    from ngsgpu.device.leases.launcher import run_on_gpus

    raise typer.Exit(run_on_gpus(command, count, wait))
