"""In the mode ``flash`` every byte is the one that FLASH 1.2.11 writes."""

from __future__ import annotations

import gzip
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from ngsgpu.merge import MergeOutputs, MergeParameters, RunOptions, merge_files
from tests.support import DATA
from tests.support.io.records import Record, write
from tests.support.merge.data import REAL, simulated_pairs, write_pairs
from tests.support.minhash.oracle import reverse_complement


@dataclass(frozen=True)
class Setting:
    """The same parameters for both programs."""

    flash: str
    parameters: MergeParameters
    interleaved_out: bool = False


def setting(flash: str = "", *, interleaved_out: bool = False, **parameters: object) -> Setting:
    return Setting(
        flash,
        MergeParameters.flash(**parameters),  # type: ignore[arg-type]
        interleaved_out,
    )


SETTINGS = {
    "defaults": setting(),
    "outies": setting("-O", allow_outies=True),
    "long": setting(
        "-m 20 -M 250 -x 0.1", min_overlap=20, max_overlap=250, max_mismatch_density=0.1
    ),
    "loose": setting(
        "-m 1 -M 30 -x 0.4 -O --cap-mismatch-quals",
        min_overlap=1,
        max_overlap=30,
        max_mismatch_density=0.4,
        allow_outies=True,
        cap_mismatch_quals=True,
    ),
    "exact": setting("-x 0 --interleaved-output", max_mismatch_density=0, interleaved_out=True),
    "lengths": setting(
        "-r 150 -f 250 -s 19",
        max_overlap=None,
        read_length=150,
        fragment_length=250,
        fragment_deviation=19,
    ),
}


def assert_same(
    folder: Path, first: Path, second: Path, chosen: Setting, *, offset: int = 33
) -> int:
    """Run both programs and compare all files; the number of merged reads' bytes."""
    command = ["flash", str(first), str(second), "-q", "-t", "1", "-p", str(offset)]
    subprocess.run(
        [*command, "-o", str(folder / "flash"), "-d", "/", *chosen.flash.split()],
        check=True,
        capture_output=True,
    )
    outputs = MergeOutputs.of_flash(
        folder / "ours",
        interleaved=chosen.interleaved_out,
        by_direction=chosen.parameters.allow_outies,
    )
    merge_files(
        [first],
        [second],
        outputs,
        parameters=chosen.parameters,
        phred_offset=offset,  # type: ignore[arg-type]
        options=RunOptions(threads=2),
    )
    names = {path.name.removeprefix("flash") for path in folder.glob("flash.*")}
    assert names == {path.name.removeprefix("ours") for path in folder.glob("ours.*")}
    for name in names:
        assert (folder / f"ours{name}").read_bytes() == (folder / f"flash{name}").read_bytes(), name
    return (folder / "flash.extendedFrags.fastq").stat().st_size


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("reads", REAL)
def test_real_reads(tmp_path: Path, reads: str, name: str) -> None:
    files = [DATA / "reads" / f"{reads}_R{mate}.fastq.gz" for mate in (1, 2)]
    merged = assert_same(tmp_path, files[0], files[1], SETTINGS[name])
    assert merged > 0 or name == "exact"


