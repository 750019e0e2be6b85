#!/usr/bin/env python3
"""Fetch real reads whose truth is known, check them, and put them into a folder.

    fetch_truth.py --list
    fetch_truth.py zymo --folder DATA                   DATA/zymo/reads_1.fastq.gz and so on
    fetch_truth.py zymo --folder DATA --excerpt 10000   their first records

``config/reproduce/truth.tsv`` lists the files: where they are, their checksums, and what they hold.
Archives state checksums themselves, and are asked for them. Files that are there are left alone. An
excerpt is not compared with the checksum of the file, and leaves out archives (tar, zip).

``--mirror`` takes every address from another place, a server or a folder that has a folder for each
host: of https://HOST/PATH it reads MIRROR/HOST/PATH.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import json
import sys
import tarfile
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import quote, unquote, urlsplit

if TYPE_CHECKING or sys.version_info < (3, 14):
    from backports import zstd
else:
    from compression import zstd

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from ngsgpu.errors import NgsgpuError  # noqa: E402
from ngsgpu.io.text.reader import read_batches  # noqa: E402

MANIFEST: Final = ROOT / "config" / "reproduce" / "truth.tsv"
PIECE: Final = 1 << 20
ENA: Final = (
    "https://www.ebi.ac.uk/ena/portal/api/filereport"
    "?accession={}&result=read_run&fields=fastq_ftp,fastq_md5&format=json"
)
ZENODO: Final = "https://zenodo.org/api/records/{}"
FIGSHARE: Final = "https://api.figshare.com/v2/articles/{}/files?page_size=1000"


class FetchError(Exception):
    """Something the user can act on; the message says what."""


@dataclass(frozen=True)
class Entry:
    """A line of the manifest; its comment says what the columns are."""

    set: str
    file: str
    source: str
    checksum: str
    holds: str


@dataclass(frozen=True)
class Found:
    """A file of an archive.

    Attributes:
        name: its name there.
        address: where it is.
        checksum: as the archive states it: the method, a colon, the value; or empty.
    """

    name: str
    address: str
    checksum: str


def manifest(path: Path = MANIFEST) -> list[Entry]:
    """The lines of the manifest."""
    lines = [line for line in path.read_text().splitlines() if line and line[0] != "#"]
    return [Entry(**row) for row in csv.DictReader(lines, delimiter="\t")]


class Web:
    """Opens addresses, or what stands for them in a mirror."""

    def __init__(self, mirror: str) -> None:
        if mirror and "://" not in mirror:
            mirror = Path(mirror).resolve().as_uri()
        self._mirror = mirror.rstrip("/")

    def place(self, address: str) -> str:
        """Where an address is read from."""
        if not self._mirror:
            return address
        parts = urlsplit(address)
        query = f"?{parts.query}" if parts.query else ""
        return f"{self._mirror}/{parts.netloc}{quote(parts.path + query)}"

    def local(self, address: str) -> str:
        """The same as programs of others take it: a path if it is a file."""
        place = self.place(address)
        return unquote(urlsplit(place).path) if place.startswith("file:") else place

    @contextmanager
    def open(self, address: str) -> Iterator[BinaryIO]:
        """A stream of what is there.

        Raises:
            FetchError: it cannot be read.
        """
        try:
            with urllib.request.urlopen(self.place(address), timeout=120) as stream:
                yield stream
        except (urllib.error.URLError, OSError, EOFError) as error:
            raise FetchError(f"{address}: {error}; is there a network connection?") from error

    def json(self, address: str) -> Any:
        """The JSON that is there."""
        with self.open(address) as stream:
            try:
                return json.load(stream)
            except ValueError as error:
                raise FetchError(f"{address}: this is not JSON: {error}") from error


def located(entry: Entry, web: Web) -> list[Found]:
    """The files of an entry, with checksums where somebody states them.

    Raises:
        FetchError: an archive does not have them.
    """
    kind, _, rest = entry.source.partition(":")
    if kind in ("http", "https"):
        return [Found(entry.file, entry.source, _stated(entry, web))]
    name, _, part = rest.partition("/")
    if kind == "ena":
        found = _of_ena(name, part, web)
    elif kind == "zenodo":
        files = web.json(ZENODO.format(name))["files"]
        found = [Found(f["key"], f["links"]["self"], f["checksum"]) for f in files]
        found = [one for one in found if one.name == part]
    elif kind == "figshare":
        files = web.json(FIGSHARE.format(name))
        found = [Found(f["name"], f["download_url"], f"md5:{f['computed_md5']}") for f in files]
    else:
        raise FetchError(f"{entry.source!r} in {MANIFEST.name} is no source")
    if not found:
        raise FetchError(f"{entry.source} is not in the archive any more")
    return found


def _of_ena(run: str, mate: str, web: Web) -> list[Found]:
    files = []
    for row in web.json(ENA.format(run)):
        pairs = zip(row["fastq_ftp"].split(";"), row["fastq_md5"].split(";"), strict=True)
        files += [Found(Path(at).name, f"https://{at}", f"md5:{md5}") for at, md5 in pairs]
    return [one for one in files if one.name == f"{run}_{mate}.fastq.gz"]


def _stated(entry: Entry, web: Web) -> str:
    """The checksum of a file that is no archive's: the manifest's, or that of a list of sums."""
    kind, _, address = entry.checksum.partition(":")
    if kind != "list":
        return "" if entry.checksum == "-" else entry.checksum
    with web.open(address) as stream:
        lines = stream.read().decode().splitlines()
    name = Path(urlsplit(entry.source).path).name
    for words in map(str.split, lines):
        if len(words) == 2 and Path(words[1].lstrip("*")).name == name:
            return f"md5:{words[0]}"
    raise FetchError(f"{address} has no checksum of {name}")


def download(found: Found, target: Path, web: Web) -> None:
    """Write a file, which appears whole and checked or not at all.

    Raises:
        FetchError: it cannot be read, or has another checksum.
    """
    method, _, expected = found.checksum.partition(":")
    digest = hashlib.new(method or "md5")
    with web.open(found.address) as stream, target.open("wb") as file:
        while piece := stream.read(PIECE):
            digest.update(piece)
            file.write(piece)
    if expected and digest.hexdigest() != expected:
        raise FetchError(
            f"{found.address}: its {method} is {digest.hexdigest()}, {expected} was expected: it "
            "was damaged on the way, or is another file by now"
        )


def excerpt(found: Found, target: Path, records: int, holds: str, web: Web) -> None:
    """Write the first records of a file, compressed as it is."""
    ending = Path(urlsplit(found.address).path).suffix
    with web.open(found.address) as stream:
        opened: Any = stream
        if ending == ".gz":
            opened = gzip.GzipFile(fileobj=stream)
        elif ending == ".zst":
            opened = zstd.ZstdFile(stream)
        try:
            data = b"".join(_first(opened, records, holds))
        except (EOFError, zlib.error, zstd.ZstdError) as error:
            raise FetchError(f"{found.address}: {error}") from error
    if ending == ".gz":
        data = gzip.compress(data)
    elif ending == ".zst":
        data = zstd.compress(data)
    target.write_bytes(data)


def _first(lines: Iterable[bytes], records: int, holds: str) -> Iterator[bytes]:
    """The lines of the first records: four of FASTQ, one of a table behind its header."""
    left = records
    for number, line in enumerate(lines):
        if holds == "fastq":
            left -= number % 4 == 0
        else:
            left -= line.startswith(b">") if holds == "fasta" else not line.startswith(b"#")
        if left < 0:
            return
        yield line


def pairs_of_region(entry: Entry, targets: Sequence[Path], most: int, web: Web) -> None:
    """Write the pairs of a region of a BAM file that others keep, in the order of second reads.

    Reads whose mate lies elsewhere are left out.

    Raises:
        FetchError: it cannot be read, or there are none.
    """
    address, _, region = entry.source.removeprefix("bam:").partition("#")
    written = 0
    with ExitStack() as stack:
        files = [stack.enter_context(gzip.open(path, "wt", 4)) for path in targets]
        try:
            for pair in islice(_pairs(web.local(address), region), most or None):
                for file, text in zip(files, pair, strict=True):
                    file.write(text)
                written += 1
        except (OSError, ValueError) as error:
            raise FetchError(f"{address}: {error}") from error
    if not written:
        raise FetchError(f"{address} has no pairs at {region}")


def _pairs(path: str, region: str) -> Iterator[tuple[str, str]]:
    """Records of first and second mates whose primary alignments lie in a region."""
    import pysam

    waiting: dict[str, str] = {}
    with pysam.AlignmentFile(path) as bam:
        for read in bam.fetch(region=region):
            qualities = read.get_forward_qualities()
            if read.flag & 0x900 or not read.is_paired or qualities is None:
                continue
            name = str(read.query_name)
            scores = bytes(33 + quality for quality in qualities).decode()
            text = f"@{name}\n{read.get_forward_sequence()}\n+\n{scores}\n"
            mate = waiting.pop(name, None)
            if mate is None:
                waiting[name] = text
            else:
                yield (text, mate) if read.is_read1 else (mate, text)


def check(path: Path, name: str, holds: str) -> None:
    """See that a file holds what it should.

    Args:
        path: the file.
        name: for messages.
        holds: as in the manifest.

    Raises:
        FetchError: it does not.
    """
    kind, _, columns = holds.partition(":")
    try:
        if kind in ("fastq", "fasta"):
            batch = next(read_batches(path), None)
            good = batch is not None and (batch.qual_start is not None) == (kind == "fastq")
        elif kind == "columns":
            with (gzip.open if name.endswith(".gz") else open)(path, "rt") as file:
                header = next((line for line in file if not line.startswith("##")), "")
            good = header.rstrip("\n").split("\t") == columns.split(",")
        elif kind == "tar":
            with tarfile.open(path) as tar:
                good = tar.next() is not None
        else:
            good = kind == "-" or zipfile.is_zipfile(path)
    except (NgsgpuError, OSError, EOFError, tarfile.TarError) as error:
        raise FetchError(f"{name} does not hold {holds}: {error}") from error
    if not good:
        raise FetchError(f"{name} does not hold {holds}")


def fetch(entry: Entry, folder: Path, records: int, web: Web) -> None:
    """Fetch the files of an entry that are not there yet.

    Args:
        entry: of the manifest.
        folder: of the set.
        records: of an excerpt; 0: all.
        web: opens addresses.
    """
    if records and entry.holds in ("tar", "zip", "-"):
        print(f"{entry.file}: no excerpt of this", flush=True)
        return
    if entry.source.startswith("bam:"):
        targets = [folder / name for name in entry.file.split(",")]
        if all(target.exists() for target in targets):
            return
        with _parts(targets) as parts:
            pairs_of_region(entry, parts, records, web)
            for part, target in zip(parts, targets, strict=True):
                check(part, target.name, entry.holds)
        return
    for found in located(entry, web):
        target = folder / entry.file
        target = target / found.name if entry.file.endswith("/") else target
        if target.exists():
            continue
        with _parts([target]) as (part,):
            if records:
                excerpt(found, part, records, entry.holds, web)
            else:
                download(found, part, web)
            check(part, target.name, entry.holds)
        print(f"{target}: {found.checksum or 'no checksum stated'}", flush=True)


@contextmanager
def _parts(targets: Sequence[Path]) -> Iterator[list[Path]]:
    """Files to write to, which become the targets if all goes well, and else are removed."""
    parts = [target.with_name(f".{target.name}.part") for target in targets]
    try:
        for part in parts:
            part.parent.mkdir(parents=True, exist_ok=True)
        yield parts
        for part, target in zip(parts, targets, strict=True):
            part.replace(target)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 1 if a file cannot be had."""
    entries = manifest()
    names = list(dict.fromkeys(entry.set for entry in entries))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("set", nargs="*", help=f"{', '.join(names)}")
    parser.add_argument("--folder", type=Path, help="each set gets a folder in it")
    parser.add_argument("--excerpt", type=int, default=0, metavar="N", help="the first N records")
    parser.add_argument("--mirror", default="", help="a server or folder with a folder a host")
    parser.add_argument("--list", action="store_true", help="show the files and their sources")
    settings = parser.parse_args(arguments)
    if unknown := set(settings.set) - set(names):
        parser.error(f"there is no set {', '.join(sorted(unknown))}")
    wanted = [entry for entry in entries if entry.set in (settings.set or names)]
    if settings.list:
        for entry in wanted:
            print(f"{entry.set}\t{entry.file}\t{entry.source}")
        return 0
    if not settings.set or settings.folder is None or settings.excerpt < 0:
        parser.error("name sets and --folder, or --list")
    try:
        for entry in wanted:
            fetch(entry, settings.folder / entry.set, settings.excerpt, Web(settings.mirror))
    except (FetchError, OSError, KeyError, TypeError) as error:
        print(f"fetch_truth.py: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
