"""The command: what it reads, writes and says, and what it refuses."""

from __future__ import annotations

import mmap
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ngsgpu.trim.duplicates import Duplicates
from tests.support.commands import Commands, names, read_json
from tests.support.io.records import fasta, fastq, write
from tests.support.trim.world import pairs


@pytest.fixture
def mates(tmp_path: Path) -> list[Path]:
    made = pairs(random.Random(3), 200)
    return [write(tmp_path / f"{mate}.fq", fastq(own[mate] for own in made)) for mate in (0, 1)]


def test_statistics_and_report(
    ngsgpu: Commands, tmp_path: Path, backend: str, mates: list[Path]
) -> None:
    done = ngsgpu(
        "trim", "-i", mates[0], "-I", mates[1], "-o", tmp_path / "o1.fq", "-O", tmp_path / "o2.fq",
        "-j", tmp_path / "j.json", "--stats", tmp_path / "s.json", "--quiet",
        "--backend", backend,
    )  # fmt: skip
    assert done.status == 0 and done.err == ""
    report, statistics = read_json(tmp_path / "j.json"), read_json(tmp_path / "s.json")
    assert statistics["schema"] == "ngsgpu.trim" and statistics["two_colours"]
    assert statistics["backend"] == backend
    assert statistics["reads"]["kept"] == report["filtering_result"]["passed_filter_reads"]
    assert statistics["bases"]["kept"] == report["summary"]["after_filtering"]["total_bases"]
    assert statistics["adapters"]["reads"] == report["adapter_cutting"]["adapter_trimmed_reads"]
    rate = report["duplication"]["rate"]
    assert statistics["duplicates"] / 200 == pytest.approx(rate, rel=1e-5) and rate > 0


def test_title(ngsgpu: Commands, tmp_path: Path, mates: list[Path]) -> None:
    """MultiQC looks for ``--report_title``, however the option was written."""
    for option in ("-R", "--report-title", "--report_title"):
        done = ngsgpu("trim", "-i", mates[0], "-j", tmp_path / "j.json", option, "S 1")
        assert done.status == 0, done.err
        assert read_json(tmp_path / "j.json")["command"].count(" --report_title S 1") == 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("multiqc") is None, reason="MultiQC is not installed")
def test_multiqc_reads_the_report(ngsgpu: Commands, tmp_path: Path, mates: list[Path]) -> None:
    """Whatever the file is called."""
    for name, files in (("one", ["-i", mates[0]]), ("two", ["-i", mates[0], "-I", mates[1]])):
        done = ngsgpu("trim", *files, "-j", tmp_path / f"{name}.json", "-R", f"sample_{name}")
        assert done.status == 0, done.err
    command = ["multiqc", "--outdir", tmp_path, tmp_path / "one.json", tmp_path / "two.json"]
    subprocess.run(command, check=True, capture_output=True)
    data = read_json(tmp_path / "multiqc_data/multiqc_data.json")
    (found,) = data["report_general_stats_data"].values()
    assert {*found} == {"sample_one", "sample_two"}
    assert "fastp-insert-size-plot" in data["report_plot_data"]


