"""The stages that read reads, as commands, and reads that give each of them something to do."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

INSERT = 160


@dataclass(frozen=True)
class Stage:
    """A command, without the options that all of them have.

    Attributes:
        words: the command; ``{host}`` and ``{database}`` stand for paths.
        outputs: the names of what it writes for pairs in two files, by their options; those of
            mates that are written in one file where they are read from one come last.
        interleaved: the option for pairs in one file; none: they are single reads to it.
        joined: whether it then writes the mates of its outputs for both to the first of these.
        streams: whether it reads standard input and named pipes.
        streams_on_gpu: whether it reads and writes streams on a GPU as well.
    """

    words: str
    outputs: Mapping[str, str]
    interleaved: str = "--interleaved"
    joined: bool = False
    streams: bool = True
    streams_on_gpu: bool = True

    @property
    def files(self) -> list[str]:
        """The outputs that are files."""
        return [name for name in self.outputs.values() if name != "counts"]

    def compressed(self, suffix: str) -> Stage:
        """The same with names of outputs that ask for compression."""
        names = {
            option: f"{name}{suffix}" if name in self.files else name
            for option, name in self.outputs.items()
        }
        return replace(self, outputs=names)

    def command(
        self, paths: Mapping[str, Path], inputs: Sequence[object], out: Path, backend: str
    ) -> list[str]:
        """The words of a run that reads some files, with their options, and writes to a folder."""
        words = self.words.format(**paths).split()
        written = {option: out / name for option, name in self.outputs.items()}
        if self.joined and self.interleaved in inputs:
            written = {
                option: path for option, path in written.items() if not path.name.startswith("2.fq")
            }
        files = [str(word) for pair in written.items() for word in pair]
        return [*words, "--quiet", *map(str, inputs), *files, "--backend", backend]


MATES = {"-o": "1.fq", "-O": "2.fq"}
REST = {"--remaining1": "1.fq", "--remaining2": "2.fq"}
UNMERGED = {"--unmerged1": "1.fq", "--unmerged2": "2.fq"}

STAGES = {
    "trim": Stage(
        "trim --cut_tail --cut_tail_mean_quality 28 -q 25",
        {**MATES, "--failed-out": "failed.fq"},
        "--interleaved-in",
        joined=True,
        streams_on_gpu=False,
    ),
    "correct": Stage("correct --coverage 40", MATES, joined=True),
    "spectrum": Stage("correct --method spectrum", MATES, joined=True),
    "merge": Stage(
        "merge", {"-o": "merged.fq", **UNMERGED}, "--interleaved-in", streams_on_gpu=False
    ),
    "deplete": Stage("deplete -d {host}", MATES, joined=True, streams_on_gpu=False),
    "rename": Stage(
        "deplete -d {host} --rename --keep-host", MATES, joined=True, streams_on_gpu=False
    ),
    "extend": Stage(
        f"extend --outward --insert-size {INSERT} --insert-sd 10", {"-o": "extended.fq", **REST}
    ),
    "kmers": Stage(
        # Of streams it does not know how many k-mers there are, and takes all that it may.
        "kmers count -k 21 --gpu-memory 1G",
        {"-o": "counts", "--histo": "histogram"},
        "",
    ),
    "classify": Stage(
        "classify -d {database}",
        {
            "-o": "calls.tsv",
            "--report": "report",
            "--kraken-reads": "kraken",
            "--abundance": "abundance",
            "--coverage": "coverage",
        },
    ),
    "sort": Stage(
        "classify -d {database}",
        {"--classified-out": "1.fq", "--classified-out2": "2.fq", "-o": "calls.tsv"},
        joined=True,
    ),
    "assemble": Stage("assemble", {"-o": "contigs.fa"}, streams=False),
}
"""The stages by their names in the tests."""


def make_pairs(seed: int = 3, count: int = 350) -> tuple[str, list[Record], list[Record]]:
    """A genome, and mates of fragments of it, with 0.7 % of errors in bases of low quality.

    Some fragments are so short that mates overlap, some of other bases.
    """
    rng = random.Random(seed)
    genome = "".join(rng.choices("ACGT", k=1600))
    sides: tuple[list[Record], list[Record]] = ([], [])
    for number in range(count):
        size = max(110, round(rng.gauss(INSERT, 10))) + 60 * (number % 9 == 4)
        begin = rng.randrange(len(genome) - size)
        fragment = genome[begin : begin + size]
        if number % 25 == 7:
            fragment = "".join(rng.choices("ACGT", k=size))
        if rng.random() < 0.5:
            fragment = reverse_complement(fragment)
        for mate, strand in enumerate((fragment, reverse_complement(fragment)), 1):
            bases, qualities = list(strand[:90]), [rng.choice(b"5?I") for _ in range(90)]
            for at in range(90):
                if rng.random() < 0.007:
                    bases[at], qualities[at] = rng.choice("ACGTN"), ord("(")
            header = f"read{number}/{mate}".encode()
            sides[mate - 1].append(Record(header, "".join(bases).encode(), bytes(qualities)))
    return genome, *sides


def alternating(first: Sequence[Record], second: Sequence[Record]) -> list[Record]:
    """The mates in turn."""
    return [record for pair in zip(first, second, strict=True) for record in pair]


def write_mates(folder: Path, *sides: Sequence[Record]) -> list[Path]:
    """Files of the mates, or of pairs in one file."""
    folder.mkdir(parents=True)
    return [write(folder / f"reads{mate}.fq", fastq(own)) for mate, own in enumerate(sides, 1)]


def named(stage: Stage, paths: Sequence[object]) -> list[object]:
    """Files of reads with the options that name them: mates in two, or pairs in one."""
    if len(paths) == 2:
        return ["-i", paths[0], "-I", paths[1]]
    return ["-i", paths[0], *([stage.interleaved] if stage.interleaved else [])]
