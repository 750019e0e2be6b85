"""Stand-ins for the programs that benchmarks run."""

import json
import os

import pytest

DOCTOR = {
    "cpus": 2,
    "memory": {"total": 1},
    "gpus": [{"name": "NVIDIA H200", "uuid": "GPU-1"}],
    "system": "Linux",
    "versions": {"ngsgpu": "0.1.0", "NVIDIA driver": None},
}
EVALUATION = {
    "totals": {"bases": 100, "errors_after": 1},
    "rates": {"sensitivity": 0.5, "fp_per_million_corrections": 7.0},
    "reads": {},
    "indel_reads": {},
    "all_reads": {},
    "by_position": [1, 2, 3],
}
MERGING = {
    "pairs": {"right": 1, "near": 0, "wrong": 2, "apart_merged": 1},
    "rates": {"sensitivity": 0.25},
    "bases": {"after": 100, "errors_after": 1},
    "calibration": {},
}
STATISTICS = {"time_s": {"read": 1.0, "total": 2.0}, "memory": {"peak_rss_bytes": 3}}
PROGRAMS = {
    # A pair a piece, named after it; the command line goes where the test can see it.
    "art_illumina": """[ "$1" ] || { echo Version 2.5.8; exit; }
        name=$(sed -n 's/^>//p' genome.fa | head -n 1); echo "$name $@" >> ../../art.txt
        for mate in 1 2; do printf '@%s/%s\\nACGT\\n+\\nIIII\\n' $name $mate > r$mate.fq; done
        case "$*" in *-ef*) echo $name > r_errFree.sam;; esac""",
    "ngsgpu": f"""case $1 in
        --version) echo ngsgpu 0.1.0;;
        doctor) echo '{json.dumps(DOCTOR)}';;
        correct) cp r1.fq "${{12}}"; cp r2.fq "${{14}}"
            echo '{json.dumps(STATISTICS)}' > "${{16}}"
            [ $4 = "$SPOILED" ] && echo >> "${{12}}"; true;;
        merge) cp r1.fq "${{12}}.extendedFrags.fastq"
            echo '{json.dumps(STATISTICS)}' > "${{14}}";;
        evaluate) [ $2 = merging ] && echo '{json.dumps(MERGING)}' > e.json && exit
            grep -q . $4 && echo '{json.dumps(EVALUATION)}' > e.json;;
        esac""",
    "lighter": """[ "$1" = -v ] && { echo Lighter v1.1.2; exit; }
        cp r1.fq lighter/r1.cor.fq; cp r2.fq lighter/r2.cor.fq""",
    "bfc": """[ "$1" = -v ] && { echo r181; exit; }
        cat both.fq""",
    "flash": """[ "$1" = --version ] && { echo FLASH v1.2.11; exit; }
        cp r1.fq flash/reads.extendedFrags.fastq""",
}


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder of stand-ins that is first on the ``PATH``."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, script in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder
