"""The input files of a library: pairing, spooling of streams, swapped mates."""

from __future__ import annotations

import contextlib
import logging
import re
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from ngsgpu.errors import InputError, UsageError, output_error
from ngsgpu.io.compress.alignments import ALIGNMENTS
from ngsgpu.io.compress.source import Source
from ngsgpu.io.paths import Paths, listed, nameless_file, temporary_place
from ngsgpu.io.pipes import open_input, opened_together
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.io.text.pairs import read_interleaved, read_pairs
from ngsgpu.io.text.reader import PhredOffset, read_batches, unexpected_pairs

logger = logging.getLogger("ngsgpu")


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """The reads of one lane.

    Attributes:
        inputs: the file, or the files of first and second mates.
        outputs: for each input, the index of its output.
        interleaved: whether the mates alternate in the one file.
        given: the inputs as the user named them; empty where that is what they are.
    """

    inputs: tuple[str, ...]
    outputs: tuple[int, ...] = ()
    interleaved: bool = False
    given: tuple[str, ...] = ()

    @property
    def paired(self) -> bool:
        """Whether the reads have mates."""
        return self.interleaved or len(self.inputs) == 2

    @property
    def is_regular(self) -> bool:
        """Whether all files can be opened again."""
        return all(Path(path).is_file() for path in self.inputs)

    def batches(
        self, *, threads: int, phred_offset: PhredOffset, chunk_bytes: int
    ) -> Iterator[tuple[RecordBatch, ...]]:
        """Yield batches of records, one for each input.

        Args:
            threads: number of threads.
            phred_offset: 33, 64 or ``auto``.
            chunk_bytes: size of the pieces in which text is read.
        """
        if len(self.inputs) == 2:
            with opened_together(self.inputs):
                yield from read_pairs(
                    *self.inputs,
                    threads=threads,
                    phred_offset=phred_offset,
                    chunk_bytes=chunk_bytes,
                )
            return
        (path,) = self.inputs
        if self.interleaved:
            batches = read_interleaved(
                path, threads=threads, phred_offset=phred_offset, chunk_bytes=chunk_bytes
            )
        else:
            batches = read_batches(
                path,
                threads=threads,
                phred_offset=phred_offset,
                chunk_bytes=chunk_bytes,
                refuse_pairs=not self.is_regular,
            )
        for batch in batches:
            yield (batch,)


def pair_inputs(
    in1: Paths,
    in2: Paths,
    *,
    interleaved: bool = False,
    option: str = "interleaved",
) -> list[ReadFiles]:
    """Put the files of first and second mates together.

    Args:
        in1: files of single reads, of first mates, or of interleaved mates.
        in2: files of second mates, as many as ``in1``, or none.
        interleaved: whether the files of ``in1`` hold both mates; of BAM and CRAM their flags say
            so, too.
        option: parameter that says so, for messages.

    Raises:
        UsageError: the numbers of files are inconsistent.
    """
    in1, in2 = listed(in1), listed(in2)
    if not in1:
        raise UsageError("no reads given; name them with `in1` (and their mates with `in2`)")
    if interleaved and in2:
        raise UsageError(f"`{option}` reads both mates from `in1`; omit `in2`")
    if in2 and len(in2) != len(in1):
        raise UsageError(
            f"there are {len(in1)} files of first mates (`in1`) and {len(in2)} of second (`in2`); "
            "give one `in2` for each `in1`"
        )
    if [str(path) for path in (*in1, *in2)].count("-") > 1:
        raise UsageError("standard input (-) can be given only once")
    mates = zip(in1, in2, strict=True) if in2 else ((path,) for path in in1)
    lanes = [ReadFiles(tuple(map(str, paths)), interleaved=interleaved) for paths in mates]
    return lanes if interleaved or in2 else _with_pairs_by_flags(lanes, option)


def _with_pairs_by_flags(lanes: list[ReadFiles], option: str) -> list[ReadFiles]:
    """Lanes of one file each, which are interleaved if they are alignments of pairs."""
    pairs = [holds_pairs(lane.inputs[0]) for lane in lanes]
    if any(pairs) and not all(pairs):
        own, other = (lanes[pairs.index(kind)].inputs[0] for kind in (True, False))
        raise UsageError(
            f"{own} holds pairs and {other} does not; read them in two runs, or, if all files "
            f"hold interleaved pairs, add {option}"
        )
    return [replace(lane, interleaved=own) for lane, own in zip(lanes, pairs, strict=True)]


