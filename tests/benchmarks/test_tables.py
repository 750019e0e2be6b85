from benchmarks.harness.tables import median_parts, table, time_cells


def run_of(wall, user=1.0, system=0.5, peak=10**9, device=None, parts=None):
    run = {"wall_s": wall, "user_s": user, "system_s": system}
    run |= {"peak_rss_bytes": peak, "peak_device_bytes": device}
    return run if parts is None else run | {"parts": parts}


def program(name, runs, sensitivity=0.99, false=12.34):
    rates = {"sensitivity": sensitivity, "fp_per_million_corrections": false}
    return {
        "program": name,
        "runs": runs,
        "accuracy": {"totals": {"bases": 2_000_000, "errors_after": 5}, "rates": rates},
    }


def document(*programs, accuracy_only=False, parity=None, start=None):
    data = {"name": "S", "reads": 1_000_000, "parity": parity, "programs": list(programs)}
    return {"settings": {"accuracy_only": accuracy_only}, "start": start, "datasets": [data]}


def test_times_and_accuracy():
    ours = program("ngsgpu", [run_of(3, device=2 * 10**9), run_of(2), run_of(4)])
    lines = table(document(ours, program("lighter", [run_of(10), run_of(8), run_of(20)])))
    header, rule, first, second = lines.splitlines()
    assert header.count("|") == rule.count("|") == first.count("|") == second.count("|")
    assert first == (
        "| S | ngsgpu | 3.00 (2.00-4.00) | 1.00 | 333,333 | 1.5 | 1.00 | 2.00 "
        "| 0.9900 | 12.3 | 2.5 |"
    )
    assert "| 10.00 (8.00-20.00) | 3.33 | 100,000 | 1.5 | 1.00 | - |" in second


def test_accuracy_of_merging():
    entry = program("ngsgpu", [run_of(2.0)])
    entry["accuracy"] = {
        "pairs": {"right": 90, "near": 5, "wrong": 3, "apart_merged": 2},
        "rates": {"sensitivity": 0.9},
        "bases": {"after": 2_000_000, "errors_after": 5},
    }
    assert table(document(entry)).splitlines()[2].endswith("| 0.9000 | 50,000.0 | 2.5 |")


def test_accuracy_alone():
    lines = table(document(program("bfc", [], None, None), accuracy_only=True)).splitlines()
    assert lines[0] == (
        "| data | program | sensitivity | FP per million | errors left per million bases |"
    )
    assert lines[2:] == ["| S | bfc | - | - | 2.5 |"]


def test_without_ours_and_without_accuracy():
    entry = program("lighter", [run_of(2.0)]) | {"accuracy": None}
    assert table(document(entry)).splitlines()[2].endswith("| - | - | - | - |")
    assert time_cells([run_of(2.0)], [], 10)[1] == "-"


def test_parts_parity_and_start():
    parts = [{"read": 1.0, "write": 3.0}, {"read": 2.0, "write": 4.0, "more": 1.0}]
    ours = program("ngsgpu", [run_of(5, parts=part) for part in parts])
    assert median_parts(ours["runs"]) == {"read": 1.5, "write": 3.5}
    start = {"pairs": 100, "cold": run_of(9.0), "warm": [run_of(1.0), run_of(2.0), run_of(3.0)]}
    parity = {"backends": ["cuda", "cpu"], "same": True}
    lines = table(document(ours, parity=parity, start=start)).splitlines()
    assert "| S | ngsgpu | read 1.50, write 3.50 |" in lines
    assert lines[-2:] == [
        "- S: cuda and cpu wrote the same bytes",
        "- ngsgpu on 100 pairs: 9.0 s with no compiled kernels, 2.0 s with all",
    ]
    parity["same"] = False
    assert "DIFFERENT BYTES" in table(document(ours, parity=parity))
