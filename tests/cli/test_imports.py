"""What a command imports when it runs: what it uses, and no more; ``doctor`` tries everything."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEVER = {
    "IPython", "cupy", "cupyx", "jinja2", "matplotlib", "numpy.f2py", "pandas", "pydantic",
    "pyfastx", "pysam", "rich", "scipy", "sklearn", "snakemake", "yaml",
}  # fmt: skip
"""Packages that take from 0.03 to 0.5 s to import and that no run on the CPU needs."""
PAIRS = "-i r1.fq -I r2.fq"
COMMANDS = {
    "correct": [f"correct {PAIRS} -o c1.fq -O c2.fq"],
    "spectrum": [f"correct --method spectrum {PAIRS} -o c1.fq -O c2.fq"],
    "merge": [f"merge {PAIRS} -o m.fq --unmerged1 u1.fq --unmerged2 u2.fq"],
    "extend": [f"extend {PAIRS} -o e.fq --remaining1 x1.fq --remaining2 x2.fq"],
    "kmers": [f"kmers count {PAIRS} -k 21 -o k"],
    "assemble": [f"assemble {PAIRS} -o a.fa"],
    "classify": ["db build genome.fa -d db", f"classify -d db {PAIRS} -o calls.tsv"],
    "deplete": [
        "deplete-index genome.fa -o host.idx",
        f"deplete -d host.idx {PAIRS} -o d1.fq -O d2.fq",
    ],
    "gpus": ["gpu list"],
}
RUN = """
import sys
from ngsgpu.cli import main
status = main(sys.argv[2:])
print(*sorted(set(sys.argv[1].split()) & set(sys.modules)))
sys.exit(status)
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    chance = random.Random(5)
    genome = "".join(chance.choices("ACGT", k=2000))
    (folder / "genome.fa").write_text(f">genome\n{genome}\n")
    with (folder / "r1.fq").open("w") as first, (folder / "r2.fq").open("w") as second:
        for name in range(400):
            start = chance.randrange(1800)
            fragment = genome[start : start + 150]
            back = fragment[::-1].translate(str.maketrans("ACGT", "TGCA"))
            for file, mate in ((first, fragment[:100]), (second, back[:100])):
                file.write(f"@{name}\n{mate}\n+\n{'I' * len(mate)}\n")
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_what_it_uses(study: Path, name: str) -> None:
    for command in COMMANDS[name]:
        quiet = [] if name == "gpus" else ["-q"]
        done = subprocess.run(
            [sys.executable, "-c", RUN, " ".join(NEVER), *command.split(), *quiet],
            cwd=study,
            env=os.environ | {"NGSGPU_BACKEND": "cpu", "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-1] == "", command
