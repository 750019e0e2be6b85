"""Every command on a few made reads, so that Numba compiles the CPU kernels they use.

Numba compiles a kernel for the types it is called with, which only a run knows. Each command runs
as users run it, in a separate process, since Numba compiles on one thread of a process.
"""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import tempfile
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ngsgpu import compiled
from ngsgpu.errors import UsageError, output_error
from ngsgpu.io.compress.reads.blocks import LEAST_BYTES
from ngsgpu.pool import map_all

_PAIRS: Final = "-i r1.fq -I r2.fq"
_COMMANDS: Final = (
    ("correct {pairs} -o c1.fq -O c2.fq", "extend -i c1.fq -I c2.fq -o e.fq --remaining1 x1.fq "
     "--remaining2 x2.fq", "evaluate kmers {pairs} --reference genome.fa -o c1.fq -O c2.fq"),
    ("extend {pairs} -o e2.fq.gz --insert-size 200 --insert-sd 30 --outward --include-remaining",),
    ("correct -i one.fq.gz -o c3.fq.gz --quality-bits 2 --classic",),
    ("correct {pairs} -o c4.fq -O c5.fq --quality-bits 0 --mask",),
    ("correct {pairs} -o s1.fq -O s2.fq --method spectrum",),
    ("correct -i one.fq.gz -o s3.fq.gz --method spectrum --rule voting --filter bloom",),
    ("correct -i one.fq.gz -o s4.fq.gz --method spectrum --rule exhaustive --trim",),
    ("trim {pairs} -o t1.fq -O t2.fq", "trim -i many.fq -o t3.fq.gz"),
    ("merge {pairs} -o m1.fq --unmerged1 u1.fq --unmerged2 u2.fq",),
    ("merge {pairs} --flash-prefix m2 --flash",),
    ("deplete-index genome.fa -o host.idx", "deplete -d host.idx {pairs} -o d1.fq -O d2.fq",
     "deplete -d host.idx -i one.fq.gz -o d3.fq.gz",
     "deplete -d host.idx -i many.fq -o d4.fq.gz"),
    ("kmers count {pairs} -k 31 -o k1", "kmers count -i one.fq.gz -k 21 -o k2",
     "kmers count -i r1.fq -k 31 -o k3", "kmers histo -d k1 -o h.txt", "kmers dump -d k1 -o d.txt",
     "kmers query -d k1 -i genome.fa -o q.tsv", "kmers intersect k1 k3 -o k4",
     "kmers union k1 k3 -o k5", "kmers subtract k1 k3 -o k6",
     "unitigs -d k1 -o n1.fa --gfa n1.gfa"),
    ("kmers count -i one.bam -k 21 -o k7", "kmers count -i one.fq.gz -k 55 -o k8"),
    ("kmers spectrum -i r1.fq -I r2.fq -o spectrum.txt",),
    ("unitigs {pairs} -k 31 -o n2.fa",),
    ("assemble {pairs} -o a1.fa --gfa a1.gfa",),
    ("assemble -i genome.fa -o a2.fa --method euler",),
    ("db build genome.fa -d db --taxonomy tax --map tax/map.tsv",
     "classify -d db {pairs} -o calls.tsv --report report.txt",
     "classify -d db -i one.fq.gz -o o.tsv",
     "db add other.fa -d db --map tax/map.tsv", "db stats -d db"),
)  # fmt: skip
_START: Final = "import numba; from ngsgpu.__main__ import main_cli; main_cli()"
"""Numba first, so that small inputs are not left to Python (``jit.interpreted``)."""


def rehearse(threads: int, shared: bool) -> tuple[int, list[str]]:
    """Run every command, several at the same time, and keep the kernels they need.

    Args:
        threads: commands that run at the same time.
        shared: whether to compile for most processors and keep the kernels in the installation,
            for all its users, instead of for this processor in the user's cache.

    Returns:
        Number of commands, and a line for each that failed.

    Raises:
        OutputError: the installation may not be written to.
        UsageError: there is no code that runs on most processors of this kind.
    """
    from ngsgpu.jit_names import baseline_environment

    baseline = baseline_environment()
    if shared and not baseline:
        raise UsageError("--shared makes kernels for processors of kind x86-64 only; leave it out")
    with tempfile.TemporaryDirectory(prefix="ngsgpu-compile-") as made:
        folder = Path(made)
        environment = os.environ | {"NGSGPU_BACKEND": "cpu", "OMP_NUM_THREADS": "1"}
        if shared:
            environment |= baseline | {"NGSGPU_CACHE_DIR": str(folder / "cache")}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        _write_study(folder)
        failed = map_all(
            threads, lambda chain: _failures(chain, folder, environment), _COMMANDS, name="rehearse"
        )
        if shared:
            _share(folder / "cache" / "kernels")
    return sum(map(len, _COMMANDS)), [line for lines in failed for line in lines]


