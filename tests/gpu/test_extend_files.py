"""``ngsgpu extend`` writes the same files on the GPU as on the CPU, and the tables are the same."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.cli import main
from ngsgpu.extend import (
    ExtensionOutputs,
    ExtensionParameters,
    RunOptions,
    extend_files,
    gpu_plan,
    gpu_run,
)
from ngsgpu.io.inputs import ReadFiles
from ngsgpu.minhash.ends import build_end_tables
from ngsgpu.minhash.ends_gpu import DeviceEndTables, build_end_tables_on_gpu
from ngsgpu.minhash.params import EndParameters
from ngsgpu.readset import ReadSet, gpu_divided
from ngsgpu.readset.gpu import DeviceReadSet
from tests.support.crowd import crowd
from tests.support.extend.data import INSERT, Pairs, simulated_pairs, write_pairs
from tests.support.io.random_fastq import Style, random_lanes
from tests.support.io.records import Record, fastq
from tests.support.minhash.oracle import reverse_complement

pytestmark = pytest.mark.gpu

GIVEN = ["--insert-size", str(INSERT), "--insert-sd", "8"]
OUTPUTS = ("-o", "--remaining1", "--remaining2")
COUNTED = ("insert", "reads", "pairs", "lengths", "length_histogram", "tasks")


@pytest.mark.parametrize("lengths", [(100,), (40, 60, 100, 300), (30,), (), (64, 65, 128)])
@pytest.mark.parametrize(
    "parameters",
    [
        EndParameters(),
        EndParameters(kmer=32, window=50, hashes=2),
        EndParameters(kmer=8, window=130, hashes=1, seed=3),
        EndParameters(kmer=13, window=13, hashes=3),
    ],
)
def test_tables_of_ends(parameters: EndParameters, lengths: tuple[int, ...]) -> None:
    generator = np.random.default_rng(7)
    genome = "".join(generator.choice(list("ACGT"), 3000))
    sequences = []
    for length in generator.choice(lengths, 3000) if lengths else ():
        begin = int(generator.integers(0, len(genome) - 300))
        sequences.append(genome[begin : begin + length])
    reads = ReadSet.from_sequences(sequences)
    there = DeviceReadSet.from_host(reads)
    for on_device, parts in ((None, 1), (None, 4), (1, 16), (0, 64)):
        found = build_end_tables_on_gpu(there, parameters, on_device=on_device, parts=parts)
        assert_same_tables(found, reads, parameters)


def assert_same_tables(found: DeviceEndTables, reads: ReadSet, parameters: EndParameters) -> None:
    expected = build_end_tables(reads, parameters, threads=4)
    assert found[3:] == expected[2:]
    # What is on the host is copied by a kernel.
    entries = np.concatenate([(own + np.uint64(0)).get() for own in (found.entries, found.on_host)])
    assert np.array_equal(entries, expected.entries)
    assert np.array_equal(found.cells.get(), expected.cells)


def test_tables_of_equal_reads() -> None:
    reads = ReadSet.from_sequences(["ACGTTGCA" * 12] * 5000)
    parameters = EndParameters()
    assert_same_tables(
        build_end_tables_on_gpu(DeviceReadSet.from_host(reads), parameters), reads, parameters
    )


def extend(backend: str, inputs: list[str], folder: Path, options: list[str]) -> Any:
    """Outputs and what the statistics count."""
    names = {option: folder / f"{backend}{option}" for option in OUTPUTS}
    stats = folder / f"{backend}.json"
    given = [part for option, path in names.items() for part in (option, str(path))]
    head = ["extend", "-q", "--backend", backend, "--stats", str(stats)]
    assert main([*head, *inputs, *given, *options]) == 0
    document = json.loads(stats.read_text())
    assert document["backend"] == backend
    counted = {key: document[key] for key in COUNTED}
    return [path.read_bytes() for path in names.values()], counted


def assert_same(
    inputs: list[str], folder: Path, options: list[str], on_gpu: list[str] | None = None
) -> Any:
    ours = extend("cuda", inputs, folder, [*options, *(on_gpu or [])])
    assert ours == extend("cpu", inputs, folder, options)
    return ours


def written(folder: Path, layout: str, pairs: Pairs, rng: random.Random) -> list[str]:
    """The pairs in files of some layout; the options that name them."""
    zipped = rng.random() < 0.5
    line_end = rng.choice([b"\n", b"\r\n"])

    def file(name: str, records: list[Record]) -> str:
        if layout == "fasta":
            text = b"".join(b">%s\n%s\n" % record[:2] for record in records)
        else:
            text = fastq(records)
        text = text.replace(b"\n", line_end)
        path = folder / f"{name}.{'fa' if layout == 'fasta' else 'fq'}{'.gz' if zipped else ''}"
        path.write_bytes(gzip.compress(text) if zipped else text)
        return str(path)

    first, second = list(pairs.first), list(pairs.second)
    if layout == "interleaved":
        mixed = [record for both in zip(first, second, strict=True) for record in both]
        return ["-i", file("both", mixed), "--interleaved"]
    lanes = 3 if layout == "lanes" else 1
    size = -(-len(first) // lanes)
    arguments = []
    for lane in range(lanes):
        part = slice(lane * size, (lane + 1) * size)
        arguments += ["-i", file(f"1.{lane}", first[part]), "-I", file(f"2.{lane}", second[part])]
    return arguments


@pytest.mark.parametrize("layout", ["files", "interleaved", "lanes", "fasta"])
@pytest.mark.parametrize("strict", ["0", "1", "2"])
def test_layouts_and_strict_modes(tmp_path: Path, layout: str, strict: str) -> None:
    rng = random.Random(f"{layout} {strict}")
    pairs = simulated_pairs(seed=rng.randrange(4), error=rng.choice([0.002, 0.01]))
    inputs = written(tmp_path, layout, pairs, rng)
    (extended, _, _), counted = assert_same(inputs, tmp_path, ["--strict", strict, *GIVEN])
    # In strict mode 2 both tasks have to come to the same; with 1 % of errors a third of them do.
    least = len(pairs.first) // (4 if strict == "2" else 2)
    assert len(extended) > 1000 and counted["pairs"]["connected"] > least


@pytest.mark.parametrize(
    "options",
    [
        ["--outward", *GIVEN],
        [],
        ["--outward", "--strict", "1"],
        ["--min-length", "290", "--max-length", "305", *GIVEN],
        ["--fasta", "--gap-quality", "30", *GIVEN],
        ["--include-remaining", "--strict", "2", *GIVEN],
        ["--quality-bits", "2", *GIVEN],
        ["--quality-bits", "0", "--kmer", "32", "--hashes", "2", *GIVEN],
        ["--step", "64", "--min-reads", "2", "--min-overlap", "60", *GIVEN],
        ["--step", "1", "--max-mismatch-ratio", "0.1", "--seed", "5", *GIVEN],
        ["--gap-mismatches", "2", "--confirm-ratio", "0.3", "--merge-overlap", "20", *GIVEN],
        ["-t", "1", *GIVEN],
    ],
)
def test_options(tmp_path: Path, options: list[str]) -> None:
    rng = random.Random(1)
    inputs = written(tmp_path, "files", simulated_pairs(seed=2, error=0.01), rng)
    assert_same(inputs, tmp_path, options)
    assert_same(inputs, tmp_path, options, ["--gpu-memory", "1G"])


def test_mate_pairs(tmp_path: Path) -> None:
    def reverse_complemented(record: Record) -> Record:
        bases = reverse_complement(record.bases.decode().replace("N", "A")).encode()
        return Record(record.header, bases, (record.qualities or b"")[::-1])

    inputs = []
    pairs = simulated_pairs(seed=3)
    for option, side in (("-i", pairs.first), ("-I", pairs.second)):
        path = tmp_path / f"m{option}.fq"
        path.write_bytes(fastq([reverse_complemented(record) for record in side]))
        inputs += [option, str(path)]
    (extended, _, _), _ = assert_same(inputs, tmp_path, ["--library", "mp", "--outward", *GIVEN])
    assert extended


@pytest.mark.parametrize("seed", range(12))
def test_irregular_files(tmp_path: Path, seed: int) -> None:
    """Files of all forms that can be read; what is odd is left to the CPU's reader."""
    rng = random.Random(9000 + seed)
    style = Style.random(rng)
    lanes: list[ReadFiles] = random_lanes(
        rng, tmp_path, style, rng.choice(["pairs", "interleaved"])
    )
    inputs = ["--phred-offset", str(style.phred_offset)]
    for lane in lanes:
        for option, path in zip(("-i", "-I"), lane.inputs, strict=False):
            inputs += [option, path]
    inputs += ["--interleaved"] * lanes[0].interleaved
    assert_same(inputs, tmp_path, ["-t", rng.choice(["1", "4"]), *GIVEN])


