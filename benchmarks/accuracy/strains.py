"""What correction by k-mers leaves of the rarer strains of a mixture.

    python -m benchmarks.accuracy.strains --data FOLDER -o out.json

ART draws pairs of a piece of a genome and of copies of it with substitutions, each at its coverage.
``kept`` are the rarer strain's own 31-mers, of those in 4 or more raw reads, that are still in 3.
On the mixtures of *E. coli* and *S. pneumoniae* 60 + 10 + 5 the thresholds of the spectrum were
chosen; the others are checks. Lighter goes with it if it is on the PATH.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from benchmarks.accuracy.adapters import NGSGPU, run
from benchmarks.accuracy.amplicons import sequences_of
from benchmarks.accuracy.simulated import draw, judged, strain_of
from benchmarks.accuracy.spectrum import genome_of
from benchmarks.harness.document import head, write_document
from ngsgpu.evaluate.kmers import evaluate_kmers

SCHEMA: Final = "ngsgpu.benchmark.strains"
SCHEMA_VERSION: Final = 1
KMER: Final = 31


class Mixture(NamedTuple):
    """A piece of a genome, and copies of it: their coverages and shares of substitutions."""

    role: str
    genome: str
    first: int
    bases: int
    profile: str
    length: int
    coverage: float
    strains: tuple[tuple[float, float], ...]


COLI = "escherichia_coli__K_12_MG1655"
PNEUMONIAE = "streptococcus_pneumoniae__NCTC7465"
MIXTURES: Final = (
    Mixture("chosen", COLI, 0, 100_000, "HS20", 100, 60, ((10, 0.01), (5, 0.01))),
    Mixture("chosen", PNEUMONIAE, 0, 100_000, "HS20", 100, 60, ((10, 0.003), (5, 0.01))),
    Mixture("checked", "pseudomonas_aeruginosa__PAO1", 2_000_000, 100_000, "HS25", 150, 60,
            ((10, 0.01), (5, 0.01))),
    Mixture("checked", "streptococcus_suis__SRD478", 0, 100_000, "NextSeq500L150", 150, 60,
            ((10, 0.003), (5, 0.003))),
    Mixture("checked", PNEUMONIAE, 500_000, 100_000, "HS20", 100, 20, ((4, 0.01),)),
    Mixture("checked", COLI, 1_000_000, 100_000, "HS20", 100, 100, ((8, 0.01),)),
)  # fmt: skip


def draw_mixture(mixture: Mixture, data: Path, folder: Path) -> list[Any]:
    """Write r1.fq, r2.fq and a FASTA file of each strain; the true bases of the reads."""
    genome = genome_of(f"{data}/genomes/bacteria/{mixture.genome}.fna.gz", None)
    genome = genome[mixture.first : mixture.first + mixture.bases]
    learned = data / "profiles" / mixture.profile
    is_learned = Path(f"{learned}R1.txt").exists()
    profile = str(learned) if is_learned else mixture.profile
    rng = np.random.default_rng(1)
    drawn = []
    for number, (coverage, divergence) in enumerate(((mixture.coverage, 0), *mixture.strains)):
        # Of equal seeds, reads of two strains would have the same places and errors.
        given = argparse.Namespace(profile=profile, length=mixture.length, seed=number + 1)
        strain = strain_of(genome, divergence, rng)
        drawn.append(draw(given, folder, strain, f"s{number}", coverage))
    for mate in "12":
        parts = [(folder / f"s{i}{mate}.fq").read_bytes() for i in range(len(drawn))]
        (folder / f"r{mate}.fq").write_bytes(b"".join(parts))
    return [own for mate in (0, 1) for truth in drawn for own in truth[mate]]


def kept_of(folder: Path, strains: int, after: list[Path]) -> list[dict[str, Any]]:
    """Each rarer strain's own k-mers that correction left."""
    files = [folder / f"s{i}.fa" for i in range(strains + 1)]
    found = []
    for minority in files[1:]:
        others = folder / "others.fa"
        others.write_bytes(b"".join(own.read_bytes() for own in files if own != minority))
        document = evaluate_kmers(
            [folder / "r1.fq", folder / "r2.fq"], after,
            reference=others, minority=minority, k=KMER,
        ).document()["minority"]  # fmt: skip
        found.append({key: document[key] for key in ("covered", "kept")})
    return found


def measured(mixture: Mixture, data: Path, threads: int) -> dict[str, Any]:
    """Draw a mixture, correct it by each program, and judge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = draw_mixture(mixture, data, folder)
        first, second = folder / "r1.fq", folder / "r2.fq"
        raw = sequences_of(first) + sequences_of(second)
        ours = [folder / "c1.fq", folder / "c2.fq"]
        correct = f"{NGSGPU} correct --method spectrum -q -t {threads} --backend cpu"
        pairs = ("-i", first, "-I", second, "-o", ours[0], "-O", ours[1])
        programs: dict[str, tuple[Any, ...]] = {
            "spectrum": (correct, *pairs),
        }
        if shutil.which("lighter"):
            peer = f"lighter -K 17 {mixture.bases} -t {threads} -od {folder}"
            programs["lighter"] = (peer, "-r", first, "-r", second)
        results: dict[str, Any] = {}
        for program, (command, *files) in programs.items():
            run(command, *files)
            is_ours = program != "lighter"
            after = ours if is_ours else [folder / "r1.cor.fq", folder / "r2.cor.fq"]
            results[program] = judged(raw, [o for path in after for o in sequences_of(path)], truth)
            results[program]["kept"] = kept_of(folder, len(mixture.strains), after)
            print(mixture, program, results[program], file=sys.stderr)
    return {"mixture": mixture._asdict(), "results": results}


def main() -> None:
    """Measure the mixtures and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of genomes/ and profiles/")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    runs = [measured(mixture, given.data, given.threads) for mixture in MIXTURES]
    write_document(head(SCHEMA, SCHEMA_VERSION) | {"runs": runs}, given.output)


if __name__ == "__main__":
    main()
