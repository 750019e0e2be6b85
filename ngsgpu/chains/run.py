"""Runs a chain over samples: in one process, on GPUs that are leased once."""

from __future__ import annotations

import logging
import os
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from ngsgpu.chains.flow import Flow, wiring_of
from ngsgpu.chains.places import Places
from ngsgpu.chains.plan import Chain, Planned, check_streams, named
from ngsgpu.chains.runner import (
    LOG,
    STATISTICS,
    ChainStatistics,
    called,
    check_unused,
    logged,
    run_steps,
)
from ngsgpu.chains.steps import Step
from ngsgpu.classify.run.samples import Sample
from ngsgpu.cli import app
from ngsgpu.cli.adapter import Command, Group
from ngsgpu.declared.outputs import declare_output
from ngsgpu.errors import InputError, NgsgpuError, OutputError, output_error
from ngsgpu.io.compress.formats import without_packing
from ngsgpu.io.output.atomic import write_text_atomically
from ngsgpu.io.output.temporary import temporary_folder
from ngsgpu.io.paths import check_distinct
from ngsgpu.run.options import RunOptions
from ngsgpu.run.rehearsal import check_outputs

logger = logging.getLogger("ngsgpu")

_FASTA: Final = (".fa", ".fasta", ".fna")


def command_named(name: str) -> Command:
    """A command of the command line, such as ``kmers count``."""
    found: Any = app
    for word in name.split():
        assert isinstance(found, Group)
        found = found.get_command(click.Context(found), word)
    assert isinstance(found, Command)
    return found


def flow_of(sample: Sample) -> Flow:
    """The reads of a sample."""
    pairs = [lane.inputs for lane in sample.lanes if len(lane.inputs) == 2]
    alone = [lane.inputs[0] for lane in sample.lanes if len(lane.inputs) == 1]
    name = without_packing(Path(sample.lanes[0].inputs[0]).name)
    ending = "fasta" if name.endswith(_FASTA) else "fastq"
    if not pairs:
        return Flow(tuple(alone), interleaved=sample.lanes[0].interleaved, ending=ending)
    first, second = zip(*pairs, strict=True)
    return Flow(first, second, single=tuple(alone), ending=ending)


