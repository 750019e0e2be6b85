"""``--fastp``: the reads and the report are those of fastp 0.23.2, to the byte."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import Commands
from tests.support.io.records import fasta, fastq, write
from tests.support.trim.table import (
    OF_PAIRS,
    OF_READS,
    OPTIONS,
    OUTPUTS,
    WITH_DUPLICATES,
    Files,
    written,
)
from tests.support.trim.world import pairs

pytestmark = pytest.mark.skipif(shutil.which("fastp") is None, reason="fastp is not installed")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return written(tmp_path_factory.mktemp("fastp"), pairs(random.Random(1), 1500))


def same(
    ngsgpu: Commands, folder: Path, backend: str, files: Files, kind: str, options: list[str]
) -> None:
    """Both write the same files."""
    (adapters,) = files["ADAPTERS"]
    words = [adapters if word == "ADAPTERS" else word for word in options]
    named = OUTPUTS[kind]

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
    own = ngsgpu("trim", *command("ours"), "-w", 2, "--fastp", "--backend", backend)
    assert own.status == 0, own.err
    for name in named.values():
        theirs = folder / "fastp" / name
        assert (folder / "ours" / name).read_bytes() == theirs.read_bytes(), name
    reports = [(folder / who / "report.json").read_text().split("\n") for who in ("fastp", "ours")]
    others = ('\t\t"fastp_version"', '\t"command"')
    one, other = ([line for line in text if not line.startswith(others)] for text in reports)
    assert one == other


@pytest.mark.parametrize("options", OPTIONS)
def test_reads(ngsgpu: Commands, tmp_path: Path, backend: str, files: Files, options: str) -> None:
    same(ngsgpu, tmp_path, backend, files, "reads", [*options.split(), "--dont_eval_duplication"])


@pytest.mark.parametrize("options", OPTIONS + OF_PAIRS)
def test_pairs(ngsgpu: Commands, tmp_path: Path, backend: str, files: Files, options: str) -> None:
    kind = random.Random(options).choice(["pairs", "pairs", "interleaved"])
    if "detect" in options:
        kind = "pairs"  # fastp cannot detect adapters of interleaved ones
    same(ngsgpu, tmp_path, backend, files, kind, [*options.split(), "--dont_eval_duplication"])


@pytest.mark.parametrize(
    ("kind", "options"),
    [*(("pairs", options) for options in WITH_DUPLICATES), *(("reads", own) for own in OF_READS)],
)
def test_duplicates(
    ngsgpu: Commands, tmp_path: Path, backend: str, files: Files, kind: str, options: str
) -> None:
    same(ngsgpu, tmp_path, backend, files, kind, options.split())


def test_phred_64_and_two_colours(ngsgpu: Commands, tmp_path: Path, backend: str) -> None:
    made = pairs(random.Random(2), 300)
    shifted = [
        own._replace(qualities=bytes(score + 31 for score in own.qualities or b""))
        for own, _ in made
    ]
    files = {
        "reads": ["-i", str(write(tmp_path / "r.fq", fastq(shifted))), "--phred64"],
        "ADAPTERS": [str(write(tmp_path / "a.fa", fasta([])))],
    }
    same(ngsgpu, tmp_path, backend, files, "reads", ["--dont_eval_duplication"])