def _failures(chain: tuple[str, ...], folder: Path, environment: dict[str, str]) -> list[str]:
    """Run commands one after the other; a line for each that failed."""
    lines = []
    for command in chain:
        words = command.format(pairs=_PAIRS).split()
        done = subprocess.run(
            [sys.executable, "-c", _START, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            lines.append(f"ngsgpu {' '.join(words)}: {last}")
    return lines


def _share(kept: Path) -> None:
    """Move kernels into the installation, but those that are needed only to compile others."""
    from ngsgpu.jit_cache import INNER

    for path in kept.glob("cpu.*"):
        code = None if f"-{INNER}" in path.name else compiled.read(path)
        if code is not None:
            try:
                compiled.keep_prebuilt(path.name, code)
            except OSError as error:
                raise output_error(compiled.PREBUILT, error) from error


def _write_study(folder: Path) -> None:
    """Write two genomes, reads of the first and a taxonomy."""
    chance = random.Random(1)
    genome, other = ("".join(chance.choices("ACGT", k=6000)) for _ in range(2))
    (folder / "genome.fa").write_text(f">first\n{genome}\n")
    (folder / "other.fa").write_text(f">second\n{other}\n")
    with (folder / "r1.fq").open("w") as first, (folder / "r2.fq").open("w") as second:
        for name, mates in enumerate(_pairs(genome, chance, 800)):
            for file, mate in zip((first, second), mates, strict=True):
                file.write(f"@{name}\n{mate}\n+\n{'I' * len(mate)}\n")
    with gzip.open(folder / "one.fq.gz", "wt") as file:
        for name, (mate, _) in enumerate(_pairs(genome, chance, 800)):
            mate = mate[: chance.randrange(60, 101)]
            file.write(f"@{name}\n{mate}\n+\n{'I' * len(mate)}\n")
    _write_many(folder / "many.fq", chance)
    _write_bam(folder / "one.bam", genome)
    taxonomy = folder / "tax"
    taxonomy.mkdir()
    (taxonomy / "map.tsv").write_text("first\t3\nsecond\t4\n")
    ranks = {1: (1, "no rank"), 2: (1, "genus"), 3: (2, "species"), 4: (2, "species")}
    (taxonomy / "nodes.dmp").write_text(
        "".join(f"{own}\t|\t{up}\t|\t{rank}\t|\n" for own, (up, rank) in ranks.items())
    )
    (taxonomy / "names.dmp").write_text(
        "".join(f"{own}\t|\ttaxon {own}\t|\t\t|\tscientific name\t|\n" for own in ranks)
    )


def _write_many(path: Path, chance: random.Random) -> None:
    """Write reads of no genome, enough of them that .gz is made by its encoder for reads."""
    reads = ("".join(chance.choices("ACGT", k=100)) for _ in range(LEAST_BYTES // 200 + 1))
    path.write_text(
        "".join(f"@{number}\n{read}\n+\n{'I' * 100}\n" for number, read in enumerate(reads))
    )


def _write_bam(path: Path, genome: str) -> None:
    import pysam

    with pysam.AlignmentFile(str(path), "wb", header={"HD": {"VN": "1.6"}}) as file:
        for start in range(0, 5900, 10):
            read = pysam.AlignedSegment(file.header)
            read.query_name, read.flag = str(start), 4
            read.query_sequence = genome[start : start + 100]
            read.query_qualities = array("B", [40] * 100)
            file.write(read)


def _pairs(genome: str, chance: random.Random, count: int) -> Iterator[tuple[str, str]]:
    """Mates of 100 bases with an error in each hundred, of fragments of 110 to 290."""
    for _ in range(count):
        size = chance.randrange(110, 291)
        start = chance.randrange(len(genome) - size)
        fragment = genome[start : start + size]
        back = fragment[::-1].translate(str.maketrans("ACGT", "TGCA"))
        yield _read(fragment[:100], chance), _read(back[:100], chance)


def _read(bases: str, chance: random.Random) -> str:
    return "".join(chance.choice("ACGT") if chance.random() < 0.01 else base for base in bases)
