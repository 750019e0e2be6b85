"""Contigs of isolates: contiguity, errors and time of ngsgpu and other assemblers, by QUAST.

    python -m benchmarks.accuracy.assembly --work FOLDER -o out.json \
        --set chosen,k12_150,K12.fna.gz,150,40,350,50,11 [--set checked,...] [--part 1000000]

A set is ROLE,NAME,GENOME,LENGTH,COVERAGE,INSERT,DEVIATION,SEED: pairs are simulated by ART (profile
HS25, or that of ``--profile P``, PR1.txt and PR2.txt), with ``--part`` of the first bases of the
genome's longest sequence alone, from ``--skip`` on; ``--alleles N`` takes half of the pairs from a
copy with N differences in 10,000 bases, of which a tenth are of one base more or less; with
``--plasmids N``, the genome's other sequences are circles, N of each. What is already in
FOLDER/NAME is not made again: R1.fq and R2.fq, and the contigs (.fa) of an assembler with its time
(.time: elapsed s, user s, KiB; or - if it was not measured). Those of ``--assemblers`` are run, and
all that are there are judged, by QUAST and, unless there are alleles, by ``wrong_contigs``; SPAdes,
shovill, and ngsgpu behind correction and merging, run only where they are named. What ``--keep``,
a file of earlier results, has of the same reads and other assemblers is kept. art_illumina, the
assemblers and quast.py have to be on the PATH.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
import resource
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from benchmarks.accuracy.wrong_contigs import Reference, read_fasta, summary
from benchmarks.harness.document import head, write_document
from benchmarks.harness.tables import markdown

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


def write_reference(
    genome: Path, part: int | None, skip: int, reference: Path, *, others: bool = False
) -> None:
    """Write a genome, or some bases of its longest sequence, with A, C, G and T alone.

    Args:
        genome: FASTA file.
        part: bases of the longest sequence; None: all of all sequences.
        skip: bases before the part.
        reference: FASTA file to write.
        others: whether the other sequences are written behind the part.
    """
    opener = gzip.open if genome.suffix == ".gz" else open
    with opener(genome, "rb") as source:
        records = source.read().split(b">")[1:]
    if part is not None:
        longest = max(records, key=len)
        name, _, text = longest.partition(b"\n")
        own = name + b"\n" + b"".join(text.split())[skip : skip + part] + b"\n"
        records = [own, *(each for each in records if others and each is not longest)]
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


def write_molecules(reference: Path, copies: int, molecules: Path) -> None:
    """Write the first sequence once, and the others some times, as reads of circles need them."""
    with molecules.open("w") as target:
        for number, (name, text) in enumerate(read_fasta(reference).items()):
            target.write(f">{name}\n{text * (copies if number else 1)}\n")


def simulate(
    folder: Path,
    genome: Path,
    numbers: list[str],
    part: int | None,
    skip: int = 0,
    alleles: int = 0,
    plasmids: int = 0,
    profile: str | None = None,
) -> None:
    """Make ref.fa, R1.fq and R2.fq."""
    folder.mkdir(parents=True, exist_ok=True)
    reference = folder / "ref.fa"
    if not reference.exists():
        write_reference(genome, part, skip, reference, others=plasmids > 0)
    if not (folder / "R2.fq").exists():
        length, coverage, insert, deviation, seed = numbers
        source = reference
        if alleles:
            source, coverage = folder / "both.fa", str(int(coverage) / 2)
            write_alleles(reference, alleles, source)
        elif plasmids:
            source = folder / "molecules.fa"
            write_molecules(reference, plasmids, source)
        errors = f"-1 {profile}R1.txt -2 {profile}R2.txt" if profile else "-ss HS25"
        command = (
            f"art_illumina {errors} -i {source.name} -p -l {length} -f {coverage} -m {insert} "
            f"-s {deviation} -rs {seed} -na -q -o R"
        )
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


def judged(
    folder: Path, names: list[str], reference: Reference | None = None
) -> dict[str, dict[str, Any]]:
    """QUAST's numbers for each assembler, its time, and what a reference says is wrong."""
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
        if reference is not None:
            found[name]["in_reference"] = summary(read_fasta(folder / f"{name}.fa"), reference)
    return found


def _number(text: str) -> float | None:
    """A number of QUAST's; None where contigs are too short for it to tell."""
    return None if text == "-" else float(text)


