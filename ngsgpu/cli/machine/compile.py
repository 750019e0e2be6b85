"""``ngsgpu compile``: compile kernels before they are needed."""

from __future__ import annotations

import click

from ngsgpu.cli.options import Quiet, Threads
from ngsgpu.declared.options import flag, option
from ngsgpu.declared.roles import Text


def compile(
    cpu: bool = flag("Only the kernels for CPUs.", "--cpu"),
    gpu: bool = flag("Only the kernels for GPUs; needs no GPU.", "--gpu"),
    arch: list[Text] | None = option(
        None,
        "ARCH",
        "GPU architecture, as sm_90; repeatable.",
        "--arch",
        shown_default="of this machine's GPUs; without one, and with --shared, the common ones",
    ),
    all_archs: bool = flag("All GPU architectures that the CUDA compiler knows.", "--all"),
    shared: bool = flag(
        "Keep the kernels in the installation, for all its users and most processors.", "--shared"
    ),
    threads: Threads = 0,
    quiet: Quiet = False,
) -> None:
    """Compile the kernels before they are needed, as for a container image.

    Otherwise a command compiles what it needs when it first runs on a machine. Kernels go where
    commands keep theirs: ~/.cache/ngsgpu, or NGSGPU_CACHE_DIR.

    Example:   ngsgpu compile --shared
    """
    import importlib.util

    from ngsgpu.cli.options import obey_quiet
    from ngsgpu.cli.run import thread_count
    from ngsgpu.errors import UsageError

    obey_quiet(quiet)
    if cpu and gpu:
        raise UsageError("--cpu and --gpu exclude each other; leave both out for all kernels")
    if arch and all_archs:
        raise UsageError("--arch and --all exclude each other")
    if cpu and (arch or all_archs):
        raise UsageError("--arch and --all are for GPUs; leave out --cpu")
    workers = thread_count(threads)
    if gpu or not cpu:
        if importlib.util.find_spec("cupy") or gpu or arch or all_archs:
            _compile_for_gpus(arch, all_archs, shared, workers, quiet)
        elif not quiet:
            click.echo("CuPy is not installed: no kernels for GPUs", err=True)
    if cpu or not gpu:
        _compile_for_cpus(shared, workers, quiet)


def _compile_for_gpus(
    arch: list[str] | None, all_archs: bool, shared: bool, threads: int, quiet: bool
) -> None:
    from ngsgpu.device.cuda.precompile import (
        all_targets,
        checked_targets,
        common_targets,
        precompile,
    )
    from ngsgpu.device.gpus import visible_gpus

    if arch:
        targets = checked_targets(arch)
    elif all_archs:
        targets = all_targets()
    else:
        own = {gpu.capability for gpu in visible_gpus() if gpu.capability and not shared}
        names = [f"sm_{major}{minor}" for major, minor in sorted(own)]
        targets = checked_targets(names) if names else common_targets()
    count = precompile(targets, threads, shared)
    if not quiet:
        names = [target.architecture for target in targets]
        click.echo(f"{count} kernel files for {', '.join(names)} are compiled", err=True)


def _compile_for_cpus(shared: bool, threads: int, quiet: bool) -> None:
    from ngsgpu.cli.machine.rehearsal import rehearse
    from ngsgpu.errors import NgsgpuError

    count, failed = rehearse(threads, shared)
    if failed:
        rest = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise NgsgpuError(f"kernels for CPUs are not all compiled: {failed[0]}{rest}")
    if not quiet:
        click.echo(f"the CPU kernels of {count} commands are compiled", err=True)
