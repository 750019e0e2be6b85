"""The commands that are run: tables of them, and how a table becomes commands for a library."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

# A line a case: its name, after a star if only simulated pairs have what it needs; then the
# command. OUT is the case's folder, IN/ that of all inputs, R the beginning of the library's file
# names, and @CASE:FILE a file written by another case, of the same library unless the case's name
# begins with a slash. A copy of the folder of case X is where a command behind "X >>" begins.
REFERENCES: Final = """
db/one        db build IN/genomes -d OUT/db TAX
db/parts      db build IN/genomes -d OUT/db TAX --partitions 3 --sketch 16 --max-locations 20
db/ambiguous  db build IN/genomes -d OUT/db TAX --partitions 2 --ambiguous-rank genus
db/overfull   db build IN/genomes -d OUT/db TAX --max-locations 4 --remove-overfull
db/plan       db plan IN/genomes -d OUT/db TAX --partitions 2
db/part       db/plan >> db build -d OUT/db --only-partition 1
db/add        db/parts >> db add IN/added -d OUT/db TAX
db/add-last   db/one >> db add IN/added -d OUT/db --into-last
db/info       db info -d @db/add:db --json > OUT/info.json
db/targets    db info -d @db/add-last:db --targets > OUT/targets.tsv
db/verify     db verify -d @db/add:db
"""
PAIRED: Final = """
correct/pairs   correct -i R1.fq -I R2.fq -o OUT/1.fq -O OUT/2.fq --stats OUT/s.json
correct/gzip    correct -i R1.fq.gz -I R2.fq.gz -o OUT/1.fq.gz -O OUT/2.fq.gz --quality-bits 2
extend/strict-0 extend -i @correct/pairs:1.fq -I @correct/pairs:2.fq -o OUT/e.fq --remaining1
    OUT/1.fq --remaining2 OUT/2.fq --stats OUT/s.json
extend/strict-1 extend -i @correct/gzip:1.fq.gz -I @correct/gzip:2.fq.gz -o OUT/e.fa.gz --fasta
    --remaining1 OUT/r.fq.gz --strict 1 --insert-size 350 --insert-sd 60 --stats OUT/s.json
extend/strict-2 extend -i @correct/pairs:1.fq -I @correct/pairs:2.fq -o OUT/e.fq --strict 2
    --include-remaining --outward --insert-size 350 --insert-sd 60 --quality-bits 1
merge/edgar     merge -i R1.fq -I R2.fq -o OUT/m.fq --unmerged1 OUT/1.fq --unmerged2 OUT/2.fq
    --hist OUT/hist --ihist OUT/ihist --trim-adapters --stats OUT/s.json
merge/flash     merge -i R1.fq -I R2.fq --flash --flash-prefix OUT/f -z --allow-outies
merge/gzip      merge -i R1.fq.gz -I R2.fq.gz --correct-only --interleaved-out --unmerged1 OUT/u.fq
classify/pairs  classify -d @/db/one:db -i R1.fq -I R2.fq ALL --coverage OUT/coverage.tsv
classify/part-0 classify -d @/db/add:db -i R1.fq.gz -I R2.fq.gz --only-partition 0 --candidates
    OUT/c --metacache
classify/rest   classify -d @/db/add:db -i R1.fq.gz -I R2.fq.gz --metacache -o OUT/calls.tsv.gz
*correct/lanes  correct -i R1.fq -i R2.fq -o OUT/1.fq -o OUT/2.fq --seed 7 --hashes 16
*correct/mixed  correct -i IN/mixed.fq --interleaved -o OUT/m.fq.gz --stats OUT/s.json
*extend/mixed   extend -i IN/mixed.fq --interleaved -o OUT/e.fq --remaining1 OUT/r.fq
*spectrum/pairs correct --method spectrum -i R1.fq -I R2.fq -o OUT/1.fq -O OUT/2.fq.gz --stats
    OUT/s.json
*spectrum/trim  correct --method spectrum -i R1.fq.gz -I R2.fq.gz -o OUT/1.fq -O OUT/2.fq --trim
    --split OUT/c --rule voting --filter bloom
*spectrum/mixed correct --method spectrum -i IN/mixed.fq --interleaved -o OUT/m.fq.gz --quality
    --rule exhaustive
*deplete/index  deplete-index IN/source.fa --one-in 60 -o OUT/host.idx
*deplete/pairs  deplete -d @deplete/index:host.idx -i R1.fq -I R2.fq -o OUT/1.fq -O OUT/2.fq.gz
    --stats OUT/s.json
