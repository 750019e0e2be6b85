"""``ngsgpu correct``: an option that would change nothing is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from ngsgpu import cli

FOR_MSA = "is for --method msa; leave it out with --method spectrum"
FOR_SPECTRUM = "is for --method spectrum; add it"
READS = "@a\nACGTACGTTTACGTACGTACGTACGTCA\n+\nIIIIIIIIIIIIIIIIIIIIIIIIIIII\n"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "r.fq").write_text(READS)
    return ["correct", "-q", "-i", str(tmp_path / "r.fq"), "-o", str(tmp_path / "c.fq")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *((given, f"{given.split()[0]} {FOR_SPECTRUM}") for given in (
            "--min-count 3", "--rule voting", "--filter bloom", "--mutations 1", "--mutations 2",
            "--max-changes 2", "--max-changes 4", "--trim", "--split by",
        )),
        *((f"{given} --method spectrum", f"{given.split()[0]} {FOR_MSA}") for given in (
            "--classic", "--model default", "--anchor-threshold .9", "--candidate-threshold .9",
            "--coverage 30", "--keep-variants 3", "--hashes 3", "--seed 1",
        )),
        ("--method spectrum --mutations 2", "--mutations is for --rule voting or exhaustive"),
        ("--method spectrum --rule voting --max-changes 3", "--max-changes is for --rule search"),
        ("--method spectrum --rule exhaustive --max-changes 4", "--max-changes is for --rule sear"),
        ("--classic --anchor-threshold .99", "--anchor-threshold is for --model"),
        ("--model none --candidate-threshold .99", "--candidate-threshold is for --model"),
        ("--candidate-threshold .99", "--candidate-threshold is for --classic"),
    ],
)  # fmt: skip
def test_options_that_do_not_apply(
    command: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: str,
    message: str,
) -> None:
    assert cli.main([*command, *options.split()]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"ngsgpu: error: {message}")
    assert error.count("\n") == 1
    assert not (tmp_path / "c.fq").exists()


@pytest.mark.parametrize(
    "options",
    [
        "--hashes 3 --seed 2 --coverage 30 --keep-variants 3",
        "--classic --model default --anchor-threshold .99 --candidate-threshold .9",
        "--method spectrum --max-changes 2 --kmer 12 --quality-bits 0",
        "--method spectrum --rule voting --mutations 1 --filter bloom --trim --mask",
        "--method spectrum --rule exhaustive --mutations 2 --min-count 3 --quality",
    ],
)
def test_options_that_apply(command: list[str], tmp_path: Path, options: str) -> None:
    assert cli.main([*command, *options.split(), "-t", "1", "--backend", "cpu"]) == 0
    assert (tmp_path / "c.fq").exists()
