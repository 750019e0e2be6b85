"""The comparison of extenders: what is run, in which order, and the table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.document import write_document
from benchmarks.harness.measuring import BenchmarkError, Measurement
from benchmarks.peers import extenders
from benchmarks.peers.extenders import LIBRARIES, compare, jobs, name_pairs, parse, table


def test_bounds_are_those_of_the_paper() -> None:
    assert [library.bounds for library in LIBRARIES.values()] == [
        (280, 320),
        (460, 540),
        (880, 1120),
        (300, 1100),
    ]


def test_programs_get_the_same_bounds_and_threads() -> None:
    settings = parse(["g.fa", "-o", "out.json", "-t", "3", "--bloom", "50M"])
    settings.konnector, settings.carex = True, True
    known = jobs(LIBRARIES["500"], settings)
    strict = [f"strict {mode}" for mode in range(3)]
    ours, theirs = [f"ngsgpu, {mode}" for mode in strict], [f"carex-gpu, {mode}" for mode in strict]
    assert list(known) == [*ours, "konnector", *theirs]
    for mode, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert f"--min-length 460 --max-length 540 --strict {mode} -t 3" in known[one].command
        assert "--minFragmentSize 460 --maxFragmentSize 540" in known[other].command
        assert f"--strictExtensionMode {mode} -t 3" in known[other].command
    assert "-b 50M -c 2 --fastq -j 3 -f 460 -F 540" in known["konnector"].command
    assert "--warpcore 1 --batchsize 2048 --gpuExtenderThreadConfig 4:0" in known[theirs[0]].command
    settings.konnector, settings.carex = False, False
    assert list(jobs(LIBRARIES["500"], settings)) == ours


def test_numbered_reads_get_the_names_of_their_pairs(tmp_path: Path) -> None:
    bases = [letter * 30 for letter in "ACG"]
    (tmp_path / "r1.fq").write_text("".join(f"@p{b[0]}/1 x\n{b}\n+\n{b}\n" for b in bases))
    extended = tmp_path / "e.fq"
    text = "".join(f"@{{}} y\n{b}TT\n+\n{b}TT\n" for b in (bases[2], bases[0]))
    extended.write_text(text.format(2, 0))
    name_pairs(tmp_path, "e.fq")
    assert extended.read_text().splitlines()[::4] == ["@pG", "@pA"]
    assert extended.read_text().splitlines()[1] == bases[2] + "TT"
    extended.write_text(text.format(1, 0))
    with pytest.raises(BenchmarkError, match="does not begin as pair 1"):
        name_pairs(tmp_path, "e.fq")


def test_results_are_written_after_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Measurement(1.0, 1.0, 0.0, 1, 0.0)
    done: list[str] = []

    def measured(command: list[str], folder: Path) -> Measurement:
        if len(done) == 3:
            raise BenchmarkError("no time is left")
        done.append(command[0])
        return told

    monkeypatch.setattr(extenders, "measure", measured)
    monkeypatch.setattr(extenders, "warm_up", lambda folder, backend: None)
    monkeypatch.setattr(extenders, "report", lambda job, folder: {})
    settings = parse(["g.fa", "-o", "out.json", "--times-only", "--strict", "1", "--repeats", "2"])
    settings.konnector, settings.carex = True, False
    entries: list[dict[str, Any]] = []
    document = {"datasets": [{"name": "500/10", "programs": entries}]}
    output = tmp_path / "results" / "out.json"
    save = partial(write_document, document, output)
    with pytest.raises(BenchmarkError):
        compare(LIBRARIES["500"], tmp_path, settings, entries, save)
    # The second round begins with the second program.
    assert done == ["ngsgpu", "konnector", "konnector"]
    kept = json.loads(output.read_text())["datasets"][0]["programs"]
    assert [len(entry["runs"]) for entry in kept] == [1, 2]
    entries[0]["runs"] = []
    assert len(table(document).splitlines()) == 3


def test_settings() -> None:
    settings = parse(["g.fa", "-o", "out.json", "--libraries", "300", "--strict", "0"])
    assert (settings.libraries, settings.strict, settings.threads) == (["300"], [0], 2)


def test_table() -> None:
    run = {"wall_s": 2.0, "user_s": 3.0, "system_s": 0.5, "peak_rss_bytes": 10**9}
    run |= {"peak_device_bytes": 2 * 10**9}
    rates = {"connected": 0.99, "error_free": 0.98, "error_rate": 0.0001}
    entry = {
        "program": "ngsgpu, strict 0",
        "runs": [run],
        "accuracy": {"rates": rates | {"error_rate_without_length": None}},
    }
    lines = table({"datasets": [{"name": "500/10", "programs": [entry]}]}).splitlines()
    assert lines[2] == (
        "| 500/10 | ngsgpu, strict 0 | 2.0 (2.0-2.0) | 3.5 | 1.00 | 2.00 | 99.00 % | 98.00 % "
        "| 0.000100 | 0.000000 |"
    )
