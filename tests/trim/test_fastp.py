"""``--fastp``: the reads and the report are those of fastp 0.23.2, to the byte."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import Commands
from tests.support.io.records import fasta, fastq, write
from tests.support.trim.world import ADAPTERS, pairs

pytestmark = pytest.mark.skipif(shutil.which("fastp") is None, reason="fastp is not installed")

FIRST = f"-a {ADAPTERS[0]}"
OPTIONS = [
    "",
    "-G",
    "-q 20 -u 30 -n 2",
    "-e 25",
    "-5 -3",
    "-r",
    "-5 -3 -W 6 -M 25",
    "-r -W 10 -M 28",
    "--cut_front --cut_front_window_size 1 --cut_front_mean_quality 3 --cut_tail_window_size 7 -3",
    "-f 5 -t 3",
    "-b 30",
    "-g --poly_g_min_len 5",
    "-G -x",
    "-x --poly_x_min_len 6 -g",
    "-A",
    f"{FIRST} -G",
    "-a CTGTCTCTTATACACATCT",
    "-l 30",
    "-l 20 --length_limit 50",
    "-L",
    "-Q",
    "-Q -L",
    "-y",
    "-y -Y 60",
    "-U --umi_loc read1 --umi_len 8",
    "-U --umi_loc per_read --umi_len 6 --umi_skip 3 --umi_prefix UMI",
    "-U --umi_loc index1",
    "-U --umi_loc per_index --umi_prefix X",
    "-f 3 -5 -3 -r -x -g -y -e 20 -l 10",
    "-3 -W 1 -M 30 -q 30 -u 10",
    "--adapter_fasta ADAPTERS",
    f"--adapter_fasta ADAPTERS {FIRST} -Q",
]
OF_PAIRS = [
    "-f 10 -F 2 -t 7 -T 0",
    "-b 40 -B 25",
    f"-G {FIRST} --adapter_sequence_r2 {ADAPTERS[1]}",
    "--detect_adapter_for_pe",
    "-c",
    "-c --overlap_len_require 12 --overlap_diff_limit 10 --overlap_diff_percent_limit 29",
    "-c -U --umi_loc read2 --umi_len 5 -f 2 -t 1 -b 45",
    "-U --umi_loc index2",
    "-f 3 -5 -3 -r -c -x -g -y -e 20 -l 10",
]
WITH_DUPLICATES = ["", "-D", "--dup_calc_accuracy 2", "-D --dup_calc_accuracy 2 -c"]
"""Of these fastp takes up to 4 GB of memory."""

OUTPUTS = {"--out1": "o1", "--out2": "o2", "--unpaired1": "u1", "--unpaired2": "u2"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    folder = tmp_path_factory.mktemp("fastp")
    made = pairs(random.Random(1), 1500)
    mates = [write(folder / f"{mate}.fq", fastq(own[mate] for own in made)) for mate in (0, 1)]
    both = write(folder / "both.fq", fastq(record for own in made for record in own))
    named = [("b second", ADAPTERS[1]), ("a", ADAPTERS[0].lower()), ("c", "ACGTA"), ("d", "GGACT")]
    (folder / "adapters.fa").write_text("".join(f">{name}\n{text}\n" for name, text in named))
    return {
        "pairs": ["-i", str(mates[0]), "-I", str(mates[1])],
        "reads": ["-i", str(mates[0])],
        "interleaved": ["-i", str(both), "--interleaved_in"],
        "ADAPTERS": [str(folder / "adapters.fa")],
    }


def same(
    ngsgpu: Commands, folder: Path, files: dict[str, list[str]], kind: str, options: list[str]
) -> None:
    """Both write the same files."""
    (adapters,) = files["ADAPTERS"]
    words = [adapters if word == "ADAPTERS" else word for word in options]
    named = dict(list(OUTPUTS.items())[: 1 if kind == "reads" else 4]) | {"--failed_out": "failed"}

    def command(who: str) -> list[str]:
        outputs = [
            word for option, name in named.items() for word in (option, str(folder / who / name))
        ]
        return [*files[kind], *outputs, "-j", str(folder / who / "report.json"), *words]

    for who in ("fastp", "ours"):
        (folder / who).mkdir()
    rest = ["-w", "1", "-h", "/dev/null"]
    done = subprocess.run(["fastp", *command("fastp"), *rest], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = ngsgpu("trim", *command("ours"), "-w", 2, "--fastp")
    assert own.status == 0, own.err
    for name in named.values():
        theirs = folder / "fastp" / name
        assert (folder / "ours" / name).read_bytes() == theirs.read_bytes(), name
    reports = [(folder / who / "report.json").read_text().split("\n") for who in ("fastp", "ours")]
    others = ('\t\t"fastp_version"', '\t"command"')
    one, other = ([line for line in text if not line.startswith(others)] for text in reports)
    assert one == other


@pytest.mark.parametrize("options", OPTIONS)
def test_reads(ngsgpu: Commands, tmp_path: Path, files: dict[str, list[str]], options: str) -> None:
    same(ngsgpu, tmp_path, files, "reads", [*options.split(), "--dont_eval_duplication"])


@pytest.mark.parametrize("options", OPTIONS + OF_PAIRS)
def test_pairs(ngsgpu: Commands, tmp_path: Path, files: dict[str, list[str]], options: str) -> None:
    kind = random.Random(options).choice(["pairs", "pairs", "interleaved"])
    if "detect" in options:
        kind = "pairs"  # fastp cannot detect adapters of interleaved ones
    same(ngsgpu, tmp_path, files, kind, [*options.split(), "--dont_eval_duplication"])


@pytest.mark.parametrize("options", WITH_DUPLICATES)
@pytest.mark.parametrize("kind", ["pairs", "reads"])
def test_duplicates(
    ngsgpu: Commands, tmp_path: Path, files: dict[str, list[str]], options: str, kind: str
) -> None:
    words = [word for word in options.split() if kind == "pairs" or word != "-c"]
    same(ngsgpu, tmp_path, files, kind, words)


def test_phred_64_and_two_colours(ngsgpu: Commands, tmp_path: Path) -> None:
    made = pairs(random.Random(2), 300)
    shifted = [
        own._replace(qualities=bytes(score + 31 for score in own.qualities or b""))
        for own, _ in made
    ]
    files = {
        "reads": ["-i", str(write(tmp_path / "r.fq", fastq(shifted))), "--phred64"],
        "ADAPTERS": [str(write(tmp_path / "a.fa", fasta([])))],
    }
    same(ngsgpu, tmp_path, files, "reads", ["--dont_eval_duplication"])
