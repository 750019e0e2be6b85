"""The command lines of the programs that are compared, stage by stage.

This module imports the standard library only: the benchmarks measure by it, and the workflow,
which runs its reproductions by it, loads it as a file. All programs of a stage read ``r1.fq`` and
``r2.fq`` in the folder they are started in; those that the suite measures also ``r1.fq.gz`` and
``r2.fq.gz``, and write .gz if they can. To compare another program, add it to its stage's table.
The classifiers, which build databases first, are in ``classifiers``.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

NGSGPU_STATISTICS = "ngsgpu.json"
DEBIAN_ABYSS = "/usr/lib/abyss"
HIDDEN = (DEBIAN_ABYSS, "/usr/share/bbmap")
"""Where Debian keeps Konnector and BBTools, out of the ``PATH``."""


@dataclass(frozen=True, slots=True)
class Work:
    """The description of a program's task.

    Attributes:
        genome_bases: bases of all genomes.
        coverage: reads per position.
        threads: how many threads work.
        backend: ``cpu`` or ``cuda``, for ngsgpu.
        shortest: least length of a connected pair, in bases.
        longest: greatest length of a connected pair, in bases.
        memory_gb: limit for programs that want one.
        bloom: size of Konnector's Bloom filter.
        ending: of the reads' names behind ``.fq``: ``.gz`` where they are compressed.
    """

    genome_bases: int
    coverage: int
    threads: int
    backend: str
    shortest: int = 0
    longest: int = 0
    memory_gb: int = 8
    bloom: str = "480M"
    ending: str = ""

    @property
    def mates(self) -> tuple[str, str]:
        """Names of the files of reads."""
        return (f"r1.fq{self.ending}", f"r2.fq{self.ending}")


@dataclass(frozen=True, slots=True)
class Job:
    """What a program is asked to do.

    Attributes:
        command: what is run, as a shell reads it.
        outputs: its output, first and second mates where it has both.
        output: file for standard output; its second half are the second mates.
        joined: whether it reads both mates from ``both.fq`` (``both.fq.gz``).
    """

    command: str
    outputs: tuple[str, ...]
    output: str | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A program of a stage.

    Attributes:
        title: its name, for people.
        version: command whose answer holds the version.
        job: the command for a task, with what the program's authors advise.
        orders: whether the output is in the order of the input with several threads, too.
        keeps_reads: whether it neither drops nor trims reads.
        environment: its environment in ``envs/``; None if there is no conda package.
    """

    title: str
    version: str
    job: Callable[[Work], Job]
    orders: bool = True
    keeps_reads: bool = True
    environment: str | None = None

    @property
    def path(self) -> str | None:
        """Where the program is: on the PATH, beside this Python, or where Debian hides it."""
        places = [str(Path(sys.executable).parent), *HIDDEN]
        name = self.version.split()[0]
        return shutil.which(name) or shutil.which(name, path=":".join(places))


def ngsgpu_correct(work: Work) -> Job:
    """Our own correction, with the name of its backend in the outputs' names."""
    outputs = (f"{work.backend}_1.fq{work.ending}", f"{work.backend}_2.fq{work.ending}")
    command = (
        f"ngsgpu correct -q --backend {work.backend} -t {work.threads} "
        f"-i {work.mates[0]} -I {work.mates[1]} "
        f"-o {outputs[0]} -O {outputs[1]} --stats {NGSGPU_STATISTICS}"
    )
    return Job(command, outputs)


def lighter(work: Work) -> Job:
    """Lighter is given the genome's size and finds its sampling rate itself.

    From .gz it writes .gz.
    """
    reads = " ".join(f"-r {mate}" for mate in work.mates)
    command = f"lighter {reads} -K 23 {work.genome_bases} -od lighter -t {work.threads}"
    return Job(command, tuple(f"lighter/r{mate}.cor.fq{work.ending}" for mate in (1, 2)))


def bfc(work: Work) -> Job:
    """BFC counts the k-mers of one file, so it gets both mates in one; it writes plain text."""
    command = f"bfc -s {work.genome_bases} -t {work.threads} both.fq{work.ending}"
    return Job(command, ("bfc_1.fq", "bfc_2.fq"), "bfc.fq", joined=True)


