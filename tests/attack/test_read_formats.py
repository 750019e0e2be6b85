"""Every command that reads has the same outputs from zstd, BAM and CRAM as from plain FASTQ."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

import pysam
import pytest

from ngsgpu.cli import main
from tests.attack.world import make_world, zstd_frames
from tests.support import copies
from tests.support.commands import Commands
from tests.support.io.alignments import Alignment, as_fastq, bam, pairs_of
from tests.support.io.oracle import Bad, read_fastq

PAIRS: Final = "--interleaved"
"""Of plain text; BAM and CRAM say so themselves."""
COMMANDS: Final = {
    "correct": f"correct -q -t 2 -i READS {PAIRS} -o OUT/c.fq",
    "correct by k-mers": f"correct --method spectrum -q -t 2 -i READS {PAIRS} -o OUT/c.fq",
    "correct by forests": f"correct -q -t 2 --model IN/own.forests -i READS {PAIRS} -o OUT/c.fq",
    "merge": "merge -q -t 2 -i READS --interleaved-in -o OUT/m.fq --unmerged1 OUT/u1.fq "
    "--unmerged2 OUT/u2.fq --hist OUT/m.hist",
    "extend": f"extend -q -t 2 -i READS {PAIRS} -o OUT/e.fq --remaining1 OUT/e1.fq "
    "--remaining2 OUT/e2.fq --insert-size 220 --insert-sd 20",
    "deplete": f"deplete -q -t 2 -d IN/host.idx -i READS {PAIRS} -o OUT/k.fq",
    "kmers count": "kmers count -q -t 2 -i READS -k 21 -o OUT/counts --histo OUT/histo",
    "kmers spectrum": "kmers spectrum -t 1 --exact -i READS -o OUT/kmers.tsv",
    "kmers query": "kmers query -t 1 -d IN/counts1 -i READS -o OUT/query.tsv",
    "unitigs": "unitigs -q -t 2 -i READS -o OUT/unitigs.fa",
    "assemble": f"assemble -q -t 2 -i READS {PAIRS} -o OUT/contigs.fa --scaffolds OUT/s.fa",
    "index query": "index query -q -t 2 IN/index -i READS -o OUT/matches.paf",
    "classify": f"classify -q -t 2 -d IN/db -i READS {PAIRS} --sample s -o OUT/calls.tsv "
    "--report OUT/report.txt",
    "evaluate correction": f"evaluate correction --truth IN/truth.sam -i READS {PAIRS} "
    "-o IN/c.fq --json OUT/correction.json",
}
FORMATS: Final = ("p.fq.zst", "p.bam", "p.cram")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands need, and the pairs p in every format."""
    folder = tmp_path_factory.mktemp("formats") / "world"
    make_world(folder, main)
    mates = [read_fastq((folder / f"r{mate}.fq").read_bytes()) for mate in (1, 2)]
    assert not any(isinstance(own, Bad) for own in mates)
    records = pairs_of(*mates)  # type: ignore[arg-type]
    _write_all(folder, "p", records)
    _write_all(folder, "single", [one._replace(flags=4) for one in records[::2]])
    assert main(f"correct -q -i {folder}/p.fq {PAIRS} -o {folder}/c.fq".split()) == 0
    return folder


def _write_all(folder: Path, name: str, records: list[Alignment]) -> None:
    text = as_fastq(records)
    (folder / f"{name}.fq").write_bytes(text)
    (folder / f"{name}.fq.zst").write_bytes(zstd_frames(text))
    (folder / f"{name}.bam").write_bytes(bam(records, 5000))
    pysam.view(
        "-C", "-o", str(folder / f"{name}.cram"), str(folder / f"{name}.bam"), catch_stdout=False
    )


def outputs(command: str, world: Path, reads: str, out: Path) -> dict[str, bytes]:
    """What a command writes, without the manifests of databases, which name the inputs."""
    out.mkdir()
    if reads.endswith(("bam", "cram")):
        command = command.replace(f"{PAIRS}-in", "").replace(PAIRS, "")
    for word, value in (("READS", f"{world}/{reads}"), ("IN", str(world)), ("OUT", str(out))):
        command = command.replace(word, value)
    assert main(command.split()) == 0
    return {
        path.name: path.read_bytes().replace(reads.encode(), b"READS")
        for path in out.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_outputs_are_those_from_plain_text(name: str, world: Path, tmp_path: Path) -> None:
    expected = outputs(COMMANDS[name], world, "p.fq", tmp_path / "plain")
    assert any(expected.values())
    for reads in FORMATS:
        assert outputs(COMMANDS[name], world, reads, tmp_path / reads) == expected, reads


def test_single_reads(world: Path, tmp_path: Path) -> None:
    for name in ("correct", "classify"):
        command = COMMANDS[name].replace(PAIRS, "")
        expected = outputs(command, world, "single.fq", tmp_path / name)
        for ending in ("fq.zst", "bam", "cram"):
            found = outputs(command, world, f"single.{ending}", tmp_path / f"{name}.{ending}")
            assert found == expected


def test_pairs_of_a_sheet(world: Path, tmp_path: Path) -> None:
    """A row of a sheet needs no other column for them."""
    expected = outputs(COMMANDS["classify"], world, "p.fq", tmp_path / "plain")["calls.tsv"]
    sheet = tmp_path / "sheet.tsv"
    sheet.write_text(f"sample\tfastq_1\ns\t{world}/p.bam\n")
    command = f"classify -q -t 2 -d IN/db --samples {sheet} -o OUT/calls.tsv"
    assert outputs(command, world, "p.bam", tmp_path / "sheet")["calls.tsv"] == expected


@pytest.mark.parametrize("name", ["p.fq.zst", "p.bam", "p.cram"])
def test_samples_are_named_without_the_ending(world: Path, tmp_path: Path, name: str) -> None:
    command = "classify -q -t 2 -d IN/db -i READS -o OUT/{sample}.tsv"
    assert set(outputs(command, world, name, tmp_path / "out")) == {"p.tsv"}


@pytest.mark.parametrize("command", ["correct", "deplete -d IN/host.idx"])
def test_streams_of_pairs_need_the_option(world: Path, tmp_path: Path, command: str) -> None:
    """Of a stream it is not known before whether its reads have mates."""
    line = f"{command} -q -t 2 -i - -o {tmp_path}/out.fq".replace("IN", str(world))
    line = f"{copies.ngsgpu()} {line}"
    data = (world / "p.bam").read_bytes()
    run = subprocess.run(line.split(), input=data, capture_output=True)
    assert (run.returncode, list(tmp_path.iterdir())) == (2, [])
    assert b"standard input: its reads have mates by their flags" in run.stderr
    assert b"add --interleaved" in run.stderr
    run = subprocess.run([*line.split(), PAIRS], input=data, capture_output=True)
    assert run.returncode == 0, run.stderr
    assert read_fastq((tmp_path / "out.fq").read_bytes())


def test_pairs_are_no_single_reads_of_an_assembly(
    world: Path, tmp_path: Path, ngsgpu: Commands
) -> None:
    done = ngsgpu("assemble", "-q", "--single", world / "p.bam", "-o", tmp_path / "contigs.fa")
    assert done.status == 2
    assert "p.bam: --single is for single reads, but its reads have mates" in done.error


def test_pairs_and_single_reads_are_not_read_together(
    world: Path, tmp_path: Path, ngsgpu: Commands
) -> None:
    done = ngsgpu.correct("-i", world / "p.bam", "-i", world / "single.bam", "-o", tmp_path / "o")
    assert done.status == 2
    assert "p.bam holds pairs and" in done.error
