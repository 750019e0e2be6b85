#!/usr/bin/env python3
"""Cut a reference into chunks that a read simulator can work on side by side, and join the result.

``cut`` writes N FASTA files of about equal size. A chunk's records are intervals of the
reference's sequences; the record's name carries the interval, ``NAME:START-END`` (1-based, both
ends inside), so that reads named after it are unique over all chunks and ``join`` can move their
positions back. Consecutive intervals of one sequence overlap by one fragment less one base: then
every place where a fragment can start belongs to exactly one interval, and the coverage does not
sink at the cuts. Nothing depends on the number of cores: the same N gives the same chunks.

``join`` reads the chunks' SAM files in order and writes one with the positions and the header of
the whole reference.
"""

from __future__ import annotations

import argparse
import gzip
import io
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

LINE_LENGTH = 80
# Everything but the four bases becomes N, where the simulator draws no reads.
TO_BASES = dict.fromkeys(range(128), "N") | {ord(letter): letter.upper() for letter in "ACGTacgt"}


class ChunkError(Exception):
    """Something the user can fix; the message says what and where."""


@dataclass(frozen=True)
class Interval:
    """A piece of a sequence: 0-based, half-open."""

    name: str
    start: int
    end: int

    @property
    def label(self) -> str:
        """The record's name in the chunk."""
        return f"{self.name}:{self.start + 1}-{self.end}"


def open_text(path: Path) -> TextIO:
    """Open a plain or gzip-compressed text file."""
    with path.open("rb") as probe:
        compressed = probe.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rt") if compressed else path.open("rt")


def read_fasta(path: Path) -> Iterator[tuple[str, str]]:
    """Yield name (up to the first blank) and bases (A, C, G, T, N) of every sequence.

    Raises:
        ChunkError: the file does not start with a header, has an unnamed or repeated sequence.
    """
    name: str | None = None
    parts: list[str] = []
    seen: set[str] = set()
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            line = line.strip()
            if line.startswith(">"):
                if name is not None:
                    yield name, "".join(parts)
                words = line[1:].split()
                if not words or words[0] in seen:
                    problem = f"sequence name '{words[0]}' is there twice" if words else "no name"
                    raise ChunkError(f"{path}, line {number}: {problem}; fix the header")
                name, parts = words[0], []
                seen.add(name)
            elif line:
                if name is None:
                    raise ChunkError(f"{path}, line {number}: no '>' header: is this FASTA?")
                parts.append(line.translate(TO_BASES))
    if name is not None:
        yield name, "".join(parts)


