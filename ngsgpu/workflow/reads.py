"""Samples, lanes and mates, recognised by the names of FASTQ files.

A name is read as sample, lane and mate: ``A_S1_L001_R1_001`` (Illumina's bcl2fastq and BCL
Convert), ``A_R1``, ``A.R1``, ``A-R1``, ``A_1`` or ``A.1``, with ``_L001`` or ``_lane1`` before it,
and with ``_val_1`` of Trim Galore behind it. A name without a mate is a file of single-end reads.
Names that can be read in two ways are refused, never guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ngsgpu.errors import InputError
from ngsgpu.io.paths import Paths, listed

_FASTQ = re.compile(r"\.(?:fastq|fq)(?:\.gz)?$", re.IGNORECASE)
_TRIM_GALORE = re.compile(r"(?<=[._-])(R?([12])(?:_\d{3})?)_val_\2$", re.IGNORECASE)
_ILLUMINA = re.compile(
    r"(?P<before>.+)_S(?P<number>\d+)(?=_L\d{3}_|_[RI]\d_\d{3}$)(?:_L(?P<lane>\d{3}))?"
    r"_(?P<kind>[RI])(?P<mate>[12])(?:_\d{3})?"
)
_R1 = re.compile(
    r"(?:(?P<before>.*)[._-])?(?P<kind>R)(?P<mate>[12])(?:_\d{3}$|(?P<after>(?:[._-].*)?))",
    re.IGNORECASE,
)
_1 = re.compile(r"(?:(?P<before>.*)[._])?(?P<mate>[12])")
_LANE = re.compile(r"(?:(?P<before>.*)[._-])?(?:L(?P<lane>\d{3})|lane_?(?P<number>\d+))", re.I)
_NUMBERED = re.compile(r"(?P<before>.*)[._]\d+")
_UNDETERMINED = re.compile(r"Undetermined(?:_|$)", re.IGNORECASE)
_SHOWN = 3
"""Number of files named in a message."""
_RENAME = "rename the files, put others elsewhere, or write config/samples.tsv yourself"


@dataclass(frozen=True)
class Lane:
    """A row of the sample sheet.

    Attributes:
        sample: name of the sample.
        first: file of first mates or single-end reads.
        second: file of second mates; None for single-end reads.
    """

    sample: str
    first: Path
    second: Path | None = None


@dataclass
class Found:
    """What folders hold.

    Attributes:
        lanes: in the order of samples, lanes and files.
        passed_over: files that are no sample's: index reads and undetermined ones.
        unpaired: first mates by their names, of samples without any second mate beside others that
            have them: taken as single-end reads.
    """

    lanes: list[Lane] = field(default_factory=list)
    passed_over: list[Path] = field(default_factory=list)
    unpaired: list[Path] = field(default_factory=list)

    @property
    def samples(self) -> dict[str, list[Lane]]:
        """The lanes of each sample."""
        samples: dict[str, list[Lane]] = {}
        for lane in self.lanes:
            samples.setdefault(lane.sample, []).append(lane)
        return samples


@dataclass(frozen=True)
class _Name:
    """A file's name as it was read; ``mate`` is 0 without a mark, ``kind`` is how it was marked."""

    path: Path
    sample: str
    mate: int = 0
    kind: str = ""
    number: str = ""
    lane: str = ""

    @property
    def pair(self) -> tuple[Path, str, str, str, str]:
        """The same for both mates of a pair."""
        return self.path.parent, self.sample, self.number, self.lane, self.kind


def find_reads(folders: Paths, *, single_end: bool = False) -> Found:
    """Find the FASTQ files of folders and their subfolders, and the samples they belong to.

    Lanes of a sample may be in several folders; mates are in one.

    Args:
        folders: searched recursively; hidden files and folders are skipped.
        single_end: every file is a sample of single-end reads, whatever its name.

    Raises:
        InputError: there are no reads, or names are ambiguous or lack their mates.
    """
    folders = listed(folders)
    found = Found()
    names: list[_Name] = []
    for folder in folders:
        files = list(_fastq_files(Path(folder)))
        read = [_whole_name(path) if single_end else _read_name(path) for path in files]
        own = [name for name in read if name]
        found.passed_over += [path for path, name in zip(files, read, strict=True) if not name]
        if not own:
            raise InputError(
                folder,
                "no reads in it (names end in .fastq or .fq, or .fastq.gz or .fq.gz)",
                "name the folder of the FASTQ files",
            )
        lanes, unpaired = _pair(folder, own)
        found.lanes += lanes
        found.unpaired += unpaired
        names += own
    _check_names(folders[0] if folders else ".", names)
    _check_kinds(found)
    found.lanes.sort(key=lambda lane: (lane.sample, str(lane.first)))
    return found


def _fastq_files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        cause = "this is not a directory" if folder.exists() else "there is no such directory"
        raise InputError(folder, cause, "name the folder of the FASTQ files")
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if _FASTQ.search(name) and not name.startswith("."):
                yield Path(parent).resolve() / name


