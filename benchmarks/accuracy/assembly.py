"""Contigs of isolates: contiguity, errors and time of ngsgpu and other assemblers, by QUAST.

    python -m benchmarks.accuracy.assembly --work FOLDER -o out.json \
        --set chosen,k12_150,K12.fna.gz,150,40,350,50,11 [--set checked,...] [--part 1000000]

A set is ROLE,NAME,GENOME,LENGTH,COVERAGE,INSERT,DEVIATION,SEED: pairs are simulated by ART (profile
HS25), with ``--part`` of the first bases of the genome's longest sequence alone, from ``--skip``
on; ``--alleles N`` takes half of the pairs from a copy with N differences in 10,000 bases, of which
a tenth are of one base more or less. What is already in
FOLDER/NAME is not made again: R1.fq and R2.fq, and the contigs (.fa) of an assembler with its time
(.time: elapsed s, user s, KiB; or - if it was not measured). Those of ``--assemblers`` are run, and
all that are there are judged; SPAdes, shovill, and ngsgpu behind correction and merging, run only
where they are named. art_illumina, the assemblers and quast.py have to be on the PATH.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.harness.document import head, write_document

THREADS = 2
COMMANDS = {
    "ngsgpu": ["ngsgpu assemble -q -t {threads} -i R1.fq -I R2.fq -o ngsgpu.fa"],
    "ngsgpu_merge": [
        "ngsgpu assemble -q -t {threads} --bubbles merge -i R1.fq -I R2.fq -o ngsgpu_merge.fa"
    ],
    "megahit": ["megahit -t {threads} -1 R1.fq -2 R2.fq -o megahit.out"],
    "skesa": ["skesa --cores {threads} --reads R1.fq,R2.fq --contigs_out skesa.fa"],
    "spades": ["spades.py --isolate -t {threads} -1 R1.fq -2 R2.fq -o spades.out"],
    "ngsgpu_front_end": [
        "ngsgpu correct -q -t {threads} -i R1.fq -I R2.fq -o C1.fq -O C2.fq",
        "ngsgpu merge -q -t {threads} -i C1.fq -I C2.fq -o M.fq --unmerged1 U.fq --interleaved-out",
        "ngsgpu assemble -q -t {threads} -i U.fq --interleaved -s M.fq -o ngsgpu_front_end.fa",
    ],
    "shovill": ["shovill --cpus {threads} --ram 16 --R1 R1.fq --R2 R2.fq --outdir shovill.out"],
}
DEFAULTS = ["ngsgpu", "megahit", "skesa"]
FOLDERS = {
    "megahit": "megahit.out/final.contigs.fa",
    "spades": "spades.out/contigs.fasta",
    "shovill": "shovill.out/contigs.fa",
}
"""Contigs of assemblers that make a folder."""

AMBIGUOUS = re.compile(rb"[^ACGTacgt\r\n]")
"""Letters of which ART would make N in every read; sequencers do not."""

FIELDS = {
    "contigs": "# contigs",
    "nga50": "NGA50",
    "misassemblies": "# misassemblies",
    "local_misassemblies": "# local misassemblies",
    "mismatches_per_100_kb": "# mismatches per 100 kbp",
    "indels_per_100_kb": "# indels per 100 kbp",
    "genome_percent": "Genome fraction (%)",
    "duplication": "Duplication ratio",
}


def write_reference(genome: Path, part: int | None, skip: int, reference: Path) -> None:
    """Write a genome, or some bases of its longest sequence, with A, C, G and T alone."""
    opener = gzip.open if genome.suffix == ".gz" else open
    with opener(genome, "rb") as source:
        records = source.read().split(b">")[1:]
    if part is not None:
        name, _, text = max(records, key=len).partition(b"\n")
        records = [name + b"\n" + b"".join(text.split())[skip : skip + part] + b"\n"]
    with reference.open("wb") as target:
        for record in records:
            name, _, text = record.partition(b"\n")
            target.write(b">" + name + b"\n" + AMBIGUOUS.sub(b"A", text))


def write_alleles(reference: Path, rate: int, both: Path) -> None:
    """Write a genome, and a copy of it with some differences in 10,000 bases."""
    rng = random.Random(rate)
    text = reference.read_text()
    with both.open("w") as target:
        target.write(text)
        for record in text.split(">")[1:]:
            name, _, lines = record.partition("\n")
            target.write(f">other_{name}\n")
            for base in "".join(lines.split()).upper():
                draw = rng.random() * 10_000
                other = rng.choice("ACGT".replace(base, ""))
                if draw < 0.05 * rate:
                    target.write(base + other)
                elif draw >= 0.1 * rate:
                    target.write(other if draw < rate else base)
            target.write("\n")


def simulate(
    folder: Path,
    genome: Path,
    numbers: list[str],
    part: int | None,
    skip: int = 0,
    alleles: int = 0,
) -> None:
    """Make ref.fa, R1.fq and R2.fq."""
    folder.mkdir(parents=True, exist_ok=True)
    reference = folder / "ref.fa"
    if not reference.exists():
        write_reference(genome, part, skip, reference)
    if not (folder / "R2.fq").exists():
        length, coverage, insert, deviation, seed = numbers
        source = reference
        if alleles:
            source, coverage = folder / "both.fa", str(int(coverage) / 2)
            write_alleles(reference, alleles, source)
        command = (
            f"art_illumina -ss HS25 -i {source.name} -p -l {length} -f {coverage} -m {insert} "
        )
        command += f"-s {deviation} -rs {seed} -na -q -o R"
        subprocess.run(command.split(), cwd=folder, check=True, stdout=subprocess.DEVNULL)


def is_there(folder: Path, name: str) -> bool:
    """Whether an assembler has finished."""
    timed = folder / f"{name}.time"
    return timed.exists() and timed.stat().st_size > 0


def assemble(folder: Path, name: str) -> None:
    """Make contigs, and their time, unless they are there."""
    timed = folder / f"{name}.time"
    if is_there(folder, name):
        return
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    begin = time.monotonic()
    for command in COMMANDS[name]:
        subprocess.run(
            command.format(threads=THREADS).split(),
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    elapsed = time.monotonic() - begin
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    if name in FOLDERS:
        contigs = folder / FOLDERS[name]
        shutil.move(contigs, folder / f"{name}.fa")
        shutil.rmtree(contigs.parent)
    timed.write_text(f"{elapsed:.2f} {usage.ru_utime - before:.2f} {usage.ru_maxrss}\n")


def judged(folder: Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """QUAST's numbers for each assembler, and its time."""
    files = [f"{name}.fa" for name in names]
    command = ["quast.py", "--fast", "-t", "1", "-m", "500", "-r", "ref.fa", "-o", "quast", *files]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with (folder / "quast/report.tsv").open() as lines:
        rows = {row[0]: row[1:] for row in csv.reader(lines, delimiter="\t")}
    found: dict[str, dict[str, Any]] = {}
    for i, name in enumerate(names):
        timed = (folder / f"{name}.time").read_text().split()
        elapsed, user = (None, None) if timed == ["-"] else map(float, timed[:2])
        numbers = {key: _number(rows[field][i]) for key, field in FIELDS.items()}
        found[name] = numbers | {"elapsed_s": elapsed, "user_s": user}
    return found


