"""Published comparisons: which programs are run on which reads, and what is set beside what."""

from __future__ import annotations

import csv
import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from benchmarks.peers.classifiers import PROGRAMS
from benchmarks.peers.commands import COMMANDS
from scripts.fetch_truth import manifest
from tests.support.report import write_note
from tests.support.workflow import ROOT, Snakemake, jobs, write_program

CONFIGS = sorted((ROOT / "config" / "reproduce").glob("*/small.yaml"))
SCRIPTS = ROOT / "scripts"


def script(name: str, *arguments: object, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run a script of the workflow."""
    return subprocess.run(
        [sys.executable, SCRIPTS / name, *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def reproduction(study: Path, tmp_path: Path) -> Path:
    """The folder of data, with empty files that the small studies name."""
    (study / "config" / "reproduce").symlink_to(ROOT / "config" / "reproduce")
    data = tmp_path / "some data"
    names = [
        "genomes/eukaryote/celegans_truncated_chromosomes.fa.gz",
        "genomes/bacteria/escherichia_coli__K_12_MG1655.fna.gz",
        "reads/refs/human_chr20_hg19_9995001-11095000.fa.gz",
        "reads/human_NA12878_chr20_10Mb_R1.fastq.gz",
        "reads/human_NA12878_chr20_10Mb_R2.fastq.gz",
        "reads/kraken_HiSeq_accuracy.fa.gz",
        "reads/merge_16S_v4_miseqsop_F3D0_R1.fastq.gz",
        "reads/merge_16S_v4_miseqsop_F3D0_R2.fastq.gz",
        "reads/refs/ecoli_mg1655_first10kb.fa.gz",
        "genomes/virus/sars_cov_2_MN908947.3.fa.gz",
        *(
            f"reads/{name}_R{mate}.fastq.gz"
            for name in (
                "ecoli_mg1655_10kb",
                "sarscov2_artic_miseq",
                "sarscov2_miseq_MN908947_3",
            )
            for mate in (1, 2)
        ),
        "taxonomy/kraken_labels.tsv",
        *(f"taxonomy/bacteria/{name}" for name in ("nodes.dmp", "names.dmp", "seqid2taxid.tsv")),
    ]
    with (ROOT / "config/reproduce/mini-cami/composition.tsv").open() as file:
        rows = csv.DictReader((line for line in file if line[0] != "#"), delimiter="\t")
        names += [f"genomes/bacteria/{row['genome']}" for row in rows]
    for name in names:
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).touch()
    return data


def dry_run(
    snakemake: Snakemake, config: Path, data: Path, *more: str
) -> subprocess.CompletedProcess[str]:
    """What a small study would run."""
    where = f"config/reproduce/{config.parent.name}/small.yaml"
    return snakemake("--dry-run", "--configfile", where, *more, "--config", f"data={data}")


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.parent.name)
def test_each_small_study_ends_in_a_page(
    snakemake: Snakemake, reproduction: Path, config: Path
) -> None:
    result = dry_run(snakemake, config, reproduction, "--quiet", "rules")
    assert result.returncode == 0, result.stdout
    counted = jobs(result.stdout)
    assert counted["set_beside"] == 1
    stage = yaml.safe_load(config.read_text())["reproduce"]["stage"]
    runs = "classify_program" if stage == "classify" else "run_program"
    # ngsgpu always takes part.
    assert counted[runs] >= 1
    assert "write_report" not in counted


def test_reads_of_known_variants(snakemake: Snakemake, reproduction: Path) -> None:
    for entry in (entry for entry in manifest() if entry.set == "giab-chr20"):
        for name in entry.file.split(","):
            path = reproduction / entry.set / name
            path.parent.mkdir(exist_ok=True)
            path.touch()
    where = "config/reproduce/real-correction/full.yaml"
    data = f"data={reproduction}"
    done = snakemake("--dry-run", "--configfile", where, "--config", data)
    assert done.returncode == 0, done.stderr
    assert {"judge_mapped", "set_beside"} <= set(jobs(done.stdout))


def test_programs_that_are_not_here_are_told(snakemake: Snakemake, reproduction: Path) -> None:
    config = ROOT / "config/reproduce/care-correction/small.yaml"
    result = dry_run(snakemake, config, reproduction, "--printshellcmds")
    assert '"name": "care-cpu", "title": "CARE", "is_installed": false' in result.stdout
    assert "run_program/celegans_1mb/care-cpu" not in result.stdout
    assert "-i r1.fq -I r2.fq -o cpu_1.fq -O cpu_2.fq" in result.stdout


def test_with_conda_all_that_have_packages_take_part(
    snakemake: Snakemake, reproduction: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    write_program(
        tmp_path / "bin" / "conda",
        f"""#!/bin/sh
case "$1" in
    info) echo '{{"conda_prefix": "{tmp_path}", "platform": "linux-64"}}' ;;
    --version) echo "conda 26.1.0" ;;
    config) echo '{{"get": {{"channel_priority": "strict"}}}}' ;;
