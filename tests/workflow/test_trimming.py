"""Real samples are trimmed before everything else, unless the config says otherwise."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import shutil
from pathlib import Path

import pytest

from tests.support.adapters import Pair, pairs_of, random_genome, write_mates
from tests.support.io.alignments import Alignment, bam
from tests.support.workflow import Snakemake, jobs

pytestmark = pytest.mark.slow
TRIMMING = ("find_adapters", "trim_pairs", "trim_single")
BY_FASTP = ("trim_pairs_by_fastp", "trim_single_by_fastp")
WITH_FASTP = ("--config", "trim={engine: fastp}")
needs_fastp = pytest.mark.skipif(shutil.which("fastp") is None, reason="fastp is not installed")


def test_nothing_sees_untrimmed_reads(snakemake: Snakemake) -> None:
    """And simulated ones stay as they are."""
    plan = snakemake("--dry-run", "--printshellcmds")
    assert plan.returncode == 0, plan.stdout
    counted = jobs(plan.stdout)
    assert [counted[rule] for rule in TRIMMING] == [2, 1, 1]
    for line in plan.stdout.splitlines():
        # The study's manifest names the files as well, and its title the program.
        if "data/na12878" in line and "ngsgpu " in line and "study_manifest.py" not in line:
            assert "ngsgpu adapters " in line or "ngsgpu trim " in line, line
    assert "ngsgpu correct -i results/repeats_20kb/simulate/R1.fastq.gz" in plan.stdout
    assert "ngsgpu correct -i results/na12878_8kb/trim/R1.fastq.gz" in plan.stdout
    assert "ngsgpu correct -i results/na12878_single/trim/reads.fastq.gz" in plan.stdout


def test_switched_off(snakemake: Snakemake) -> None:
    plan = snakemake("--dry-run", "--quiet", "rules", "--config", "trim={enabled: false}")
    assert plan.returncode == 0, plan.stdout
    assert not {*TRIMMING} & jobs(plan.stdout).keys()


def test_fastp_where_the_config_says_so(snakemake: Snakemake) -> None:
    plan = snakemake("--dry-run", "--printshellcmds", *WITH_FASTP)
    assert plan.returncode == 0, plan.stdout
    counted = jobs(plan.stdout)
    assert [counted[rule] for rule in ("find_adapters", *BY_FASTP)] == [2, 1, 1]
    assert not {*TRIMMING[1:]} & counted.keys()
    assert "results/versions/fastp.txt" in plan.stdout
    plan = snakemake("--dry-run")
    assert "fastp.txt" not in plan.stdout and not {*BY_FASTP} & jobs(plan.stdout).keys()


def test_before_depletion(snakemake: Snakemake, study: Path) -> None:
    (study / "host.idx").touch()
    (study / "more.yaml").write_text("deplete: {host: host.idx}\n")
    plan = snakemake("--dry-run", "-p", "--configfile", "config/config.yaml", "more.yaml")
    assert plan.returncode == 0, plan.stdout
    assert "ngsgpu deplete -d host.idx -i results/na12878_8kb/trim/R1.fastq.gz" in plan.stdout
    assert "ngsgpu correct -i results/na12878_8kb/deplete/R1.fastq.gz" in plan.stdout


@pytest.mark.parametrize(("gpus", "granted"), [(0, 1), (1, 0), (1, 1)])
def test_on_a_gpu_where_config_and_limit_say_so(
    snakemake: Snakemake, study: Path, gpus: int, granted: int
) -> None:
    (study / "more.yaml").write_text(f"trim: {{gpu: {gpus}}}\n")
    files = ("config/config.yaml", "more.yaml")
    plan = snakemake("--dry-run", "-p", "--resources", f"gpu={granted}", "--configfile", *files)
    assert plan.returncode == 0, plan.stdout
    commands = [line for line in plan.stdout.splitlines() if "ngsgpu trim " in line]
    commands = [line for line in commands if "/trim/fastp.json" in line]
    assert commands
    for line in commands:
        assert ("--gpus 1" in line) == (gpus + granted == 2)
        assert ("--backend cpu" in line) == (gpus + granted < 2)


def test_published_comparisons_take_the_reads_as_they_are(
    snakemake: Snakemake, study: Path
) -> None:
    (study / "more.yaml").write_text("reproduce: {stage: correct, programs: [ngsgpu]}\n")
    plan = snakemake("--dry-run", "--configfile", "config/config.yaml", "more.yaml")
    assert plan.returncode == 0, plan.stdout
    assert not {*TRIMMING} & jobs(plan.stdout).keys()


def cut_rightly(pairs: list[Pair], *paths: Path) -> int:
    """Reads in files of trimmed ones that end where their fragment does."""
    lengths: dict[str, int] = {}
    for path in paths:
        with gzip.open(path, "rt") as file:
            lines = file.read().splitlines()
        lengths |= {name: len(read) for name, read in zip(lines[::4], lines[1::4], strict=True)}
    return sum(
        lengths.get(f"@p{number}/{mate}") == min(150, pair.fragment)
        for number, pair in enumerate(pairs)
        for mate in (1, 2)
    )


def write_samples(study: Path, pairs: list[Pair]) -> list[str]:
    """Pairs, the same as lanes of single reads, FASTA, damaged and empty reads; their names."""
    one, _ = write_mates(study, pairs)
    (study / "fasta.fa").write_text(">a\nACGTACGTTACGATCATCAGCACTT\n")
    (study / "cut.fq.gz").write_bytes(gzip.compress(one.read_bytes())[:-4000])
    (study / "empty.fq").touch()
    rows = ("pairs\tr1.fq\tr2.fq", "lanes\tr1.fq\t", "lanes\tr2.fq\t", "fasta\tfasta.fa\t",
            "cut\tcut.fq.gz\t", "empty\tempty.fq\t")  # fmt: skip
    (study / "own.tsv").write_text("\n".join(("sample\tfastq_1\tfastq_2", *rows, "")))
    (study / "own.yaml").write_text("samples: own.tsv\n")
    return ["pairs", "lanes", "fasta", "cut", "empty"]


ENGINES = {
    "ngsgpu": "fasta.fa, record 1, line 1: this is FASTA, but trimming needs qualities",
    "fastp": "fastp took 0 of 1 reads",
}


@pytest.mark.parametrize("engine", ["ngsgpu", pytest.param("fastp", marks=needs_fastp)])
def test_trimmed_reads_and_such_that_cannot_be(
    snakemake: Snakemake, study: Path, engine: str
) -> None:
    rng = random.Random(1)
    pairs = pairs_of(rng, random_genome(rng, 20_000), 800)
    names = write_samples(study, pairs)
    done = snakemake(
        "--cores", "2", "--keep-going", "--configfile", "own.yaml",
        "--config", f"trim={{engine: {engine}}}", "--",
        *(f"results/{name}/trim/fastp.json" for name in names),
    )  # fmt: skip
    assert done.returncode == 1, done.stdout
    places = {name: study / f"results/{name}/trim/fastp.json" for name in names}
    assert [name for name in names if not places[name].exists()] == ["fasta", "cut"]
    texts = {name: path.read_text() for name, path in places.items() if path.exists()}
    assert not [*study.glob("results/*/trim/lanes")]

    with_adapter = sum(pair.fragment <= 142 for pair in pairs)
    figures = json.loads(texts["pairs"])
    assert 2 * 0.95 * with_adapter <= figures["adapter_cutting"]["adapter_trimmed_reads"]
    mates = [study / f"results/pairs/trim/R{mate}.fastq.gz" for mate in (1, 2)]
    assert cut_rightly(pairs, *mates) > 0.97 * 2 * len(pairs)

    figures = json.loads(texts["lanes"])
    assert figures["summary"]["before_filtering"]["total_reads"] == 1600
    assert cut_rightly(pairs, study / "results/lanes/trim/reads.fastq.gz") > 0.97 * 2 * len(pairs)
    # Of single reads, those with the first adapter alone are counted, though all are cut.
    assert figures["adapter_cutting"]["adapter_trimmed_reads"] >= with_adapter
    assert json.loads(texts["empty"])["summary"]["after_filtering"]["total_reads"] == 0

    assert ENGINES[engine] in (study / "logs/trim_reads/fasta.log").read_text()
    log = (study / "logs/find_adapters/cut.log").read_text()
    assert "cut.fq.gz: the gzip data end early" in log


def test_what_commands_read_the_workflow_reads(snakemake: Snakemake, study: Path) -> None:
    """Pairs and single reads of BAM, lanes in several compressions; fastp does not read them."""
    rng = random.Random(4)
    one, two = write_mates(study, pairs_of(rng, random_genome(rng, 20_000), 200))
    texts = one.read_bytes(), two.read_bytes()
    records = [
        Alignment(lines[4 * i][1:].split(b"/")[0], flags, lines[4 * i + 1],
                  bytes(own - 33 for own in lines[4 * i + 3]))
        for i in range(200)
        for flags, lines in zip((77, 141), (text.splitlines() for text in texts), strict=True)
    ]  # fmt: skip
    (study / "p.bam").write_bytes(bam(records))
    (study / "s.bam").write_bytes(bam([own._replace(flags=4) for own in records[::2]]))
    (study / "r1.fq.bz2").write_bytes(bz2.compress(texts[0]))
    (study / "r2.fq.xz").write_bytes(lzma.compress(texts[1]))
    (study / "own.tsv").write_text(
        "sample\tfastq_1\tfastq_2\nfq\tr1.fq\tr2.fq\nbam\tp.bam\tp.bam\nsingle\ts.bam\t\n"
        "packed\tr1.fq.bz2\tr2.fq.xz\n"
    )
    (study / "own.yaml").write_text("samples: own.tsv\n")
    paired = [(own, mate) for own in ("fq", "bam", "packed") for mate in (1, 2)]
    names = [f"results/{own}/trim/R{mate}.fastq.gz" for own, mate in paired]
    names.append("results/single/trim/reads.fastq.gz")
    done = snakemake("--cores", "2", "--configfile", "own.yaml", "--", *names)
    assert done.returncode == 0, done.stdout
    bases = [gzip.decompress((study / name).read_bytes()).splitlines()[1::4] for name in names]
    assert bases[:2] == bases[2:4] == bases[4:6] and len(bases[0]) == len(bases[6]) == 200
    for settings, said in (("engine: fastp", "p.bam"), ("enabled: false", "p.bam")):
        config = ("--configfile", "own.yaml", "--config", f"trim={{{settings}}}")
        done = snakemake("--dry-run", *config)
        assert done.returncode == 1 and f"'{said}' is read by ngsgpu only" in done.stdout


@needs_fastp
def test_both_engines_write_the_same(snakemake: Snakemake, study: Path) -> None:
    """A change of the engine is a reason to trim again."""
    rng = random.Random(2)
    write_samples(study, pairs_of(rng, random_genome(rng, 20_000), 300))
    files = [
        f"results/{name}" for name in ("pairs/trim/R1.fastq.gz", "pairs/trim/R2.fastq.gz",
        "pairs/trim/fastp.json", "lanes/trim/reads.fastq.gz", "lanes/trim/fastp.json")
    ]  # fmt: skip
    written = []
    for engine, others in ((), {*BY_FASTP}), (WITH_FASTP, {*TRIMMING[1:]}):
        done = snakemake("--cores", "2", "--configfile", "own.yaml", *engine, "--", *files)
        assert done.returncode == 0, done.stdout
        assert not others & jobs(done.stdout).keys()
        texts = [(study / name).read_bytes() for name in files]
        reads = [gzip.decompress(text) for text in texts if text.startswith(b"\x1f")]
        reports = [json.loads(text) for text in texts if text.startswith(b"{")]
        for report in reports:
            report["summary"].pop("fastp_version"), report.pop("command")
            report.pop("insert_size", None)  # fastp counts those of one thread alone
        written.append((reads, reports))
    assert written[0] == written[1]
