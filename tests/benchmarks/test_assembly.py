"""What is said of contigs: those that are not in their reference, and the table."""

import random

import pytest

from benchmarks.accuracy.assembly import table, write_molecules, write_reference
from benchmarks.accuracy.wrong_contigs import (
    Reference,
    Wrong,
    read_fasta,
    summary,
    turned,
    wrong_in,
)

GENOME = "".join(random.Random(5).choices("ACGT", k=4000))
OTHER = "".join(random.Random(6).choices("ACGT", k=1000))


def changed(text, *places):
    own = list(text)
    for at in places:
        own[at] = "ACGT"["ACGT".index(own[at]) - 1]
    return "".join(own)


CASES = {
    "right": (GENOME[100:900], None),
    "over the begin of a circle": (GENOME[-300:] + GENOME[:300], None),
    "a wrong base": (changed(GENOME[100:900], 400), Wrong([], [], 1, 0)),
    "wrong bases side by side": (changed(GENOME[100:900], 400, 410), Wrong([], [], 2, 0)),
    "a wrong base near an end": (changed(GENOME[100:900], 795), Wrong([5], [], 0, 0)),
    "two foreign ends": (
        OTHER[:20] + changed(GENOME[100:900], 0, 799) + OTHER[30:50], Wrong([21, 21], [], 0, 0),
    ),
    "an end of another place": (
        changed(GENOME[2000:2040], 39) + GENOME[100:900], Wrong([40], [], 0, 0)
    ),
    "bases missing": (GENOME[100:500] + GENOME[510:900], Wrong([], [-10], 0, 0)),
    "bases too many": (GENOME[100:500] + OTHER[:7] + GENOME[500:900], Wrong([], [7], 0, 0)),
    "a wrong join": (GENOME[100:500] + GENOME[2500:2900], Wrong([], [], 0, 1)),
    "an inversion": (GENOME[100:500] + turned(GENOME[500:900]), Wrong([], [], 0, 1)),
    "not placed": (OTHER[:300], Wrong([], [], 0, 0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("strand", [1, -1])
def test_what_is_wrong(case, strand):
    contig, expected = CASES[case]
    reference = Reference([GENOME])
    assert wrong_in(contig if strand > 0 else turned(contig), reference) == expected


def test_a_reference_that_is_no_circle():
    contig = GENOME[-300:] + GENOME[:200]
    assert wrong_in(contig, Reference([GENOME])) is None
    assert wrong_in(contig, Reference([GENOME], circular=False)) == Wrong([], [], 0, 1)


def test_summary_and_table():
    reference = Reference([GENOME, OTHER])
    contigs = {"a": GENOME[:900], "b": changed(OTHER, 500), "short": "ACGT" * 20}
    found = summary(contigs, reference)
    assert (found["contigs"], found["wrong"], found["wrong_bases"]) == (2, 1, 1)
    numbers = {"nga50": 1234.0, "misassemblies": 1.0, "mismatches_per_100_kb": 0.26}
    numbers |= {"indels_per_100_kb": 0.0, "genome_percent": 99.5}
    rows = [
        {
            "role": role, "genome": "escherichia_coli__K_12_MG1655",
            "reads": {"length": 100, "coverage": coverage, "skip": skip},
            "found": {"ngsgpu": numbers | {"in_reference": found}} | others,
        }
        for role, coverage, skip, others in (
            ("chosen", 10, 0, {"megahit": numbers}), ("checked", 10, 2_000_000, {}),
            ("chosen", 20, 0, {}),
        )
    ]  # fmt: skip
    lines = table({"rows": rows}).splitlines()
    assert lines[0].startswith("| genome | role | reads | `ngsgpu assemble` | MEGAHIT | mism")
    assert lines[2] == (
        "| *E. coli* K-12 MG1655 | chosen | 2 x 100, 10 x | 1,234 (1), 1 wrong | 1,234 (1) "
        "| 0.3, 0.3 | 0.0, 0.0 | 99.50, 99.50 |"
    )
    assert lines[3].startswith("|  | chosen | 2 x 100, 20 x |")
    assert lines[4].startswith("| *E. coli* K-12 MG1655, from 2 Mb on | checked |")


def test_plasmids_are_circles_of_some_copies(tmp_path):
    genome, reference, molecules = (tmp_path / name for name in ("g.fa", "r.fa", "m.fa"))
    genome.write_text(f">plasmid\n{OTHER}\n>chromosome one\n{GENOME}\n")
    write_reference(genome, 1500, 500, reference, others=True)
    assert list(read_fasta(reference).values()) == [GENOME[500:2000], OTHER]
    write_molecules(reference, 3, molecules)
    assert list(read_fasta(molecules).values()) == [GENOME[500:2000], OTHER * 3]
    write_reference(genome, 1500, 500, reference)
    assert list(read_fasta(reference)) == ["chromosome"]