def test_wrapped_fasta_and_blank_lines(tmp_path: Path) -> None:
    pairs = simulated_pairs(seed=1)
    inputs = []
    for option, side in (("-i", pairs.first), ("-I", pairs.second)):
        path = tmp_path / f"w{option}.fa"
        text = b""
        for header, bases, _ in side:
            text += b">%s\n%s\n%s\n" % (header, bases[:50], bases[50:])
        path.write_bytes(text + b"\n\n")
        inputs += [option, str(path)]
    assert_same(inputs, tmp_path, GIVEN)


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = written(tmp_path, "files", simulated_pairs(), random.Random(1))
    assert main(["extend", "--backend", "cuda", "--dry-run", *inputs]) == 0
    assert "GPU  " in capsys.readouterr().out
    small = ["extend", "--backend", "cuda", "--dry-run", "--gpu-memory", "1M"]
    assert main([*small, *inputs]) == 3
    assert "--gpu-memory" in capsys.readouterr().err


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("divided", [False, True])
def test_several_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpus: int, divided: bool
) -> None:
    crowd(monkeypatch)
    if divided:
        monkeypatch.setattr(gpu_divided, "divisions", lambda gpus, linked: [(gpus, True)])
    for module in (gpu_plan, gpu_run):
        monkeypatch.setattr(module, "MIN_PAIRS", 64)
    monkeypatch.setattr(gpu_plan, "MAX_PAIRS", 64)
    first, second = write_pairs(tmp_path, simulated_pairs())
    parameters = ExtensionParameters(insert_mean=float(INSERT), insert_sd=8.0)
    written = []
    for backend, count in (("cpu", 1), ("cuda", gpus)):
        paths = [str(tmp_path / f"{backend}.{name}.fq") for name in ("e", "r1", "r2")]
        extend_files(
            [first],
            [second],
            outputs=ExtensionOutputs(*paths),
            parameters=parameters,
            options=RunOptions(threads=2, backend=backend, gpus=count),  # type: ignore[arg-type]
        )
        written.append([Path(path).read_bytes() for path in paths])
    assert written[0] == written[1]
    assert all(written[0])
