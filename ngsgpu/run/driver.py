"""The driver of stages that need all of their input before they write.

It opens the outputs, which appear together with the statistics or not at all; lets the stage take
its steps on the backend of the options, or on the CPU where the GPU fails; and writes the
statistics. ``FilesDriver`` is for stages that read sequences, databases or indexes as they need
them; ``read_set`` for those that hold a read set and read their inputs twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from ngsgpu.device.plan import HostPlan
from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.output.folder import FolderKind
from ngsgpu.io.output.temporary import temporary_folder
from ngsgpu.io.output.writer import OutputSet
from ngsgpu.io.paths import Paths, check_distinct, is_stream, listed, own_descriptor
from ngsgpu.io.text.reader import PhredOffset
from ngsgpu.run.options import RunOptions, on_backend
from ngsgpu.run.progress import Progress, Run, say_if_compiling
from ngsgpu.run.statistics import RunStatistics, with_statistics

P = TypeVar("P")
R = TypeVar("R", bound=Run[Any])
S = TypeVar("S", bound=RunStatistics)
T = TypeVar("T")
_Read = TypeVar("_Read")


@dataclass(frozen=True)
class Driver(Generic[P, R]):
    """Runs a stage.

    Attributes:
        parameters: makes the default parameters.
        on_cpu: the run on the CPU.
        on_gpu: imports the run on GPUs.
    """

    parameters: Callable[[], P]
    on_cpu: type[R]
    on_gpu: Callable[[], type[R]]

    def write(
        self,
        inputs: Sequence[str | Path],
        outputs: Sequence[str],
        steps: Callable[[R, OutputSet, _Read], S],
        reading: AbstractContextManager[_Read],
        parameters: P | None,
        options: RunOptions,
        *,
        phred_offset: PhredOffset,
        stats: str | Path | None,
        folder: tuple[str | Path, FolderKind] | None = None,
        packs: bool = True,
        also_read: Iterable[str | Path] = (),
        rereadable: bool = True,
    ) -> S:
        """Take the steps of a run, and write its outputs and statistics.

        Args:
            inputs: files, each to be read once.
            outputs: files.
            steps: take a run, the outputs, and what ``reading`` gives.
            reading: is open from before the first step to after the last one.
            parameters: of the stage; None: the default ones.
            options: threads, memory and so on.
            phred_offset: 33, 64 or ``auto``.
            stats: JSON file for the statistics.
            folder: a further output.
            packs: whether outputs are compressed if their names say so.
            also_read: other files that no output may overwrite.
            rereadable: whether the inputs can be read again.

        Raises:
            UsageError: a file is named twice.
            InputError: the folder holds something else.
            OutputError: an output cannot be written; none was.
            DeviceError: the GPU failed, and the CPU may not take over.
        """
        further = [str(path) for path in (stats, folder and folder[0]) if path is not None]
        check_distinct(inputs, [*outputs, *further], also_read=also_read)

        def write(files: OutputSet) -> S:
            with reading as read, Progress(options.progress) as progress:

                def attempt(run: R) -> S:
                    files.withdraw()
                    return steps(run, files, read)

                return self._on_backend(
                    attempt, parameters, options, phred_offset, progress,
                    may_begin_again=lambda: rereadable and files.withdrawable,
                )  # fmt: skip

        return with_statistics(outputs, stats, options, write, folder=folder, packs=packs)

    def _on_backend(
        self,
        attempt: Callable[[R], T],
        parameters: P | None,
        options: RunOptions,
        phred_offset: PhredOffset,
        progress: Progress,
        *,
        may_begin_again: Callable[[], bool] = lambda: True,
    ) -> T:
        """Attempt a run on the backend of the options, or on the CPU if it may take over."""
        chosen = self.parameters() if parameters is None else parameters

        def run(kind: type[R], own: RunOptions) -> T:
            with kind(chosen, replace(own, may_fall_back=False), phred_offset, progress) as run:
                return attempt(run)

        return on_backend(
            options,
            lambda: run(self.on_gpu(), options),
            lambda: run(self.on_cpu, replace(options, backend="cpu")),
            may_begin_again=may_begin_again,
        )


def _plain() -> type[Run[Any]]:
    return Run


@dataclass(frozen=True)
class FilesDriver(Driver[P, Run[P]]):
    """Runs a stage whose steps look at the backend of the run themselves.

    Attributes:
        plan: plans the memory on the CPU, of files, parameters and options.
        no_input: the error where no file is given.
    """

    on_cpu: type[Run[P]] = Run
    on_gpu: Callable[[], type[Run[P]]] = _plain
    plan: Callable[[Sequence[str | Path], P, RunOptions], HostPlan] | None = None
    no_input: str = "no reads given; name files with `in1`"

    def run_files(
        self,
        inputs: Paths,
        outputs: Sequence[str | Path | None],
        steps: Callable[[Run[P], OutputSet], S],
        *,
        parameters: P | None,
        options: RunOptions | None,
        stats: str | Path | None,
        phred_offset: PhredOffset = "auto",
        folder: tuple[str | Path, FolderKind] | None = None,
        also_read: Iterable[str | Path] = (),
        reading: AbstractContextManager[Any] | None = None,
        packs: bool = False,
        reads_once: bool = False,
    ) -> S:
        """Run from files to files.

        Args:
            inputs: files, each to be read once.
            outputs: files; those that are None are left out.
            steps: all that is done, up to the statistics.
            parameters: of the stage; None: the default ones, as for ``options``.
            options: backend, threads, memory and progress.
            stats: JSON file for the statistics.
            phred_offset: 33, 64 or ``auto``.
            folder: a further output.
            also_read: other files that no output may overwrite.
            reading: is open from before the first step to after the last one.
            packs: whether outputs are compressed if their names say so.
            reads_once: whether steps that are repeated on the CPU need not read the inputs again.

        Raises:
            NgsgpuError: as of ``write``.
        """
        files = listed(inputs)

        def own_steps(run: Run[P], files: OutputSet, read: object) -> S:
            if run.backend == "cpu":
                say_if_compiling()
            return steps(run, files)

        return self.write(
            files,
            [str(path) for path in outputs if path is not None],
            own_steps,
            reading or nullcontext(),
            parameters,
            options or RunOptions(),
            phred_offset=phred_offset,
            stats=stats,
            folder=folder,
            packs=packs,
            also_read=also_read,
            rereadable=reads_once or not any(map(is_stream, files)),
        )

    def plan_files(
        self, paths: Paths, parameters: P | None = None, options: RunOptions | None = None
    ) -> HostPlan:
        """Plan the memory of a run; reads nothing but the sizes of the files.

        Raises:
            UsageError: there is no file.
        """
        assert self.plan is not None
        chosen = self.parameters() if parameters is None else parameters
        return self.plan(self.given(paths), chosen, options or RunOptions())

    def given(self, paths: Paths) -> list[str | Path]:
        """The files.

        Raises:
            UsageError: there is none.
        """
        files = list(listed(paths))
        if not files:
            raise UsageError(self.no_input)
        return files


@contextmanager
def folder_beside(output: str | Path) -> Iterator[Path]:
    """A temporary folder beside an output, or in the current folder if that is a stream.

    Raises:
        OutputError: it cannot be written.
    """
    own = Path(output).resolve()
    streams = own_descriptor(output, standard=1) is not None or (own.exists() and not own.is_file())
    beside = Path.cwd() / "kmers" if streams else own.with_name(f"{own.name}.kmers")
    try:
        with temporary_folder(beside) as folder:
            yield folder
    except OSError as error:
        raise output_error(beside, error) from error
