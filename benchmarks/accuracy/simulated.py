"""Correction of simulated pairs, with unknown bases or of two strains, judged by their truth.

    python -m benchmarks.accuracy.simulated genome.fna.gz --unknown 1 2 -o out.json
    python -m benchmarks.accuracy.simulated genome.fna.gz --coverage 20 --strain 4 0.01 -o out.json

ART draws pairs of a piece of a genome without insertions and deletions. ``--unknown`` makes some
bases of each read N, of Q2; ``--strain`` adds reads of a copy of the piece with substitutions.
They are corrected as pairs with and without the forest, as single reads, and by ``lighter`` if that
is on the PATH.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pysam

from benchmarks.accuracy.adapters import NGSGPU, run
from benchmarks.accuracy.amplicons import sequences_of
from benchmarks.accuracy.art import draw_pairs
from benchmarks.accuracy.depletion import LETTERS, Bases, complement
from benchmarks.accuracy.spectrum import genome_of
from benchmarks.harness.document import head, write_document

SCHEMA = "ngsgpu.benchmark.correct_simulated"
UNKNOWN = ord("N")


def strain_of(genome: Bases, divergence: float, rng: np.random.Generator) -> Bases:
    """A copy with another base in a share of the places."""
    strain = genome.copy()
    places = np.flatnonzero(rng.random(len(genome)) < divergence)
    codes = np.searchsorted(LETTERS, genome[places])
    strain[places] = LETTERS[(codes + rng.integers(1, 4, len(places))) % 4]
    return strain


def draw(given: argparse.Namespace, folder: Path, genome: Bases, name: str, coverage: float) -> Any:
    """Write NAME1.fq and NAME2.fq; the true bases of first and of second mates."""
    (folder / f"{name}.fa").write_bytes(b">%s\n%s\n" % (name.encode(), genome.tobytes()))
    fragments = max(300, 2 * given.length + 100)
    options = ("-ef", "-l", given.length, "-f", coverage, "-m", fragments, "-s", 20)
    draw_pairs(given.profile, f"{name}.fa", name, folder, *options, "-rs", given.seed)
    truth: tuple[list[Bases], list[Bases]] = ([], [])
    with pysam.AlignmentFile(str(folder / f"{name}_errFree.sam"), check_sq=False) as records:
        for record in records:
            own = np.frombuffer((record.query_sequence or "").encode(), dtype=np.uint8)
            truth[record.is_read2].append(complement(own) if record.is_reverse else own)
    return truth


def sequence(given: argparse.Namespace, folder: Path) -> list[Bases]:
    """Write r1.fq and r2.fq; the true bases, of first mates and then second."""
    rng = np.random.default_rng(given.seed)
    genome = genome_of(given.genome, None)[given.first : given.first + given.bases]
    drawn = [draw(given, folder, genome, "major", given.coverage)]
    if given.strain:
        coverage, divergence = given.strain
        strain = strain_of(genome, divergence, rng)
        # Of the same seed, its reads would have the places and errors of the others.
        own = argparse.Namespace(**vars(given) | {"seed": given.seed + 1000})
        drawn.append(draw(own, folder, strain, "minor", coverage))
    for mate in ("1", "2"):
        parts = [folder / f"{name}{mate}.fq" for name in ("major", "minor")[: len(drawn)]]
        path = folder / f"r{mate}.fq"
        path.write_bytes(b"".join(part.read_bytes() for part in parts))
        hide(path, given.unknown, rng)
    return [own for mate in (0, 1) for truth in drawn for own in truth[mate]]


def hide(path: Path, unknown: list[int], rng: np.random.Generator) -> None:
    """Make some bases of each read of a file N, from the first to the second number of them."""
    lines = path.read_text().splitlines()
    for at in range(1, len(lines), 4):
        letters, qualities = list(lines[at]), list(lines[at + 2])
        for place in rng.integers(0, len(letters), rng.integers(unknown[0], unknown[1] + 1)):
            letters[place], qualities[place] = "N", "#"
        lines[at], lines[at + 2] = "".join(letters), "".join(qualities)
    path.write_text("".join(f"{line}\n" for line in lines))


def judged(raw: list[Bases], after: list[Bases], truth: list[Bases]) -> dict[str, Any]:
    """Errors and unknown bases, how many of them are left, and what was made worse."""
    before, now, true = (np.concatenate(reads) for reads in (raw, after, truth))
    ends = np.cumsum([len(own) for own in truth]) - 1
    unknown = before == UNKNOWN
    wrong = (before != true) & ~unknown
    left, false = wrong & (now != true), ~unknown & ~wrong & (now != true)
    more = np.cumsum((now != true).astype(np.int64) - (before != true))[ends]
    worse = np.diff(more, prepend=0)
    return {
        "bases": len(true),
        "errors": int(wrong.sum()),
        "left": int(left.sum()),
        "found": round(1 - float(left.sum()) / max(1, int(wrong.sum())), 5),
        "left_per_million": round(1e6 * float(left.mean()), 1),
        "unknown": int(unknown.sum()),
        "unknown_left": int((unknown & (now != true)).sum()),
        "right_bases_changed": int(false.sum()),
        "reads_made_worse": int((worse > 0).sum()),
        "by_more_than_one_base": int((worse > 1).sum()),
    }


def main() -> None:
    """Draw, correct, judge and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("genome", help="FASTA; :NAME for one of its sequences")
    add("--first", type=int, default=0, help="of the piece of the genome")
    add("--bases", type=int, default=500_000)
    add("--profile", default="HS20", help="of ART, or the prefix of two files of one")
    add("--length", type=int, default=100)
    add("--coverage", type=float, default=30)
    add("--unknown", type=int, nargs=2, default=[0, 0], help="fewest and most of a read")
    add("--strain", type=float, nargs=2, metavar=("COVERAGE", "DIVERGENCE"))
    add("--seed", type=int, default=1)
    add("--backend", default="cpu")
    add("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    results: dict[str, Any] = {}
    correct = f"{NGSGPU} correct -q --backend {given.backend}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        truth = sequence(given, folder)
        first, second = folder / "r1.fq", folder / "r2.fq"
        raw = sequences_of(first) + sequences_of(second)
        outputs = [folder / "out1.fq", folder / "out2.fq"]
        pairs = ("-i", first, "-I", second, "-o", outputs[0], "-O", outputs[1])
        single = ("-i", first, "-i", second, "-o", outputs[0], "-o", outputs[1])
        programs: dict[str, tuple[Any, ...]] = {
            "pairs": (correct, *pairs),
            "pairs, no forest": (f"{correct} --model none", *pairs),
            "single": (correct, *single),
        }
        if shutil.which("lighter"):
            peer = f"lighter -K 17 {given.bases} -t 2 -od {folder}"
            programs["lighter"] = (peer, "-r", first, "-r", second)
        for name, (program, *files) in programs.items():
            run(program, *files)
            if name == "lighter":
                outputs = [folder / "r1.cor.fq", folder / "r2.cor.fq"]
            after = [own for path in outputs for own in sequences_of(path)]
            results[name] = judged(raw, after, truth)
            print(name, results[name], file=sys.stderr)
    settings = {key: str(value) for key, value in vars(given).items() if key != "output"}
    settings |= {key: Path(settings[key]).name for key in ("genome", "profile")}
    run_of = {"settings": settings, "results": results}
    document = {"schema": SCHEMA, "schema_version": 1} | head() | {"runs": [run_of]}
    write_document(document, given.output)


if __name__ == "__main__":
    main()
