"""Correction of reads with unknown bases: errors found, letters decided, right bases changed.

    python -m benchmarks.accuracy.unknown_bases genome.fna.gz --unknown 1 2 -o out.json

ART draws pairs of a piece of a genome without insertions and deletions; in each read some bases
become N, of Q2. They are corrected as pairs and as single reads, and by ``lighter`` if that is on
the PATH.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pysam

from benchmarks.accuracy.adapters import NGSGPU, run
from benchmarks.accuracy.amplicons import sequences_of
from benchmarks.accuracy.depletion import Bases, complement
from benchmarks.accuracy.spectrum import genome_of
from benchmarks.harness.document import head, write_document

UNKNOWN = ord("N")


def sequence(given: argparse.Namespace, folder: Path) -> list[Bases]:
    """Write r1.fq and r2.fq with unknown bases; the true bases, of first mates and then second."""
    genome = genome_of(given.genome, None)[given.first : given.first + given.bases]
    (folder / "genome.fa").write_bytes(b">genome\n%s\n" % genome.tobytes())
    silent = [word for option in ("-ir", "-ir2", "-dr", "-dr2") for word in (option, "0")]
    subprocess.run(
        ["art_illumina", "-ss", given.profile, "-p", "-na", "-q", "-ef", *silent,
         "-l", str(given.length), "-f", str(given.coverage), "-m", str(3 * given.length),
         "-s", "20", "-rs", str(given.seed), "-i", "genome.fa", "-o", "r"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    rng = np.random.default_rng(given.seed)
    for mate in ("1", "2"):
        hide(folder / f"r{mate}.fq", given.unknown, rng)
    truth: tuple[list[Bases], list[Bases]] = ([], [])
    with pysam.AlignmentFile(str(folder / "r_errFree.sam"), check_sq=False) as records:
        for record in records:
            own = np.frombuffer((record.query_sequence or "").encode(), dtype=np.uint8)
            truth[record.is_read2].append(complement(own) if record.is_reverse else own)
    return truth[0] + truth[1]


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
    """Errors and unknown bases, how many of them are left, and right bases that were changed."""
    before, now, true = (np.concatenate(reads) for reads in (raw, after, truth))
    unknown = before == UNKNOWN
    wrong = (before != true) & ~unknown
    left = wrong & (now != true)
    return {
        "bases": len(true),
        "errors": int(wrong.sum()),
        "left": int(left.sum()),
        "left_per_million": round(1e6 * float(left.mean()), 1),
        "unknown": int(unknown.sum()),
        "unknown_left": int((unknown & (now != true)).sum()),
        "right_bases_changed": int((~unknown & ~wrong & (now != true)).sum()),
    }


def main() -> None:
    """Draw, correct, judge and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("genome", help="FASTA; :NAME for one of its sequences")
    add("--first", type=int, default=0, help="of the piece of the genome")
    add("--bases", type=int, default=500_000)
    add("--profile", default="HS20")
    add("--length", type=int, default=100)
    add("--coverage", type=int, default=30)
    add("--unknown", type=int, nargs=2, default=[1, 2], help="fewest and most of a read")
    add("--seed", type=int, default=1)
    add("--backend", default="cpu")
    add("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    results = {}
    correct = f"{NGSGPU} correct -q --backend {given.backend}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        truth = sequence(given, folder)
        first, second = folder / "r1.fq", folder / "r2.fq"
        raw = sequences_of(first) + sequences_of(second)
        outputs = [folder / "out1.fq", folder / "out2.fq"]
        programs: dict[str, tuple[Any, ...]] = {
            "pairs": (correct, "-i", first, "-I", second, "-o", outputs[0], "-O", outputs[1]),
            "single": (correct, "-i", first, "-i", second, "-o", outputs[0], "-o", outputs[1]),
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
    settings["genome"] = Path(given.genome).name
    write_document(head() | {"settings": settings, "results": results}, given.output)


if __name__ == "__main__":
    main()
