"""The comparison of extenders: what is run, in which order, and the table."""

from __future__ import annotations

from benchmarks.compare_extenders import LIBRARIES, STRICT_MODES, jobs, parse, table


def test_bounds_are_those_of_the_paper() -> None:
    assert [library.bounds for library in LIBRARIES.values()] == [
        (280, 320),
        (460, 540),
        (880, 1120),
        (300, 1100),
    ]


def test_programs_get_the_same_bounds_and_threads() -> None:
    known = jobs(LIBRARIES["500"], 3, STRICT_MODES, "50M")
    assert list(known) == ["ngsgpu, strict 0", "ngsgpu, strict 1", "ngsgpu, strict 2", "konnector"]
    for job in list(known.values())[:3]:
        assert "--min-length 460 --max-length 540" in job.command
        assert job.command.endswith("-t 3")
    assert "-j 3 -f 460 -F 540" in known["konnector"].command


def test_settings() -> None:
    settings = parse(["g.fa", "-o", "out.json", "--libraries", "300", "--strict", "0"])
    assert (settings.libraries, settings.strict, settings.threads) == (["300"], [0], 2)


def test_table() -> None:
    run = {"wall_s": 2.0, "user_s": 3.0, "system_s": 0.5, "peak_rss_bytes": 10**9}
    rates = {"connected": 0.99, "error_free": 0.98, "error_rate": 0.0001}
    entry = {
        "program": "ngsgpu, strict 0",
        "runs": [run],
        "accuracy": {"rates": rates | {"error_rate_without_length": None}},
    }
    lines = table({"datasets": [{"name": "500/10", "programs": [entry]}]}).splitlines()
    assert lines[2] == (
        "| 500/10 | ngsgpu, strict 0 | 2.0 (2.0-2.0) | 3.5 | 1.00 | 99.00 % | 98.00 % | 0.000100 "
        "| 0.000000 |"
    )
