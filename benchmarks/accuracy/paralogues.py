"""Correction of transcripts, each beside a paralogue of a twentieth of its abundance.

    python -m benchmarks.accuracy.paralogues --data FOLDER -o out.json

Transcripts are pieces of a genome, at coverages from 40 to 400; a paralogue is a copy with
substitutions. ART draws pairs of both without insertions and deletions, which are corrected as
pairs and as single reads, and by Lighter if that is on the PATH. A read is made worse if it has
more wrong bases than before. Nothing was chosen on these sets.
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

SCHEMA: Final = "ngsgpu.benchmark.paralogues"
SCHEMA_VERSION: Final = 1
TRANSCRIPTS: Final = 20
BASES: Final = 1_500
COVERAGES: Final = (40.0, 400.0)
SHARE: Final = 0.05


class Transcripts(NamedTuple):
    """Where transcripts come from, and how much of a paralogue is substituted."""

    genome: str
    divergence: float
    profile: str = "HS20"
    length: int = 100


SETS: Final = (
    Transcripts("eukaryote/saccharomyces_cerevisiae_R64", 0.02),
    Transcripts("eukaryote/celegans_truncated_chromosomes", 0.01),
)


def draw_transcripts(
    given: Transcripts, data: Path, folder: Path, seed: int
) -> tuple[list[Any], list[bool]]:
    """Write r1.fq and r2.fq; the true bases of the reads, and which are of paralogues."""
    genome = genome_of(f"{data}/genomes/{given.genome}.fa.gz", None)
    rng = np.random.default_rng(seed)
    coverages = np.geomspace(*COVERAGES, TRANSCRIPTS)
    mates: tuple[list[Any], list[Any]] = ([], [])
    of_paralogue: list[bool] = []
    files: tuple[list[bytes], list[bytes]] = ([], [])
    for number, coverage in enumerate(coverages):
        first = int(rng.integers(0, len(genome) - BASES))
        transcript = genome[first : first + BASES]
        paralogue = strain_of(transcript, given.divergence, rng)
        for kind, (bases, depth) in enumerate(
            ((transcript, coverage), (paralogue, SHARE * coverage))
        ):
            # Of equal seeds, reads of both would have the same places and errors.
            own = argparse.Namespace(
                profile=given.profile, length=given.length, seed=1000 * seed + 2 * number + kind
            )
            name = f"t{number}_{kind}"
            drawn = draw(own, folder, bases, name, depth)
            of_paralogue += [bool(kind)] * len(drawn[0])
            for mate in (0, 1):
                mates[mate].extend(drawn[mate])
                files[mate].append((folder / f"{name}{mate + 1}.fq").read_bytes())
    for mate in (0, 1):
        (folder / f"r{mate + 1}.fq").write_bytes(b"".join(files[mate]))
    return mates[0] + mates[1], of_paralogue * 2


def measured(given: Transcripts, data: Path, threads: int, seed: int) -> dict[str, Any]:
    """Draw transcripts, correct them by each program, and judge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth, of_paralogue = draw_transcripts(given, data, folder, seed)
        first, second = folder / "r1.fq", folder / "r2.fq"
        raw = sequences_of(first) + sequences_of(second)
        ours = [folder / "c1.fq", folder / "c2.fq"]
        correct = f"{NGSGPU} correct -q -t {threads} --backend cpu"
        programs: dict[str, tuple[Any, ...]] = {
            "pairs": (correct, "-i", first, "-I", second, "-o", ours[0], "-O", ours[1]),
            "single": (correct, "-i", first, "-i", second, "-o", ours[0], "-o", ours[1]),
        }
        if shutil.which("lighter"):
            peer = f"lighter -K 17 {2 * TRANSCRIPTS * BASES} -t {threads} -od {folder}"
            programs["lighter"] = (peer, "-r", first, "-r", second)
        results: dict[str, Any] = {}
        for program, (command, *files) in programs.items():
            run(command, *files)
            written = [folder / "r1.cor.fq", folder / "r2.cor.fq"] if program == "lighter" else ours
            after = [own for path in written for own in sequences_of(path)]
            parts = {"all": np.ones(len(raw), bool), "paralogues": np.array(of_paralogue)}
            results[program] = {
                part: judged(
                    *([own[i] for i in np.flatnonzero(which)] for own in (raw, after, truth))
                )
                | {"reads": int(which.sum())}
                for part, which in parts.items()
            }
            print(given, program, results[program], file=sys.stderr)
    return {"role": "checked", "transcripts": given._asdict() | {"seed": seed}, "results": results}


def main() -> None:
    """Measure the sets and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of genomes/")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    runs = [measured(own, given.data, given.threads, seed) for seed, own in enumerate(SETS, 1)]
    write_document(head(SCHEMA, SCHEMA_VERSION) | {"runs": runs}, given.output)


if __name__ == "__main__":
    main()
