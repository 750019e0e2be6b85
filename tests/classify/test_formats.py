"""The formats of classification's outputs: ours, and those that other packages register."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ngsgpu.classify.formats import Format, formats
from ngsgpu.classify.outputs.given import ReadsGiven, SampleGiven, SamplesGiven
from ngsgpu.classify.run.samples import SampleOutputs
from ngsgpu.errors import UsageError
from tests.support.classify.world import World

ROOT = Path(__file__).parents[2]
GIVEN = {"reads": ReadsGiven, "sample": SampleGiven, "samples": SamplesGiven}
MODULE = '''
"""A package with formats: names of reads, species with reads, samples."""
import numpy as np
from ngsgpu.classify.formats import Format

NAMES = Format("names", "reads", "fake_formats:Names", "Names of reads.")
RICHNESS = Format("read_taxa", "sample", "fake_formats:richness", "Called taxa.", metavar="TXT")
TOTALS = Format("totals", "samples", "fake_formats:totals", "Classified reads.", ("-T", "--totals"))
MISTAKEN = Format("report", "sample", "fake_formats:richness", "Not ours.")
THREADS = Format("threads", "sample", "fake_formats:richness", "Named as another option.")
INPUT = Format("input", "sample", "fake_formats:richness", "Given as another option.", ("-i",))
DASHED = Format("read-taxa", "sample", "fake_formats:richness", "Of no name in Python.")
NONE = richer = None

class Names:
    def __init__(self, labels):
        self.taxa = len(labels.taxonomy)

    def header(self):
        return b"read\\n"

    def text(self, reads):
        own = reads.queries
        ends = zip(own.name_start, own.name_end, strict=True)
        text = b"".join(own.names[start:end].tobytes() + b"\\n" for start, end in ends)
        return np.frombuffer(text, dtype=np.uint8)

def richness(tree, sample):
    return f"{sample}\\t{int((tree.direct > 0).sum())}\\n"

def totals(samples):
    return "".join(f"{name}\\t{tree.classified}\\n" for name, tree in samples)
'''
POINTS = """
[console_scripts]
fake = fake_formats:totals

[ngsgpu.classify.outputs]
dashed = fake_formats:DASHED
input = fake_formats:INPUT
mistaken = fake_formats:MISTAKEN
names = fake_formats:NAMES
none = fake_formats:NONE
read_taxa = fake_formats:RICHNESS
threads = fake_formats:THREADS
totals = fake_formats:TOTALS
unknown = no_such_module:FORMAT
"""


def run(folder: Path, *command: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that finds the package in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "ngsgpu", *command],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{folder}", "NGSGPU_BACKEND": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    return done


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    known = folder / "fake_formats-1.0.dist-info"
    known.mkdir(parents=True)
    (folder / "fake_formats.py").write_text(MODULE)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-formats\nVersion: 1.0\n")
    (known / "entry_points.txt").write_text(POINTS)
    return folder


@pytest.mark.usefixtures("database")
def test_formats_of_other_packages(package: Path, world: World, tmp_path: Path) -> None:
    reads = [
        world.fastq(f"{name}.fq", world.reads[:count]) for name, count in (("a", 90), ("b", 9))
    ]
    sheet, database = tmp_path / "sheet.tsv", str(world.folder / "db")
    sheet.write_text(f"sample\tfastq_1\na\t{reads[0]}\nb\t{reads[1]}\n")
    done = run(
        package, "classify", "-q", "-d", database, "--samples", str(sheet),
        "--names", f"{tmp_path}/{{sample}}.names", "--read-taxa", f"{tmp_path}/{{sample}}.taxa.gz",
        "-T", f"{tmp_path}/totals", "--report", f"{tmp_path}/{{sample}}.report",
    )  # fmt: skip
    for said in (
        "dashed: 'read-taxa' is no name", "input: -i is taken", "mistaken: there is one",
        "none: fake_formats:NONE is no", "threads: --threads, threads is taken", "unknown: no_such",
    ):  # fmt: skip
        assert f"output format {said}" in done.stderr
    lines = (tmp_path / "a.names").read_text().splitlines()
    assert lines == ["read", *(f"r{number}" for number in range(90))]
    samples = [line.split("\t") for line in (tmp_path / "totals").read_text().splitlines()]
    for name, classified in samples:
        rows = [line.split("\t") for line in (tmp_path / f"{name}.report").read_text().splitlines()]
        assert classified == rows[1][1]
        assert (tmp_path / f"{name}.taxa.gz").stat().st_size > 0
    assert [name for name, _ in samples] == ["a", "b"]

    candidates = str(tmp_path / "0.candidates")
    query = ("classify", "-q", "-d", database, "-i", str(reads[0]), "--sample", "a")
    run(package, *query, "--only-partition", "0", "--candidates", candidates)
    merged = ("classify-merge", "-q", "-d", database, candidates)
    run(package, *merged, "--names", f"{tmp_path}/merged", "--read-taxa", f"{tmp_path}/taxa")
    assert (tmp_path / "merged").read_bytes() == (tmp_path / "a.names").read_bytes()
    assert (tmp_path / "taxa").read_text().startswith("a\t")


def test_their_options_are_checked_like_ours(package: Path, world: World, tmp_path: Path) -> None:
    text = " ".join(run(package, "classify", "--help").stdout.split())
    assert "--read-taxa TXT Called taxa." in text and "-T, --totals FILE" in text
    reads = world.fastq("reads.fq", world.reads)
    before = reads.read_bytes()
    query = ("classify", "-d", str(tmp_path / "db"), "-i", str(reads))
    for other in (["--read-taxa", str(reads)], ["-T", str(reads)]):
        assert "is named as input and output" in run(package, *query, *other, status=2).stderr
    shared = f"{tmp_path}/{{sample}}.txt"
    said = run(package, *query, "--names", shared, "--totals", shared, status=2).stderr
    assert "is named as output twice" in said
    assert reads.read_bytes() == before


@pytest.mark.parametrize("own", formats().values(), ids=list(formats()))
def test_makers_take_what_there_is(own: Format) -> None:
    assert own.needs(GIVEN[own.of])
    assert own.help.endswith(".") and own.name.isidentifier()


def test_a_maker_that_cannot_be_used() -> None:
    for maker, message in (
        ("ngsgpu.classify.outputs.kraken:none", "`own` cannot be written"),
        ("ngsgpu.nothing:none", "`own` cannot be written"),
        (
            "ngsgpu.classify.outputs.biom:biom_table",
            "takes 'samples', which there is not",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            Format("own", "sample", maker, "Help.").needs(SampleGiven)


def test_outputs_are_named_after_formats() -> None:
    with pytest.raises(UsageError, match="there is no output 'reports'; choose from reads, "):
        SampleOutputs(reports="x")
    outputs = SampleOutputs(biom="all", report="{sample}.txt", stats="{sample}.json")
    assert outputs.of_samples(["a", "b"]) == ["a.txt", "a.json", "b.txt", "b.json", "all"]
    assert outputs.shared == {"biom": "all"}
    assert SampleOutputs(biom="{sample}").of_samples(["a"]) == ["a"]