def _whole_name(path: Path) -> _Name:
    return _Name(path, _FASTQ.sub("", path.name))


def _read_name(path: Path) -> _Name | None:
    """Read a file's name; None if it is no sample's."""
    stem = _TRIM_GALORE.sub(r"\1", _FASTQ.sub("", path.name))
    match = next(filter(None, (kind.fullmatch(stem) for kind in (_ILLUMINA, _R1, _1))), None)
    parts = match.groupdict(default="") if match else {"before": stem}
    if parts.get("kind") == "I" or _UNDETERMINED.match(stem):
        return None
    lane = _LANE.fullmatch(parts["before"])
    return _Name(
        path,
        # A file that is named after its mate alone lies in the folder of its sample.
        ((lane["before"] or "") if lane else parts["before"]) + parts.get("after", "")
        or path.parent.name,
        mate=int(parts.get("mate", 0)),
        kind=parts.get("kind", "").upper(),
        number=parts.get("number", ""),
        lane=parts.get("lane") or (lane and (lane["lane"] or lane["number"])) or "",
    )


def _pair(folder: str | Path, names: Iterable[_Name]) -> tuple[list[Lane], list[Path]]:
    """Put mates together; returns the lanes, and first mates that were taken as single-end reads.

    Raises:
        InputError: a mate is missing, or which are mates is not clear.
    """
    pairs: dict[tuple[Path, str, str, str, str], dict[int, _Name]] = {}
    for name in names:
        own = pairs.setdefault(name.pair, {})
        if name.mate in own:
            cause = f"both could be the same mates: {_listed([own[name.mate].path, name.path])}"
            raise InputError(folder, cause, _RENAME)
        own[name.mate] = name
    _check_numbers(folder, pairs.values())
    # Runs of single-end reads have names with R1, too.
    single_run = not any(2 in own for own in pairs.values())
    # Of these samples mates are missing; others with first mates only were sequenced so.
    paired = {own[2].sample for own in pairs.values() if 2 in own}
    lanes: list[Lane] = []
    alone: list[Path] = []
    unpaired: list[Path] = []
    for own in pairs.values():
        if 0 in own:
            lanes.append(Lane(sample_name(own[0].sample), own[0].path))
        if 1 in own and 2 in own:
            lanes.append(Lane(sample_name(own[1].sample), own[1].path, own[2].path))
        elif 1 in own and own[1].sample not in paired and (own[1].kind or not single_run):
            lanes.append(Lane(sample_name(own[1].sample), own[1].path))
            unpaired += [own[1].path] * (not single_run)
        else:
            alone += [name.path for mate, name in own.items() if mate]
    if alone:
        raise InputError(
            folder,
            f"no mates found for {_listed(alone)}",
            "add their mates, or use --single-end if no file of this folder has any",
        )
    return lanes, unpaired


def _check_numbers(folder: str | Path, pairs: Iterable[dict[int, _Name]]) -> None:
    """Refuse ``x_1`` and ``x_2`` beside ``x_3``: mates or replicates?"""
    bare = {own[1].pair[:2] for own in pairs if 1 in own and not own[1].kind}
    for own in pairs:
        if 0 not in own or not (match := _NUMBERED.fullmatch(own[0].sample)):
            continue
        if (own[0].path.parent, match["before"]) in bare:
            name = match["before"]
            raise InputError(
                folder,
                f"{own[0].path.name} is beside {name}_1 and {name}_2, which then may be mates or "
                "single-end samples",
                f"{_RENAME}; --single-end takes every file as a sample",
            )


def _check_names(folder: str | Path, names: Sequence[_Name]) -> None:
    """Refuse two samples that would be one: cleaned alike, or of one Illumina name."""
    raw: dict[str, _Name] = {}
    numbered: dict[tuple[Path, str], _Name] = {}
    for name in names:
        same = raw.setdefault(sample_name(name.sample), name)
        run = numbered.setdefault((name.path.parent, name.sample), name)
        other = same if same.sample != name.sample else run
        if other.sample != name.sample or other.number != name.number:
            cause = f"two samples would have one name: {_listed([other.path, name.path])}"
            raise InputError(folder, cause, _RENAME)


def _check_kinds(found: Found) -> None:
    for lanes in found.samples.values():
        single = [lane.first for lane in lanes if lane.second is None]
        if single and len(single) < len(lanes):
            paired = next(lane.first for lane in lanes if lane.second is not None)
            cause = f"single-end reads of a sample with pairs such as {paired.name}"
            raise InputError(single[0], cause, "rename the file, or put it elsewhere")


def sample_name(text: str) -> str:
    """A sample's name as sheets allow it: letters, digits, ``.``, ``_`` and ``-``."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", text).lstrip("._-") or "sample"


def _listed(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(path.name for path in paths[:_SHOWN]) + more