class Runs:
    """A chain that is run over samples.

    Args:
        steps: of the chain.
        out: folder of the outputs; of several samples each has a folder in it.
        options: of the run.
        quiet: whether steps print only errors.
    """

    def __init__(
        self, steps: Sequence[Step], out: Path, options: RunOptions, *, quiet: bool
    ) -> None:
        self._steps, self._out, self._options, self._quiet = steps, out, options, quiet

    def _plan(
        self,
        steps: Sequence[Step],
        sample: Sample,
        out: Path,
        between: Path,
        taken: int = 0,
        flow: Flow | None = None,
    ) -> list[Planned]:
        """The steps of a sample, which have the options of the run unless they say otherwise.

        Args:
            steps: the steps.
            sample: the sample.
            out: folder of the outputs.
            between: folder of the reads between two steps.
            taken: bytes of memory that these take.
            flow: reads in place of the sample's.
        """
        options = self._options
        on_gpu = options.backend == "cuda"
        common: dict[str, Any] = {
            "threads": options.threads,
            "backend": "auto" if on_gpu and options.may_fall_back else options.backend,
            "gpus": options.gpus if on_gpu else None,
            "gpu_memory": options.gpu_memory,
            "memory": None if options.memory is None else options.memory - taken,
            "compress_level": options.compress_level,
            "quiet": self._quiet,
        }
        chain = Chain(steps, command_named, common)
        return chain.plan(flow or flow_of(sample), sample.name, out, between)

    def check(self, samples: Sequence[Sample]) -> None:
        """Check all that can be known before the first step runs, but for the reads.

        Raises:
            NgsgpuError: what a step would refuse; names it.
        """
        rehearsed = set()
        for sample in samples:
            out = self._folder(sample, samples)
            planned = self._plan(self._steps, sample, out, out / "reads")
            inputs = [path for lane in sample.lanes for path in lane.inputs]
            written = [path for own in planned for path in (*own.copies.values(), *own.outputs)]
            check_distinct(inputs, [*written, out / LOG, out / STATISTICS])
            check_streams(planned, inputs)
            check_unused(out, sample.name)
            stand_ins = _stand_ins(flow_of(sample))
            if stand_ins not in rehearsed:
                rehearsed.add(stand_ins)
                self._rehearse(sample, out, stand_ins)

    def _rehearse(self, sample: Sample, out: Path, flow: Flow) -> None:
        """Have each step do what it does before it reads, with empty files in place of reads."""
        with ExitStack() as stack:
            with _no_folder(out):
                folder = stack.enter_context(temporary_folder(out / "reads"))
            reads = flow.below(folder)
            planned = self._plan(self._steps, sample, out, folder, flow=reads)
            for path in (*reads.files, *(path for own in planned for path in own.last_use)):
                write_text_atomically(path, "")
            with called(planned):
                for own in planned:
                    own.write_sheet()
                    with named(own.step):
                        own.command.rehearse(own.words)
            copies = [path for own in planned for path in own.copies.values()]
            for path in copies:
                declare_output(path)
            check_outputs([*copies, out / LOG, out / STATISTICS])

    def show(self, sample: Sample) -> None:
        """Print what a run of a sample would do, and the memory of its steps."""
        out = self._out
        with self._places(out, sample) as places:
            planned = self._plan(self._steps, sample, out, places.folder, places.taken)
            click.echo("\n".join(_lines(planned, places)))
            for step in self._steps:
                command = command_named(wiring_of(step.command)[0])
                if any(own.name == "dry_run" for own in command.parameters):
                    click.echo(f"{step.name}, with the reads as they are:")
                    (alone,) = self._plan([step], sample, out, places.folder, places.taken)
                    alone.write_sheet()
                    with alone.command.prepare([*alone.words, "--dry-run"]) as context:
                        context.params["stats"] = None  # which would get the plan
                        alone.command.invoke(context)

    def all(self, samples: Sequence[Sample]) -> Iterator[ChainStatistics]:
        """Run the steps of each sample; one that cannot be read does not keep others from it.

        Yields:
            The statistics of each sample that succeeded.

        Raises:
            NgsgpuError: a sample failed; raised after all others.
        """
        failed: NgsgpuError | None = None
        for number, sample in enumerate(samples):
            for later in samples[number + 1 : number + 2]:
                _read_ahead(later)
            try:
                yield self.one(sample, self._folder(sample, samples))
            except InputError as error:
                if len(samples) == 1:
                    raise
                logger.error("%s: %s", sample.name, error)
                failed = error
        if failed is not None:
            raise failed

    def one(self, sample: Sample, out: Path) -> ChainStatistics:
        """Run the steps of a sample, with all outputs in a folder."""
        begin = time.monotonic()
        _make(out)
        with logged(out / LOG, sample.name), self._places(out, sample) as places:
            planned = self._plan(self._steps, sample, out, places.folder, places.taken)
            for path in (path for own in planned for path in own.copies.values()):
                declare_output(path)
            with called(planned):
                steps = run_steps(planned, places)
            between = "memory" if places.in_memory else str(places.folder)
        options = self._options
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        statistics = ChainStatistics(
            backend=options.backend,
            device=options.device(options.backend),
            command=list(options.command),
            parameters={own.name: dict(own.options) for own in self._steps},
            sample=sample.name,
            reads_between_steps=between,
            steps=steps,
            time_s={"total": round(time.monotonic() - begin, 3)},
            memory={"peak_rss_bytes": peak},
        )
        write_text_atomically(out / STATISTICS, statistics.to_json())
        return statistics

    def _places(self, out: Path, sample: Sample) -> Places:
        return Places(
            out,
            flow_of(sample).files,
            self._options.memory,
            threads=self._options.threads,
            level=self._options.compress_level,
        )

    def _folder(self, sample: Sample, samples: Sequence[Sample]) -> Path:
        return self._out / sample.name if len(samples) > 1 else self._out


def _lines(planned: Sequence[Planned], places: Places) -> Iterator[str]:
    """The steps of a plan, for people."""
    from ngsgpu.device.memory import format_size

    where = "memory" if places.in_memory else str(places.folder.parent)
    size = "of unknown size" if places.text is None else f"about {format_size(places.text)} of text"
    yield f"reads    {size}, between two steps in {where}"
    for number, own in enumerate(planned, start=1):
        written = [*own.copies.values(), *own.outputs]
        yield f"step {number}   {own.step.name}: writes {', '.join(written) or 'nothing to keep'}"


def _stand_ins(flow: Flow) -> Flow:
    """Names in place of those of reads, the same for all samples with as many files."""

    def numbered(word: str, files: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{word}-{number}.{flow.ending}" for number in range(len(files)))

    return replace(
        flow,
        first=numbered("first", flow.first),
        second=numbered("second", flow.second),
        single=numbered("single", flow.single),
    )


def _make(folder: Path) -> None:
    """Make a folder if it is not there."""
    with _no_folder(folder):
        folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _no_folder(folder: Path) -> Iterator[None]:
    """Errors of making a folder."""
    try:
        yield
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputError(f"{folder}: this is a file; choose another name") from error
    except OSError as error:
        raise output_error(folder, error) from error


def _read_ahead(sample: Sample) -> None:
    """Have the system read a sample's files while it is not its turn yet."""
    for path in (path for lane in sample.lanes for path in lane.inputs):
        if Path(path).is_file():  # the writer of a pipe would see it close
            with suppress(OSError), Path(path).open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_WILLNEED)
