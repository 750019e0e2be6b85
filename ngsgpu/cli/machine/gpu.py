"""``ngsgpu gpu``: list GPUs and their leases, and run programs on free GPUs."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import click

from ngsgpu.cli.options import StatsFile
from ngsgpu.declared.options import argument, flag, option
from ngsgpu.declared.roles import Read, ReadByName, Text, Written


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
        click.echo(dumps({"lock_folder": str(lock_folder()), "gpus": rows}, indent=2))
    else:
        for device, holder in zip(devices, held, strict=True):
            memory = ""
            if device.gpu:
                memory = (
                    f", {format_size(device.gpu.free)} free of {format_size(device.gpu.memory)}"
                )
            state = f"held by {holder}" if holder else "free"
            click.echo(f"{device}{memory}: {state}")
        if not devices:
            click.echo("no GPU found")
    if problem:
        click.echo(f"ngsgpu: {problem}", err=True)


def run(
    command: Annotated[list[Text], argument(..., "COMMAND...")],
    count: int = option(1, "K", "GPUs to lease; 0 hides them all.", "-n", "--gpus"),
    wait: float | None = option(
        None, "S", "Seconds to wait for free GPUs; 0: do not wait.", shown_default="no limit"
    ),
    stats: StatsFile = None,
) -> int:
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

    return run_on_gpus(command, count, wait, write_stats)


def plan(
    kind: Annotated[
        Text | None,
        argument(..., "all2all|scatter|gather", "The operation."),
    ] = None,
    topology: ReadByName | None = option(
        None,
        "FILE|NAME",
        "Links: output of nvidia-smi topo -m, JSON, or the name of an example.",
        shown_default="this machine's",
    ),
    method: Literal["optimal", "buffered", "rings", "direct"] = option(
        "optimal",
        "optimal|buffered|rings|direct",
        "optimal: the fewest steps that each take as long as a chunk on a lane, which need not be "
        "the least time; buffered: the least time in up to 4 steps of any length, between two "
        "buffers; rings: around rings of links; direct: the shortest ways.",
    ),
    main: int = option(0, "GPU", "Where scatter begins and gather ends."),
    chunks: int | None = option(
        None,
        "K",
        "Chunks into which what one GPU has for another is cut.",
        shown_default="the fewest that can reach the bound",
    ),
    seconds: float = option(60.0, "S", "For each search; after it, one step more is tried."),
    out: Written | None = option(
        None, "FILE", "The plan, JSON; - is standard output.", "-o", "--out"
    ),
    gossip: bool = flag("Write it in Gossip's format.", "--gossip"),
    check: Read | None = option(
        None, "FILE", "Play this plan (of ngsgpu or Gossip) through instead of making one."
    ),
) -> None:
    """Plan how GPUs exchange data over their links, and prove the plan by playing it through.

    Prints steps, time and the bound below which no plan is.

    Example:   ngsgpu gpu plan all2all --topology dgx1 -o plan.json
    """
    from ngsgpu.collectives import (
        KINDS,
        PlanError,
        gossip_text,
        make_plan,
        plan_text,
        planned,
        read_plan,
        read_topology,
        topology_of_host,
    )
    from ngsgpu.errors import InputError, UsageError
    from ngsgpu.io.output.atomic import write_text_atomically

    operation = next((own for own in KINDS if own == kind), None)
    if operation is None and (kind is not None or check is None):
        raise UsageError("name what to plan: all2all, scatter or gather")
    links = topology_of_host() if topology is None else read_topology(topology)
    if check is not None:
        try:
            found = planned(read_plan(check), links)
        except PlanError as error:
            raise InputError(check, str(error), "make it again with ngsgpu gpu plan") from error
    else:
        assert operation is not None
        found = make_plan(operation, links, method, main=main, chunks=chunks, seconds=seconds)
    click.echo("\n".join(found.summary()), err=True)
    if check is None and method == "optimal" and found.efficiency < 1:
        click.echo(
            "optimal in steps of a chunk on a lane each; --method buffered, or more --chunks, may "
            "take less time",
            err=True,
        )
    if out is not None:
        text = (gossip_text if gossip else plan_text)(found.plan)
        write_text_atomically(out, text)


# Everything from the first non-option word on belongs to the program.
run.takes_program = True  # type: ignore[attr-defined]
COMMANDS: Final = {"list": list_gpus, "run": run, "plan": plan}
