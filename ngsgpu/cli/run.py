"""From a command's options to a run: backend, threads, memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import click

from ngsgpu.cli.options import WORDS, Compute, PhredOffset, ThreadsRun, obey_quiet
from ngsgpu.errors import UsageError

if TYPE_CHECKING:
    from ngsgpu.device.plan import HostPlan
    from ngsgpu.run.options import RunOptions

T = TypeVar("T")


def thread_count(threads: int) -> int:
    """The value of ``--threads``, with all CPUs for 0."""
    from ngsgpu.device.memory import usable_cpus

    if threads < 0:
        raise UsageError(f"--threads must be 0 or more, not {threads}")
    return threads or usable_cpus()


def bytes_of(size: str | None) -> int | None:
    """Bytes of a size such as ``16G``."""
    from ngsgpu.device.memory import parse_size

    return None if size is None else parse_size(size)


def phred(choice: PhredOffset) -> Literal["auto", 33, 64]:
    """The value of ``--phred-offset``."""
    return "auto" if choice == "auto" else 33 if choice == "33" else 64


def cpu_options(run: ThreadsRun, compress_level: int = 1) -> RunOptions:
    """Options of a run on the CPU; under ``--quiet``, only warnings are logged from now on."""
    obey_quiet(run.quiet)
    threads, memory = thread_count(run.threads), bytes_of(run.memory)
    return _options(threads, memory, run.quiet, compress_level=compress_level)


def words() -> list[str]:
    """The words of the command that runs."""
    context = click.get_current_context(silent=True)
    return sys.argv[1:] if context is None else context.meta.get(WORDS, sys.argv[1:])


def _options(threads: int, memory: int | None, quiet: bool, **others: Any) -> RunOptions:
    from ngsgpu.run.options import RunOptions

    command = ("ngsgpu", *words())
    return RunOptions(threads=threads, memory=memory, progress=not quiet, command=command, **others)


@contextmanager
def open_run(
    run: Compute,
    *kernels: str,
    lease: bool = True,
    max_gpus: int | None = None,
    prepared_gpus: int | None = None,
) -> Iterator[RunOptions]:
    """Choose the backend, lease its GPUs, and initialise them while Python imports the rest.

    What a command imports within the block, NumPy above all, is imported while CUDA starts.

    Args:
        run: the options.
        kernels: modules with the kernels to load, see ``prepare_cuda``.
        lease: whether GPUs are leased and initialised.
        max_gpus: maximum number of GPUs that the run can use, if not that of ``run``.
        prepared_gpus: maximum number of GPUs to initialise now.
    """
    from ngsgpu.device.backend import choose_backend
    from ngsgpu.device.cuda.cupyx import postpone_cupyx
    from ngsgpu.device.memory import check_address_space
    from ngsgpu.device.startup import prepare_cuda
    from ngsgpu.run.rehearsal import is_rehearsal

    check_address_space()
    obey_quiet(run.quiet)
    threads, memory = thread_count(run.threads), bytes_of(run.memory)
    gpu_memory = bytes_of(run.gpu_memory)
    lease, most = lease and not (run.dry_run or is_rehearsal()), max_gpus or run.MAX_GPUS
    with choose_backend(run.backend, run.gpus, lease=lease, most=most) as chosen:
        leased = len(chosen.gpus)
        if lease and leased:
            postpone_cupyx()
            prepare_cuda(leased if prepared_gpus is None else min(leased, prepared_gpus), *kernels)
        yield _options(
            threads,
            memory,
            run.quiet,
            backend=chosen.name,
            may_fall_back=run.backend == "auto",
            gpu_memory=gpu_memory,
            gpus=max(1, leased),
            backend_note=chosen.reason,
            compress_level=run.compress_level,
        )


class Plannable(Protocol):
    """Options of a run that ``--dry-run`` only plans."""

    @property
    def dry_run(self) -> bool:
        """Whether only the plan is wanted."""

    @property
    def quiet(self) -> bool:
        """Whether only errors are printed."""


def run_or_plan(
    run: Plannable,
    options: RunOptions,
    stats: str | None,
    work: Callable[[], T],
    plan: Callable[[], HostPlan],
) -> T | None:
    """Do the work of a command and print its summary, or print its plan under ``--dry-run``.

    Args:
        run: the options.
        options: of the run.
        stats: file that gets the plan.
        work: does it, and returns its statistics.
        plan: plans the memory of it.

    Returns:
        The statistics; None if the plan was wanted.
    """
    if shows_plan(run, options, stats, plan):
        return None
    done = work()
    say(done, run.quiet)
    return done


def shows_plan(
    run: Plannable, options: RunOptions, stats: str | None, plan: Callable[[], HostPlan]
) -> bool:
    """Print the plan of a run under ``--dry-run``, and return whether it did; see `run_or_plan`."""
    if run.dry_run:
        from ngsgpu.run.plan import show_plan

        show_plan(plan(), options, stats)
    return run.dry_run


def say(statistics: Any, quiet: bool) -> None:
    """Print the summary of a run to standard error, unless ``--quiet``."""
    if not quiet:
        click.echo("\n".join(statistics.summary()), err=True)
