"""Correction of amplicons: errors found, and reads made worse.

    python -m benchmarks.accuracy.amplicons merged.fq --profile MSv3 --reads 10000 -o out.json

Amplicons are the most frequent sequences of merged reads, as often as these; with ``--variants``
each has twelve variants beside it that differ in one to three bases and are a tenth to a
thousandth as frequent. ART draws pairs of them without insertions and deletions, which are
corrected as pairs and as single reads. A read is worse if it has more wrong bases than before.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.adapters import NGSGPU, run
from benchmarks.accuracy.art import draw_pairs
from benchmarks.accuracy.depletion import LETTERS, Bases, complement
from benchmarks.harness.document import head, write_document
from ngsgpu.io.text.reader import read_batches

SEQUENCES = 80
SHARES = (0.1, 0.01, 0.003, 0.001)
DIFFERENCES = (1, 2, 3)


def sequences_of(path: Path) -> list[Bases]:
    """The reads of a file, in order."""
    return [
        batch.data[start:end]
        for batch in read_batches(path)
        for start, end in zip(batch.seq_start, batch.seq_end, strict=True)
    ]


def amplicons(path: Path, variants: bool, rng: np.random.Generator) -> tuple[list[Bases], Any]:
    """Sequences and how frequent they are."""
    counts = Counter(own.tobytes() for own in sequences_of(path) if ord("N") not in own)
    found, weights = [], []
    for text, count in counts.most_common(SEQUENCES):
        own = np.frombuffer(text, dtype=np.uint8)
        found.append(own)
        weights.append(float(count))
        for share in SHARES if variants else ():
            for differences in DIFFERENCES:
                variant = own.copy()
                places = rng.choice(len(own), differences, replace=False)
                codes = np.searchsorted(LETTERS, own[places])
                variant[places] = LETTERS[(codes + rng.integers(1, 4, differences)) % 4]
                found.append(variant)
                weights.append(share * count)
    return found, np.array(weights) / sum(weights)


def sequence(given: argparse.Namespace, folder: Path) -> list[list[Bases]]:
    """Write r1.fq and r2.fq; the true bases of first and of second mates."""
    rng = np.random.default_rng(given.seed)
    found, weights = amplicons(given.merged, given.variants, rng)
    drawn = [found[i] for i in rng.choice(len(found), given.reads // 2, p=weights)]
    with (folder / "amplicons.fa").open("wb") as file:
        for number, own in enumerate(drawn):
            file.write(b">%d\n%s\n" % (number, own.tobytes()))
    options = ("-amp", "-l", given.length, "-f", 1, "-rs", given.seed)
    draw_pairs(given.profile, "amplicons.fa", "r", folder, *options)
    return [
        [(own if mate == 0 else complement(own))[: given.length] for own in drawn]
        for mate in range(2)
    ]


def judged(raw: list[Bases], after: list[Bases], truth: list[Bases]) -> dict[str, Any]:
    """Errors found, right bases changed, and reads made worse."""
    errors = left = false = worse = 0
    for one, other, true in zip(raw, after, truth, strict=True):
        before, now = one != true, other != true
        errors += int(before.sum())
        left += int((before & now).sum())
        false += int((~before & now).sum())
        worse += int(now.sum() > before.sum())
    return {"reads": len(raw), "errors": errors, "found": round(1 - left / max(1, errors), 4),
            "false": false, "worse": worse}  # fmt: skip


def main() -> None:
    """Draw, correct, judge and write the document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("merged", type=Path, help="merged reads of amplicons")
    add("--profile", default="MSv3", help="of ART, or the prefix of two files of one")
    add("--length", type=int, default=240)
    add("--reads", type=int, default=10_000)
    add("--variants", action="store_true")
    add("--seed", type=int, default=1)
    add("--backend", default="cpu")
    add("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        truth = sequence(given, folder)
        first, second, single, out, out2 = (
            folder / name for name in ("r1.fq", "r2.fq", "r.fq", "out.fq", "out2.fq")
        )
        single.write_bytes(first.read_bytes() + second.read_bytes())
        raw = sequences_of(single)
        for name, files in (
            ("single", ("-i", single, "-o", out)),
            ("pairs", ("-i", first, "-I", second, "-o", out, "-O", out2)),
        ):
            out2.write_bytes(b"")
            stats = folder / f"{name}.json"
            run(f"{NGSGPU} correct -q --backend {given.backend}", *files, "--stats", stats)
            after = sequences_of(out) + (sequences_of(out2) if name == "pairs" else [])
            found = json.loads(stats.read_text())
            results[name] = judged(raw, after, truth[0] + truth[1]) | {
                "coverage": found["coverage"]["value"],
                "kept": found.get("kept"),
            }
            print(name, results[name], file=sys.stderr)
    settings = {key: str(value) for key, value in vars(given).items() if key != "output"}
    settings |= {key: Path(settings[key]).name for key in ("merged", "profile")}
    write_document(head() | {"settings": settings, "results": results}, given.output)


if __name__ == "__main__":
    main()