ART = {
    "100": "-ss HS20 -l 100 -m 160 -s 20",
    "150": "-ss HS25 -l 150 -m 250 -s 30",
    "250": "-ss MSv3 -l 250 -m 400 -s 60",
}


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("length", ART)
def test_simulated_sequencers(tmp_path: Path, length: str, name: str) -> None:
    """ART's reads, a tenth of them with ambiguous bases, a tenth cut shorter."""
    rng = random.Random(length)
    genome = "".join(rng.choices("ACGT", k=20_000))
    write(tmp_path / "genome.fa", f">genome\n{genome}\n".encode())
    subprocess.run(
        f"art_illumina {ART[length]} -p -na -q -f 10 -rs 1 -i genome.fa -o r".split(),
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    for mate in (1, 2):
        lines = (tmp_path / f"r{mate}.fq").read_text().split("\n")
        for i in range(1, len(lines) - 1, 4):
            if rng.random() < 0.1:
                lines[i] = "".join("N" if rng.random() < 0.1 else base for base in lines[i])
            if rng.random() < 0.1:
                cut = rng.randrange(len(lines[i]))
                lines[i], lines[i + 2] = lines[i][:cut], lines[i + 2][:cut]
        write(tmp_path / f"r{mate}.fq", "\n".join(lines).encode())
    assert assert_same(tmp_path, tmp_path / "r1.fq", tmp_path / "r2.fq", SETTINGS[name]) > 0


@pytest.mark.parametrize("seed", range(16))
def test_random_reads(tmp_path: Path, seed: int) -> None:
    """All kinds of letters, headers and lengths; 300 bases, outward pairs, both offsets."""
    rng = random.Random(seed)
    offset = rng.choice([33, 33, 64])
    pairs = simulated_pairs(
        seed,
        300,
        lengths=(rng.choice([40, 100, 300]), rng.choice([40, 64, 300])),
        inserts=(1, rng.choice([100, 500])),
        mixed=rng.random() < 0.6,
        ambiguous=rng.choice([0, 0.01, 0.1]),
        errors=rng.choice([0, 0.02, 0.1, 0.2]),
        outward=rng.choice([0, 0.4]),
        scores=rng.choice([(2, 41), (30, 32), (0, 3), (0, 60)]),
        offset=offset,
    )
    chosen = list(SETTINGS.values())[seed % len(SETTINGS)]
    assert_same(tmp_path, *write_pairs(tmp_path, pairs), chosen, offset=offset)


def test_nothing_merged(tmp_path: Path) -> None:
    pairs = simulated_pairs(1, 20, lengths=(5, 5))
    assert assert_same(tmp_path, *write_pairs(tmp_path, pairs), SETTINGS["outies"]) == 0


@pytest.mark.parametrize("tallest", [66, 111, 246])
def test_bars_round_as_flash_rounds(tmp_path: Path, tallest: int) -> None:
    """Counts for which the order of multiplication and division decides a bar's length."""
    rng = random.Random(tallest)
    records = []
    for length, count in ((100, tallest), (101, 5 * tallest // 6), (102, tallest // 3)):
        fragment = "".join(rng.choices("ACGT", k=length))
        records += simulated_fragment(fragment, count)
    assert assert_same(tmp_path, *write_pairs(tmp_path, records), SETTINGS["defaults"]) > 0


def simulated_fragment(fragment: str, count: int) -> list[tuple[Record, Record]]:
    strands = (fragment, reverse_complement(fragment))
    first, second = (Record(b"r", strand[:80].encode(), b"I" * 80) for strand in strands)
    return [(first, second)] * count


def test_compressed_and_interleaved(tmp_path: Path) -> None:
    """The same pairs from one compressed file to compressed files."""
    pairs = simulated_pairs(5, 100)
    first, second = write_pairs(tmp_path, pairs)
    assert_same(tmp_path, first, second, SETTINGS["defaults"])
    lines = [path.read_bytes().split(b"\n") for path in (first, second)]
    mixed = b""
    for i in range(0, len(lines[0]) - 1, 4):
        for one in lines:
            mixed += b"\n".join(one[i : i + 4]) + b"\n"
    both = write(tmp_path / "both.fq.gz", gzip.compress(mixed))
    merge_files(
        [both],
        (),
        MergeOutputs.of_flash(tmp_path / "packed", compressed=True),
        interleaved=True,
        parameters=SETTINGS["defaults"].parameters,
    )
    for name in ("extendedFrags", "notCombined_1", "notCombined_2"):
        packed = gzip.decompress((tmp_path / f"packed.{name}.fastq.gz").read_bytes())
        assert packed == (tmp_path / f"flash.{name}.fastq").read_bytes()
