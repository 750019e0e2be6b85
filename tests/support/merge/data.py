"""Small simulated pairs of all kinds, and merging them from files to bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ngsgpu.merge import MergeOutputs, MergeParameters, RunOptions, merge_files
from tests.support.io.records import Record, fastq, write
from tests.support.minhash.oracle import reverse_complement

HEADERS = (
    "read{number}/{mate}",
    "read{number} {mate}:N:0:ACGT",
    "read{number}/1#ACGT",
    "read{number}/{mate} one/or two\t ",
    "read{number}.{mate}",
    "lane/1/read{number}",
    "read{number}#ACGT/{mate}",
)


def simulated_pairs(
    seed: int,
    count: int = 200,
    *,
    lengths: tuple[int, int] = (100, 100),
    inserts: tuple[int, int] = (30, 220),
    mixed: bool = False,
    ambiguous: float = 0.0,
    errors: float = 0.02,
    outward: float = 0.0,
    scores: tuple[int, int] = (2, 41),
    offset: int = 33,
) -> list[tuple[Record, Record]]:
    """Pairs from random fragments, some of few letters only; adapters where reads go beyond."""
    rng = random.Random(seed)
    adapters = ["".join(rng.choices("ACGT", k=400)) for _ in range(2)]
    pairs = []
    for number in range(count):
        letters = rng.choice(["ACGT", "ACGT", "ACGT", "AC", "A"])
        fragment = "".join(rng.choices(letters, k=rng.randint(*inserts)))
        records = []
        strands = [fragment, reverse_complement(fragment)]
        for mate, strand in enumerate(strands):
            length = rng.randint(0, lengths[mate]) if mixed else lengths[mate]
            bases = (strand + adapters[mate])[:length]
            records.append(bases)
        if rng.random() < outward:
            records = [reverse_complement(bases) for bases in reversed(records)]
        mates = []
        for mate, bases in enumerate(records):
            called = "".join(
                rng.choice("ACGT") if rng.random() < errors else base for base in bases
            )
            called = "".join(
                rng.choice("N.R") if rng.random() < ambiguous else base for base in called
            )
            if number % 7 == 3:
                called = called.lower()
            header = HEADERS[number % len(HEADERS)].format(number=number, mate=mate + 1)
            qualities = bytes(offset + rng.randint(*scores) for _ in bases)
            mates.append(Record(header.encode(), called.encode(), qualities))
        pairs.append((mates[0], mates[1]))
    return pairs


def simulated_tandems(
    rng: random.Random, count: int, divergence: float = 0, errors: float = 0.004
) -> list[tuple[Record, Record]]:
    """Pairs of 2 x 100 bases of fragments with a tandem repeat; errors have low qualities."""
    pairs = []
    for number in range(count):
        flank, unit = (rng.choices("ACGT", k=k) for k in (rng.randint(0, 100), rng.randint(2, 30)))
        repeat = [unit[i % len(unit)] for i in range(rng.randint(30, 160))]
        repeat = [rng.choice("ACGT") if rng.random() < divergence else base for base in repeat]
        fragment = "".join(flank + repeat + rng.choices("ACGT", k=190))[: rng.randint(100, 190)]
        mates = []
        for strand in (fragment, reverse_complement(fragment)):
            wrong = [rng.random() < errors for _ in range(100)]
            called = "".join(
                rng.choice("ACGT") if error else base
                for base, error in zip(strand, wrong, strict=False)
            )
            scores = bytes(33 + (rng.choice([12, 37]) if error else 37) for error in wrong)
            mates.append(Record(b"t%d" % number, called.encode(), scores))
        pairs.append((mates[0], mates[1]))
    return pairs


def write_pairs(folder: Path, pairs: list[tuple[Record, Record]]) -> tuple[Path, Path]:
    return (
        write(folder / "1.fq", fastq(first for first, _ in pairs)),
        write(folder / "2.fq", fastq(second for _, second in pairs)),
    )


def merge_to_bytes(
    folder: Path,
    inputs: tuple[Path, Path],
    parameters: MergeParameters,
    options: RunOptions | None = None,
    *,
    phred_offset: int = 33,
) -> tuple[bytes, bytes, bytes]:
    """Merge files; the bytes of the three outputs, merged reads first."""
    merged = None if parameters.correct_only else folder / "merged.fq"
    outputs = MergeOutputs(merged, folder / "u1.fq", folder / "u2.fq")
    merge_files(
        [inputs[0]],
        [inputs[1]],
        outputs,
        parameters=parameters,
        phred_offset=phred_offset,  # type: ignore[arg-type]
        options=options,
    )
    assert outputs.unmerged1 is not None
    assert outputs.unmerged2 is not None
    return (
        b"" if merged is None else merged.read_bytes(),
        Path(outputs.unmerged1).read_bytes(),
        Path(outputs.unmerged2).read_bytes(),
    )


REAL = (
    "merge_16S_v4_dada2_sam1",
    "merge_16S_v4_dada2_sam2",
    "merge_16S_v4_miseqsop_F3D0",
    "merge_BCR_miseq_Sample1",
    "sarscov2_artic_miseq",
    "sarscov2_miseq_MN908947_3",
)


def random_parameters(rng: random.Random) -> MergeParameters:
    shortest = rng.choice([1, 3, 10, 20])
    if rng.random() < 0.5:
        return MergeParameters(
            min_overlap=shortest,
            max_mismatch_density=rng.choice([None, 0.1, 1]),
            quality=rng.choice(["calibrated", "edgar", "flash"]),  # type: ignore[arg-type]
            max_quality=rng.choice([41, 20, 93]),
            correct_only=rng.random() < 0.3,
            **rng.choice([{}, {}, {"allow_outies": True}]),  # type: ignore[arg-type]
        )
    quality = rng.choice(["edgar", "flash"])
    outward = rng.choice([{}, {}, {"allow_outies": True}, {"trim_adapters": True}])
    return MergeParameters(
        overlap="flash",
        min_overlap=shortest,
        max_overlap=max(shortest, rng.choice([10, 30, 65, 300])),
        max_mismatch_density=rng.choice([0, 0.1, 0.25, 0.333333, 1]),
        quality=quality,  # type: ignore[arg-type]
        cap_mismatch_quals=quality == "flash" and rng.random() < 0.3,
        max_quality=rng.choice([41, 41, 20, 93]),
        correct_only=rng.random() < 0.3,
        **outward,
    )


def merged(
    folder: Path,
    name: str,
    first: Sequence[Path],
    second: Sequence[Path],
    parameters: MergeParameters,
    *,
    options: RunOptions | None = None,
    interleaved_out: bool = False,
    ending: str = "fq",
    phred_offset: int = 33,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """All files that are written, and the statistics without times."""
    folder = folder / name
    options = options or RunOptions()
    folder.mkdir()
    outputs = MergeOutputs(
        None if parameters.correct_only else folder / f"merged.{ending}",
        folder / f"first.{ending}",
        None if interleaved_out else folder / f"second.{ending}",
        hist=folder / "hist",
        histogram=folder / "histogram",
        ihist=folder / "ihist",
        by_direction=True,
    )
    statistics = asdict(
        merge_files(
            first,
            second,
            outputs,
            interleaved=not second,
            parameters=parameters,
            phred_offset=phred_offset,  # type: ignore[arg-type]
            options=options,
        )
    )
    assert statistics.pop("backend") == options.backend
    for key in ("device", "time_s", "memory"):
        statistics.pop(key)
    return {path.name: path.read_bytes() for path in folder.iterdir()}, statistics


def assert_same(
    backend: str, folder: Path, *inputs: Any, options: RunOptions | None = None, **others: Any
) -> None:
    """A backend writes what the CPU writes on one thread."""
    options = replace(options or RunOptions(threads=4), backend=backend)  # type: ignore[arg-type]
    expected = merged(folder, "expected", *inputs, **others)
    assert merged(folder, "found", *inputs, options=options, **others) == expected
