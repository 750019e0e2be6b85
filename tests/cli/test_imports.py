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
COMMANDS = [
    f"correct {PAIRS} -o c1.fq -O c2.fq -q",
    f"correct --method spectrum {PAIRS} -o c1.fq -O c2.fq -q",
    f"merge {PAIRS} -o m.fq --unmerged1 u1.fq --unmerged2 u2.fq -q",
    f"extend {PAIRS} -o e.fq --remaining1 x1.fq --remaining2 x2.fq -q",
    f"kmers count {PAIRS} -k 21 -o k -q",
    f"assemble {PAIRS} -o a.fa -q",
    "db build genome.fa -d db -q",
    f"classify -d db {PAIRS} -o calls.tsv -q",
    "deplete-index genome.fa -o host.idx -q",
    f"deplete -d host.idx {PAIRS} -o d1.fq -O d2.fq -q",
    "gpu list",
]
RUN = """
import sys
from ngsgpu.cli import main
never, *commands = map(str.split, sys.argv[1:])
for command in commands:
    status = main(command)
    print("ended", *command[:2], status, sorted(set(never) & set(sys.modules)))
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


def test_commands_import_what_they_use(study: Path) -> None:
    """One after the other in one process, in which none of them may import what none needs."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, " ".join(NEVER), *COMMANDS],
        cwd=study,
        env=os.environ | {"NGSGPU_BACKEND": "cpu", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("ended ")]
    assert told == [f"ended {' '.join(own.split()[:2])} 0 []" for own in COMMANDS], done.stderr
