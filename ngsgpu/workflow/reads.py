"""Samples, lanes and mates of folders, recognised by the names of files.

`ngsgpu.io.names` says how a name is read. Names that can be read in two ways are refused, never
guessed; what is not taken is listed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ngsgpu.errors import InputError
from ngsgpu.io.inputs import holds_pairs
from ngsgpu.io.names import ALIGNED, FASTQ, ReadName, left_over_of, read_name, sample_name, stem_of
from ngsgpu.io.paths import Paths, listed

_OTHER_READS = re.compile(
    r"\.(?:sam|sra|(?:fastq|fq|fasta|fa|fna)(?:\.[a-z]\w*)?|ora|fast5|pod5"
    r"|tar(?:\.\w+)?|t[gbx]z)$|(?<!_fastqc)\.zip$",
    re.IGNORECASE,
)
"""Endings of files that may hold reads."""
_NUMBERED = re.compile(r"(?P<before>.*)[._]\d+")
_UNDETERMINED = re.compile(r"Undetermined(?:_|$)", re.IGNORECASE)
_MATE_LIKE = re.compile(r"(?<![A-Za-z0-9])(?:(?P<first>[1F])|[2R])(?![A-Za-z0-9])", re.IGNORECASE)
_SHOWN = 3
"""Number of files named in a message."""
_RENAME = "rename the files, put others elsewhere, or write config/samples.tsv yourself"
INDEX, UNDETERMINED = "index reads", "undetermined reads"
LEFT_OVER = "reads without mates, or UMIs, of samples with pairs"
WITH_FASTQ = "BAM or CRAM of samples with FASTQ"
NO_FASTQ = "neither FASTQ (.fastq or .fq; plain, .gz, .bz2, .xz or .zst) nor BAM or CRAM"


@dataclass(frozen=True)
class Lane:
    """A row of the sample sheet.

    Attributes:
        sample: name of the sample.
        first: file of first mates or single-end reads.
        second: file of second mates, or the same of pairs in BAM or CRAM; None for single-end
            reads.
    """

    sample: str
    first: Path
    second: Path | None = None


@dataclass
class Found:
    """What folders hold.

    Attributes:
        lanes: in the order of samples, lanes and files.
        passed_over: files that were not taken, by the reason.
        unpaired: first mates by their names, of samples without any second mate beside others that
            have them: taken as single-end reads.
        like_mates: files of single-end samples whose names differ in a 1 and a 2 only.
        renamed: names of samples as the files have them, by those in the sheet that differ.
        of_folders: samples that are named after their folders, by the name that their files share.
        several: samples with lanes of equal names in several folders.
    """

    lanes: list[Lane] = field(default_factory=list)
    passed_over: dict[str, list[Path]] = field(default_factory=dict)
    unpaired: list[Path] = field(default_factory=list)
    like_mates: list[Path] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    of_folders: dict[str, list[str]] = field(default_factory=dict)
    several: list[str] = field(default_factory=list)

    @property
    def samples(self) -> dict[str, list[Lane]]:
        """The lanes of each sample."""
        samples: dict[str, list[Lane]] = {}
        for lane in self.lanes:
            samples.setdefault(lane.sample, []).append(lane)
        return samples


def find_reads(folders: Paths, *, single_end: bool = False) -> Found:
    """Find the reads of folders and their subfolders, and the samples they belong to.

    Lanes of a sample may be in several folders; mates are in one.

    Args:
        folders: searched recursively; hidden files and folders are skipped.
        single_end: every file is a sample of single-end reads, whatever its name.

    Raises:
        InputError: there are no reads, or names are ambiguous or lack their mates.
    """
    found = Found()
    folders = listed(folders)
    files: dict[Path, list[Path]] = {}
    seen: set[Path] = set()
    for folder in map(Path, folders):
        there = list(_files(folder))
        # One folder may lie in another.
        files[folder] = [path for path in there if path not in seen]
        seen |= {*there}
        if not any(_has_reads(path) for path in there):
            other = [path for path in there if _OTHER_READS.search(path.name)]
            raise InputError(
                folder,
                "no reads in it (names end in .bam, .cram, .fastq or .fq, these two also with .gz, "
                ".bz2, .xz or .zst)" + (f"; there is {_listed(other)}" if other else ""),
                "name the folder of the reads",
            )
    names: dict[Path, list[ReadName]] = {}
    for folder, own in files.items():
        taken = _taken(own, found.passed_over, single_end=single_end)
        names[folder] = [_name_of(path, single_end=single_end) for path in taken]
    _tell_folders_apart(names, found)
    for folder, read in names.items():
        lanes, unpaired = _pair(folder, read)
        found.lanes += lanes
        found.unpaired += unpaired
    every = [name for read in names.values() for name in read]
    _check_names(folders[0] if folders else ".", every)
    _check_kinds(found)
    found.lanes.sort(key=lambda lane: (lane.sample, str(lane.first)))
    given = {sample_name(name.sample): name.sample for name in every}
    found.renamed = {name: raw for name, raw in sorted(given.items()) if name != raw}
    if not single_end:
        found.like_mates = _like_mates(name.path for name in every if not name.mate)
    return found


def _files(folder: Path) -> Iterator[Path]:
    if not folder.is_dir():
        cause = "this is not a directory" if folder.exists() else "there is no such directory"
        raise InputError(folder, cause, "name the folder of the FASTQ files")
    for parent, folders, files in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(parent).resolve() / name


def _taken(
    files: Iterable[Path], passed_over: dict[str, list[Path]], *, single_end: bool
) -> list[Path]:
    """The files of reads; the others by the reason why not."""
    taken = []
    left_over: list[tuple[Path, str]] = []
    for path in files:
        if not _has_reads(path):
            if _OTHER_READS.search(path.name):
                passed_over.setdefault(NO_FASTQ, []).append(path)
        elif single_end or ALIGNED.search(path.name):
            taken.append(path)
        elif _UNDETERMINED.match(path.name):
            passed_over.setdefault(UNDETERMINED, []).append(path)
        elif read_name(path).kind == "I":
            passed_over.setdefault(INDEX, []).append(path)
        elif base := left_over_of(path):
            left_over.append((path, base))
        else:
            taken.append(path)
    read = [read_name(path) for path in taken if FASTQ.search(path.name)]
    of_fastq, second = ({own.sample for own in read if own.mate in of} for of in ((0, 1, 2), (2,)))
    for path in [own for own in taken if read_name(own).sample in of_fastq]:
        if not FASTQ.search(path.name):
            taken.remove(path)
            passed_over.setdefault(WITH_FASTQ, []).append(path)
    for path, base in left_over:
        of = read_name(path.with_name(f"{base}_R1.fastq")).sample
        place = passed_over.setdefault(LEFT_OVER, []) if of in second else taken
        place.append(path)
    return taken


def _has_reads(path: Path) -> bool:
    return bool(FASTQ.search(path.name) or ALIGNED.search(path.name))


def _name_of(path: Path, *, single_end: bool) -> ReadName:
    """A file's name; one of alignments has no mates in its name."""
    name = read_name(path)
    is_whole = single_end or (name.mate and ALIGNED.search(path.name))
    return ReadName(path, stem_of(path)) if is_whole else name