def test_reasons(ngsgpu: Commands, tmp_path: Path, backend: str, mates: list[Path]) -> None:
    """Each read is in one output; both mates of failed pairs, unless fastp's way is wanted."""
    outputs = [tmp_path / name for name in ("o1.fq", "o2.fq", "u1.fq", "u2.fq", "failed.fq")]
    options = ["-o", "-O", "--unpaired1", "--unpaired2", "--failed-out"]
    words = [word for both in zip(options, outputs, strict=True) for word in both]
    counts = []
    for more in ([], ["--fastp"]):
        done = ngsgpu("trim", "-i", mates[0], "-I", mates[1], *words, *more, "--backend", backend)
        assert done.status == 0 and "400 reads" in done.err, done.err
        counts.append([path.read_bytes().count(b"\n") // 4 for path in outputs])
    assert sum(counts[0]) == 400 > sum(counts[1])
    assert counts[0][:4] == counts[1][:4]
    reasons = {line.split()[-1] for line in outputs[4].read_text().split("\n")[::4] if line}
    assert {"failed_too_short", "failed_quality_filter"} <= reasons


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-a", "ACGU"], "--adapter-sequence must be auto, or at least 4 letters"),
        (["-g", "-G"], "--trim-poly-g and --disable-trim-poly-g exclude each other"),
        (["--umi"], "--umi needs --umi-loc"),
        (["--umi", "--umi_loc", "read1"], "--umi-len is needed where"),
        (["--umi", "--umi_loc", "index1", "--umi_skip", "3"], "--umi-skip is for a UMI"),
        (["--umi", "--umi_loc", "index1", "--umi_prefix", "a-b"], "--umi-prefix must have"),
        (["--umi", "--umi_loc", "read2", "--umi_len", "4"], "--umi-loc read2 is for pairs"),
        (["-O", "x.fq"], "-O is for pairs"),
        (["--unpaired1", "x.fq"], "--unpaired1 is for pairs"),
        (["-q", "99"], "--qualified-quality-phred must be from 0 to 93"),
        (["--cut_window_size", "0"], "--cut-window-size must be from 1 to 1,000"),
    ],
)
def test_refused(
    ngsgpu: Commands, tmp_path: Path, mates: list[Path], options: list[str], message: str
) -> None:
    before = names(tmp_path)
    done = ngsgpu("trim", "-i", mates[0], "-o", tmp_path / "o.fq", *options)
    assert done.status == 2
    assert message in done.error
    assert names(tmp_path) == before


def test_one_file_for_both_unpaired_mates(
    ngsgpu: Commands, tmp_path: Path, mates: list[Path]
) -> None:
    """Needs no second name."""
    words = ["-i", mates[0], "-I", mates[1], "-o", "o.fq", "--unpaired1", tmp_path / "u.fq"]
    done = ngsgpu("trim", *words, "--unpaired2", tmp_path / "u.fq")
    assert done.status == 2 and "leave out --unpaired2" in done.error
    assert not (tmp_path / "u.fq").exists()


@pytest.mark.parametrize("words", [["-h", "t.html"], ["-ht.html"], ["--html", "t.html"]])
def test_a_page_of_html_is_refused(
    ngsgpu: Commands, tmp_path: Path, mates: list[Path], words: list[str]
) -> None:
    """The usual line of fastp does not print the help as if all were well."""
    done = ngsgpu(
        "trim", "-i", mates[0], "-o", tmp_path / "o.fq", *words, "-j", tmp_path / "j.json"
    )
    assert done.status == 2 and "page of HTML" in done.error and "-j" in done.error
    assert not done.out and not (tmp_path / "o.fq").exists()
    for alone in (["-h"], ["--help"], ["-i", mates[0], "-h"]):
        done = ngsgpu("trim", *alone)
        assert done.status == 0 and "Usage: ngsgpu trim" in done.out


def test_every_cut_is_named(ngsgpu: Commands, tmp_path: Path, mates: list[Path]) -> None:
    """In the summary and both JSON files; and that fastp's -t is no number of threads."""
    report, stats = tmp_path / "j.json", tmp_path / "s.json"
    words = [
        "-i", mates[0], "-I", mates[1], "-j", report, "--stats", stats, "-t", 8, "-f", 2, "-F", 3,
        "-5", "-r", "-g", "-x", "-b", 40, "-U", "--umi-loc", "per_index",
    ]  # fmt: skip
    cuts = {
        "umi": "per_index", "front": [2, 3], "tail": [8, 8], "windows": ["front", "right"],
        "poly_g": 10, "poly_x": 10, "longest": [40, 40],
    }  # fmt: skip
    said = (
        "also cut: UMIs (per_index), the first 2 or, of second mates, 3 bases of each read, the "
        "last 8 bases of each read, windows of low quality (front, right), tails of 10 or more G, "
        "tails of 10 or more of one base, all behind 40 bases"
    )
    done = ngsgpu("trim", *words)
    assert done.status == 0 and said in done.err
    assert "--trim-tail1 8 cuts bases off the end of every read" in done.err
    assert read_json(report)["cuts"] == read_json(stats)["cuts"] == cuts
    done = ngsgpu("trim", *words, "-w", 2, "--fastp")
    assert "off the end of every read, as fastp does" not in done.err
    assert "cuts" not in read_json(report) and read_json(stats)["cuts"] == cuts


