"""The commands that are measured, the reads they run on, and what tells if outputs agree."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.harness.datasets import MATES
from benchmarks.harness.forms import BAM, ENDINGS, PLAIN, Files, form_paths, read_zstd
from benchmarks.harness.measuring import Measurement, measure

CACHES: Final = {
    "NGSGPU_CACHE_DIR": "ngsgpu",
    "CUPY_CACHE_DIR": "cupy",
    "CUDA_CACHE_PATH": "cuda",
}
"""Where a user's compiled kernels are."""


@dataclass(frozen=True, slots=True)
class Job:
    """A command.

    Attributes:
        command: its words but for inputs, outputs and threads.
        outputs: options and names of its outputs; those that end in .fq are compressed as the
            input is.
        mated: whether its outputs are first and second mates: of pairs in one file it writes one.
        overlapping: whether it is measured on the pairs that overlap.
    """

    command: str
    outputs: tuple[tuple[str, str], ...]
    mated: bool = False
    overlapping: bool = False

    def outputs_of(self, form: str) -> list[tuple[str, str]]:
        """Options and names of the outputs from a form."""
        kept = self.outputs[:1] if self.mated and form == BAM else self.outputs
        return [
            (option, name + ENDINGS[form] if name.endswith(".fq") else name)
            for option, name in kept
        ]


_MATES: Final = (("-o", "out1.fq"), ("-O", "out2.fq"))
JOBS: Final = {
    "correct": Job("correct", _MATES, mated=True),
    "spectrum": Job("correct --method spectrum", _MATES, mated=True),
    "classify": Job("classify -d ../../database --sample reads", (("-o", "calls.tsv"),)),
    "kmers": Job("kmers count", (("--histo", "reads.histo"),)),
    "deplete": Job("deplete -d ../../host.idx", _MATES, mated=True),
    "merge": Job(
        "merge",
        (("-o", "merged.fq"), ("--unmerged1", "out1.fq"), ("--unmerged2", "out2.fq")),
        overlapping=True,
    ),
    "extend": Job(
        "extend --insert-size 300 --insert-sd 10",
        (("-o", "extended.fq"), ("--remaining1", "out1.fq"), ("--remaining2", "out2.fq")),
    ),
}
"""The last one for its start only."""


@dataclass(frozen=True, slots=True)
class Reads:
    """Pairs, and where they are.

    Attributes:
        files: plain first and second mates.
        forms: folder of the other forms.
        place: folder with a folder for each form, which leads to its files and in which commands
            on it run.
    """

    files: Files
    forms: Path
    place: Path

    def link(self, forms: Sequence[str]) -> None:
        """Make the folders of forms."""
        for form in forms:
            (self.place / form).mkdir(parents=True)
            for name, path in zip(self.names(form), self.paths(form), strict=True):
                (self.place / form / name).symlink_to(path.resolve())

    def paths(self, form: str) -> Files:
        """The files of a form."""
        return form_paths(form, self.files, self.forms)

    def names(self, form: str) -> list[str]:
        """What they are called where commands run."""
        return list(MATES) if form == PLAIN else [path.name for path in self.paths(form)]


@dataclass(frozen=True, slots=True)
class Runner:
    """How commands run.

    Attributes:
        options: of all commands.
        caches: folder of compiled kernels.
    """

    options: tuple[str, ...]
    caches: Path

    def command(self, job: Job, reads: Reads, form: str) -> list[str]:
        """Words of a command line."""
        inputs = zip(("-i", "-I"), reads.names(form), strict=False)
        named = [*inputs, *job.outputs_of(form)]
        words = [word for option_and_name in named for word in option_and_name]
        return ["ngsgpu", *job.command.split(), *words, *self.options]

    @property
    def environment(self) -> dict[str, str]:
        """Where kernels are kept."""
        return {name: str(self.caches / folder) for name, folder in CACHES.items()}

    def run(self, job: Job, reads: Reads, form: str) -> Measurement:
        """Run a command from a state in which no output is there."""
        remove_outputs(job, reads, form)
        # What was written before shall not go to the disk while this is measured.
        os.sync()
        command = self.command(job, reads, form)
        return measure(command, reads.place / form, environment=self.environment)


def remove_outputs(job: Job, reads: Reads, form: str) -> None:
    """Remove what a job wrote."""
    for _, name in job.outputs_of(form):
        (reads.place / form / name).unlink(missing_ok=True)


def content(path: Path) -> bytes:
    """What a file holds when it is decompressed."""
    if path.suffix == ENDINGS["zst"]:
        return read_zstd(path)
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def mates_of(interleaved: bytes) -> list[bytes]:
    """First and second mates of FASTQ text in which they alternate."""
    lines = interleaved.splitlines(keepends=True)
    return [
        b"".join(b"".join(lines[start : start + 4]) for start in range(first, len(lines), 8))
        for first in (0, 4)
    ]


def is_same(job: Job, reads: Reads, form: str) -> bool:
    """Whether the outputs from a form hold what those from plain files hold."""
    expected, found = (
        [content(reads.place / own / name) for _, name in job.outputs_of(own)]
        for own in (PLAIN, form)
    )
    if job.mated and form == BAM:
        found = mates_of(found[0])
    return found == expected