def care(program: str, options: str = "") -> Callable[[Work], Job]:
    """CARE on the CPU or the GPU; it reads .gz and writes plain text."""

    def job(work: Work) -> Job:
        reads = " ".join(f"-i {mate}" for mate in work.mates)
        command = (
            f"{program} {reads} -d {program} -o r1.fq -o r2.fq --pairmode PE "
            f"-c {work.coverage} -t {work.threads} -k 20 -h 48 "
            f"--useQualityScores --excludeAmbiguous --candidateCorrection {options}"
        )
        return Job(command.rstrip(), (f"{program}/r1.fq", f"{program}/r2.fq"))

    return job


def sga(work: Work) -> Job:
    """SGA's k-mer correction with the k that its manual advises for reads of 100 bases.

    Reads with N are dropped unless their letters are drawn.
    """
    script = (
        "sga preprocess --pe-mode 1 --permute-ambiguous -o sga_reads.fq r1.fq r2.fq && "
        f"sga index -a ropebwt -t {work.threads} --no-reverse sga_reads.fq && "
        f"sga correct -k 41 --learn -t {work.threads} -o sga.fq sga_reads.fq"
    )
    return Job(f"bash -c {shlex.quote(script)}", ("sga.fq",))


def bayeshammer(work: Work) -> Job:
    """SPAdes' own correction, which trims and drops reads."""
    command = (
        f"spades.py --only-error-correction --disable-gzip-output -1 r1.fq -2 r2.fq "
        f"-t {work.threads} -m {work.memory_gb} -o bayeshammer"
    )
    return Job(command, ("bayeshammer/corrected/*.fastq",))


def tadpole(work: Work) -> Job:
    """BBTools' k-mer correction with its defaults."""
    command = (
        "tadpole.sh in=r1.fq in2=r2.fq out=tadpole_1.fq out2=tadpole_2.fq mode=correct ordered=t "
        f"threads={work.threads} -Xmx{work.memory_gb}g"
    )
    return Job(command, ("tadpole_1.fq", "tadpole_2.fq"))


def ngsgpu_merge(options: str) -> Callable[[Work], Job]:
    """Our own merging with further options, to files with the names of FLASH's."""

    def job(work: Work) -> Job:
        prefix = f"{work.backend}_merged"
        command = (
            f"ngsgpu merge -q --backend {work.backend} -t {work.threads} "
            f"-i {work.mates[0]} -I {work.mates[1]} "
            f"--flash-prefix {prefix} --stats {NGSGPU_STATISTICS}{_compressing(work)}{options}"
        )
        return Job(command, tuple(f"{prefix}.{name}" for name in _flash_names(work)))

    return job


def flash(work: Work) -> Job:
    """FLASH with an overlap of up to 65 bases."""
    command = (
        f"flash -m 10 -M 65 -x 0.25 -t {work.threads} -q -d flash -o reads{_compressing(work)} "
        f"{' '.join(work.mates)}"
    )
    return Job(command, tuple(f"flash/reads.{name}" for name in _flash_names(work)))


def _compressing(work: Work) -> str:
    """The option by which FLASH, and ngsgpu in its place, writes .gz."""
    return " -z" if work.ending else ""


def _flash_names(work: Work) -> list[str]:
    names = ("extendedFrags", "notCombined_1", "notCombined_2")
    return [f"{name}.fastq{work.ending}" for name in names]


def vsearch(work: Work) -> Job:
    """With the defaults of vsearch, but that it may trim fragments shorter than a read."""
    command = (
        "vsearch --fastq_mergepairs r1.fq --reverse r2.fq --fastqout vsearch.fq "
        f"--fastq_allowmergestagger --threads {work.threads}"
    )
    return Job(command, ("vsearch.fq",))


def bbmerge(work: Work) -> Job:
    """BBMerge with its defaults."""
    command = (
        f"bbmerge.sh in=r1.fq in2=r2.fq out=bbmerge.fq ordered=t threads={work.threads} "
        f"-Xmx{work.memory_gb}g"
    )
    return Job(command, ("bbmerge.fq",))


def fastp(work: Work) -> Job:
    """Merging by fastp without its filters and trimming."""
    command = (
        "fastp -i r1.fq -I r2.fq -m --merged_out fastp.fq --out1 fastp_1.fq --out2 fastp_2.fq "
        "--disable_adapter_trimming --disable_quality_filtering --disable_length_filtering "
        f"--disable_trim_poly_g -w {work.threads} -j fastp.json -h fastp.html"
    )
    return Job(command, ("fastp.fq",))