def measured(text: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """What assemblers make of a set."""
    role, name, genome, *numbers = text.split(",")
    folder = arguments.work / name
    part, skip, alleles = arguments.part, arguments.skip, arguments.alleles
    profile = arguments.profile and str(Path(arguments.profile).absolute())
    plasmids = arguments.plasmids
    simulate(folder, Path(genome), numbers, part, skip, alleles, plasmids, profile)
    for assembler in arguments.assemblers:
        assemble(folder, assembler)
    length, coverage, insert, deviation, seed = map(int, numbers)
    reads = {"length": length, "coverage": coverage, "insert": insert, "seed": seed}
    reads |= {} if part is None else {"part": part}
    more = {"skip": skip, "alleles": alleles, "plasmids": plasmids}
    more["profile"] = profile and Path(profile).name
    reads |= {key: own for key, own in more.items() if own} | {"deviation": deviation}
    sequences = list(read_fasta(folder / "ref.fa").values())
    reference = None if alleles else Reference(sequences, circular=part is None or plasmids > 0)
    found = judged(folder, [each for each in COMMANDS if is_there(folder, each)], reference)
    kept = json.loads(arguments.keep.read_text())["rows"] if arguments.keep else []
    for row in kept:
        if (row["set"], row["reads"]) == (name, reads):
            found = row["found"] | found
    found = {key: found[key] for key in COMMANDS if key in found}
    genome = Path(genome).name.removesuffix(".fna.gz")
    return {"role": role, "set": name, "genome": genome, "reads": reads, "found": found}


TITLES = {
    "ngsgpu": "`ngsgpu assemble`",
    "megahit": "MEGAHIT",
    "skesa": "SKESA",
    "spades": "SPAdes",
}

_SHOWN = {"mismatches_per_100_kb": 1, "indels_per_100_kb": 1, "genome_percent": 2}
"""Numbers of the table, and their digits."""


def table(result: dict[str, Any]) -> str:
    """The table of results: a row for each set, with NGA50 of each assembler and what is wrong."""
    rows = result["rows"]
    programs = [each for each in TITLES if any(each in row["found"] for row in rows)]
    of_each = " of each" if len(programs) > 1 else ""
    roles = len({row["role"] for row in rows}) > 1
    head = ["genome", *(["role"] if roles else []), "reads", *(TITLES[each] for each in programs)]
    names = len(head) - len(programs)
    head += [f"{name}{of_each}" for name in ("mismatches per 100 kb", "indels", "genome %")]
    lines = [head]
    titles = [_title(row["genome"], row["reads"]) for row in rows]
    shown = ""
    for title, row in sorted(zip(titles, rows, strict=True), key=lambda own: titles.index(own[0])):
        found, reads = row["found"], row["reads"]
        cells = ["" if title == shown else title, *([row["role"]] if roles else [])]
        cells.append(f"2 x {reads['length']}, {reads['coverage']} x")
        cells += [_contiguity(found[each]) if each in found else "" for each in programs]
        there = [found[each] for each in programs if each in found]
        cells += [
            ", ".join("-" if own[field] is None else f"{own[field]:.{digits}f}" for own in there)
            for field, digits in _SHOWN.items()
        ]
        lines.append(cells)
        shown = title
    return markdown(lines, names=names)


def _title(genome: str, reads: dict[str, Any]) -> str:
    """A genome, and where its part begins."""
    species, _, strain = genome.partition("__")
    family, _, kind = species.partition("_")
    name = f"*{family[0].upper()}. {kind}* {strain.replace('K_12', 'K-12').replace('_', ' ')}"
    if family == "human":
        name = species.partition("_first")[0].replace("_", " ")
    elif kind.startswith("sp_"):
        name = f"*{family.capitalize()}* {kind[3:].replace('_', ' ').upper()}"
    name = name.strip()
    if plasmids := reads.get("plasmids"):
        name += f", {reads['part'] / 1_000_000:g} Mb and {plasmids} copies of plasmids"
    skip = reads.get("skip")
    return f"{name}, from {skip / 1_000_000:g} Mb on" if skip else name


def _contiguity(found: dict[str, Any]) -> str:
    """NGA50, in brackets misassemblies, and how many contigs are not in the reference."""
    length = found["nga50"]
    text = "-" if length is None else f"{length:,.0f}"
    if found["misassemblies"]:
        text += f" ({found['misassemblies']:.0f})"
    wrong = found.get("in_reference", {}).get("wrong")
    return f"{text}, {wrong} wrong" if wrong else text


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", action="append", required=True, dest="sets")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--part", type=int)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--alleles", type=int, default=0)
    parser.add_argument("--plasmids", type=int, default=0)
    parser.add_argument("--profile")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--assemblers", nargs="+", default=DEFAULTS, choices=list(COMMANDS))
    parser.add_argument("-o", "--out", type=Path, required=True)
    arguments = parser.parse_args()
    rows = []
    for text in arguments.sets:
        rows.append(measured(text, arguments))
        print(rows[-1]["set"], rows[-1]["found"])
        write_document(
            head("ngsgpu.benchmark.assembly") | {"commands": COMMANDS, "rows": rows}, arguments.out
        )


if __name__ == "__main__":
    main()