*deplete/lanes  deplete -d @deplete/index:host.idx -i R1.fq.gz -i R2.fq -o OUT/1.fq -o OUT/2.fq
    --keep-host
*deplete/mixed  deplete -d @deplete/index:host.idx -i IN/mixed.fq --interleaved -o OUT/m.fq
    --min-bases 60
*kmers/count    kmers count -i R1.fq.gz -I R2.fq -k 31 -o OUT/db --histo OUT/histo
    --stats OUT/s.json
*kmers/long     kmers count -i R1.fq -k 55 --min-count 2 --count-bits 32 -o OUT/db
*kmers/histo    kmers count -i IN/mixed.fq -k 21 --min-quality 10 --histo - > OUT/histo
*kmers/genome   kmers count -i IN/source.fa -k 31 -o OUT/db
*kmers/both     kmers intersect @kmers/count:db @kmers/genome:db -o OUT/db --stats OUT/s.json
*kmers/errors   kmers subtract @kmers/count:db @kmers/genome:db -o OUT/db
*kmers/all      kmers union @kmers/count:db @kmers/genome:db -o OUT/db --stats OUT/s.json
*kmers/dump     kmers dump -d @kmers/errors:db -o OUT/kmers.tsv
*kmers/query    kmers query -d @kmers/count:db -i IN/source.fa --all -o OUT/counts.tsv
*unitigs/reads  unitigs -i R1.fq -I R2.fq -k 31 -o OUT/u.fa --gfa OUT/u.gfa --stats OUT/s.json
*unitigs/stream unitigs -i R1.fq.gz -k 41 --min-abundance 3 -o - > OUT/u.fa
*unitigs/colors unitigs -d @kmers/all:db --gfa OUT/u.gfa.gz --color @kmers/genome:db --colors
    OUT/colors.tsv --stats OUT/s.json
*assemble/pairs assemble -i R1.fq -I R2.fq -o OUT/c.fa --gfa OUT/c.gfa.gz --scaffolds OUT/s.fa
    --coverage OUT/c.bedgraph --stats OUT/s.json
*assemble/mixed assemble -i IN/mixed.fq --interleaved -s R1.fq.gz -k 21,41 -o - > OUT/c.fa
*assemble/euler assemble -i IN/source.fa --method euler -o OUT/c.fa.gz --stats OUT/s.json
*index/bwa      index build IN/source.fa -o OUT/i --stats OUT/s.json
*index/fm       index build IN/source.fa --format fm -o OUT/i
*index/bwt      index build IN/source.fa --format bwt -o OUT/i --stats OUT/s.json
*index/sa       index build IN/source.fa --format sa -o OUT/i
*index/query    index query @index/bwa:i -i R1.fq.gz -i R2.fq -o OUT/m.paf --stats OUT/s.json
*index/whole    index query @index/fm:i -i IN/mixed.fq --whole > OUT/m.paf
*merge/mixed    merge -i IN/mixed.fq --interleaved-in -o OUT/m.fq.gz --unmerged1 OUT/1.fq.gz
    --unmerged2 OUT/2.fq.gz --overlap flash --max-overlap auto --fragment-length 220
*classify/mixed classify -d @/db/parts:db -i IN/mixed.fq --interleaved ALL --metacache
*classify/part-1 classify -d @/db/parts:db -i R1.fq -I R2.fq --only-partition 1 --candidates OUT/c
*classify/part-2 classify -d @/db/parts:db -i R1.fq -I R2.fq --only-partition 2 --candidates OUT/c
*classify/part-3 classify -d @/db/parts:db -i R1.fq -I R2.fq --only-partition 0 --candidates OUT/c
*classify/merge classify-merge -d @/db/parts:db @classify/part-3:c @classify/part-1:c
    @classify/part-2:c ALL --coverage OUT/coverage.tsv
*classify/memory classify --references IN/genomes TAX -i R1.fq -I R2.fq -o OUT/calls.tsv
*evaluate/correction evaluate correction --truth IN/truth.sam -i R1.fq -I R2.fq -o
    @correct/pairs:1.fq -O @correct/pairs:2.fq --json OUT/e.json --mqc-prefix OUT/mqc
*evaluate/merging evaluate merging --truth IN/truth.sam -i R1.fq -I R2.fq -m @merge/edgar:m.fq
    --json OUT/e.json
*evaluate/extension evaluate extension --truth IN/truth.sam --reference IN/source.fa --extended
    @extend/strict-0:e.fq --json OUT/e.json
