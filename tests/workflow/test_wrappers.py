"""The Snakemake wrappers: their example rules run, and their descriptions name what they take."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ngsgpu import __version__
from tests.support.workflow import ROOT, Snakemake

WRAPPERS = ROOT / "wrappers" / "ngsgpu"
SILENT = {"classify-merge", "classify-table"}
"""Commands that say nothing if all is well."""
NAMES = sorted(path.parent.name for path in WRAPPERS.glob("*/wrapper.py"))


def meta(name: str) -> dict[str, Any]:
    content = yaml.safe_load((WRAPPERS / name / "meta.yaml").read_text())
    assert isinstance(content, dict)
    return content


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    """Snakemake by an interpreter without a space in its path, which it does not quote."""
    if " " not in sys.executable:
        return ["snakemake"]
    (tmp_path / "environment").symlink_to(sys.prefix)
    return [str(tmp_path / "environment/bin/python"), "-m", "snakemake"]


@pytest.fixture
def run(study: Path, snakemake: Snakemake, program: list[str]) -> Any:
    """Run the example rules of a wrapper as the wrapper repository's tests do; give the folder."""

    def run(name: str, *targets: str) -> Path:
        shutil.copytree(WRAPPERS / name / "test", study, dirs_exist_ok=True)
        repository = study / "repository" / "master" / "bio"
        repository.mkdir(parents=True)
        (repository / "ngsgpu").symlink_to(WRAPPERS)
        prefix = f"file://{study}/repository/"
        result = snakemake(
            *("--cores", "2", "--wrapper-prefix", prefix, "--", *targets),
            snakefile=study / "Snakefile",
            program=program,
        )
        logs = "\n".join(path.read_text() for path in study.glob("logs/**/*.log"))
        assert result.returncode == 0, result.stdout + logs
        # A rule's log has all that the command says, and Snakemake's output nothing of it.
        assert "ngsgpu: " in logs or name in SILENT
        assert "\nngsgpu: " not in result.stdout
        return study

    return run


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt") as file:
        return file.read().splitlines()


def statistics(path: Path) -> str:
    """The command that was run, as its statistics say."""
    content = json.loads(path.read_text())
    return " ".join(content["command"])


def test_correct(run: Any) -> None:
    folder = run("correct", "corrected/a_1.fastq.gz", "corrected/a.fastq")
    for mate in (1, 2):
        raw, corrected = (
            lines(folder / kind / f"a_{mate}.fastq.gz") for kind in ("reads", "corrected")
        )
        assert raw[0::4] == corrected[0::4] and len(raw) == 1600
    assert (folder / "corrected" / "a.fastq").read_text().count("\n") == 2 * 1600
    command = statistics(folder / "corrected" / "a.json")
    assert "--threads 2 --memory 2000M --backend cpu --hashes 32" in command


def test_merge(run: Any) -> None:
    folder = run("merge", "merged/a.json")
    merged = len(lines(folder / "merged" / "a.fastq.gz")) // 4
    rest = len(lines(folder / "merged" / "a.unmerged_1.fastq.gz")) // 4
    assert merged > 50 and merged + rest == 60
    assert (folder / "merged" / "a.ihist.txt").read_text().startswith("#Mean")
    assert "--threads 2 --backend cpu --max-overlap auto" in statistics(folder / "merged/a.json")


def test_extend(run: Any) -> None:
    folder = run("extend", "extended/a.json")
    for name in ("a.fastq.gz", "a.remaining_1.fastq.gz", "a.remaining_2.fastq.gz"):
        assert (folder / "extended" / name).is_file()
    assert "--memory 2000M --backend cpu --insert-size 550" in statistics(
        folder / "extended" / "a.json"
    )


def test_database(run: Any) -> None:
    folder = run("db", "databases/x")
    manifest = json.loads((folder / "databases" / "x" / "manifest.json").read_text())
    assert "taxonomy" in json.dumps(manifest)
    assert "--sketch 16" in statistics(folder / "databases" / "x.json")


def test_classify(run: Any) -> None:
    folder = run("classify", "classified/a.json")
    written = {path.name for path in (folder / "classified").iterdir()}
    assert len(written) == len(meta("classify")["output"])
    assert len(lines(folder / "classified" / "a.tsv.gz")) >= 100
    assert "--sample a" in statistics(folder / "classified" / "a.json")


@pytest.mark.parametrize(
    ("name", "targets"),
    {
        "adapters": ("adapters/a.json",),
        "assemble": ("assembled/a.json",),
        "classify-candidates": ("candidates/a.cand",),
        "classify-merge": ("classified/a.json",),
        "classify-table": ("tables/x.biom",),
        "deplete": ("depleted/a.json",),
        "deplete-index": ("hosts/human.idx",),
        "index-build": ("indexes/human",),
        "index-query": ("matches/a.paf",),
        "kmers-count": ("kmers/a.histo",),
        "unitigs": ("unitigs/a.json", "graphs/a.colors.tsv"),
    }.items(),
)
def test_examples(run: Any, name: str, targets: tuple[str, ...]) -> None:
    """Snakemake itself checks that all other outputs of the rules are written."""
    folder = run(name, *targets)
    for target in targets:
        path = folder / target
        assert path.stat().st_size > 0
        if path.suffix == ".json" and "command" in json.loads(path.read_text()):
            assert "--threads 2" in statistics(path)


@pytest.mark.parametrize("name", NAMES)
def test_description(name: str) -> None:
    """All fields that the wrapper repository asks for; every name is shown in an example."""
    described = meta(name)
    assert {"name", "description", "url", "authors", "input", "output", "params"} <= set(described)
    assert described["url"].startswith("https://") and described["authors"]
    examples = (WRAPPERS / name / "test" / "Snakefile").read_text()
    code = (WRAPPERS / name / "wrapper.py").read_text()
    for part in ("input", "output", "params"):
        for own in described[part]:
            assert re.search(rf"^ +{own}=", examples, re.MULTILINE), own
            assert re.search(rf"""(\.{own}|"{own}")\b""", code) or f'"{own}"' in code, own
    environment = yaml.safe_load((WRAPPERS / name / "environment.yaml").read_text())
    assert environment["channels"] == ["conda-forge", "bioconda", "nodefaults"]
    *packages, pip = environment["dependencies"]
    assert all("=" in package for package in packages)
    assert pip == {"pip": [f"ngsgpu =={__version__}"]}
    assert f'"master/bio/ngsgpu/{name}"' in examples


def test_examples_are_formatted() -> None:
    files = [str(WRAPPERS / name / "test" / "Snakefile") for name in NAMES]
    done = subprocess.run(["snakefmt", "--check", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
