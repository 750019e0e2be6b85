"""Merging where overlaps are ambiguous or molecules differ: lengths, errors, qualities.

    python -m benchmarks.accuracy.merging --profile HS25 --profile PREFIX --seed 1 -o out.json
    python -m benchmarks.accuracy.merging --sets tandem --programs ngsgpu vsearch -o out.json

Pairs of 2 x 150 bases with ART's errors, without insertions and deletions; where a fragment is
shorter, adapters follow it. The sets:

=========  ==========================================================================
tandem     fragments of 160 to 290 bases of tandem repeats within random sequence
diverged   the same, but one in 25 bases of each copy of a unit is another
mixed      the same, but nine in ten fragments without a repeat
library    a deep mutational library: three codons of each molecule are replaced
random     fragments of 60 to 290 bases of random sequence
shifted+N  the same, but the qualities are stated higher by N (or lower) than ART has it
genome     fragments of 160 to 290 bases of --genome
apart      fragments of 310 to 600 bases of it: all that are merged are wrong
repeat     fragments of 310 to 450 bases whose reads both end in one tandem repeat, likewise
skewed     fragments of 310 to 600 bases of low complexity, most of them two letters, likewise
=========  ==========================================================================

A merged read is right if it is as long as its fragment. Its errors are compared with those that its
qualities state. ``--profile`` names a profile of ART, or the prefix of two files of one
(PREFIXR1.txt, PREFIXR2.txt).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.adapters import ADAPTERS
from benchmarks.accuracy.art import draw_pairs
from benchmarks.accuracy.depletion import LETTERS, Bases, complement, sequences, substituted
from benchmarks.harness.document import head, write_document
from benchmarks.peers.commands import COMMANDS, HIDDEN, Work
from ngsgpu.io.text.reader import read_batches

LENGTH, PAIRS, GENE, HIGHEST = 150, 10_000, 240, 41
UNITS, REPEATS, FLANKS = (2, 41), (40, 251), (100, 301)
DIVERGENCE = 0.04
"""Lengths of repeat units, of repeats, and of the random sequence between them."""
SHIFTS = (-15, -8, 8, 15)
GENOMIC = ("genome", "apart")
ENDS = (12, 101)
"""Bases that each read has of a repeat in which both end."""
SKEW = 0.2
"""Concentration of base frequencies (Dirichlet) in sequence of low complexity."""
SHIFTED = tuple(f"shifted{shift:+d}" for shift in SHIFTS)
SETS = ("tandem", "diverged", "mixed", "library", "random", "repeat", "skewed", *SHIFTED, *GENOMIC)
Fragments = list[Bases]


def random_bases(count: int, rng: np.random.Generator) -> Bases:
    """Bases, all equally frequent."""
    return LETTERS[rng.integers(0, 4, count)]


def pieces(
    genome: Bases, shortest: int, pairs: int, rng: np.random.Generator, longest: int = 290
) -> Fragments:
    """Fragments of either strand of a genome."""
    sizes = rng.integers(shortest, longest + 1, pairs)
    starts = rng.integers(0, len(genome) - sizes)
    found = [genome[start : start + size] for start, size in zip(starts, sizes, strict=True)]
    return [own if rng.random() < 0.5 else complement(own) for own in found]


def tandem_repeats(rng: np.random.Generator, divergence: float, repeats: int = 2000) -> Bases:
    """Random sequence with tandem repeats."""
    parts = []
    for _ in range(repeats):
        unit = random_bases(int(rng.integers(*UNITS)), rng)
        parts += [random_bases(int(rng.integers(*FLANKS)), rng)]
        parts += [substituted(np.resize(unit, int(rng.integers(*REPEATS))), divergence, rng)]
    return np.concatenate(parts)


def library(pairs: int, rng: np.random.Generator) -> Fragments:
    """Molecules of one gene, three codons of each replaced."""
    gene = random_bases(GENE, rng)
    found = []
    for _ in range(pairs):
        molecule = gene.copy()
        for codon in rng.choice(GENE // 3, 3, replace=False):
            molecule[3 * codon : 3 * codon + 3] = random_bases(3, rng)
        found.append(molecule)
    return found


def repeats_between(pairs: int, rng: np.random.Generator) -> Fragments:
    """Fragments longer than both reads, which end in one tandem repeat."""
    found = []
    for _ in range(pairs):
        first, second = (int(own) for own in rng.integers(*ENDS, 2))
        gap = int(rng.integers(10, 151))
        unit = random_bases(int(rng.integers(*UNITS)), rng)
        flanks = [random_bases(LENGTH - own, rng) for own in (first, second)]
        found.append(np.concatenate((flanks[0], np.resize(unit, first + gap + second), flanks[1])))
    return found


def skewed(pairs: int, rng: np.random.Generator) -> Fragments:
    """Fragments longer than both reads, each of few letters."""
    return [
        rng.choice(LETTERS, int(rng.integers(310, 601)), p=rng.dirichlet(np.full(4, SKEW)))
        for _ in range(pairs)
    ]


def fragments_of(
    name: str, pairs: int, rng: np.random.Generator, genome: Bases | None = None
) -> Fragments:
    """The fragments of a set."""
    if name in ("library", "repeat", "skewed"):
        made = {"library": library, "repeat": repeats_between, "skewed": skewed}[name]
        return made(pairs, rng)
    if name in GENOMIC:
        assert genome is not None
        return pieces(genome, *((160, pairs, rng) if name == "genome" else (310, pairs, rng, 600)))
    if name in ("tandem", "diverged"):
        repeats = tandem_repeats(rng, DIVERGENCE if name == "diverged" else 0)
        return pieces(repeats, 160, pairs, rng)
    if name == "mixed":
        parts = pieces(tandem_repeats(rng, 0), 160, pairs // 10, rng)
        parts += pieces(random_bases(1_000_000, rng), 160, pairs - len(parts), rng)
        return [parts[i] for i in rng.permutation(pairs)]
    return pieces(random_bases(1_000_000, rng), 60, pairs, rng)


def sequence(fragments: Fragments, profile: str, seed: int, shift: int, folder: Path) -> None:
    """Write r1.fq and r2.fq of fragments, as ART reads both ends of an amplicon.

    Args:
        fragments: which; the names of reads are their numbers.
        profile: of ART, or a prefix of two files.
        seed: of errors.
        shift: added to the qualities written.
        folder: where to write.
    """
    tails = [np.frombuffer(own, dtype=np.uint8) for own in ADAPTERS]
    with (folder / "ends.fa").open("wb") as file:
        for number, own in enumerate(fragments):
            ends = [
                np.concatenate((strand, tail, np.full(LENGTH, ord("G"), np.uint8)))[:LENGTH]
                for strand, tail in zip((own, complement(own)), tails, strict=True)
            ]
            both = np.concatenate((ends[0], complement(ends[1])))
            file.write(b">%d\n%s\n" % (number, both.tobytes()))
    draw_pairs(profile, "ends.fa", "art", folder, "-amp", "-l", LENGTH, "-f", 1, "-rs", seed)
    for mate in (1, 2):
        with (folder / f"r{mate}.fq").open("wb") as file:
            for name, bases, scores in records(folder / f"art{mate}.fq"):
                stated = np.clip(scores + shift, 2, 41) + 33 if shift else scores + 33
                text = stated.astype(np.uint8).tobytes()
                file.write(b"@%d/%d\n%s\n+\n%s\n" % (name, mate, bases.tobytes(), text))


def records(path: Path) -> Iterator[tuple[int, Bases, NDArray[np.int64]]]:
    """Numbers, bases and scores of the reads of a file."""
    for batch in read_batches(path):
        assert batch.qual_start is not None
        places = (batch.seq_start, batch.seq_end, batch.qual_start)
        for name, start, end, scores in zip(batch.names(), *places, strict=True):
            stated = batch.data[scores : scores + end - start].astype(np.int64) - 33
            yield int(re.split(rb"\D", name)[0]), batch.data[start:end], stated


def judged(path: Path, fragments: Fragments) -> dict[str, Any]:
    """Merged reads of right and wrong lengths; errors and stated ones in those of right length."""
    right = wrong = 0
    bases, errors = np.zeros(94, dtype=np.int64), np.zeros(94, dtype=np.int64)
    for number, read, scores in records(path):
        true = fragments[number]
        if len(read) != len(true):
            wrong += 1
            continue
        right += 1
        np.add.at(bases, scores, 1)
        np.add.at(errors, scores[read != true], 1)
    rates = 10 ** (-np.arange(94) / 10)
    total = max(1, int(bases.sum()))
    often = bases > total / 100
    off = -10 * np.log10((errors + 0.5) / np.maximum(1, bases)) - np.arange(94)
    off[HIGHEST:] = np.minimum(off[HIGHEST:], 0)  # better than the highest quality written is right
    off = np.abs(off)
    return {
        "right": right,
        "wrong": wrong,
        "errors_per_million": round(1e6 * int(errors.sum()) / total, 1),
        "stated_per_million": round(1e6 * float((bases * rates).sum()) / total, 1),
        "phred_off": round(float((off * bases)[often].sum() / max(1, bases[often].sum())), 2),
    }


def ours(options: str, folder: Path) -> dict[str, Any]:
    """Merge by ngsgpu to merged.fq; what the run says of pairs and qualities."""
    files = "-i r1.fq -I r2.fq -o merged.fq --stats stats.json"
    command = f"{sys.executable} -m ngsgpu merge -q --backend cpu {files} {options}"
    subprocess.run(command.split(), cwd=folder, check=True)
    stats = json.loads((folder / "stats.json").read_text())
    return {"undecided": stats["pairs"]["undecided"]}


def merged(program: str, fragments: Fragments, folder: Path) -> dict[str, Any]:
    """What a program, or NAME=OPTIONS of ngsgpu, makes of the pairs in a folder."""
    name, _, options = program.partition("=")
    if name == "ngsgpu" or options:
        found = ours(options, folder)
        return judged(folder / "merged.fq", fragments) | found
    job = COMMANDS["merge"][name].job(Work(0, 0, 2, "cpu"))
    path = os.pathsep.join([os.environ["PATH"], *HIDDEN])
    done = subprocess.run(
        job.command, shell=True, cwd=folder, check=False, capture_output=True,
        env=os.environ | {"PATH": path},
    )  # fmt: skip
    if done.returncode:  # some refuse qualities above 41
        return {"failed": done.stderr.decode(errors="replace").strip().splitlines()[-1:]}
    return judged(folder / job.outputs[0], fragments)


def main() -> None:
    """Measure all sets with all profiles and seeds, and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--sets", nargs="+", choices=SETS, default=SETS)
    add("--profile", action="append", help="of ART (HS25)")
    add("--seed", action="append", type=int, help="(1)")
    add("--pairs", type=int, default=PAIRS)
    add("--programs", nargs="+", default=["ngsgpu"], help="names, or NAME=OPTIONS of ngsgpu")
    add("-o", "--output", type=Path, required=True)
    add("--genome", type=Path, help="FASTA for the sets of a genome, which are left out otherwise")
    given = parser.parse_args()
    genome = np.concatenate(sequences(given.genome)) if given.genome else None
    if genome is not None:
        genome = genome[np.isin(genome, LETTERS)]
    results = []
    for profile in given.profile or ["HS25"]:
        for seed in given.seed or [1]:
            for name in given.sets:
                if name in GENOMIC and genome is None:
                    continue
                shift = int(name.removeprefix("shifted")) if "shifted" in name else 0
                fragments = fragments_of(name, given.pairs, np.random.default_rng(seed), genome)
                with tempfile.TemporaryDirectory() as place:
                    folder = Path(place)
                    sequence(fragments, profile, seed, shift, folder)
                    found = {own: merged(own, fragments, folder) for own in given.programs}
                case = {"set": name, "profile": profile.rpartition("/")[2], "seed": seed}
                results.append(case | {"programs": found})
                print(json.dumps(results[-1]), file=sys.stderr)
    write_document(head() | {"pairs": given.pairs, "results": results}, given.output)


if __name__ == "__main__":
    main()
