"""Counting the k-mers of files on a GPU.

Files go to the device as they are, and their letters are packed there (``gpu_text``). Then k-mers
are found, sorted and counted: all at once, or where there is less room in ranges, one after the
other, which together are in order. What the GPU's reader does not support, the CPU reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ngsgpu.device.arena import Arena
from ngsgpu.device.cuda.sort import radix_sort
from ngsgpu.device.errors import cuda_errors
from ngsgpu.device.pinned import PinnedPool
from ngsgpu.device.plan import gpu_memory
from ngsgpu.device.team import limited_gpu_memory
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
from ngsgpu.kmers.gpu import Counted, CountPlan, counted_rows, piece_rows, plan_counting, summed
from ngsgpu.kmers.gpu_text import PackedText
from ngsgpu.kmers.kept import KeptKmers
from ngsgpu.kmers.params import MAX_COUNT, CountParameters
from ngsgpu.kmers.stretches import Stretches, lowest_quality, packed_letters, stretches_of
from ngsgpu.pool import working
from ngsgpu.run.options import RunOptions, chunk_bytes_within
from ngsgpu.run.progress import Progress, say_if_compiling

_ALL: Final = 0, (1 << 64) - 1
_SAMPLED: Final = 1 << 22
"""Rows of the sample that ranges are chosen by."""

_MARGIN: Final = 110
"""Number of ranges, in percent of what would do if all were equally large."""

_HOST_SHARE: Final = 2
"""One part in this number of the host's memory is for letters that have no room on the GPU."""