def plan(lengths: dict[str, int], chunks: int, fragment: int) -> list[list[Interval]]:
    """Divide the places where fragments can start evenly over ``chunks`` lists of intervals.

    Args:
        lengths: bases of each sequence, in the order of the file.
        chunks: how many chunks.
        fragment: mean fragment length in bases; sequences shorter than it give no reads.

    Returns:
        One list of intervals a chunk; a list is empty where there are fewer places than chunks.
    """
    starts = {name: max(0, length - fragment + 1) for name, length in lengths.items()}
    total = sum(starts.values())
    bounds = [total * chunk // chunks for chunk in range(chunks + 1)]
    result: list[list[Interval]] = [[] for _ in range(chunks)]
    before = 0
    for name, count in starts.items():
        for chunk in range(chunks):
            first = max(bounds[chunk], before) - before
            last = min(bounds[chunk + 1], before + count) - before
            if first < last:
                result[chunk].append(Interval(name, first, last + fragment - 1))
        before += count
    return result


def cut(reference: Path, chunks: int, fragment: int, directory: Path) -> None:
    """Write ``directory/0.fasta`` and so on.

    Raises:
        ChunkError: no sequence is as long as a fragment, or there are more chunks than places.
    """
    sequences = dict(read_fasta(reference))
    try:
        cut_sequences(sequences, chunks, fragment, directory)
    except ChunkError as error:
        raise ChunkError(f"{reference}: {error}") from None


def cut_sequences(sequences: dict[str, str], chunks: int, fragment: int, directory: Path) -> None:
    """As ``cut``, for sequences in memory, by name."""
    intervals = plan({n: len(bases) for n, bases in sequences.items()}, chunks, fragment)
    if not all(intervals):
        raise ChunkError(
            f"too short for {chunks} chunk(s) of fragments of {fragment} bases; "
            "take fewer chunks or a smaller insert size"
        )
    directory.mkdir(parents=True, exist_ok=True)
    for chunk, pieces in enumerate(intervals):
        with (directory / f"{chunk}.fasta").open("w", encoding="ascii") as out:
            for piece in pieces:
                bases = sequences[piece.name][piece.start : piece.end]
                out.write(f">{piece.label}\n")
                out.writelines(
                    bases[i : i + LINE_LENGTH] + "\n" for i in range(0, len(bases), LINE_LENGTH)
                )


def moved(line: str, path: Path, number: int) -> str:
    """Return one SAM record with RNAME, POS, RNEXT and PNEXT in the whole reference."""
    fields = line.split("\t", 8)
    name, _, span = fields[2].rpartition(":")
    start, _, _ = span.partition("-")
    if len(fields) != 9 or not name or not start.isdigit() or fields[6] not in {"=", "*"}:
        raise ChunkError(f"{path}, line {number}: not a record of a chunk")
    offset = int(start) - 1
    fields[2] = name
    fields[3] = str(int(fields[3]) + offset)
    if fields[6] == "=":
        fields[7] = str(int(fields[7]) + offset)
    return "\t".join(fields)


def join(reference: Path, parts: Iterable[Path], out: TextIO) -> None:
    """Write one SAM for the chunks' SAM files, taken in the given order.

    Raises:
        ChunkError: a record's reference is not an interval of ``cut``.
    """
    out.write("@HD\tVN:1.6\tSO:unsorted\n")
    for name, bases in read_fasta(reference):
        out.write(f"@SQ\tSN:{name}\tLN:{len(bases)}\n")
    for path in parts:
        with path.open("rt") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.startswith("@"):
                    out.write(moved(line, path, number))


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    cutter = commands.add_parser("cut", help="cut a reference into chunks")
    cutter.add_argument("--chunks", type=int, required=True, help="how many chunks")
    cutter.add_argument("--fragment", type=int, required=True, help="mean fragment length, bases")
    cutter.add_argument("reference", type=Path, help="FASTA, plain or gzip")
    cutter.add_argument("directory", type=Path, help="where 0.fasta, 1.fasta ... go")
    joiner = commands.add_parser("join", help="join the chunks' SAM files")
    joiner.add_argument("--output", type=Path, required=True, help="SAM; .gz is compressed")
    joiner.add_argument("reference", type=Path, help="the same FASTA as for cut")
    joiner.add_argument("sam", type=Path, nargs="+", help="SAM files in the order of the chunks")
    options = parser.parse_args(arguments)
    try:
        if options.command == "cut":
            if options.chunks < 1 or options.fragment < 1:
                parser.error("--chunks and --fragment must be at least 1")
            cut(options.reference, options.chunks, options.fragment, options.directory)
        elif options.output.suffix == ".gz":
            # Without a name and a time stamp: the same bytes in each run.
            with (
                options.output.open("wb") as file,
                gzip.GzipFile("", "wb", 1, file, mtime=0) as packed,
                io.TextIOWrapper(packed) as out,
            ):
                join(options.reference, options.sam, out)
        else:
            with options.output.open("w") as out:
                join(options.reference, options.sam, out)
    except (EOFError, zlib.error) as error:
        print(f"simulation_chunks.py: {options.reference}: {error}", file=sys.stderr)
        return 2
    except (ChunkError, OSError) as error:
        print(f"simulation_chunks.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
