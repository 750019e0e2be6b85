#!/usr/bin/env python3
"""Run the commands of docs/tasks.md and write below each what it prints.

    scripts/task_outputs.py             write them
    scripts/task_outputs.py --check     only say whether they are what the page says

Progress and times are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.made import write_or_check  # noqa: E402

PAGE: Final = ROOT / "docs/tasks.md"
DATA: Final = ROOT / "tests/data"
FILES: Final = {
    "R1.fastq.gz": "reads/ecoli_mg1655_1kb_R1.fastq.gz",
    "R2.fastq.gz": "reads/ecoli_mg1655_1kb_R2.fastq.gz",
    "V4_R1.fastq.gz": "reads/merge_16S_v4_miseqsop_F3D0_R1.fastq.gz",
    "V4_R2.fastq.gz": "reads/merge_16S_v4_miseqsop_F3D0_R2.fastq.gz",
    "mixed.fa.gz": "reads/kraken_HiSeq_accuracy.fa.gz",
    "genomes": "genomes",
    "taxonomy": "taxonomy/bacteria",
}
BLOCK: Final = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
NOT_SHOWN: Final = re.compile(r"ngsgpu: (?!error)|\d+\.\d s, at most |.* in \d+\.\d s\b")


def shown(command: str, folder: Path, programs: Path) -> str:
    """A command as it is typed, and what it prints."""
    where = {"NGSGPU_BACKEND": "cpu", "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | where,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{command}: status {done.returncode}\n{done.stdout}")
    lines = [line for line in done.stdout.splitlines() if not NOT_SHOWN.match(line)]
    return "\n".join([f"$ {command}", *lines]) + "\n"


def made(page: str, programs: Path = Path(sys.executable).parent) -> str:
    """The page with what its commands print.

    Args:
        page: its text.
        programs: the folder with ``ngsgpu``.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for short, own in FILES.items():
            copy = shutil.copytree if (DATA / own).is_dir() else shutil.copy
            copy(DATA / own, folder / short)

        def run(block: re.Match[str]) -> str:
            commands = [line[2:] for line in block[0].splitlines() if line.startswith("$ ")]
            return "".join(shown(command, folder, programs) for command in commands)

        return BLOCK.sub(run, page)


def main() -> int:
    """Write, or compare; return the exit status."""
    return write_or_check(
        "scripts/task_outputs.py", __doc__ or "", lambda: {PAGE: made(PAGE.read_text())}
    )


if __name__ == "__main__":
    sys.exit(main())
