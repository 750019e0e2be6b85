"""How right extended reads are: the sample, the extension in all modes, and the tables."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from benchmarks.accuracy import extension_mapped
from benchmarks.accuracy.extension import OURS, Sample, extend_sample, is_ahead, table
from benchmarks.peers.extenders import Library
from ngsgpu.extend import ExtensionOutputs, ExtensionParameters, extend_files
from tests.support.extend.data import INSERT, LENGTH, simulated_pairs, write_pairs

LIBRARY = Library("HS20", LENGTH, INSERT, 8)


def written(folder: Path) -> None:
    """Pairs and their truth, where the simulation puts them: with a header for each piece."""
    pairs = simulated_pairs()
    for mate, path in enumerate(write_pairs(folder, pairs), 1):
        path.rename(folder / f"r{mate}.fq")
    lines = pairs.truth().splitlines(keepends=True)
    header = sum(line.startswith("@") for line in lines)
    half = header + (len(lines) - header) // 4 * 2
    truth = "".join([*lines[:half], "@HD\tVN:1.4\n", "@CO\tx\n", "@CO\ty\n", *lines[half:]])
    (folder / "r_errFree.sam").write_text(truth)
    (folder / "genome.fa").write_text(f">g\n{pairs.genome}\n")


def test_a_sample_is_extended_as_the_whole_is(tmp_path: Path) -> None:
    written(tmp_path)
    total = len(simulated_pairs().first)
    sample = Sample(tmp_path, total, 50)
    assert len(sample.pairs) == 50
    assert np.all(np.diff(sample.pairs) > 0)
    found = extend_sample(sample, LIBRARY, 2)
    low, high = LIBRARY.bounds
    names = {f"p{pair}" for pair in sample.pairs.tolist()}
    for strict, name in enumerate(OURS):
        parameters = ExtensionParameters(
            strict=strict,
            insert_mean=float(INSERT),
            insert_sd=8.0,
            min_length=low,
            max_length=high,
        )
        whole = tmp_path / "whole.fq"
        extend_files(
            [tmp_path / "r1.fq"],
            [tmp_path / "r2.fq"],
            outputs=ExtensionOutputs(str(whole)),
            parameters=parameters,
        )
        lines = whole.read_text().splitlines()
        expected = [
            "\n".join(lines[i : i + 4])
            for i in range(0, len(lines), 4)
            if lines[i][1:].split()[0] in names
        ]
        assert (tmp_path / f"ngsgpu{strict}.fq").read_text().splitlines() == "\n".join(
            expected
        ).splitlines()
        accuracy = found[name]["accuracy"]
        assert accuracy["pairs"] == 50
        assert accuracy["connected"] == len(expected) > 0


def entry(error_free: float, error_rate: float) -> dict[str, object]:
    rates = {
        "connected": 0.99,
        "error_free": error_free,
        "error_rate": error_rate,
        "error_rate_without_length": 0.0,
    }
    return {"accuracy": {"rates": rates}}


def test_ahead_means_in_every_mode_and_in_both() -> None:
    ours = dict.fromkeys(OURS, entry(0.9, 0.0001))
    data = {"genome": "g", "name": "500/10", "programs": ours}
    assert is_ahead(data) is None
    assert is_ahead(data | {"programs": {**ours, "konnector": entry(0.8, 0.0005)}})
    assert not is_ahead(data | {"programs": {**ours, "konnector": entry(0.95, 0.0005)}})
    assert not is_ahead(data | {"programs": {**ours, "konnector": entry(0.8, 0.00005)}})
    ended = {**ours, "konnector": {"accuracy": None}}
    lines = table({"datasets": [data | {"programs": ended}]}).splitlines()
    assert lines[2] == "| g | 500/10 | ngsgpu, strict 0 | 99.00 % | 90.00 % | 0.000100 | 0.000000 |"
    assert lines[-1] == "| g | 500/10 | konnector | - | - | - | - |"


def test_real_pairs_are_thinned_and_of_one_length(tmp_path: Path) -> None:
    paths = []
    for mate in (1, 2):
        text = "".join(
            f"@p{i}/{mate}\n{'A' * (9 if i % 10 == mate else 10)}\n+\n"
            f"{'I' * (9 if i % 10 == mate else 10)}\n"
            for i in range(100)
        )
        paths.append(tmp_path / f"{mate}.fq.gz")
        with gzip.open(paths[-1], "wt") as out:
            out.write(text)
    reference = tmp_path / "given.fa"
    reference.write_text(">g\n" + "ACGT" * 50 + "N" * 7 + "\n")
    assert extension_mapped.prepare([*paths, reference], tmp_path, 4) == (40, 10)
    names = (tmp_path / "r1.fq").read_text().splitlines()[::4]
    assert len(set(names)) == 40
    assert not any(name[2:].split("/")[0][-1] in "12" for name in names)
    assert extension_mapped.prepare([*paths, reference], tmp_path, 1000) == (80, 10)