_STRETCH: Final = 1 << 20
_MOST_BUFFERS: Final = 16
_NO_COUNTS: Final = np.zeros(MAX_COUNT + 1, dtype=np.int64)


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
    """Count the k-mers of files into a database, as on the CPU.

    Args:
        paths: FASTQ or FASTA files.
        writer: of the database, or of its histogram, or what keeps the k-mers.
        folder: for letters that have no room in memory.
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
    with cuda_errors("counting k-mers on the GPU"), limited_gpu_memory(limit):
        budget = gpu_memory(limit).budget
        plan = plan_counting(letters, parameters.words, budget, parameters.count_bits // 8)
        if isinstance(writer, KeptKmers):
            # The rest is for what is then done with them.
            writer.room = (budget - plan.total) // 2
        counter = GpuCounter(
            paths, writer, parameters, phred_offset, options, folder, plan, sample, least
        )
        with Arena(plan.total).in_use():
            return counter.count(progress)


@dataclass(slots=True)
class GpuCounter:
    """One run of ``count_on_gpu``."""

    paths: Sequence[str | Path]
    writer: DatabaseWriter | Tally | KeptKmers
    parameters: CountParameters
    phred_offset: PhredOffset
    options: RunOptions
    folder: Path
    plan: CountPlan
    sample: ReadSample
    least: Callable[[NDArray[np.int64]], int] | None
    sequences: int = 0
    _bases: int = 0
    _total: int = 0
    _lowest: int = 0
    _text: PackedText = field(init=False)
    _copies: Any = None

    def count(self, progress: Progress) -> Source:
        """Count everything, in the arena in use."""
        import cupy

        self._lowest = lowest_quality(self.parameters, self.phred_offset)
        self._text = PackedText(
            self.parameters.kmer, self._lowest, self.plan.block_words,
            self.plan.bytes_of("letters"), self.options.budget // _HOST_SHARE, self.folder,
        )  # fmt: skip
        self._copies = cupy.cuda.Stream(non_blocking=True)
        try:
            with progress.stage("reading", unit="sequences") as stage:
                for path in self.paths:
                    self._add(path, stage.advance)
            with progress.stage("counting", unit="distinct k-mers") as stage:
                ranges = self._ranges()
                if self.least is not None and not self._fits:
                    whole = sum((own.histogram() for own in self._counted(ranges)), _NO_COUNTS)
                    self._choose(whole)
                self._write(self._counted(ranges), stage.advance)
        finally:
            self._text.close()
        names = tuple(Path(path).name for path in self.paths)
        bases = self._bases + int(self._text.letters[1])
        return Source(self.sequences, bases, self._total, names)

    @property
    def _fits(self) -> bool:
        """Whether there is room for all k-mers at a time."""
        return self._text.most_kmers <= self.plan.rows

    def _ranges(self) -> list[tuple[int, int]]:
        """First words of k-mers, lowest and highest, of ranges that fit."""
        import cupy

        if self._fits:
            return [_ALL]
        most = self._text.most_kmers
        rows = min(self.plan.rows, _SAMPLED)
        kmers = cupy.empty((self.parameters.words, rows), dtype=cupy.uint64)
        found = self._text.find(_ALL, kmers, one_in=-(-most * 2 // rows))
        if found == 0:
            return [_ALL]
        firsts = kmers[0, : min(found, rows)]
        radix_sort(firsts)
        parts = -(-most * _MARGIN // (100 * self.plan.rows))
        places = np.linspace(0, len(firsts), parts + 1)[1:-1].astype(np.int64)
        splitters = sorted(set(firsts.get()[places].tolist()) - {0})
        return list(zip([0, *splitters], [*(one - 1 for one in splitters), _ALL[1]], strict=True))

    def _counted(self, ranges: list[tuple[int, int]]) -> Iterator[Counted]:
        """Counts of all k-mers, in order; each is gone before the next one is asked for."""
        import cupy

        self._total = 0
        kmers = cupy.empty((self.parameters.words, self.plan.rows), dtype=cupy.uint64)
        left = ranges[::-1]
        while left:
            low, high = left.pop()
            size = self._text.find((low, high), kmers)
            self._total += size
            if size <= self.plan.rows:
                counted = counted_rows(kmers, size, self.parameters.count_type)
            elif low == high:
                counted = self._by_part(low, kmers)
            else:
                self._total -= size
                radix_sort(kmers[0])
                middle = max(int(kmers[0, self.plan.rows // 2]), low + 1)
                left += [(middle, high), (low, middle - 1)]
                continue
            if self.least is not None and self._fits:
                self._choose(counted.histogram())
            yield counted
            del counted

    def _by_part(self, first: int, kmers: Any) -> Counted:
        """Counts of k-mers with the same first word, of which there are too many for one buffer."""
        import cupy

        whole = counted_rows(kmers, 0, self.parameters.count_type)
        for size in self._text.find_by_part((first, first), kmers):
            own = counted_rows(kmers, size, self.parameters.count_type)
            columns = cupy.concatenate([whole.kmers, own.kmers], axis=1)
            whole = summed(columns, cupy.concatenate([whole.counts, own.counts]))
        return whole

    def _choose(self, histogram: NDArray[np.int64]) -> None:
        """Choose the lowest count from the histogram of all k-mers."""
        assert self.least is not None
        self.parameters = replace(self.parameters, min_count=self.least(histogram))

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
                    self._text.add(*batch.parts[0], batch.records)
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
        k = self.parameters.kmer
        self.sequences += done

        def pack(own: Stretches) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
            return packed_letters(own, k, self._lowest)

        stretches = self._stretches(path, done, advance)
        with working(self.options.threads, pack, stretches, name="kmers") as packed:
            for words in packed:
                self._text.append(*words)
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
            most = min(_STRETCH, self._text.most_letters - self.parameters.kmer)
            yield from stretches_of(batch, self.parameters.kmer, most)
            advance(len(batch))

    def _write(self, parts: Iterator[Counted], advance: Callable[[int], None]) -> None:
        """Write counted k-mers, by several threads."""
        writer = self.writer
        if isinstance(writer, Tally):
            for counted in parts:
                own = counted.histogram()
                own[: self.parameters.min_count] = 0
                writer.histogram += own
                advance(len(counted))
                del counted
            return
        words = self.parameters.words
        rows = piece_rows(self.plan.rows)
        if isinstance(writer, KeptKmers):
            for counted in parts:
                writer.take(counted, self.parameters.min_count, rows)
                advance(len(counted))
                del counted
            return
        threads = max(1, min(self.options.threads, _MOST_BUFFERS))
        count_type = np.dtype(self.parameters.count_type)
        pool = PinnedPool((8 * words + count_type.itemsize) * rows, threads + 2)

        def pieces() -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
            for counted in parts:
                for piece in counted.pieces(self.parameters.min_count, rows):
                    buffer = pool.take()
                    size = len(piece[1])
                    if size:
                        arrays = _arrays(buffer, size, words, count_type)
                        for there, here in zip(piece, arrays, strict=True):
                            there.get(out=here)
                    del piece
                    yield writer.reserve(size), size, buffer
                advance(len(counted))
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
