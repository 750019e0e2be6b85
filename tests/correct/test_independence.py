"""The same bytes whatever the threads, the batches, the packing and the layout of the files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from ngsgpu.correct import CorrectionParameters, MinhashParameters, RunOptions, correct_files
from tests.support.commands import Commands
from tests.support.correct.data import mates, simulated_pairs
from tests.support.io.records import Record, fastq, write

PARAMETERS = CorrectionParameters(coverage=25)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two files of mates."""
    folder = tmp_path_factory.mktemp("pairs")
    first, second = mates(simulated_pairs())
    return write(folder / "1.fq", fastq(first)), write(folder / "2.fq", fastq(second))


@pytest.fixture(scope="module")
def corrected(
    pairs: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> tuple[bytes, bytes]:
    """What comes out of them, on one thread, all at once."""
    return run(pairs, tmp_path_factory.mktemp("out"))


def run(
    pairs: tuple[Path, Path],
    folder: Path,
    options: RunOptions | None = None,
    parameters: CorrectionParameters = PARAMETERS,
    ending: str = "fq",
) -> tuple[bytes, bytes]:
    out = [folder / f"1.{ending}", folder / f"2.{ending}"]
    correct_files(
        [pairs[0]], [out[0]], [pairs[1]], [out[1]], parameters=parameters, options=options
    )
    return out[0].read_bytes(), out[1].read_bytes()


def test_something_is_corrected(pairs: tuple[Path, Path], corrected: tuple[bytes, bytes]) -> None:
    for path, after in zip(pairs, corrected, strict=True):
        before = path.read_bytes()
        assert sum(b != a for b, a in zip(before, after, strict=True)) > 200


@pytest.mark.parametrize("form", ["CR LF", "no last line end", "mixed"])
def test_forms_of_the_input(
    tmp_path: Path, pairs: tuple[Path, Path], corrected: tuple[bytes, bytes], form: str
) -> None:
    first, second = (path.read_bytes() for path in pairs)
    expected = list(corrected)
    if form in ("CR LF", "mixed"):
        first = first.replace(b"\n", b"\r\n")
        expected[0] = expected[0].replace(b"\n", b"\r\n")
    if form == "CR LF":
        second = second.replace(b"\n", b"\r\n")
        expected[1] = expected[1].replace(b"\n", b"\r\n")
    if form in ("no last line end", "mixed"):
        second = second.removesuffix(b"\n")
        expected[1] = expected[1].removesuffix(b"\n")
    files = write(tmp_path / "a", first), write(tmp_path / "b", second)
    assert run(files, tmp_path) == tuple(expected)


def interleaved(first: bytes, second: bytes) -> bytes:
    """The records of two FASTQ files in turn."""
    sides = [text.splitlines(keepends=True) for text in (first, second)]
    return b"".join(b"".join(side[i : i + 4]) for i in range(0, len(sides[0]), 4) for side in sides)


def cut(text: bytes, at: list[int]) -> list[bytes]:
    """A FASTQ file cut before some records."""
    lines = text.splitlines(keepends=True)
    bounds = [0, *(4 * record for record in at), len(lines)]
    return [b"".join(lines[a:b]) for a, b in pairwise(bounds)]


@pytest.mark.parametrize("at", [[100], [1, 99, 300], [0, 200, 200]])
@pytest.mark.parametrize("layout", ["pairs", "interleaved"])
@pytest.mark.parametrize("outputs", ["one", "one a lane"])
def test_several_lanes(
    tmp_path: Path,
    pairs: tuple[Path, Path],
    corrected: tuple[bytes, bytes],
    at: list[int],
    layout: str,
    outputs: str,
) -> None:
    texts = [path.read_bytes() for path in pairs]
    expected = list(corrected)
    if layout == "interleaved":
        texts, expected = [interleaved(*texts)], [interleaved(*expected)]
        at = [2 * record for record in at]
    ins, outs = [], []
    for side, text in enumerate(texts):
        lanes = cut(text, at)
        ins.append([write(tmp_path / f"{side}{i}", lane) for i, lane in enumerate(lanes)])
        count = len(lanes) if outputs == "one a lane" else 1
        outs.append([tmp_path / f"out{side}{i}" for i in range(count)])
    if layout == "interleaved":
        correct_files(ins[0], outs[0], interleaved=True, parameters=PARAMETERS)
    else:
        correct_files(ins[0], outs[0], ins[1], outs[1], parameters=PARAMETERS)
    for side, text in enumerate(expected):
        wanted = cut(text, at) if outputs == "one a lane" else [text]
        assert [path.read_bytes() for path in outs[side]] == wanted


def test_lanes_of_single_reads(tmp_path: Path) -> None:
    text = fastq(simulated_pairs())
    whole = write(tmp_path / "whole.fq", text)
    lanes = [write(tmp_path / f"{i}.fq", lane) for i, lane in enumerate(cut(text, [50, 600]))]
    correct_files([whole], [tmp_path / "a.fq"], parameters=PARAMETERS)
    correct_files(lanes, [tmp_path / "b.fq"], parameters=PARAMETERS)
    assert (tmp_path / "a.fq").read_bytes() == (tmp_path / "b.fq").read_bytes() != text


def test_seed_changes_tables_and_hardly_anything_else(
    tmp_path: Path, pairs: tuple[Path, Path]
) -> None:
    results = {}
    for seed in (0, 1, 2):
        # Few tables, so that they matter.
        parameters = CorrectionParameters(
            coverage=25, minhash=MinhashParameters(hashes=3, seed=seed)
        )
        results[seed] = run(pairs, tmp_path, RunOptions(threads=2), parameters)
        assert run(pairs, tmp_path, RunOptions(threads=1), parameters) == results[seed]
    assert len(set(results.values())) == 3


def test_quality_bits(tmp_path: Path) -> None:
    # So few reads a position that qualities matter.
    first, second = mates(simulated_pairs(seed=3, coverage=8))
    pairs = write(tmp_path / "a", fastq(first)), write(tmp_path / "b", fastq(second))
    results = {}
    for bits in (8, 2, 1, 0):
        parameters = CorrectionParameters(coverage=8, quality_bits=bits)
        results[bits] = run(pairs, tmp_path, RunOptions(threads=2), parameters)
    # Finer ones decide a few bases that coarser ones leave.
    assert len(set(results.values())) >= 3
    assert results[8] != results[0]


def test_qualities_that_say_nothing(tmp_path: Path, ngsgpu: Commands) -> None:
    """Without quality bits, FASTQ is corrected like FASTA, and whatever its qualities are."""
    records = simulated_pairs()
    files = {
        "as they are": records,
        "all the same": [Record(r.header, r.bases, b"#" * len(r.bases)) for r in records],
    }
    results = []
    for name, several in files.items():
        path = write(tmp_path / name, fastq(several))
        options = ("--coverage", 25, "--quality-bits", 0)
        ngsgpu.corrects("-i", path, "-o", tmp_path / "out", *options)
        results.append((tmp_path / "out").read_bytes().splitlines()[1::4])
    path = write(tmp_path / "in.fa", b"".join(b">%s\n%s\n" % r[:2] for r in records))
    ngsgpu.corrects("-i", path, "-o", tmp_path / "out", "--coverage", 25)
    results.append((tmp_path / "out").read_bytes().splitlines()[1::2])
    assert results[0] == results[1] == results[2]


def test_offset_of_qualities(tmp_path: Path, ngsgpu: Commands) -> None:
    records = simulated_pairs()
    shifted = [
        Record(r.header, r.bases, bytes(q + 31 for q in r.qualities or b"")) for r in records
    ]
    write(tmp_path / "33.fq", fastq(records))
    write(tmp_path / "64.fq", fastq(shifted))
    for offset in (33, 64):
        ngsgpu.corrects(
            "-i", tmp_path / f"{offset}.fq", "-o", tmp_path / f"{offset}.out",
            "--phred-offset", offset,
        )  # fmt: skip
    bases = [(tmp_path / f"{n}.out").read_bytes().splitlines()[1::4] for n in (33, 64)]
    assert bases[0] == bases[1]
