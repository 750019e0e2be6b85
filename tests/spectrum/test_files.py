"""From files to files, as a user runs it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ngsgpu.errors import InputError, UsageError
from ngsgpu.run.options import RunOptions
from ngsgpu.spectrum import SpectrumParameters, correct_files
from tests.support.spectrum import oracle


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Mates with errors in low qualities, some of noise; names of the files, and of the truth."""
    folder = tmp_path_factory.mktemp("pairs")
    rng = random.Random(5)
    genome = "".join(rng.choices("ACGT", k=4000))
    files: list[list[str]] = [[], [], []]
    for number in range(1000):
        begin = rng.randrange(len(genome) - 200)
        mates = genome[begin : begin + 70], oracle.turned(genome[begin + 130 : begin + 200])
        for mate, truth in enumerate(mates):
            wrong = {i: rng.choice("ACGT") for i in range(70) if rng.random() < 0.01}
            text = oracle.changed(truth, wrong)
            if number % 100 == 0 or (number % 100 == 1 and mate):
                text = "".join(rng.choices("ACGT", k=70))
            elif number % 50 == 2:
                text = truth = truth[:20] + "N" + truth[21:]
            quality = "".join("+" if i in wrong else "I" for i in range(70))
            files[mate].append(f"@r{number} {mate + 1}:N:0\n{text}\n+\n{quality}\n")
            files[2].append(truth)
    paths = folder / "1.fq", folder / "2.fq", folder / "truth"
    for path, lines in zip(paths, files, strict=True):
        path.write_text("".join(lines) if path.suffix else "\n".join(lines))
    return paths


def _records(path: Path) -> list[list[str]]:
    lines = path.read_text().splitlines()
    return [lines[i : i + 4] for i in range(0, len(lines), 4)]