def holds_pairs(path: str | Path) -> bool:
    """Whether a file is BAM or CRAM and its first read has a mate.

    Of streams, which can be read only once, that is not known; ``ReadFiles.batches`` and
    ``keep_streams`` refuse those whose reads have mates. Faults of the file are left to its
    readers.
    """
    if not Path(path).is_file():
        return False
    try:
        source = Source(path, threads=1, chunk_bytes=_LOOKED_AT)
        try:
            if source.compression in ALIGNMENTS:
                source.fill(memoryview(bytearray(1)))
            return source.holds_pairs
        finally:
            source.close()
    except (InputError, OSError):
        return False


def single_inputs(paths: Sequence[str | Path], option: str) -> list[ReadFiles]:
    """Files of reads without mates.

    Args:
        paths: the files.
        option: parameter that names them, for messages.

    Raises:
        InputError: one is BAM or CRAM, and its reads have mates.
    """
    for path in paths:
        if holds_pairs(path):
            raise InputError(path, f"`{option}` is for single reads, but its reads have mates",
                             "give the file with `in1`")  # fmt: skip
    return [ReadFiles((str(path),)) for path in paths]


def plan_lanes(
    in1: Paths,
    in2: Paths,
    out1: Paths,
    out2: Paths,
    *,
    interleaved: bool = False,
) -> tuple[list[ReadFiles], list[str]]:
    """Pair inputs with outputs: one output per lane, or one for all lanes.

    Args:
        in1: as for ``pair_inputs``.
        in2: likewise.
        out1: for ``in1``: as many, or a single one.
        out2: likewise for ``in2``.
        interleaved: whether the files of ``in1`` hold both mates.

    Returns:
        The lanes, and the paths of all outputs.

    Raises:
        UsageError: the numbers of files are inconsistent.
    """
    in1, in2, out1, out2 = listed(in1), listed(in2), listed(out1), listed(out2)
    lanes = pair_inputs(in1, in2, interleaved=interleaved)
    for mate, outputs, inputs in ((1, out1, in1), (2, out2, in2)):
        if len(outputs) not in ({0} if not inputs else {1, len(inputs)}):
            if not inputs:
                raise UsageError(f"`out{mate}` is given, but not `in{mate}`")
            wanted = f"1 or {len(inputs)} files" if len(inputs) > 1 else "1 file"
            if not outputs:
                raise UsageError(
                    f"missing `out{mate}`: name {wanted} for the {len(inputs)} of `in{mate}`"
                )
            raise UsageError(
                f"`out{mate}` must name {wanted} for the {len(inputs)} of `in{mate}`, "
                f"not {len(outputs)}"
            )
    targets = [[lane if len(out1) > 1 else 0] for lane in range(len(lanes))]
    if in2:
        for lane, own in enumerate(targets):
            own.append(len(out1) + (lane if len(out2) > 1 else 0))
    numbered = zip(lanes, targets, strict=True)
    return [replace(lane, outputs=tuple(own)) for lane, own in numbered], [
        str(path) for path in [*out1, *out2]
    ]


@contextlib.contextmanager
def keep_streams(lanes: Sequence[ReadFiles]) -> Iterator[list[ReadFiles]]:
    """Spool standard input and pipes to temporary files, since every input is read twice.

    The files are unnamed, so that nothing of them can remain; they are opened through their
    descriptors. Errors in them name the original stream.

    Raises:
        UsageError: standard input is closed.
        InputError: a stream of single reads is BAM or CRAM of pairs.
        OutputError: a stream cannot be spooled.
    """
    inputs = [path for lane in lanes for path in lane.inputs]
    if "-" in inputs and sys.stdin is None:
        raise UsageError("standard input (-) is closed")
    streams = [path for path in inputs if path == "-" or Path(path).is_fifo()]
    with contextlib.ExitStack() as stack:
        files = {stream: stack.enter_context(nameless_file()) for stream in streams}
        _keep_all(files)
        kept = {stream: f"/proc/self/fd/{file.fileno()}" for stream, file in files.items()}
        for lane in lanes:
            if not lane.paired and (stream := lane.inputs[0]) in kept and holds_pairs(kept[stream]):
                raise unexpected_pairs(stream)
        try:
            yield [
                replace(
                    lane,
                    inputs=tuple(kept.get(path, path) for path in lane.inputs),
                    given=lane.inputs,
                )
                for lane in lanes
            ]
        except InputError as error:
            for stream, path in kept.items():
                if error.path == path:
                    raise InputError(
                        stream, error.cause, error.remedy, record=error.record, line=error.line
                    ) from error
            raise