def adapterremoval(work: Work) -> Job:
    """Merging by AdapterRemoval, which also trims adapters; its mark on the names is taken off."""
    script = (
        "AdapterRemoval --file1 r1.fq --file2 r2.fq --basename adapterremoval "
        f"--collapse-deterministic --qualitymax 60 --threads {work.threads} && "
        "cat adapterremoval.collapsed adapterremoval.collapsed.truncated | "
        "sed -E '1~4s/^@MT?_/@/' > adapterremoval.fq"
    )
    return Job(f"bash -c {shlex.quote(script)}", ("adapterremoval.fq",))


def ngsgpu_extend(strict: int, options: str = "") -> Callable[[Work], Job]:
    """Our own extension in a strict mode."""

    def job(work: Work) -> Job:
        name = f"ngsgpu{strict}"
        command = (
            f"ngsgpu extend -q --backend {work.backend} -i r1.fq -I r2.fq -o {name}.fq "
            f"--remaining1 n1.fq --remaining2 n2.fq --min-length {work.shortest} "
            f"--max-length {work.longest} --strict {strict} -t {work.threads} "
            f"--stats {name}.json {options}"
        )
        return Job(command.rstrip(), (f"{name}.fq", "n1.fq", "n2.fq"))

    return job


def konnector(work: Work) -> Job:
    """Konnector with k 32 and a counting Bloom filter of two levels."""
    command = (
        f"konnector -k 32 -b {work.bloom} -c 2 --fastq -j {work.threads} -f {work.shortest} "
        f"-F {work.longest} -o konnector r1.fq r2.fq"
    )
    names = ("pseudoreads", "reads_1", "reads_2")
    return Job(command, tuple(f"konnector_{name}.fq" for name in names))


CARE_ON_GPU = "--useGpuTables --gpuCorrectorThreadConfig 4:0 --batchsize 8192"
NGSGPU = "ngsgpu"


def ours(title: str, job: Callable[[Work], Job]) -> Command:
    """One of our own commands."""
    return Command(title, "ngsgpu --version", job, environment=NGSGPU)


COMMANDS: dict[str, dict[str, Command]] = {
    "correct": {
        NGSGPU: ours("ngsgpu", ngsgpu_correct),
        "care-gpu": Command("CARE, GPU", "care-gpu --version", care("care-gpu", CARE_ON_GPU)),
        "care-cpu": Command("CARE", "care-cpu --version", care("care-cpu")),
        "lighter": Command("Lighter", "lighter -v", lighter, environment="lighter"),
        "bfc": Command("BFC", "bfc -v", bfc, environment="bfc"),
        "sga": Command("SGA", "sga --version", sga, keeps_reads=False, environment="sga"),
        "bayeshammer": Command(
            "BayesHammer",
            "spades.py --version",
            bayeshammer,
            keeps_reads=False,
            environment="spades",
        ),
        "tadpole": Command("Tadpole", "tadpole.sh --version", tadpole, environment="bbmap"),
    },
    "merge": {
        NGSGPU: ours("ngsgpu, as FLASH", ngsgpu_merge(" --flash")),
        "ngsgpu-edgar": ours("ngsgpu", ngsgpu_merge("")),
        "flash": Command("FLASH", "flash --version", flash, orders=False, environment="flash"),
        "vsearch": Command("vsearch", "vsearch --version", vsearch, environment="vsearch"),
        "bbmerge": Command("BBMerge", "bbmerge.sh --version", bbmerge, environment="bbmap"),
        "fastp": Command("fastp", "fastp --version", fastp, orders=False, environment="fastp"),
        "adapterremoval": Command(
            "AdapterRemoval",
            "AdapterRemoval --version",
            adapterremoval,
            orders=False,
            environment="adapterremoval",
        ),
    },
    "extend": {
        **{
            f"ngsgpu-strict{mode}": ours(f"ngsgpu, strict {mode}", ngsgpu_extend(mode))
            for mode in (0, 1, 2)
        },
        "ngsgpu-outward": ours("ngsgpu, strict 0, outward", ngsgpu_extend(0, "--outward")),
        "konnector": Command("Konnector", "konnector --version", konnector, environment="abyss"),
    },
}
