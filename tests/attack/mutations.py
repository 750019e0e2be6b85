"""Changed inputs: what is bad is refused, what is still good is used whole."""

from __future__ import annotations

import gzip
import random
import re
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from ngsgpu.io.compress.zstd import library as zstd
from tests.attack.arena import Arena, Case, Verdict
from tests.attack.databases import is_of_database
from tests.attack.judge import difference, files_below
from tests.attack.world import COMMANDS, zstd_frames
from tests.support.io.alignments import read_bam
from tests.support.io.oracle import Bad, read_fasta, read_fastq
from tests.support.io.records import Record, bgzf

_COMMANDS: Final = [
    command
    for command in COMMANDS
    if not all(is_of_database(Path(name)) for name in command.inputs)
]
_DAMAGED: Final = (OSError, EOFError, ValueError, struct.error, zlib.error, zstd.ZstdError)
_TOKENS: Final = (
    b"\0", b"\n", b"\r\n", b"@", b">", b"+", b"\t", b" ", b"N", b"-1", b"99999999999999999999",
    b"\xff", b"\xef\xbb\xbf", b"{", b"]", b'"', b"/1", b"|", b"\x1b[31m", b"1e999", b"NaN",
)  # fmt: skip
_READS: Final = ("r1.", "r2.", "x1.", "x2.", "p.")
"""Beginnings of the names of read files."""
_OFTEN_CHECKED: Final = 0.1


def mutate(data: bytes, source: random.Random) -> bytes:
    """One to three random changes: bytes, lines, blocks, ends."""
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        data = source.choice(_CHANGES)(data, source)
    return data


