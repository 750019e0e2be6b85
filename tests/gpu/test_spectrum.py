"""The GPU corrects by k-mers to the bytes of the CPU, for any rule, reads and memory."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.cli import main
from ngsgpu.device.team import Team
from ngsgpu.errors import DeviceMemoryError
from ngsgpu.readset import ReadSet
from ngsgpu.readset.gpu_divided import are_linked
from ngsgpu.run.options import RunOptions
from ngsgpu.spectrum import (
    SpectrumCorrections,
    SpectrumParameters,
    correct_files,
    correct_reads,
    gpu_plan,
)
from ngsgpu.spectrum.gpu_plan import SpectrumGpuPlan
from ngsgpu.spectrum.kmers.counts import count_reads, find_thresholds
from tests.support.crowd import crowd
from tests.support.io.random_fastq import Style, random_lanes
from tests.support.spectrum.gpu_cases import assert_same, divide_always, make_reads, small_units
from tests.support.spectrum.samples import errors_in, sample

LEAST_MEMORY = 8 << 20


def both(
    reads: ReadSet, parameters: SpectrumParameters, *, trim: bool = False, **run: Any
) -> SpectrumCorrections:
    """The corrections of both backends, which must be the same."""
    expected = correct_reads(reads, parameters, trim=trim)
    options = RunOptions(backend="cuda", **run)
    found = correct_reads(reads, parameters, options, trim=trim)
    assert_same(found, expected)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_random_reads(seed: int) -> None:
    """Mixed lengths, some too short, Ns, repeats, any rule and k-mer length, little memory."""
    rng = random.Random(seed)
    _, texts, qualities = sample(
        seed, rng.choice([1, 50, 300, 800]), rng.choice([0.01, 0.03, 0.06])
    )
    if rng.random() < 0.2:
        length = min(map(len, texts))
        texts, qualities = [t[:length] for t in texts], [q[:length] for q in qualities]
    bits = rng.choice([8, 8, 8, 2, 1, 0])
    parameters = SpectrumParameters(
        kmer=rng.choice([11, 11, 12, 15, 19, 31, None]),
        min_count=rng.choice([None, 2, 4]),
        rule=rng.choice(["search", "search", "search", "voting", "exhaustive"]),  # type: ignore[arg-type]
        filter=rng.choice(["exact", "exact", "bloom"]),  # type: ignore[arg-type]
        mutations=rng.choice([1, 2]),
        max_changes=rng.choice([1, 2, 4]),
        window=rng.choice([8, 20, 63]),
        quality_bits=bits,
    )
    reads = ReadSet.from_sequences(texts, qualities, quality_bits=bits)
    memory = rng.choice([None, LEAST_MEMORY])
    both(reads, parameters, trim=rng.random() < 0.4, gpu_memory=memory)


@pytest.mark.parametrize("rule", ["search", "voting", "exhaustive"])
def test_errors_are_corrected(rule: str) -> None:
    """Reads of a genome: many are fixed, and many threads work."""
    texts, qualities, truths = errors_in(random.Random(4), genome=20_000, reads=8_000, length=100)
    parameters = SpectrumParameters(kmer=21, rule=rule, mutations=1)  # type: ignore[arg-type]
    found = both(ReadSet.from_sequences(texts, qualities), parameters)
    wrong = sum(a != b for text, truth in zip(texts, truths, strict=True)
                for a, b in zip(text, truth, strict=True))  # fmt: skip
    assert len(found.edits.values) > wrong / 3


@pytest.mark.parametrize("length", [31, 63, 64, 65, 128, 129, 250, 3000])
def test_lengths(length: int) -> None:
    texts, qualities, _ = errors_in(
        random.Random(length), genome=4000, reads=120_000 // length, length=length
    )
    for bits in (8, 2):
        reads = ReadSet.from_sequences(texts, qualities, quality_bits=bits)
        both(reads, SpectrumParameters(kmer=25, quality_bits=bits))


@pytest.mark.parametrize("k", [11, 21, 31])
@pytest.mark.parametrize("rows", [1 << 20, 3000, 700])
def test_counts_in_parts(k: int, rows: int) -> None:
    from ngsgpu.readset.gpu import DeviceReadSet
    from ngsgpu.spectrum.gpu import count_on_gpu, divide_kmers

    _, texts, qualities = sample(k, 300, 0.02)
    reads = ReadSet.from_sequences(texts, qualities)
    expected = count_reads(reads, k)
    there = DeviceReadSet.from_host(reads)
    for room, gpus in itertools.product((0, 1 << 12, 1 << 20), (1, 2, 3)):
        shares = divide_kmers(there, k, rows, gpus)
        assert len(shares) == gpus
        assert all(part.size <= rows for share in shares for part in share)
        found = [count_on_gpu(there, k, share, room) for share in shares]
        pieces = [
            [(own if type(own) is np.ndarray else own.get()).ravel() for own in piece]
            for kept in found
            for piece in kept.pieces
        ]
        kmers, counts = (np.concatenate(own) for own in zip(*pieces, strict=True))
        order, theirs = np.argsort(kmers), np.argsort(expected.kmers)
        assert np.array_equal(kmers[order], expected.kmers[theirs])
        assert np.array_equal(counts[order], expected.counts[theirs])
        assert np.array_equal(sum(kept.histogram for kept in found), expected.histogram)


def test_too_many_equal_kmers() -> None:
    from ngsgpu.readset.gpu import DeviceReadSet
    from ngsgpu.spectrum.gpu import divide_kmers

    reads = ReadSet.from_sequences(["A" * 100] * 50)
    for gpus in (1, 3):
        with pytest.raises(DeviceMemoryError, match="counting 4,000 k-mers at a time takes"):
            divide_kmers(DeviceReadSet.from_host(reads), 21, 1000, gpus)


@pytest.mark.parametrize("gpus", [1, 2, 3, 4])
@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_several_gpus(monkeypatch: pytest.MonkeyPatch, seed: int, divided: bool, gpus: int) -> None:
    """Whole on each or divided over them, reads of the host or the GPU, any rule and filter."""
    crowd(monkeypatch)
    small_units(monkeypatch)
    # Arrays of the same GPU are copied, too, as if they were of another one.
    monkeypatch.setattr("ngsgpu.spectrum.gpu.here", lambda array: array.copy())
    monkeypatch.setattr("ngsgpu.readset.gpu.here", lambda array: array.copy())
    if divided:
        divide_always(monkeypatch)
    reads, parameters, trim = make_reads(500 + seed)
    expected = correct_reads(reads, parameters, trim=trim)
    found, plan = on_team(reads, parameters, gpus, trim=trim, on_gpu=seed % 2 == 0)
    assert_same(found, expected)
    assert plan.divided_over == (gpus if divided and are_linked(Team(gpus)) else 1)


@pytest.mark.parametrize("gpus", [2, 3])
@pytest.mark.parametrize("divided", [False, True])
def test_counted_kmers_of_several_gpus_that_go_to_the_host(
    monkeypatch: pytest.MonkeyPatch, divided: bool, gpus: int
) -> None:
    crowd(monkeypatch)
    small_units(monkeypatch)
    monkeypatch.setattr(gpu_plan, "kept_bytes", lambda words: 1 << 40)
    monkeypatch.setattr(gpu_plan, "MOST_ROWS", 3000)
    if divided:
        divide_always(monkeypatch)
    reads, parameters, trim = make_reads(600 + gpus)
    found, plan = on_team(reads, parameters, gpus, trim=trim)
    assert_same(found, correct_reads(reads, parameters, trim=trim))
    assert plan.moved == ["counted k-mers"]


@pytest.mark.parametrize("gpus", [2, 3])
@pytest.mark.parametrize("membership", ["exact", "bloom"])
def test_a_divided_table_that_is_larger_than_was_planned(
    monkeypatch: pytest.MonkeyPatch, membership: str, gpus: int
) -> None:
    crowd(monkeypatch)
    divide_always(monkeypatch)
    if not are_linked(Team(gpus)):
        pytest.skip("the GPUs are not linked")
    monkeypatch.setattr(gpu_plan, "USUAL_COVERAGE", 1 << 20)
    # Counted k-mers have room on the GPUs, though, until the table needs it.
    monkeypatch.setattr(gpu_plan, "kept_bytes", lambda words: 4 << 20)
    # Of several pages of memory for each.
    texts, qualities, _ = errors_in(random.Random(8), genome=400_000, reads=27_000, length=150)
    reads = ReadSet.from_sequences(texts, qualities)
    parameters = SpectrumParameters(kmer=25, filter=membership)  # type: ignore[arg-type]
    found, plan = on_team(reads, parameters, gpus)
    assert_same(found, correct_reads(reads, parameters))
    assert plan.divided_over == gpus


def on_team(
    reads: ReadSet,
    parameters: SpectrumParameters,
    gpus: int,
    *,
    trim: bool = False,
    on_gpu: bool = True,
) -> tuple[SpectrumCorrections, SpectrumGpuPlan]:
    """The corrections by several GPUs, and the plan."""
    from ngsgpu.readset.gpu import DeviceReadSet
    from ngsgpu.spectrum.gpu_team import SpectrumTeam

    assert parameters.kmer is not None
    team = SpectrumTeam(parameters, RunOptions(backend="cuda", gpus=gpus))
    team.place(DeviceReadSet.from_host(reads) if on_gpu else reads)
    histogram = team.count(parameters.kmer)
    assert np.array_equal(histogram, count_reads(reads, parameters.kmer).histogram)
    team.make_solid(find_thresholds(histogram, parameters.min_count))
    found = team.correct(parameters.kmer, trim=trim)
    team.close()
    return found, team.plan


@pytest.mark.parametrize("gpus", [2, 3])
@pytest.mark.parametrize("divided", [False, True])
def test_files_on_several_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, divided: bool, gpus: int
) -> None:
    crowd(monkeypatch)
    small_units(monkeypatch)
    if divided:
        divide_always(monkeypatch)
    texts, qualities, _ = errors_in(random.Random(6), genome=20_000, reads=8_000, length=100)
    path = tmp_path / "reads.fq"
    records = zip(texts, qualities, strict=True)
    path.write_text("".join(f"@r\n{text}\n+\n{quality}\n" for text, quality in records))
    written = []
    for backend, count in (("cpu", 1), ("cuda", gpus)):
        output = tmp_path / f"{backend}.fq"
        statistics = correct_files(
            [path],
            [output],
            options=RunOptions(threads=2, backend=backend, gpus=count),  # type: ignore[arg-type]
        )
        written.append((output.read_bytes(), statistics.classes, statistics.corrected))
    assert written[0] == written[1]
    linked = divided and are_linked(Team(gpus))
    assert statistics.gpu_memory["divided_over"] == (gpus if linked else 1)


def test_memory_is_planned(caplog: pytest.LogCaptureFixture) -> None:
    """Reads that move to the host, little by little; and memory that does not suffice."""
    caplog.set_level("INFO", "ngsgpu")
    texts, qualities, _ = errors_in(random.Random(7), genome=20_000, reads=15_000, length=150)
    reads = ReadSet.from_sequences(texts, qualities)
    parameters = SpectrumParameters(kmer=25)
    for memory in (64 << 20, 16 << 20, 10 << 20):
        both(reads, parameters, gpu_memory=memory)
    assert "on the host" in caplog.text
    with pytest.raises(DeviceMemoryError, match="by their k-mers takes at least"):
        both(reads, parameters, gpu_memory=5 << 20)


def run(backend: str, folder: Path, arguments: list[str], outputs: list[str]) -> dict[str, bytes]:
    """All outputs of a run, and what the statistics count."""
    own = folder / backend
    own.mkdir()
    given = [argument.replace("OUT", str(own)) for argument in arguments]
    stats = own / "stats.json"
    common = ["correct", "--method", "spectrum", "-q", "--backend", backend]
    assert main([*common, *given, "--stats", str(stats)]) == 0
    document = json.loads(stats.read_text())
    assert document.pop("backend") == backend
    for name in ("device", "command", "time_s", "memory", "gpu_memory", "job"):
        document.pop(name, None)
    stats.unlink()
    found = {path.name: path.read_bytes() for path in own.iterdir()}
    assert set(outputs) <= set(found)
    for name, content in found.items():
        found[name] = gzip.decompress(content) if name.endswith(".gz") else content
    return found | {"stats": json.dumps(document).encode()}


@pytest.mark.parametrize("seed", range(16))
def test_files(tmp_path: Path, seed: int) -> None:
    """Random files of every awkward form, single reads and pairs, with and without limits."""
    rng = random.Random(900 + seed)
    style = Style.random(rng)
    lanes = random_lanes(rng, tmp_path, style, rng.choice(["single", "pairs", "interleaved"]))
    outputs = [f"{mate}.fq{rng.choice(['', '.gz'])}" for mate in range(len(lanes[0].inputs))]
    arguments = ["--phred-offset", str(style.phred_offset), "-t", rng.choice(["1", "3"])]
    arguments += ["--kmer", rng.choice(["11", "15", "21"]), "--min-count", "2"]
    arguments += ["--rule", rng.choice(["search", "search", "voting", "exhaustive"])]
    arguments += rng.choice([[], ["--mask"], ["--quality"], ["--filter", "bloom"]])
    for lane in lanes:
        for option, path in zip(("-i", "-I"), lane.inputs, strict=False):
            arguments += [option, path]
    for option, output in zip(("-o", "-O"), outputs, strict=False):
        arguments += [option, f"OUT/{output}"]
    arguments += ["--interleaved"] * lanes[0].interleaved
    limit = rng.choice([[], ["--gpu-memory", "1G"]])
    expected = run("cpu", tmp_path, arguments, outputs)
    assert run("cuda", tmp_path, [*arguments, *limit], outputs) == expected


def noise_of(rng: random.Random) -> str:
    """A read of nothing."""
    return "".join(rng.choices("ACGT", k=80))


@pytest.mark.parametrize("rule", ["search", "voting"])
@pytest.mark.parametrize("how", ["--trim", "--split OUT/by", "--trim --split OUT/by"])
def test_trimmed_and_by_class(tmp_path: Path, rule: str, how: str) -> None:
    texts, qualities, _ = errors_in(random.Random(3), genome=3000, reads=2000, length=80)
    noise = random.Random(5)
    for mate in (0, 1):
        lines = [
            f"@{i}\n{noise_of(noise) if i % 50 == 7 else text}\n+\n{quality}\n"
            for i, (text, quality) in enumerate(
                zip(texts[mate::2], qualities[mate::2], strict=True)
            )
        ]
        (tmp_path / f"{mate}.fq").write_text("".join(lines))
    arguments = ["-i", f"{tmp_path}/0.fq", "-I", f"{tmp_path}/1.fq", "-o", "OUT/1.fq"]
    arguments += ["-O", "OUT/2.fq", "--rule", rule, "--kmer", "15", *how.split()]
    outputs = ["1.fq", "2.fq", *(["by.fixed_1.fastq"] if "--split" in how else [])]
    expected = run("cpu", tmp_path, arguments, outputs)
    assert run("cuda", tmp_path, arguments, outputs) == expected


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "1.fq").write_text("@r\n" + "ACGTT" * 20 + "\n+\n" + "F" * 100 + "\n")
    arguments = ["correct", "--method", "spectrum", "--backend", "cuda", "--dry-run", "-q"]
    assert main([*arguments, "-i", str(tmp_path / "1.fq")]) == 0
    said = capsys.readouterr().out
    assert "reads    1 with 100 bases" in said
    assert "GPU      " in said