esac
""",
    )
    config = "config/reproduce/care-correction/small.yaml"
    arguments = ["--dry-run", "--use-conda", "--printshellcmds", "--configfile", config]
    # Conda environments do not work in a path with a space; the data may.
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    result = snakemake(*arguments, "--config", f"data={reproduction}", env=env)
    assert result.returncode == 0, result.stdout
    for command in ("bfc -s $genome -t 2 both.fq", "sga index", "tadpole.sh in=r1.fq"):
        assert command in result.stdout
    assert "care-cpu -i" not in result.stdout


def test_the_folder_of_data_has_to_be_named(snakemake: Snakemake, reproduction: Path) -> None:
    where = "config/reproduce/care-correction/small.yaml"
    result = snakemake("--dry-run", "--configfile", where)
    assert result.returncode != 0
    assert "add --config data=FOLDER" in result.stdout


def test_an_unknown_program_is_refused(
    snakemake: Snakemake, reproduction: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python keeps the compiled code of the programs' list, as on most machines.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    text = (ROOT / "config/reproduce/care-correction/small.yaml").read_text()
    (reproduction / "own.yaml").write_text(text.replace("lighter", "heavier"))
    own, data = str(reproduction / "own.yaml"), f"data={reproduction}"
    result = snakemake("--dry-run", "--configfile", own, "--config", data)
    assert result.returncode != 0
    assert "heavier is no program of the stage 'correct'" in result.stdout


def test_the_community_leaves_genomes_out(snakemake: Snakemake, reproduction: Path) -> None:
    config = ROOT / "config/reproduce/mini-cami/small.yaml"
    result = dry_run(snakemake, config, reproduction, "--printshellcmds")
    build = result.stdout.partition("rule label_references:")[2].partition("output:")[0]
    assert "escherichia_coli__K_12_MG1655" in build
    for left_out in ("escherichia_coli__O157_H7_Sakai", "segniliparus_rotundus"):
        assert left_out not in build
        assert left_out in result.stdout


@pytest.mark.parametrize("path", sorted(ROOT.glob("config/reproduce/*/published.tsv")), ids=str)
def test_published_values_have_their_sources(path: Path) -> None:
    with path.open() as file:
        rows = list(csv.DictReader((line for line in file if line[0] != "#"), delimiter="\t"))
    assert rows
    for row in rows:
        assert all(row.values()), row
    places = [(row["table"], row["dataset"], row["program"], row["metric"]) for row in rows]
    assert len(places) == len(set(places))


def test_environments_of_the_programs_are_there() -> None:
    commands = [command for table in COMMANDS.values() for command in table.values()]
    for program in (*commands, *PROGRAMS):
        if program.environment:
            assert (ROOT / "envs" / f"{program.environment}.yaml").is_file(), program.environment


def fastq(path: Path, *records: tuple[str, str]) -> Path:
    """Write reads with qualities that tell their places."""
    lines = [f"@{name} x\n{bases}\n+\n{'ABCDEFGHIJ'[: len(bases)]}\n" for name, bases in records]
    path.write_text("".join(lines))
    return path


def test_dropped_and_trimmed_reads_come_back(tmp_path: Path) -> None:
    raw = fastq(tmp_path / "r.fq", ("a/1", "ACGTAC"), ("b/1", "CCCCGG"), ("c/1", "TTTTTT"))
    # c changed and moved to the front, b lost its first base and was corrected, a was dropped.
    given = fastq(tmp_path / "g.fq", ("c/1", "TTTATT"), ("b/1", "CCAGG"))
    out = tmp_path / "o.fq"
    done = script("restore_reads.py", "--raw", raw, "--restored", out, "--", given)
    assert done.returncode == 0, done.stderr
    assert "1 reads were dropped" in done.stderr
    assert out.read_text().split("\n")[1::4] == ["ACGTAC", "CCCAGG", "TTTATT"]
    assert out.read_text().split("\n")[3::4] == ["ABCDEF", "AABCDE", "ABCDEF"]


def test_mates_of_one_name_stay_apart(tmp_path: Path) -> None:
    raw = [fastq(tmp_path / f"r{mate}.fq", ("a", "ACGT"), ("b", "CCCC")) for mate in (1, 2)]
    given = [fastq(tmp_path / f"g{mate}.fq", ("a", "ACG" + "TA"[mate - 1])) for mate in (1, 2)]
    out = [tmp_path / "o1.fq", tmp_path / "o2.fq"]
    done = script("restore_reads.py", "--raw", *raw, "--restored", *out, "--", *given)
    assert done.returncode == 0, done.stderr
    assert out[1].read_text().split("\n")[1::4] == ["ACGA", "CCCC"]


def test_merged_pairs_get_into_order(tmp_path: Path) -> None:
    raw = fastq(tmp_path / "r.fq", ("a/1", "AC"), ("b/1", "CC"), ("c/1", "TT"))
    given = fastq(tmp_path / "m.fq", ("c", "TTT"), ("a", "ACG"))
    out, count = tmp_path / "o.fq", tmp_path / "n.json"
    options = ["--order", "--count", count, "--raw", raw, "--restored", out, "--", given]
    assert script("restore_reads.py", *options).returncode == 0
    assert out.read_text().split("\n")[0::4][:2] == ["@a", "@c"]
    assert json.loads(count.read_text()) == {"pairs": {"pairs": 3, "merged": 2}}


def test_measured_stands_beside_published(tmp_path: Path) -> None:
    published = tmp_path / "published.tsv"
    published.write_text(
        "# source\ntable\tpage\tdataset\tprogram\tmetric\tvalue\n"
        "A.1\t135\tA1\tCARE\tsensitivity\t0.95\nA.1\t135\tA1\tMusket\tsensitivity\t0.94\n"
        "A.2\t136\tA2\tCARE\tsensitivity\t0.5\n"
    )
    totals = {"tp": 90, "fp": 1, "fn": 10, "tn": 5000}
    rates = {"sensitivity": 0.9, "specificity": 0.9998, "precision": 0.989}
    rates["fp_per_million_corrections"] = 10989.0
    judged, failed = tmp_path / "judged.json", tmp_path / "failed.json"
    judged.write_text(json.dumps({"all_reads": {"totals": totals, "rates": rates}}))
    write_note(failed, "logs/x.log", "out of memory")
    described = {
        "title": "T", "source": "S", "scale": "small", "stage": "correct", "threads": 2,
        "beside": {"one": ["A1"]}, "counterparts": {"ngsgpu": "CARE", "left_out": "Musket"},
        "programs": [
            {"name": "ngsgpu", "title": "ngsgpu", "is_installed": True},
            {"name": "bfc", "title": "BFC", "is_installed": True},
            {"name": "sga", "title": "SGA", "is_installed": False},
        ],
        "sets": [{"name": "one", "kind": "simulated", "parameters": {"seed": 1}}],
    }  # fmt: skip
    lines = [f"one\tngsgpu\tjudged\t{judged}", f"one\tbfc\tjudged\t{failed}"]
    out = [tmp_path / f"page.{kind}" for kind in ("html", "json", "markdown")]
    options = [part for path in out for part in (f"--{path.suffix[1:]}", path)]
    text = "\n".join([json.dumps(described), *lines]) + "\n"
    done = script("reproduction_page.py", "--published", published, *options, text=text)
    assert done.returncode == 0, done.stderr
    document = json.loads(out[1].read_text())
    assert [(row["program"], row["value"], row["measured"]) for row in document["beside"]] == [
        ("CARE", "0.95", 0.9),
        ("Musket", "0.94", None),
    ]
    page = out[0].read_text()
    assert "Table A.1, page 135: published for A1" in page
    assert "not installed" in page
    assert "failed: out of memory (logs/x.log)" in page
    assert "ngsgpu / CARE | 0.9 | 0.95" in out[2].read_text()


@pytest.mark.skipif(shutil.which("art_illumina") is None, reason="ART is not installed")
def test_community_has_its_shares(tmp_path: Path) -> None:
    genomes = tmp_path / "genomes"
    genomes.mkdir()
    source = random.Random(1)
    for name in "ab":
        letters = "".join(source.choices("ACGT", k=20_000))
        text = f">{name}1 x\n{letters[:15_000]}\n>{name}2\n{letters[15_000:]}\n"
        (genomes / f"{name}.fa.gz").write_bytes(gzip.compress(text.encode()))
    sheet = tmp_path / "composition.tsv"
    sheet.write_text("# two\ngenome\ttaxid\tabundance\na.fa.gz\t562\t3\nb.fa.gz\t1280\t1\n")
    options = ["--genomes", genomes, "--pairs", 1000, "--seed", 7, sheet]
    for place in ("one", "two"):
        done = script("draw_community.py", *options, tmp_path / place)
        assert done.returncode == 0, done.stderr
    truth = (tmp_path / "one" / "truth.tsv").read_text().splitlines()
    rows = {row.split("\t")[0]: row.split("\t")[1:] for row in truth[1:]}
    assert [rows[name][0] for name in rows] == ["562", "562", "1280", "1280"]
    assert list(rows) == ["a1", "a2", "b1", "b2"]
    pairs = {name: int(row[1]) for name, row in rows.items()}
    assert pairs["a1"] + pairs["a2"] == pytest.approx(750, abs=10)
    assert pairs["b1"] + pairs["b2"] == pytest.approx(250, abs=10)
    for file in ("R1.fastq.gz", "R2.fastq.gz", "truth.tsv"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    with gzip.open(tmp_path / "one" / "R1.fastq.gz", "rt") as reads:
        names = [line[1:].split("/")[0] for line in reads][0::4]
    assert len(set(names)) == len(names) == sum(pairs.values())


def test_opal_must_agree(tmp_path: Path) -> None:
    figures = {"tp": 3, "fp": 1, "fn": 0, "completeness": 1.0, "purity": 0.75, "f1": 6 / 7}
    figures |= {"l1_norm": 0.25, "bray_curtis": 0.125}
    judged, table = tmp_path / "judged.json", tmp_path / "opal.tsv"
    judged.write_text(json.dumps({"runs": [{"name": "own", "profile": {"species": figures}}]}))

    def opal(purity: float) -> Path:
        path = tmp_path / "results.tsv"
        path.write_text(
            "tool\trank\tmetric\tsample\tvalue\n"
            f"own\tspecies\tPurity\ts\t{purity}\nown\tspecies\tL1 norm error\ts\t0.2500000001\n"
            "own\tspecies\tUnweighted UniFrac error\ts\t7\n"
        )
        return path

    done = script("compare_with_opal.py", "--opal", opal(0.75), "-o", table, judged)
    assert done.returncode == 0, done.stderr
    assert len(table.read_text().splitlines()) == 3
    done = script("compare_with_opal.py", "--opal", opal(0.76), "-o", table, judged)
    assert done.returncode == 1
    assert "own species purity: OPAL 0.76, ngsgpu 0.75" in done.stderr