def _flip(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + bytes([source.randrange(256)]) + data[at + 1 :]


def _insert(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + source.choice(_TOKENS) + data[at:]


def _drop(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    return data[:at] + data[at + source.choice((1, 2, 50, 5000)) :]


def _repeat(data: bytes, source: random.Random) -> bytes:
    at = source.randrange(len(data) + 1)
    piece = data[at : at + source.choice((1, 50, 5000))]
    return data[:at] + piece + data[at:]


def _cut(data: bytes, source: random.Random) -> bytes:
    return data[: source.randrange(len(data) + 1)]


def _swap_lines(data: bytes, source: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if len(lines) > 1:
        a, b = source.randrange(len(lines)), source.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
    return b"".join(lines)


def _drop_line(data: bytes, source: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if lines:
        del lines[source.randrange(len(lines))]
    return b"".join(lines)


def _empty(data: bytes, source: random.Random) -> bytes:
    return source.choice((b"", b"\n", b"\n\n"))


def _carriage_returns(data: bytes, source: random.Random) -> bytes:
    return data.replace(b"\n", b"\r\n")


_CHANGES: Final[list[Callable[[bytes, random.Random], bytes]]] = [
    _flip, _flip, _insert, _insert, _drop, _repeat, _cut, _swap_lines, _drop_line, _empty,
    _carriage_returns,
]  # fmt: skip


_PACKED: Final[dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]]] = {
    ".gz": (gzip.decompress, lambda data: gzip.compress(data, 1)),
    ".zst": (zstd.decompress, zstd_frames),
    ".bam": (gzip.decompress, lambda data: bgzf(data, 5000)),
}


def attack(arena: Arena, name: str, source: random.Random) -> Verdict:
    """Change one input of one command and run it."""
    command = source.choice(_COMMANDS)
    with arena.case(command, name) as case:
        path = _chosen_input(case, source)
        data = path.read_bytes()
        if path.suffix in _PACKED and source.random() < 0.5:
            unpack, pack = _PACKED[path.suffix]
            path.write_bytes(pack(mutate(unpack(data), source)))
        else:
            path.write_bytes(mutate(data, source))
        what = f"{command.name}: {path.relative_to(case.folder)} changed"
        case.note_files()
        ending = case.run()
        if ending.status == 0:
            problem = _used_whole(case) or _same_again(case, source)
            return Verdict(what, "used", problem)
        allowed = (1, 2) if command.name.startswith("report") else (2,)
        problem = case.refused(ending, allowed)
        return Verdict(what, "refused", problem and f"{problem}: {ending.stderr[-300:]}")


def _chosen_input(case: Case, source: random.Random) -> Path:
    paths = [path for path in sorted((case.folder / "in").rglob("*")) if path.is_file()]
    return source.choice(
        [path for path in paths if not is_of_database(path.relative_to(case.folder / "in"))]
    )


def _same_again(case: Case, source: random.Random) -> str:
    """Now and then the same with another number of threads, which must change nothing."""
    if source.random() > _OFTEN_CHECKED or case.command.name.startswith("db "):
        return ""  # a database that replaces another one has other names of files
    before = dict(files_below(case.folder / "out"))
    arguments = case.command.placed(case.folder)
    if "-t" in arguments:
        arguments[arguments.index("-t") + 1] = "3"
    if status := case.run(arguments).status:
        return f"exit status {status} with other threads"
    after = dict(files_below(case.folder / "out"))
    for name in case.alone.volatile & set(after):
        before.pop(name, None)
        after.pop(name)
    return difference(before, after)


def _used_whole(case: Case) -> str:
    """Whether every record of the inputs is in the outputs, by slow readers of our own."""
    if found := difference(case.inputs, files_below(case.folder / "in")):
        return f"changed in in/: {found}"
    if found := difference({}, files_below(case.folder / "tmp")):
        return f"left in tmp/: {found}"
    missing = set(case.alone.files) - set(files_below(case.folder / "out"))
    if missing and case.command.name not in {
        "db build",
        "db build stats",
        "db add",
        "classify sheet",
        "report of taxa",
    }:
        return f"no {sorted(missing)[0]}"
    name = case.command.name
    check = _CHECKS.get(name, _CHECKS.get(name.split()[0]))
    return check(case) if check else ""


def records_of(path: Path) -> list[Record] | str:
    """All records of a file, or why it is none that may be used."""
    data = path.read_bytes()
    try:
        if data[:2] == b"\x1f\x8b":
            text = gzip.decompress(data)
            data = read_bam(data) if text.startswith(b"BAM\1") else text
        elif data[:4] == b"\x28\xb5\x2f\xfd":
            data = zstd.decompress(data)
    except _DAMAGED as error:
        return f"a damaged file was used ({error})"
    records = read_fasta(data) if data.startswith(b">") else read_fastq(data)
    return f"a bad record was used ({records})" if isinstance(records, Bad) else records


def _inputs(case: Case) -> list[list[Record]] | str:
    names = [
        name for name in case.command.inputs if name.startswith(("r1.", "r2.", "x1.", "x2.", "p."))
    ]
    found = []
    for name in names:
        records = records_of(case.folder / "in" / name)
        if isinstance(records, str):
            return records
        found.append(records)
    return found


def _outputs(case: Case, *names: str) -> list[Record]:
    found: list[Record] = []
    for name in names:
        for path in (case.folder / "out").glob(f"{name}.fq*"):
            records = records_of(path)
            assert not isinstance(records, str), records
            found += records
    return found


def _corrected(case: Case) -> str:
    inputs = _inputs(case)
    if isinstance(inputs, str):
        return inputs
    for mate, records in enumerate(inputs, 1):
        written = _outputs(case, f"c{mate}")
        if [(r.header, r.qualities, len(r.bases)) for r in records] != [
            (r.header, r.qualities, len(r.bases)) for r in written
        ]:
            return f"records of mate {mate} are not those of the input"
    return ""


def _pairs_kept(case: Case) -> str:
    inputs = _inputs(case)
    if isinstance(inputs, str):
        return inputs
    first = {"merge": ("m", "u1"), "extend": ("e", "e1")}[case.command.name.split()[0]]
    if case.command.name.endswith("gz"):
        first = first[:1]
    count = len(_outputs(case, *first))
    if count > len(inputs[0]) or (len(first) == 2 and count != len(inputs[0])):
        return f"{count} pairs written of {len(inputs[0])}"
    return ""


def _sampled_kmers_counted(case: Case) -> str:
    inputs = _inputs(case)
    if isinstance(inputs, str):
        return inputs
    return _wrong_total(case.folder / "out" / "kmers.tsv", _known_kmers(inputs[:1]))


def _kmers_counted(case: Case) -> str:
    inputs = _inputs(case)
    if isinstance(inputs, str):
        return inputs
    return _wrong_total(case.folder / "out" / "kmers.histo", _known_kmers(inputs))


def _known_kmers(inputs: list[list[Record]]) -> int:
    pieces = [piece for mate in inputs for record in mate
              for piece in re.split(b"[^ACGT]", record.bases.upper())]  # fmt: skip
    return sum(max(0, len(piece) - 20) for piece in pieces)


def _wrong_total(histogram: Path, expected: int) -> str:
    rows = [line.split() for line in histogram.read_text().splitlines() if line[:1].isdigit()]
    counted = sum(int(row[0]) * int(row[1]) for row in rows)
    return "" if counted == expected else f"{counted} k-mers counted of {expected}"


def _classified(case: Case) -> str:
    calls = case.folder / "out" / "calls.tsv"
    inputs = _inputs(case)
    if isinstance(inputs, str):
        return inputs
    if not calls.exists() or not inputs:
        return ""
    lines = [line for line in calls.read_bytes().split(b"\n") if line and not line.startswith(b"#")]
    lines = lines[1:] if lines and lines[0].startswith(b"read\t") else lines
    return "" if len(lines) == len(inputs[0]) else f"{len(lines)} calls of {len(inputs[0])} reads"


def _extracted(case: Case) -> str:
    """Whether a pair is written for each call of a taxon, and there is a call for each."""
    (table,) = (case.folder / "in" / name for name in ("calls.tsv", "named.txt")
                if name in case.command.inputs)  # fmt: skip
    rows = [line.rstrip(b"\r").split(b"\t") for line in table.read_bytes().split(b"\n")]
    rows = [row for row in rows if row != [b""] and row[0] != b"read"]
    taxids = [row[1] if table.suffix == ".tsv" else row[2].rpartition(b" ")[2][:-1] for row in rows]
    inputs = _inputs(case)
    if isinstance(inputs, str):
        return inputs
    if len(rows) != len(inputs[0]) or len({len(row) for row in rows}) > 1:
        return f"{len(rows)} calls, some cut, of {len(inputs[0])} reads"
    expected = sum(int(taxid) in (1, 2, 10, 11, 12) for taxid in taxids)
    written = len(_outputs(case, "e1"))
    return "" if written == expected else f"{written} pairs extracted of {expected}"


def _database_whole(case: Case) -> str:
    status = case.run_verify()
    return "" if status == 0 else f"db verify: {status}"


_CHECKS: Final[dict[str, Callable[[Case], str]]] = {
    "correct": _corrected,
    "merge": _pairs_kept,
    "extend": _pairs_kept,
    "kmers spectrum": _sampled_kmers_counted,
    "kmers count": _kmers_counted,
    "classify": _classified,
    "extract": _extracted,
    "db": _database_whole,
}