def _tell_folders_apart(names: dict[Path, list[ReadName]], found: Found) -> None:
    """Name samples of equal names after their folders, where each has a single one.

    Illumina's numbers and lanes in names say that several folders have lanes of one sample.

    Raises:
        InputError: it is not clear whether equal names are of one sample.
    """
    places: dict[str, dict[Path, list[ReadName]]] = {}
    inside: dict[Path, set[str]] = {}
    for name in (name for read in names.values() for name in read):
        places.setdefault(name.sample, {}).setdefault(name.path.parent, []).append(name)
        inside.setdefault(name.path.parent, set()).add(name.sample)
    own_names: dict[Path, str] = {}
    for sample, own in places.items():
        if len(own) == 1:
            continue
        lanes = [{(name.number, name.lane) for name in files} for files in own.values()]
        if all(("", "") not in there for there in lanes):
            found.several += [sample] * (len(set().union(*lanes)) < sum(map(len, lanes)))
            continue
        folders = [*own]
        beside = [place for place in inside if place.parent == folders[0].parent]
        if sorted(beside) != sorted(folders) or any(len(inside[place]) > 1 for place in folders):
            first, second = (str(files[0].path) for files in [*own.values()][:2])
            raise InputError(
                first,
                f"{second} has the same name: lanes of one sample, or two samples?",
                "put lanes into the names (A_L001_1, A_L002_1), or the sample's name",
            )
        own_names |= {place: place.name for place in folders}
        found.of_folders[sample] = sorted(place.name for place in folders)
    for read in names.values():
        read[:] = [
            replace(name, sample=own_names.get(name.path.parent, name.sample)) for name in read
        ]


def _like_mates(paths: Iterable[Path]) -> list[Path]:
    """Files whose names are equal but for a 1 and a 2, or F and R."""
    pairs: dict[tuple[Path, str], dict[bool, Path]] = {}
    for path in paths:
        stem = stem_of(path)
        for match in _MATE_LIKE.finditer(stem):
            kind = "n" if match[0] in "12" else "l"
            key = f"{stem[: match.start()]}/{kind}/{stem[match.end() :]}"
            pairs.setdefault((path.parent, key), {})[match["first"] is not None] = path
    both = [own for own in pairs.values() if len(own) == 2]
    return sorted({path for own in both for path in own.values()})


def _pair(folder: str | Path, names: Iterable[ReadName]) -> tuple[list[Lane], list[Path]]:
    """Put mates together; returns the lanes, and first mates that were taken as single-end reads.

    Raises:
        InputError: a mate is missing, or which are mates is not clear.
    """
    pairs: dict[tuple[Path, str, str, str, str], dict[int, ReadName]] = {}
    for name in names:
        own = pairs.setdefault(name.pair, {})
        if name.mate in own:
            cause = f"both could be the same mates: {_listed([own[name.mate].path, name.path])}"
            raise InputError(folder, cause, _RENAME)
        own[name.mate] = name
    for own in pairs.values():
        if 3 in own:
            cause = f"three mates of one lane: {_listed([own[i].path for i in sorted(own)])}"
            remedy = "one of them, often R2, has UMIs: put it elsewhere, and name second mates R2"
            raise InputError(folder, cause, remedy)
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
            path = own[0].path
            has_mates = bool(ALIGNED.search(path.name)) and holds_pairs(path)
            lanes.append(Lane(sample_name(own[0].sample), path, path if has_mates else None))
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


def _check_numbers(folder: str | Path, pairs: Iterable[dict[int, ReadName]]) -> None:
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


def _check_names(folder: str | Path, names: Sequence[ReadName]) -> None:
    """Refuse two samples that would be one: cleaned alike, or of one Illumina name."""
    raw: dict[str, ReadName] = {}
    numbered: dict[tuple[Path, str], ReadName] = {}
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


def _listed(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(path.name for path in paths[:_SHOWN]) + more
