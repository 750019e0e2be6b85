"""What correction does to adapters, and what trimming them first changes.

    python -m benchmarks.accuracy.adapters GENOME.fa.gz [--bases 400000] -o out.json

Pairs of 2 x 150 bases, 30-fold, of fragments of 262 +- 80 bases: behind a fragment that is shorter
than the reads follow Illumina's TruSeq adapters with an index, and G's behind those, as two-colour
instruments write. Of 1,000 bases 5 are wrong, two in three of which have a low quality. They are
corrected by both methods as they are, and after fastp has trimmed the adapters that `ngsgpu
adapters` finds; fastp also trims what was corrected untrimmed. Each base is compared with what was
sequenced.

Needs fastp on the PATH.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.depletion import LETTERS, Bases, complement, sequences, substituted
from benchmarks.harness.document import head, write_document
from ngsgpu.io.text.reader import read_batches

LENGTH, MEAN, DEVIATION, COVERAGE, ERRORS = 150, 262, 80, 30, 0.005
ADAPTERS = (
    b"AGATCGGAAGAGCACACGTCTGAACTCCAGTCACATCACGATCTCGTATGCCGTCTTCTGCTTG",
    b"AGATCGGAAGAGCGTCGTGTAGGGAAAGAGTGTAGATCTCGGTGGTCGCCGTATCATT",
)
METHODS = {"msa": "", "spectrum": "--method spectrum"}
REGIONS = ("genome, reads without adapter", "genome, reads with adapter", "adapter", "poly-G")
NGSGPU = f"{sys.executable} -m ngsgpu"


class Pairs:
    """Simulated pairs.

    Attributes:
        truth: of each mate uint8[pairs, LENGTH], what the instrument had before it.
        reads: the same with errors.
        regions: the same as numbers of ``REGIONS``.
        fragments: int64[pairs], lengths.
    """

    def __init__(self, genome: Bases, seed: int) -> None:
        rng = np.random.default_rng(seed)
        count = COVERAGE * len(genome) // (2 * LENGTH)
        sizes = np.clip(rng.normal(MEAN, DEVIATION, count).round().astype(np.int64), 20, None)
        starts = rng.integers(0, len(genome) - sizes.max(), count)
        self.fragments = sizes
        self.truth: list[Bases] = []
        for mate, adapter in enumerate(ADAPTERS):
            tail = np.frombuffer(adapter + b"G" * LENGTH, dtype=np.uint8)
            rows = np.empty((count, LENGTH), dtype=np.uint8)
            for row, start, size in zip(rows, starts.tolist(), sizes.tolist(), strict=True):
                own = genome[start : start + size]
                own = complement(own) if (start % 2 == 0) == (mate == 0) else own
                row[:] = np.concatenate((own[:LENGTH], tail[:LENGTH]))[:LENGTH]
            self.truth.append(rows)
        self.reads = [substituted(rows, ERRORS, rng) for rows in self.truth]
        self.qualities = [
            np.where((read != true) & (rng.random(read.shape) < 2 / 3), ord("-"), ord("F"))
            for read, true in zip(self.reads, self.truth, strict=True)
        ]
        places = np.arange(LENGTH)
        self.regions = []
        for adapter in ADAPTERS:
            behind = places - sizes[:, None]
            inside = np.where(sizes < LENGTH, 1, 0)[:, None]
            outside = np.where(behind < len(adapter), 2, 3)
            self.regions.append(np.where(behind < 0, inside, outside))

    def write(self, folder: Path) -> list[Path]:
        """Files of first and second mates; names are numbers."""
        paths = [folder / f"r{mate}.fq" for mate in (1, 2)]
        for path, reads, qualities in zip(paths, self.reads, self.qualities, strict=True):
            with path.open("wb") as file:
                for number, (read, quality) in enumerate(zip(reads, qualities, strict=True)):
                    scores = quality.astype(np.uint8).tobytes()
                    file.write(b"@%d\n%s\n+\n%s\n" % (number, read.tobytes(), scores))
        return paths

    def judged(self, paths: list[Path]) -> dict[str, Any]:
        """Bases by region and what became of them, of reads that may have been cut."""
        counts: dict[str, Counter[str]] = {name: Counter() for name in REGIONS}
        worse = dict.fromkeys(("with adapter", "without"), 0)
        left = 0
        for mate, path in enumerate(paths):
            for number, found in records(path):
                true, read = (own[mate][number][: len(found)] for own in (self.truth, self.reads))
                region = self.regions[mate][number][: len(found)]
                for kind, where in (
                    ("false changes", (read == true) & (found != true)),
                    ("errors corrected", (read != true) & (found == true)),
                    ("errors left", (read != true) & (found != true)),
                ):
                    for own, many in Counter(region[where].tolist()).items():
                        counts[REGIONS[own]][kind] += many
                is_worse = int((found != true).sum()) > int((read != true).sum())
                worse["with adapter" if self.fragments[number] < LENGTH else "without"] += is_worse
                left += int(len(found) - 8 >= self.fragments[number])
        return {
            "bases": {name: dict(sorted(own.items())) for name, own in counts.items()},
            "reads_made_worse": worse,
            "reads_with_8_or_more_bases_behind_their_fragment": left,
        }


def records(path: Path) -> list[tuple[int, Bases]]:
    """Numbers and bases of the reads of a file."""
    return [
        (int(name), batch.data[start:end])
        for batch in read_batches(path)
        for name, start, end in zip(batch.names(), batch.seq_start, batch.seq_end, strict=True)
    ]


def run(command: str, *arguments: object) -> None:
    """Run a command; what it says is of interest only if it fails."""
    words = [*command.split(), *map(str, arguments)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stderr}")


def trimmed(folder: Path, name: str, paths: list[Path], adapters: Path) -> list[Path]:
    """Pairs that fastp has trimmed."""
    out = [folder / f"{name}{mate}.fq" for mate in (1, 2)]
    files = ("-i", paths[0], "-I", paths[1], "-o", out[0], "-O", out[1])
    run("fastp --disable_quality_filtering --trim_poly_g -h /dev/null", *files, "--adapter_fasta",
        adapters, "-j", folder / "fastp.json")  # fmt: skip
    return out


def corrected(
    folder: Path, name: str, paths: list[Path], options: str, backend: str
) -> tuple[list[Path], dict[str, Any]]:
    """Corrected pairs, and what the run says of adapters."""
    out, stats = [folder / f"{name}{mate}.fq" for mate in (1, 2)], folder / "stats.json"
    files = ("-i", paths[0], "-I", paths[1], "-o", out[0], "-O", out[1], "--stats", stats)
    run(f"{NGSGPU} correct -q --backend {backend} {options}", *files)
    return out, json.loads(stats.read_text())["adapters"]


def compare(genome: Bases, backend: str, seed: int) -> dict[str, Any]:
    """All figures of a genome."""
    pairs = Pairs(genome, seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        raw = pairs.write(folder)
        adapters = folder / "adapters.fa"
        run(f"{NGSGPU} adapters -q", "-i", raw[0], "-I", raw[1], "--fasta", adapters)
        first = trimmed(folder, "trimmed", raw, adapters)
        figures: dict[str, Any] = {
            "pairs": len(pairs.fragments),
            "reads_with_adapter": 2 * int((pairs.fragments < LENGTH).sum()),
            "as sequenced": pairs.judged(raw),
            "trimmed": pairs.judged(first),
        }
        for method, options in METHODS.items():
            late, found = corrected(folder, "late", raw, options, backend)
            early, found_again = corrected(folder, "early", first, options, backend)
            figures[method] = {
                "untrimmed": pairs.judged(late) | {"adapters": found},
                "untrimmed, trimmed afterwards": pairs.judged(
                    trimmed(folder, "later", late, adapters)
                ),
                "trimmed first": pairs.judged(early) | {"adapters": found_again},
            }
    return figures


def main() -> None:
    """Measure the genomes named and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("genomes", nargs="+", type=Path)
    parser.add_argument("--bases", type=int, default=400_000, help="of each genome, the first ones")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    results = {}
    for path in given.genomes:
        bases = np.concatenate(sequences(path))
        known = bases[np.isin(bases, LETTERS)][: given.bases]
        results[path.name.partition(".")[0]] = compare(known, given.backend, given.seed)
        print(path.name, file=sys.stderr)
    write_document(head() | {"bases": given.bases, "genomes": results}, given.output)


if __name__ == "__main__":
    main()