"""
SINGLE: Final = """
correct/single  correct -i R1.fq.gz -o OUT/1.fq --coverage 30 --quality-bits 0 --stats OUT/s.json
"""
ANY: Final = """
correct/fasta   correct -i R1.fa -o OUT/1.fa.gz --kmer 16 --stats OUT/s.json
classify/fasta  classify -d @/db/ambiguous:db -i R1.fa.gz ALL --columns taxon,score
kmers/sample    kmers spectrum -i R1.fa.gz -o OUT/kmers.tsv
kmers/exact     kmers spectrum -k 25 --exact -i R1.fa > OUT/kmers.tsv
evaluate/calls  evaluate classification --classified @classify/fasta:calls.tsv --taxonomy
    IN/taxonomy --truth IN/truth.tsv --references @/db/ambiguous:db --json OUT/e.json
"""
REFUSED: Final = """
correct         correct -i IN/BAD.fq -o OUT/1.fq --stats OUT/s.json
correct-pairs   correct -i IN/first.1.fq -I IN/BAD.fq -o OUT/1.fq -O OUT/2.fq
extend          extend -i IN/first.1.fq -I IN/BAD.fq -o OUT/e.fq
merge           merge -i IN/first.1.fq -I IN/BAD.fq -o OUT/m.fq --unmerged1 OUT/1.fq --unmerged2
    OUT/2.fq
