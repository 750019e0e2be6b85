"""A config and a sheet that nobody writes by hand are refused, at once and without a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workflow import Snakemake

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]\n"])
def test_aliases_in_a_config(snakemake: Snakemake, study: Path, text: str) -> None:
    (study / "config" / "config.yaml").write_text(text)
    result = snakemake("--dry-run")
    assert result.returncode != 0
    said = result.stdout
    assert "write values in place of aliases" in said, said[-2000:]


def test_a_sheet_with_an_endless_cell(snakemake: Snakemake, study: Path) -> None:
    (study / "samples.csv").write_text(f"sample,fastq_1\nA,{'x' * 140_000}\n")
    (study / "config" / "config.yaml").write_text("samples: samples.csv\n")
    result = snakemake("--dry-run")
    assert result.returncode != 0
    assert "samples.csv, line 2: field larger than field limit" in result.stdout
