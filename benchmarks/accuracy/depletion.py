"""Share of a host's reads, and of microbes', that depletion finds; beside deacon.

    python -m benchmarks.accuracy.depletion --host host.fa.gz --microbes GENOMES \
        --reads NAME=R1.fq.gz,R2.fq.gz -o out.json

Pairs of 2 x 100 bases with 0.3 % errors are simulated from the halves of the host, whose bases were
substituted at several rates, and from every second genome: one half ``chosen`` on, the other half
``checked`` on. ``--reads`` adds real ones. deacon takes part if it is on the PATH.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.document import head, write_document
from benchmarks.harness.measuring import measure
from benchmarks.peers import deacon
from ngsgpu.deplete import IndexParameters, RunOptions, build_index, deplete_files
from ngsgpu.io.text.reader import read_batches

Bases = NDArray[np.uint8]
DIVERGENCE = (0, 1, 2, 3, 5, 8)
LENGTH, INSERT, DEVIATION, ERRORS = 100, 350, 40, 0.003
LETTERS = np.frombuffer(b"ACGT", dtype=np.uint8)
N = ord("N")


def sequences(path: Path) -> list[Bases]:
    """The sequences of a FASTA file, in upper case."""
    found = []
    for batch in read_batches(path):
        for start, end in zip(batch.seq_start, batch.seq_end, strict=True):
            bases = batch.data[start:end]
            found.append(bases[(bases != 10) & (bases != 13)] & 0xDF)
    return found


def substituted(bases: Bases, rate: float, rng: np.random.Generator) -> Bases:
    """The bases, a share of them replaced by others."""
    changed = (rng.random(bases.shape) < rate) & np.isin(bases, LETTERS)
    own = np.searchsorted(LETTERS, bases[changed])
    result = bases.copy()
    result[changed] = LETTERS[(own + rng.integers(1, 4, own.shape)) % 4]
    return result


def complement(bases: Bases) -> Bases:
    """The reverse complement along the last axis."""
    table = np.full(256, N, dtype=np.uint8)
    table[LETTERS] = LETTERS[::-1]
    return table[bases[..., ::-1]]


def simulate(sources: list[Bases], pairs: int, rng: np.random.Generator) -> list[Bases]:
    """First and second mates, uint8[pairs, LENGTH]."""
    sizes = np.array([len(source) for source in sources], dtype=float)
    mates = [np.empty((pairs, LENGTH), dtype=np.uint8) for _ in range(2)]
    made = 0
    while made < pairs:
        source = sources[rng.choice(len(sources), p=sizes / sizes.sum())]
        size = int(rng.normal(INSERT, DEVIATION))
        if not LENGTH <= size < len(source):
            continue
        start = rng.integers(0, len(source) - size)
        fragment = source[start : start + size]
        if (fragment == N).sum() > 5:
            continue
        ends = [fragment[:LENGTH], complement(fragment)[:LENGTH]]
        for mate, own in zip(mates, ends if rng.random() < 0.5 else ends[::-1], strict=True):
            mate[made] = own
        made += 1
    return [substituted(mate, ERRORS, rng) for mate in mates]


def write_fastq(path: Path, reads: Bases) -> Path:
    """Write reads, all bases of Q37."""
    quality = b"F" * LENGTH
    with path.open("wb") as file:
        for number, read in enumerate(reads):
            file.write(b"@r%d\n%s\n+\n%s\n" % (number, read.tobytes(), quality))
    return path


def found_by_ngsgpu(index: Path, files: list[Path], out: Path) -> int:
    """Reads or pairs that are the host's."""
    statistics = deplete_files(
        index, files[:1], [out], files[1:], [out.with_suffix(".2")][: len(files) - 1],
        options=RunOptions(threads=2),
    )  # fmt: skip
    return statistics.reads["host"] // len(files)


def found_by_deacon(index: Path, files: list[Path], out: Path) -> int:
    """The same, by deacon with its defaults."""
    summary = out.with_suffix(".json")
    outputs = [out, out.with_suffix(".2")][: len(files)]
    measure(deacon.deplete_command(index, files, outputs, summary, threads=2), out.parent)
    return deacon.taken_out(summary) // len(files)


def main() -> None:
    """Simulate, deplete, write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--host", type=Path, required=True)
    parser.add_argument("--microbes", type=Path, required=True, help="folder of genomes")
    parser.add_argument("--reads", action="append", default=[], metavar="NAME=R1,R2")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parameters = IndexParameters()
        index = build_index([given.host], parameters, options=RunOptions(threads=2))
        index.save(folder / "host.idx")
        programs: dict[str, Any] = {"ngsgpu": (found_by_ngsgpu, folder / "host.idx")}
        if deacon.is_here():
            measure(deacon.index_command(given.host, folder / "deacon.idx", threads=2), folder)
            programs["deacon"] = (found_by_deacon, folder / "deacon.idx")

        def measured(files: list[Path], of: str, units: int) -> dict[str, Any]:
            found = {
                program: {
                    kind: find(with_index, own, folder / "out.fq")
                    for kind, own in (("pairs", files), ("single", files[:1]))
                }
                for program, (find, with_index) in programs.items()
            }
            print(of, units, found, flush=True)
            return {"reads": of, "units": units, "found": found}

        rows = []
        host = max(sequences(given.host), key=len)
        genomes = sorted(given.microbes.iterdir())
        for seed, (role, part) in enumerate((("chosen", 0), ("checked", 1)), start=1):
            rng = np.random.default_rng(seed)
            half = np.array_split(host, 2)[part]
            for percent in DIVERGENCE:
                mates = simulate([substituted(half, percent / 100, rng)], 20_000, rng)
                files = [write_fastq(folder / f"{i}.fq", own) for i, own in enumerate(mates)]
                rows.append({"role": role, "divergence_percent": percent, "host": True}
                            | measured(files, given.host.name, 20_000))  # fmt: skip
            own = genomes[part::2]
            each = [simulate(sequences(genome), 6000, rng) for genome in own]
            files = [
                write_fastq(folder / f"{i}.fq", np.concatenate([pair[i] for pair in each]))
                for i in (0, 1)
            ]
            rows.append({"role": role, "genomes": [genome.name for genome in own], "host": False}
                        | measured(files, f"{len(own)} genomes", 6000 * len(own)))  # fmt: skip
        for text in given.reads:
            label, _, paths = text.partition("=")
            files = [Path(path) for path in paths.split(",")]
            units = sum(len(batch) for batch in read_batches(files[0], phred_offset=33))
            rows.append({"role": "checked", "host": None} | measured(files, label, units))
    document = {**head(), "index": index.describe(), "rows": rows}
    if deacon.is_here():
        document["deacon"] = deacon.version()
    write_document(document, given.out)


if __name__ == "__main__":
    main()
