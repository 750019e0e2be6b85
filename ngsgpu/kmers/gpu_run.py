"""Counting the k-mers of files on a GPU.

Files go to the device as they are, and their k-mers stay there until the buffer is full or the
files end; then they are sorted and counted. If there is more to come, the counts (a run) go to
files beside the output, and those of all runs are added up in the end, bucket by bucket. What the
GPU's reader does not support, the CPU reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.collectives import Exchange
from ngsgpu.device.arena import Arena
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.device.plan import gpu_memory
from ngsgpu.device.team import Team
from ngsgpu.errors import InputError
from ngsgpu.io.gpu.feed import IrregularInputError, say_read_by_cpu
from ngsgpu.io.gpu.records import DeviceReadFiles, no_bad_pair
from ngsgpu.io.gpu.sample import sample_batch
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.diagnose import PhredOffset
from ngsgpu.io.text.reader import read_batches
from ngsgpu.io.text.sample import ReadSample
from ngsgpu.kmers.database import DatabaseWriter, Source, Tally
from ngsgpu.kmers.gpu import (
    SMALL_BYTES,
    Counted,
    CountPlan,
    add_up,
    joined_row_bytes,
    piece_rows,
    plan_counting,
)
from ngsgpu.kmers.gpu_team import KmerBuffers, Ranges, counting_team
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.params import MAX_COUNT, CountParameters
from ngsgpu.kmers.runs import Run, write_run
from ngsgpu.kmers.stretches import Stretches, kmers_in, lowest_quality, stretches_of
from ngsgpu.pool import parts_within, working
from ngsgpu.run.options import RunOptions, chunk_bytes_within
from ngsgpu.run.progress import Progress, say_if_compiling

_BUCKET_BITS: Final = 14
_STRETCH: Final = 1 << 20
_MOST_BUFFERS: Final = 16
_NO_COUNTS: Final = np.zeros(MAX_COUNT + 1, dtype=np.int64)

Part = tuple[int, Counted]
"""Number of a GPU, and counts there."""


def count_on_gpu(
    paths: Sequence[str | Path],
    writer: DatabaseWriter | Tally | KeptKmers,
    folder: Path,
    parameters: CountParameters,
    phred_offset: PhredOffset,
    options: RunOptions,
    letters: int | None,
    progress: Progress,
    sample: ReadSample,
    least: Callable[[NDArray[np.int64]], int] | None = None,
) -> Source:
    """Count the k-mers of files into a database, as on the CPU, on the GPUs of the options.

    Args:
        paths: FASTQ or FASTA files.
        writer: of the database, or of its histogram, or what keeps the k-mers.
        folder: for runs.
        parameters: which k-mers are counted.
        phred_offset: of the qualities.
        options: threads and memory.
        letters: most letters that the files have; None if that is unknown.
        progress: shows the stages.
        sample: gets the sample of the reads.
        least: see ``count_files``.

    Returns:
        What was counted.

    Raises:
        InputError: a file cannot be read.
        OutputError: the database cannot be written.
        DeviceError: CUDA fails, or the GPU's memory is too small.
    """
    limit = options.gpu_memory
    with cuda_errors("counting k-mers on the GPU"):
        team, exchange = counting_team(options.gpus)
        with team.limited(limit):
            budget = min(team.each(lambda gpu: gpu_memory(limit).budget))
            plan = plan_counting(
                letters, parameters.words, budget, len(team), parameters.count_bits // 8
            )
            if isinstance(writer, KeptKmers) and len(team) == 1:
                # The rest is for what is then done with them.
                writer.room = (budget - plan.total) // 2
            counter = GpuCounter(
                paths, writer, parameters, phred_offset, options, folder, plan, sample, least
            )
            try:
                arenas = team.each(lambda gpu: Arena(plan.total))
                return counter.count(team, arenas, exchange, progress)
            finally:
                for run in counter.runs:
                    run.remove()


@dataclass(slots=True)
class GpuCounter:
    """One run of ``count_on_gpu``.

    Attributes:
        runs: counts that are on the disk.
    """

    paths: Sequence[str | Path]
    writer: DatabaseWriter | Tally | KeptKmers
    parameters: CountParameters
    phred_offset: PhredOffset
    options: RunOptions
    folder: Path
    plan: CountPlan
    sample: ReadSample
    least: Callable[[NDArray[np.int64]], int] | None
    runs: list[Run] = field(default_factory=list)
    sequences: int = 0
    _bases: int = 0
    _lowest: int = 0
    _buffers: KmerBuffers = field(init=False)
    _copies: Any = None

    def count(
        self, team: Team, arenas: list[Arena], exchange: Exchange | None, progress: Progress
    ) -> Source:
        """Count everything; its memory on each GPU is that of an arena."""
        import cupy

        self._lowest = lowest_quality(self.parameters, self.phred_offset)
        self._buffers = KmerBuffers(
            team, arenas, self.parameters.kmer, self.plan.rows, self._lowest, exchange,
            self.parameters.count_type,
        )  # fmt: skip
        with self._buffers.on(0):
            self._copies = cupy.cuda.Stream(non_blocking=True)
            with progress.stage("reading", unit="sequences") as stage:
                for path in self.paths:
                    self._add(path, stage.advance)
            with progress.stage("counting", unit="k-mers") as stage:
                parts, total, bases = self._counted()
                stage.advance(total)
            with progress.stage("writing", unit="distinct k-mers") as stage:
                self._write(parts)
                stage.advance(self.writer.size)
        names = tuple(Path(path).name for path in self.paths)
        return Source(self.sequences, bases, total, names)

    def _counted(self) -> tuple[Iterator[Part], int, int]:
        """Counts to write, in order; total k-mers and bases."""
        counted = self._buffers.counted()
        total, bases = self._buffers.total, self._bases + self._buffers.bases
        self._buffers.free()
        ranges = None if self.runs else self._buffers.ranges(counted)
        chooses = self.least is not None and isinstance(self.writer, KeptKmers)
        if ranges is None or (chooses and ranges.passes > 1):
            self._put_away(counted)
            del counted, ranges
            if chooses:
                self._choose(sum((own.histogram() for own in self._joined()), _NO_COUNTS))
            return ((0, own) for own in self._joined()), total, bases
        counted = []
        if ranges.passes > 1:
            return self._by_pass(ranges), total, bases
        whole = ranges.of_pass(0)
        if self.least is not None:
            histogram = _NO_COUNTS.copy()
            for gpu, own in enumerate(whole):
                with self._buffers.on(gpu):
                    histogram += own.histogram()
            self._choose(histogram)
        return iter(list(enumerate(whole))), total, bases

    def _choose(self, histogram: NDArray[np.int64]) -> None:
        """Choose the lowest count from the histogram of all k-mers."""
        assert self.least is not None
        self.parameters = replace(self.parameters, min_count=self.least(histogram))

    def _by_pass(self, ranges: Ranges) -> Iterator[Part]:
        """Counts of all GPUs, pass after pass."""
        for number in range(ranges.passes):
            whole = ranges.of_pass(number)
            yield from enumerate(whole)
            del whole

    def _add(self, path: str | Path, advance: Callable[[int], None]) -> None:
        """Add the k-mers of a file."""
        done = 0
        try:
            with DeviceReadFiles(
                ReadFiles((str(path),)),
                threads=self.options.threads,
                chunk_bytes=self.plan.chunk_bytes,
                phred_offset=self.phred_offset,
                copies=self._copies,
                bad_pair=no_bad_pair(),
            ) as lane:
                for batch in lane.batches():
                    sample_batch(self.sample, batch)
                    chunk, record = batch.parts[0]
                    end = record + batch.records
                    while record < end:
                        fit = self._buffers.records_that_fit(chunk, end - record)
                        if fit == 0:
                            self._spill()
                            continue
                        self._buffers.find(chunk, record, fit)
                        record += fit
                    done += batch.records
                    advance(batch.records)
        except (IrregularInputError, InputError) as reason:
            say_read_by_cpu(reason)
        else:
            if done > 0:
                self.sequences += done
                return
        self._add_by_cpu(path, done, advance)

    def _add_by_cpu(self, path: str | Path, done: int, advance: Callable[[int], None]) -> None:
        """Add the k-mers of a file from a record on; its reader says what is wrong with it."""
        import cupy

        say_if_compiling()
        k, words = self.parameters.kmer, self.parameters.words
        self.sequences += done

        def find(own: Stretches) -> NDArray[np.uint64]:
            room = np.empty((own.room, words), dtype=np.uint64)
            return room[: kmers_in(own, k, self._lowest, room)]

        stretches = self._stretches(path, done, advance)
        with working(self.options.threads, find, stretches, name="kmers") as found:
            for kmers in found:
                while len(kmers):
                    kmers = kmers[self._buffers.append(kmers) :]
                    if len(kmers):
                        self._spill()
        # The next file's chunks are copied, on another stream, to where these k-mers came from.
        cupy.cuda.get_current_stream().synchronize()

    def _stretches(
        self, path: str | Path, done: int, advance: Callable[[int], None]
    ) -> Iterator[Stretches]:
        """Stretches that the CPU reads, without the first ``done`` records."""
        threads = self.options.threads
        chunk_bytes = chunk_bytes_within(self.options.budget, self.options.chunk_bytes)
        for whole in read_batches(
            path, threads=threads, chunk_bytes=chunk_bytes, phred_offset=self.phred_offset
        ):
            skipped = min(done, len(whole))
            done -= skipped
            batch: RecordBatch = whole.slice(skipped, len(whole))
            if len(batch) == 0:
                continue
            self.sample.take((batch,))
            self.sequences += len(batch)
            self._bases += int(batch.seq_len.sum(dtype=np.int64))
            yield from stretches_of(batch, self.parameters.kmer, _STRETCH)
            advance(len(batch))

    def _spill(self) -> None:
        """Count what is in the buffers, and put the counts on the disk."""
        self._put_away(self._buffers.counted())

    def _put_away(self, counted: list[Counted]) -> None:
        """Put counts on the disk, a run for each GPU that has any; they are freed."""
        rows = piece_rows(self.plan.rows)
        for gpu in range(len(counted)):
            own = counted.pop(0)
            if len(own) == 0:
                continue
            with self._buffers.on(gpu):
                parts = ((kmers.get(), counts.get()) for kmers, counts in own.pieces(1, rows))
                starts = own.starts(_BUCKET_BITS)
                own_type = self.parameters.count_type
                self.runs.append(write_run(self.folder, len(self.runs), parts, own_type, starts))
            del own

    def _joined(self) -> Iterator[Counted]:
        """The sums of all runs, in order."""
        words = self.parameters.words
        row = joined_row_bytes(words, self.parameters.count_bits // 8)
        room = (self.plan.total - SMALL_BYTES) // row
        most = min(self.plan.rows, room)
        ends = sum(run.starts for run in self.runs)
        assert isinstance(ends, np.ndarray)
        for first, last in parts_within(ends[1:] - ends[0], most):
            parts = [run.read(first, last, words) for run in self.runs]
            yield add_up(*(np.concatenate(own) for own in zip(*parts, strict=True)))

    def _write(self, parts: Iterator[Part]) -> None:
        """Write counted k-mers, by several threads."""
        writer, least = self.writer, self.parameters.min_count
        if isinstance(writer, Tally):
            for gpu, counted in parts:
                with self._buffers.on(gpu):
                    own = counted.histogram()
                own[:least] = 0
                writer.histogram += own
            return
        words = self.parameters.words
        rows = piece_rows(self.plan.rows)
        if isinstance(writer, KeptKmers):
            for gpu, counted in parts:
                with self._buffers.on(gpu):
                    writer.take(counted, least, rows)
                del counted
            return
        threads = max(1, min(self.options.threads, _MOST_BUFFERS))
        count_type = np.dtype(self.parameters.count_type)
        pool = PinnedPool((8 * words + count_type.itemsize) * rows, threads + 2)

        def pieces() -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
            for gpu, counted in parts:
                with self._buffers.on(gpu):
                    for piece in counted.pieces(least, rows):
                        buffer = pool.take()
                        size = len(piece[1])
                        if size:
                            arrays = _arrays(buffer, size, words, count_type)
                            for there, here in zip(piece, arrays, strict=True):
                                there.get(out=here)
                        del piece
                        yield writer.reserve(size), size, buffer
                # Gone before the next ones are made.
                del counted

        def put(piece: tuple[int, int, NDArray[np.uint8]]) -> None:
            at, size, buffer = piece
            writer.put(at, *_arrays(buffer, size, words, count_type))
            pool.release(buffer)

        with working(threads, put, pieces(), ahead=threads + 1, name="write") as done:
            for _ in done:
                pass


def _arrays(
    buffer: NDArray[np.uint8], size: int, words: int, count_type: np.dtype[Any]
) -> tuple[NDArray[np.uint64], NDArray[Any]]:
    """K-mers and counts in a buffer."""
    end = 8 * words * size
    kmers = buffer[:end].view(np.uint64).reshape(size, words)
    return kmers, buffer[end : end + count_type.itemsize * size].view(count_type)
