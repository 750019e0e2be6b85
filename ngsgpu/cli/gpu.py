"""``ngsgpu gpu``: list GPUs and their leases, and run programs on free GPUs."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ngsgpu.cli.options import StatsFile, flag, option

app = typer.Typer(
    help="List GPUs and lease them to programs.", no_args_is_help=True, rich_markup_mode=None
)


@app.command(name="list")
def list_gpus(
    json: bool = flag("Print JSON instead of text.", "--json"),
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


# Everything from the first non-option word on belongs to the program.
@app.command(name="run", context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", show_default=False)],
    count: int = option(1, "K", "GPUs to lease; 0 hides them all.", "-n", "--gpus"),
    wait: float | None = option(
        None, "S", "Seconds to wait for free GPUs; 0: do not wait.", show_default="no limit"
    ),
    stats: StatsFile = None,
) -> None:
    """Lease free GPUs and run any program on them.

    CUDA_VISIBLE_DEVICES restricts the program to its GPUs. The lease ends when the program and all
    its child processes have exited. The exit status is the program's.

    Example:   ngsgpu gpu run -n 2 -- python train.py
    """
    import time

    from ngsgpu.device.leases.launcher import run_on_gpus

    begin = time.monotonic()

    def write_stats(status: int, lease: dict[str, Any]) -> None:
        if stats is not None:
            from ngsgpu.run.statistics import write_program_statistics

            seconds = time.monotonic() - begin
            write_program_statistics(stats, command, status, seconds, lease)

    raise typer.Exit(run_on_gpus(command, count, wait, write_stats))
