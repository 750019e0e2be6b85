#!/usr/bin/env python3
"""Put the output of another program into the order of the reads that it was given.

Correctors drop and trim reads, or write them in another order, and the comparison with the truth
wants all reads, whole and in order. A read that was dropped comes back as it was; a read that was
trimmed gets its ends back as they were, at the place where it fits its original best. So what a
program leaves out counts as not corrected. ``--order`` is for merged pairs: those that are there,
in the order of the pairs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

Record = tuple[bytes, bytes, bytes]
"""Name, bases and qualities."""


class ReadError(Exception):
    """A file is not FASTQ, or its reads are not those of the original."""


def records(path: Path) -> Iterator[Record]:
    """Reads of a FASTQ file of four lines a read."""
    with path.open("rb") as file:
        while lines := list(islice(file, 4)):
            if len(lines) < 4 or not lines[0].startswith(b"@"):
                raise ReadError(f"{path}: this is not FASTQ of four lines a read")
            name, bases, _, qualities = (line.rstrip(b"\r\n") for line in lines)
            yield name[1:].split()[0], bases, qualities


def whole(raw: Record, corrected: Record) -> Record:
    """The corrected read with the ends that were trimmed, as long as the original."""
    name, before, qualities = raw
    after, given = corrected[1], corrected[2]
    room = len(before) - len(after)
    if room < 0:
        raise ReadError(f"read {name.decode()} became longer than it was")
    if room == 0:
        return name, after, given

    def differences(shift: int) -> int:
        return sum(old != new for old, new in zip(before[shift:], after, strict=False))

    shift = min(range(room + 1), key=differences)
    end = shift + len(after)
    return (
        name,
        before[:shift] + after + before[end:],
        qualities[:shift] + given + qualities[end:],
    )


class Corrected:
    """Corrected reads, in any order, by name; read no further than needed."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._source = (record for path in paths for record in records(path))
        self._waiting: dict[bytes, Record] = {}

    def take(self, name: bytes) -> Record | None:
        """The read of a name; None if it was dropped."""
        if name in self._waiting:
            return self._waiting.pop(name)
        for record in self._source:
            if record[0] == name:
                return record
            self._waiting[record[0]] = record
        return None


def of_mate(paths: list[Path], mate: int, mates: int) -> list[Path]:
    """Files in which a mate is looked for: with one file a mate, its own; otherwise all."""
    return [paths[mate]] if mates == len(paths) == 2 else paths


def restore(raw: list[Path], given: list[Path], targets: list[Path]) -> int:
    """Write all reads, whole and in order; returns how many were dropped."""
    dropped = 0
    for mate, (path, target) in enumerate(zip(raw, targets, strict=True)):
        corrected = Corrected(of_mate(given, mate, len(raw)))
        with target.open("wb") as out:
            for record in records(path):
                found = corrected.take(record[0])
                dropped += found is None
                name, bases, qualities = record if found is None else whole(record, found)
                out.write(b"@%s\n%s\n+\n%s\n" % (name, bases, qualities))
    return dropped


def pair_name(name: bytes) -> bytes:
    """Name of a pair: a read's without its mate."""
    return name[:-2] if name[-2:] in (b"/1", b"/2") else name


def order(raw: Path, merged: Path, target: Path) -> tuple[int, int]:
    """Write merged pairs in the order of the pairs; returns the numbers of pairs and of these."""
    places = {pair_name(record[0]): number for number, record in enumerate(records(raw))}
    found = [(places.get(pair_name(record[0]), -1), record) for record in records(merged)]
    if any(place < 0 for place, _ in found):
        raise ReadError(f"{merged}: a merged read has the name of no pair")
    with target.open("wb") as out:
        for _, (name, bases, qualities) in sorted(found, key=lambda one: one[0]):
            out.write(b"@%s\n%s\n+\n%s\n" % (pair_name(name), bases, qualities))
    return len(places), len(found)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--raw", type=Path, nargs="+", required=True, help="the reads, one file a mate")
    add("--restored", type=Path, nargs="+", required=True, help="files to write, one a file of raw")
    add("--order", action="store_true", help="merged pairs: put them in order, and add none")
    add("--count", type=Path, help="with --order: file for the numbers, as JSON")
    add("outputs", type=Path, nargs="+", help="what the program wrote")
    options = parser.parse_args(arguments)
    try:
        if options.order:
            pairs, merged = order(options.raw[0], options.outputs[0], options.restored[0])
            numbers = {"pairs": {"pairs": pairs, "merged": merged}}
            options.count.write_text(json.dumps(numbers) + "\n")
        else:
            dropped = restore(options.raw, options.outputs, options.restored)
            print(f"{dropped} reads were dropped and count as not corrected", file=sys.stderr)
    except (OSError, ReadError) as error:
        print(f"restore_reads.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