def _keep_all(files: Mapping[str, BinaryIO]) -> None:
    """Copy streams to files, all at once, since one program may write several pipes in turn.

    The first one is copied by this thread, so that it can be interrupted.
    """
    failures: list[BaseException] = []

    def keep(stream: str, file: BinaryIO) -> None:
        try:
            _keep(stream, file)
        except BaseException as error:
            failures.append(error)

    streams = list(files.items())
    threads = [threading.Thread(target=keep, args=stream, daemon=True) for stream in streams[1:]]
    for thread in threads:
        thread.start()
    for stream in streams[:1]:
        _keep(*stream)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _keep(stream: str, file: BinaryIO) -> None:
    """Copy a stream to a file."""
    try:
        with open_input(stream) as source:
            shutil.copyfileobj(source, file, 1 << 20)
        file.flush()
    except OSError as error:
        raise output_error(temporary_place(), error) from error


_LOOKED_AT: Final = 1 << 16
_NUMBER: Final = re.compile(rb"\S+/([12])(?=\s|$)|\S+\s+([12]):[YN]:")
"""Mate numbers as in ``name/2`` and in Casava's ``name 2:N:0:ACGT``."""


def warn_of_mates(lanes: Iterable[ReadFiles]) -> None:
    """Warn for each lane whose first mates are named as second ones, or if both mates are.

    Only the first names of regular files are checked. Other problems of a file are left to its
    readers.
    """
    for lane in lanes:
        if not all(Path(path).is_file() for path in lane.inputs):
            continue
        try:
            fault = _fault(lane)
        except (InputError, OSError):
            continue
        if fault:
            logger.warning("%s: %s", lane.inputs[0], fault)


def _fault(lane: ReadFiles) -> str | None:
    """The problem with a lane's mates; None if there is none, or without mates."""
    first = lane.inputs[0]
    if lane.interleaved:
        numbers = _mate_numbers(first)
        if _all(numbers[::2], 2):
            return "the first mates of its pairs are named as second ones; is their order right?"
        return None
    if len(lane.inputs) < 2:
        return None
    second = lane.inputs[1]
    if Path(first).samefile(second):
        return "is given for first and for second mates; name the file of second mates"
    ones, twos = _mate_numbers(first), _mate_numbers(second)
    if _all(ones, 2):
        return f"is given for first mates, but named as second ones; swapped with {second}?"
    if _all(twos, 1):
        return f"has its mates in {second}, which are named as first ones; is it the right file?"
    return None


def _all(numbers: list[int], number: int) -> bool:
    return bool(numbers) and set(numbers) == {number}


def _mate_numbers(path: str) -> list[int]:
    """The mate number in each of the first names: 1, 2, or 0 where there is none."""
    source = Source(path, threads=1, chunk_bytes=_LOOKED_AT)
    try:
        chunk = next(iter(source.chunks()), None)
    finally:
        source.close()
    if chunk is None:
        return []
    lines = chunk.data.tobytes().splitlines()
    if chunk.size == _LOOKED_AT:
        del lines[-1:]  # may be cut short
    names = lines[::4] if lines[:1] and lines[0][:1] == b"@" else lines
    found = (_NUMBER.match(name) for name in names if name[:1] in (b"@", b">"))
    return [int(match[1] or match[2]) if match else 0 for match in found]


LONG: Final = 1000
"""Mean bases of reads from which on they are taken for long ones: those of Illumina, also merged or
extended to their fragments, have fewer."""


def warn_of_long_reads(
    reads: int, bases: int, lanes: Sequence[ReadFiles], work: str, remedy: str
) -> None:
    """Warn if reads are long.

    Args:
        reads: their number, of all of them or the first ones.
        bases: of these.
        lanes: their files.
        work: what is made for short reads.
        remedy: what to do with long ones.
    """
    if bases < LONG * max(1, reads):
        return
    file = (lanes[0].given or lanes[0].inputs)[0]
    others = sum(len(lane.inputs) for lane in lanes) - 1
    logger.warning(
        "%s%s: the reads have %s bases on average, and %s is for short reads (%s is the limit); %s",
        file,
        f" and {others} more" if others else "",
        f"{bases // max(1, reads):,}",
        work,
        f"{LONG:,}",
        remedy,
    )
