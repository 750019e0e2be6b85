"""Alignments of reads on a reference: those of bwa or minimap2, run here, or a file's."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ngsgpu.errors import InputError, NgsgpuError, UsageError
from ngsgpu.evaluate.truth.matching import hashes_of
from ngsgpu.evaluate.truth.reference import Reference
from ngsgpu.io.output.temporary import open_private, temporary_folder
from ngsgpu.io.paths import temporary_place

ALIGNERS = ("bwa", "minimap2")

SECONDARY_OR_SUPPLEMENTARY = 0x900
REVERSE = 0x10

_INDEX = (".amb", ".ann", ".bwt", ".pac", ".sa")
_NAMES = 4096


class Alignments(NamedTuple):
    """Where reads align, as kernels take it; of pairs, first and second mates alternate.

    Attributes:
        place: int64[n], first aligned base in ``Reference.codes``, -1 for a read without an
            alignment that counts.
        sequence: int32[n], number of the reference's sequence.
        reverse: bool[n], whether the read lies on the reverse strand.
        cigar_start: int64[n + 1], where the operations of each read begin.
        cigar: uint32, operations as in BAM (length << 4 | kind), in the reference's direction.
    """

    place: NDArray[np.int64]
    sequence: NDArray[np.int32]
    reverse: NDArray[np.bool_]
    cigar_start: NDArray[np.int64]
    cigar: NDArray[np.uint32]

    def part(self, begin: int, end: int) -> Alignments:
        """Some of the reads, without copying operations."""
        rows = slice(begin, end)
        return Alignments(
            self.place[rows],
            self.sequence[rows],
            self.reverse[rows],
            self.cigar_start[begin : end + 1],
            self.cigar,
        )


class AlignedReads(NamedTuple):
    """All alignments of a run.

    Attributes:
        rows: the alignments.
        hashes: uint64[n], of the names of the reads.
        path: where they come from, for messages.
    """

    rows: Alignments
    hashes: NDArray[np.uint64]
    path: str


def align_reads(
    reference: str | Path, files: Sequence[Sequence[str | Path]], aligner: str, threads: int
) -> contextlib.AbstractContextManager[list[Path]]:
    """Run an aligner on each lane; the context's value are its outputs, a SAM file a lane.

    Args:
        reference: FASTA, plain or gzip.
        files: files of each lane, one or two.
        aligner: one of ``ALIGNERS``.
        threads: threads of the aligner.

    Raises:
        UsageError: the aligner is not installed, or a file is standard input.
        NgsgpuError: the aligner failed; with the last line that it said.
    """
    if aligner not in ALIGNERS:
        raise UsageError(f"`aligner` must be one of {', '.join(ALIGNERS)}, not {aligner}")
    if shutil.which(aligner) is None:
        raise UsageError(
            f"`aligner='{aligner}'`: there is no program {aligner} on the PATH; install it, choose "
            "the other aligner, or give `alignments`"
        )
    if any(str(path) == "-" for lane in files for path in [reference, *lane]):
        raise UsageError("reads and reference are read more than once; give files, not -")
    return _aligned(Path(reference), files, aligner, threads)


@contextlib.contextmanager
def _aligned(
    reference: Path, files: Sequence[Sequence[str | Path]], aligner: str, threads: int
) -> Iterator[list[Path]]:
    with temporary_folder(temporary_place() / "align") as folder:
        target = str(reference)
        if aligner == "bwa" and not all(Path(target + end).exists() for end in _INDEX):
            target = str(folder / "reference")
            _run(["bwa", "index", "-p", target, str(reference)], folder, None)
        outputs = []
        for number, lane in enumerate(files):
            sam = folder / f"{number}.sam"
            # Batches of a fixed size, so that the number of threads does not change the result.
            command = {
                "bwa": ["bwa", "mem", "-K", "10000000", "-t", str(threads), target],
                "minimap2": ["minimap2", "-a", "-x", "sr", "-t", str(threads), target],
            }[aligner]
            with open(sam, "wb", opener=open_private) as output:
                _run([*command, *map(str, lane)], folder, output)
            outputs.append(sam)
        yield outputs


def _run(command: list[str], folder: Path, output: IO[bytes] | None) -> None:
    """Run a program; what it says goes to a file, of which an error quotes the last line."""
    with open(folder / "log", "w+b", opener=open_private) as log:
        target = subprocess.DEVNULL if output is None else output
        status = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=target, stderr=log, umask=0o077
        )
        if status.returncode:
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip().splitlines()
            raise NgsgpuError(
                f"{' '.join(command[:2])} ended with status {status.returncode}"
                f"{f' ({said[-1]})' if said else ''}; check the reference and the reads, or give "
                "`alignments`"
            )


def read_alignments(paths: Sequence[str | Path], genome: Reference, min_mapq: int) -> AlignedReads:
    """Read the primary alignments of all reads.

    Args:
        paths: SAM, BAM or CRAM, one a lane.
        genome: the reference; its names are those of the alignments.
        min_mapq: alignments of lower quality do not count.

    Raises:
        InputError: pysam cannot read them, or a read lies outside of the reference.
    """
    import pysam

    # What htslib would print stands in the one line of the error.
    pysam.set_verbosity(0)
    columns = _Columns(genome, min_mapq)
    for path in paths:
        try:
            with pysam.AlignmentFile(str(path), check_sq=False) as file:
                numbers = [genome.numbers.get(name, -1) for name in file.references]
                for record in file:
                    if not record.flag & SECONDARY_OR_SUPPLEMENTARY:
                        own = record.reference_id
                        columns.add(record, numbers[own] if own >= 0 else 0, path)
        except (OSError, ValueError, NotImplementedError) as error:
            raise InputError(path, f"pysam cannot read it ({error})", "check the file") from error
    return columns.finish(str(paths[-1]))


class _Columns:
    """Columns of alignments that grow record by record, a few bytes each."""

    def __init__(self, genome: Reference, min_mapq: int) -> None:
        self._starts = genome.start.tolist()
        self._min_mapq = min_mapq
        self._place, self._sequence, self._reverse = array("q"), array("i"), array("b")
        self._cigar_start, self._cigar = array("q", [0]), array("I")
        self._hashes: list[NDArray[np.uint64]] = []
        self._names: list[bytes] = []

    def add(self, record: Any, number: int, path: str | Path) -> None:
        """Add pysam's record of a read in a sequence of the reference, -1 if that is unknown."""
        if number < 0:
            raise InputError(
                path,
                f"read {record.query_name!r} lies in {record.reference_name!r}, which is not in "
                "the reference",
                "give the reference of these alignments",
            )
        self._names.append(_without_mate((record.query_name or "").encode()))
        if len(self._names) == _NAMES:
            self._hash_names()
        self._reverse.append((record.flag & REVERSE) != 0)
        self._sequence.append(number)
        begin, end = record.reference_start, record.reference_end
        if record.flag & 4 or record.mapping_quality < self._min_mapq or end is None or begin < 0:
            self._place.append(-1)
        else:
            if self._starts[number] + end > self._starts[number + 1]:
                raise InputError(
                    path,
                    f"read {record.query_name!r} reaches beyond the end of "
                    f"{record.reference_name!r}",
                    "give the reference of these alignments",
                )
            self._place.append(self._starts[number] + begin)
            self._cigar.extend(size << 4 | kind for kind, size in record.cigartuples)
        self._cigar_start.append(len(self._cigar))

    def _hash_names(self) -> None:
        sizes = np.array([len(name) for name in self._names], dtype=np.int64)
        ends = np.cumsum(sizes)
        text = np.frombuffer(b"".join(self._names) + b" ", np.uint8)
        self._hashes.append(hashes_of(text, ends - sizes, ends))
        self._names.clear()

    def finish(self, path: str) -> AlignedReads:
        """All of them, as arrays."""
        self._hash_names()
        rows = Alignments(
            np.array(self._place, dtype=np.int64),
            np.array(self._sequence, dtype=np.int32),
            np.array(self._reverse, dtype=np.bool_),
            np.array(self._cigar_start, dtype=np.int64),
            np.array(self._cigar, dtype=np.uint32),
        )
        return AlignedReads(rows, np.concatenate(self._hashes), path)


def _without_mate(name: bytes) -> bytes:
    """A name without ``/1`` or ``/2``, which aligners cut off from pairs only."""
    return name[:-2] if name[-2:] in (b"/1", b"/2") else name