kmers           kmers spectrum -i IN/BAD.fq -o OUT/kmers.tsv
kmers-count     kmers count -i IN/BAD.fq -o OUT/db --histo OUT/histo --stats OUT/s.json
unitigs         unitigs -i IN/BAD.fq -o OUT/u.fa --gfa OUT/u.gfa
assemble        assemble -i IN/BAD.fq -o OUT/c.fa --stats OUT/s.json
index           index build IN/BAD.fq -o OUT/i
classify        classify -d @/db/one:db -i IN/BAD.fq -o OUT/calls.tsv --report OUT/report.txt
db              db build IN/BAD.fq -d OUT/db
"""
WRONG: Final = """
wrong/strict    extend -i IN/first.1.fq -I IN/first.2.fq -o OUT/e.fq --strict 3
wrong/kmer      correct -i IN/first.1.fq -o OUT/1.fq --kmer 99
wrong/same      correct -i IN/same.fq -o IN/same.fq
wrong/backend   correct -i IN/first.1.fq -o OUT/1.fq --backend none
wrong/folder    correct -i IN/first.1.fq -o OUT/nowhere/1.fq
wrong/database  classify -d IN/foreign -i IN/first.1.fq -o OUT/calls.tsv
wrong/foreign   db build IN/first.fa -d IN/foreign
wrong/fasta     merge -i IN/first.fa -I IN/first.fa -o OUT/m.fq
wrong/nothing   kmers count -i IN/first.1.fq
wrong/stats     kmers count -i IN/first.1.fq -o OUT/db --stats IN/first.1.fq
wrong/even      unitigs -i IN/first.1.fq -k 30 -o OUT/u.fa
wrong/index     index query IN/foreign -i IN/first.1.fq -o OUT/m.paf
wrong/truth     evaluate correction --truth IN/first.fa -i IN/first.1.fq -o IN/first.1.fq
"""
TIGHT: Final = """
tight/correct   correct -i R1.fq -I R2.fq -o OUT/1.fq -O OUT/2.fq
tight/extend    extend -i R1.fq -I R2.fq -o OUT/e.fq
tight/db        db build IN/genomes -d OUT/db TAX
tight/classify  classify -d @/db/one:db -i R1.fq -I R2.fq -o OUT/calls.tsv
"""
WITH_BACKEND: Final = (
    "correct", "extend", "merge", "deplete", "classify", "unitigs", "assemble", "index",
    ["db", "build"], ["kmers", "count"],
)  # fmt: skip
WITH_THREADS: Final = (
    *WITH_BACKEND, "classify-merge", "deplete-index", "kmers", ["db", "plan"], ["db", "add"],
    ["evaluate", "correction"], ["evaluate", "merging"],
)  # fmt: skip
ALL_OUTPUTS: Final = (
    "-o OUT/calls.tsv --stats OUT/s.json --kraken-reads OUT/kraken --report OUT/report --krona "
    "OUT/krona --cami OUT/cami --biom OUT/biom --abundance OUT/abundance"
)


@dataclass
class Case:
    """One command, run with both versions.

    Attributes:
        name: also the folder that it writes to, below the version's own.
        argv: the arguments of ngsgpu.
        needs: cases that have to run before.
        copied: the case whose folder it changes a copy of.
        stdout: the file that standard output goes to, if it is data.
    """

    name: str
    argv: list[str]
    needs: set[str]
    copied: str | None
    stdout: str | None


@dataclass(frozen=True)
class Options:
    """What the commands get beside what the tables say.

    Attributes:
        backend: ``cpu`` or ``cuda``.
        threads: of each command.
        gpu_memory: of each command; None for what is free.
        taxonomy: options of ``db`` for the taxonomy.
    """

    backend: str
    threads: int
    gpu_memory: str | None
    taxonomy: str


def parse_cases(table: str, library: str, options: Options) -> list[Case]:
    """The cases of a table for a library, with the options for threads and backend."""
    cases = []
    for line in filter(None, re.sub(r"\n +", " ", table).splitlines()):
        own, command = line.split(maxsplit=1)
        start, _, command = command.rpartition(" >> ")
        command, _, stdout = command.partition(" > ")
        name = "/".join(filter(None, (options.backend, library, own)))
        command = re.sub(r"\bALL\b", ALL_OUTPUTS, command)
        command = re.sub(r"\bTAX\b", options.taxonomy, command)
        command = re.sub(r"\bOUT\b", name, command)
        command = re.sub(r"(?<!\S)R(?=[12]\.)", f"IN/{library}.", command)
        needs = {f"{options.backend}/{start}"} if start else set()
        argv = []
        for word in shlex.split(command):
            other = re.fullmatch(r"@(/?)([\w/-]+):(\S+)", word)
            if other:
                of_library = () if other[1] or not library else (library,)
                case = "/".join((options.backend, *of_library, other[2]))
                needs.add(case)
                word = f"{case}/{other[3]}"
            argv.append(re.sub(r"^IN/", "../inputs/", word))
        if argv[0] in WITH_THREADS or argv[:2] in WITH_THREADS:
            argv += ["--threads", str(options.threads)]
        if (argv[0] in WITH_BACKEND or argv[:2] in WITH_BACKEND) and "--backend" not in argv:
            argv += ["--backend", options.backend]
            argv += ["--gpu-memory", options.gpu_memory] if options.gpu_memory else []
        cases.append(
            Case(name, argv, needs, f"{options.backend}/{start}" if start else None,
                 stdout.replace("OUT", name) or None)
        )  # fmt: skip
    return cases


def tables_for(kinds: set[str], *, is_simulated: bool) -> str:
    """The tables that fit a library; see ``inputs.write_libraries``."""
    tables = ANY + (SINGLE if "fastq" in kinds else "") + (PAIRED if "pairs" in kinds else "")
    return tables.replace("*", "") if is_simulated else re.sub(r"(?m)^\*.*\n( .*\n)*", "", tables)


def all_cases(
    options: Options, libraries: dict[str, set[str]], damaged: list[str], tight: list[str]
) -> list[list[list[Case]]]:
    """The cases of a backend: groups that follow each other, of rows that may run side by side.

    Args:
        options: for all commands.
        libraries: of the folder of reads, see ``inputs.write_libraries``.
        damaged: files that must be refused.
        tight: amounts of GPU memory to run with, too.
    """
    rows = [parse_cases(tables_for({"pairs", "fastq"}, is_simulated=True), "simulated", options)]
    for library, kinds in libraries.items():
        rows.append(parse_cases(tables_for(kinds, is_simulated=False), library, options))
    for name in damaged:
        rows.append(parse_cases(REFUSED.replace("BAD", name), f"refused/{name}", options))
    rows.append(parse_cases(WRONG, "", options))
    for size in tight:
        table = TIGHT.replace("tight/", f"tight-{size}/")
        rows.append(parse_cases(table, "simulated", replace(options, gpu_memory=size)))
    return [[parse_cases(REFERENCES, "", options)], rows]


def select(
    groups: list[list[list[Case]]], only: re.Pattern[str], lacking: list[str]
) -> list[list[list[Case]]]:
    """Select the cases whose name contains a pattern, and what they need.

    Args:
        groups: see :func:`all_cases`.
        only: the pattern.
        lacking: inputs that are not there; cases that need them go.
    """
    kept: dict[str, Case] = {}
    for case in chain.from_iterable(chain.from_iterable(groups)):
        if case.needs <= kept.keys() and not set(lacking) & set(case.argv):
            kept[case.name] = case
    todo = [name for name in kept if only.search(name)]
    chosen: set[str] = set()
    while todo:
        name = todo.pop()
        todo += kept[name].needs - chosen
        chosen.add(name)
    return [[[case for case in row if case.name in chosen] for row in rows] for rows in groups]