def test_only_bases_change(pairs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    from ngsgpu.cli import main

    outputs = [tmp_path / f"{name}.fq" for name in "ab"]
    files = ["-i", str(pairs[0]), "-I", str(pairs[1]), "-o", str(outputs[0]), "-O", str(outputs[1])]
    common = [
        "correct",
        "--method",
        "spectrum",
        "-q",
        "-t",
        "2",
        "--stats",
        str(tmp_path / "s.json"),
    ]
    assert main([*common, *files]) == 0
    truth = pairs[2].read_text().split()
    statistics = json.loads((tmp_path / "s.json").read_text())
    assert sum(statistics["classes"].values()) == statistics["reads"]["total"] == 2000
    wrong = [0, 0]
    for mate in range(2):
        before, after = _records(pairs[mate]), _records(outputs[mate])
        assert [(r[0], r[2:]) for r in before] == [(r[0], r[2:]) for r in after]
        for records, at in ((before, 0), (after, 1)):
            for i, record in enumerate(records):
                if i % 100 > 1:
                    right = truth[2 * i + mate]
                    wrong[at] += sum(a != b != "N" for a, b in zip(record[1], right, strict=True))
    assert wrong[1] < wrong[0] / 50
    assert statistics["corrected"]["unknown_decided"] == 40


@pytest.mark.parametrize("interleaved", [False, True])
def test_trimmed_and_by_class(
    pairs: tuple[Path, Path, Path], tmp_path: Path, interleaved: bool
) -> None:
    first, second = _records(pairs[0]), _records(pairs[1])
    inputs = pairs[:2]
    if interleaved:
        both = [line for two in zip(first, second, strict=True) for line in (*two[0], *two[1])]
        inputs = (tmp_path / "i.fq",)  # type: ignore[assignment]
        inputs[0].write_text("\n".join(both) + "\n")
    outputs = [tmp_path / f"o{mate}.fq" for mate in range(len(inputs))]
    correct_files(
        inputs[:1], outputs[:1], inputs[1:], outputs[1:],
        interleaved=interleaved, parameters=SpectrumParameters(rule="voting", mutations=1),
        trim=True, split=tmp_path / "by", options=RunOptions(threads=2),
    )  # fmt: skip
    names = {record[0].split()[0] for path in outputs for record in _records(path)}
    noise = {f"@r{i}" for i in range(0, 1000, 100)}
    assert names == {record[0].split()[0] for record in first} - noise
    kept = {record[0]: record for path in outputs for record in _records(path)}
    assert len(kept) == 2 * len(names)
    for record in first + second:
        if record[0] in kept:
            _, sequence, plus, quality = kept[record[0]]
            assert plus == "+"
            assert len(sequence) == len(quality)
            assert quality in record[3]
    assert kept["@r1 2:N:0"] == second[1]
    classes: dict[str, set[str]] = {}
    for path in tmp_path.glob("by.*"):
        name = path.name.split(".")[1].removesuffix("_1").removesuffix("_2")
        classes.setdefault(name, set()).update(r[0].split()[0] for r in _records(path))
    assert set(classes) == {"error_free", "fixed", "trimmed", "discarded"}
    assert sum(map(len, classes.values())) == 1000
    assert classes["discarded"] == noise | {f"@r{i}" for i in range(1, 1000, 100)}


def test_refusals(tmp_path: Path) -> None:
    fasta = tmp_path / "a.fa"
    fasta.write_text(">a\n" + "ACGGT" * 10 + "\n")
    with pytest.raises(InputError, match="FASTA"):
        correct_files([fasta], [tmp_path / "o.fa"], trim=True)
    assert not (tmp_path / "o.fa").exists()
    correct_files([fasta], [tmp_path / "o.fa"])
    assert (tmp_path / "o.fa").read_bytes() == fasta.read_bytes()
    for wrong in ({"kmer": 32}, {"min_count": 1}, {"rule": "all"}, {"mutations": 3}):
        with pytest.raises(UsageError):
            SpectrumParameters(**wrong)


def test_a_class_is_not_written_over_an_input(tmp_path: Path) -> None:
    reads = tmp_path / "by.fixed.fastq"
    reads.write_text("@a\n" + "ACGGT" * 10 + "\n+\n" + "I" * 50 + "\n")
    before = reads.read_bytes()
    with pytest.raises(UsageError, match="input and output"):
        correct_files([reads], [tmp_path / "o.fq"], split=tmp_path / "by")
    assert reads.read_bytes() == before
    assert not (tmp_path / "o.fq").exists()


def test_report_has_a_section(pairs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    from ngsgpu.cli import main
    from ngsgpu.report.exports.multiqc import write_content

    stats = tmp_path / "results/a/correct/stats.json"
    stats.parent.mkdir(parents=True)
    statistics = correct_files([pairs[0]], [tmp_path / "out.fq"], stats=stats)
    bars, columns = write_content(json.loads(stats.read_text()), str(tmp_path / "a"), "a")
    assert bars.name == "a.ngsgpu_correct_mqc.json" and '"depth"' in columns.read_text()
    files = ["--results", str(tmp_path / "results"), "-o", str(tmp_path / "r.html")]
    more = ["--tables", str(tmp_path / "tables"), "--methods", str(tmp_path / "m.md")]
    assert main(["report", *files, *more]) == 0
    table = (tmp_path / "tables/correction-statistics.csv").read_text()
    assert f"a,reads without a solid k-mer,{statistics.classes['discarded']}," in table
    assert "--method spectrum" in (tmp_path / "m.md").read_text()


@pytest.mark.parametrize("min_count", [None, 3])
def test_a_threshold_that_is_given_needs_no_advice(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, min_count: int | None
) -> None:
    """Without a peak of the genome's k-mers none is found, which matters only if none is given."""
    fasta = tmp_path / "a.fa"
    bases = "".join(random.Random(1).choices("ACGT", k=60))
    fasta.write_text(f">a\n{bases}\n>b\n{bases}\n")
    with caplog.at_level("WARNING", "ngsgpu"):
        parameters = SpectrumParameters(kmer=11, min_count=min_count)
        correct_files([fasta], [tmp_path / "o.fa"], parameters=parameters)
    assert ("give `min_count`" in caplog.text) == (min_count is None)