def _number(text: str) -> float | None:
    """A number of QUAST's; None where contigs are too short for it to tell."""
    return None if text == "-" else float(text)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", required=True, dest="sets")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", type=int)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--alleles", type=int, default=0)
    parser.add_argument("--assemblers", nargs="+", default=DEFAULTS, choices=list(COMMANDS))
    parser.add_argument("-o", "--out", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for text in arguments.sets:
        role, name, genome, *numbers = text.split(",")
        folder = arguments.work / name
        part, skip, alleles = arguments.part, arguments.skip, arguments.alleles
        simulate(folder, Path(genome), numbers, part, skip, alleles)
        for assembler in arguments.assemblers:
            assemble(folder, assembler)
        length, coverage, insert, deviation, seed = map(int, numbers)
        reads = {"length": length, "coverage": coverage, "insert": insert, "seed": seed}
        reads |= {} if part is None else {"part": part}
        reads |= {name: own for name, own in (("skip", skip), ("alleles", alleles)) if own}
        row = {"role": role, "set": name, "genome": Path(genome).name.removesuffix(".fna.gz")}
        found = judged(folder, [each for each in COMMANDS if is_there(folder, each)])
        rows.append(row | {"reads": reads | {"deviation": deviation}, "found": found})
        print(name, found)
        write_document(head() | {"commands": COMMANDS, "rows": rows}, arguments.out)


if __name__ == "__main__":
    main()