def test_bad_input(ngsgpu: Commands, tmp_path: Path, mates: list[Path]) -> None:
    short = write(tmp_path / "a.fa", b">x\nACG\n")
    broken = write(tmp_path / "broken.fq", mates[0].read_bytes() + b"@x\nACGT\n+\nIII\n")
    for words, message in (
        (["-i", broken], "record 201"),
        (["-i", write(tmp_path / "r.fa", fasta([]) + b">x\nACGT\n")], "needs qualities"),
        (["-i", mates[0], "--adapter-fasta", short], "no sequence"),
        (["-i", mates[0], "--adapter-fasta", tmp_path / "none.fa"], "none.fa"),
    ):
        done = ngsgpu("trim", *words, "-o", tmp_path / "o.fq", "-j", tmp_path / "j.json")
        assert done.status == 2 and message in done.error, done.err
        assert not (tmp_path / "o.fq").exists() and not (tmp_path / "j.json").exists()


def test_nothing_to_trim(ngsgpu: Commands, tmp_path: Path, backend: str) -> None:
    """An empty file gives empty outputs, and a report that is JSON."""
    empty = write(tmp_path / "e.fq", b"")
    done = ngsgpu("trim", "-i", empty, "-o", tmp_path / "o.fq", "-j", tmp_path / "j.json",
                  "--backend", backend)  # fmt: skip
    assert done.status == 0, done.err
    assert (tmp_path / "o.fq").read_bytes() == b""
    assert read_json(tmp_path / "j.json")["summary"]["before_filtering"]["total_reads"] == 0


def test_an_index_that_is_longer_than_the_other_mates_name(
    ngsgpu: Commands, tmp_path: Path, backend: str
) -> None:
    """Both names get the parts of both."""
    long, bases = "ACGT" * 500, "ACGTTGCA" * 5
    records = [f"@r {name}\n{bases}\n+\n{'I' * 40}\n" for name in ("1:N:0:AC", f"2:N:0:AC+{long}")]
    paths = [write(tmp_path / f"{i}.fq", text.encode()) for i, text in enumerate(records)]
    outs = [tmp_path / "o1.fq", tmp_path / "o2.fq"]
    done = ngsgpu("trim", "-i", paths[0], "-I", paths[1], "-o", outs[0], "-O", outs[1], "-A",
                  "--umi", "--umi-loc", "per_index", "--backend", backend)  # fmt: skip
    assert done.status == 0, done.err
    expected = [text.replace("@r ", f"@r:AC_{long} ") for text in records]
    assert [path.read_text() for path in outs] == expected


def test_a_umi_is_that_of_the_file_where_its_last_base_is_corrected(
    ngsgpu: Commands, tmp_path: Path, backend: str
) -> None:
    """At least one base stays, and may be corrected then."""
    records = ["@r\nT\n+\n#\n", f"@r\n{'G' * 40}\n+\n{'I' * 40}\n"]
    paths = [write(tmp_path / f"{i}.fq", text.encode()) for i, text in enumerate(records)]
    outs = [tmp_path / "o1.fq", tmp_path / "o2.fq"]
    done = ngsgpu(
        "trim", "-i", paths[0], "-I", paths[1], "-o", outs[0], "-O", outs[1], "-A", "-Q", "-L",
        "-c", "--umi", "--umi-loc", "read1", "--umi-len", 1, "--overlap-len-require", 1,
        "--overlap-diff-percent-limit", 100, "--backend", backend,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert outs[0].read_text() == "@r:T\nC\n+\nI\n"
    assert outs[1].read_text() == records[1].replace("@r", "@r:T")


def test_few_reads_take_little_memory() -> None:
    """Of the gigabyte in which duplicates are looked up, only what they touch, in small pages."""

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE

    duplicates = Duplicates(3)
    keys = np.random.default_rng(1).integers(0, 1 << 33, 1000, dtype=np.uint64)
    duplicates.mark(keys[:1])
    before = resident()
    assert duplicates.mark(keys)[1] == 1
    assert resident() - before < 32 << 20
