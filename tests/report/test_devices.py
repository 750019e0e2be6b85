"""The section on devices: jobs, their GPUs and times, from statistics."""

from __future__ import annotations

import json

import pytest

from ngsgpu.errors import InputError
from ngsgpu.report.render import render_report
from ngsgpu.report.sections.devices import devices_figure, devices_tables, read_spans
from ngsgpu.report.study import read_study
from tests.support.report import Page, statistics, write_json, write_note

NOON = "2026-11-22T12:{}.000Z"


def gpu(letter, leased, until, **others):
    return {
        "uuid": f"GPU-{letter * 8}-0000", "name": "NVIDIA H200", "driver": "580.82.07",
        "pci": "00000000:1B:00.0", "leased": NOON.format(leased), "until": NOON.format(until),
        "busy_s": 3.0, "peak_bytes": 2 << 30,
    } | others  # fmt: skip


def job(lease, asked, *gpus):
    return {
        "host": "node1", "started": gpus[0]["leased"], "ended": gpus[0]["until"], "lease": lease,
        "asked": NOON.format(asked), "gpus": list(gpus),
    }  # fmt: skip


def on_cpu(started, ended):
    return {"host": "node1", "started": NOON.format(started), "ended": NOON.format(ended),
            "lease": None, "asked": None, "gpus": []}  # fmt: skip


@pytest.fixture
def study(tmp_path):
    """Samples x and y, a database searched for both by one job, a job after a pause."""
    planned = {"planned_bytes": 3 << 30}
    of_x = statistics(
        backend="cuda", gpu_memory=planned, job=job("1", "00:00", gpu("a", "00:00", "00:10"))
    )
    write_json(tmp_path / "x.json", of_x)
    of_y = job("2", "00:00", gpu("a", "00:12", "00:20", peak_bytes=None, busy_s=None))
    write_json(tmp_path / "y.json", statistics(backend="cuda", job=of_y))
    write_json(tmp_path / "old.json", statistics())
    for name, until in (("x", "40:30"), ("y", "40:40")):
        search = job("3", "40:00", gpu("a", "40:00", until), gpu("b", "40:00", until))
        head = {"schema": "ngsgpu.classify", "schema_version": 1, "backend": "cuda"}
        write_json(tmp_path / f"search_{name}.json", head | {"job": search})
    write_note(tmp_path / "failed.json", "log", "no memory")
    write_json(tmp_path / "merge.json", {"backend": "cpu", "job": on_cpu("00:05", "00:09")})
    jobs = {"classify": {name: f"search_{name}.json" for name in "xy"},
            "build": {"a": "failed.json", "b": "gone.json", "c": "merge.json"}}  # fmt: skip
    samples = [{"name": n, "files": {"correct": f"{n}.json"}} for n in ("x", "y", "old")]
    head = {"schema": "ngsgpu.study", "schema_version": 2, "jobs": jobs, "samples": samples}
    return write_json(tmp_path / "study.json", head)


def test_jobs_of_a_study(study):
    spans = read_spans(read_study(study))
    found = [(span.stage, span.lane[:5], round(span.end - span.begin)) for span in spans]
    assert found == [
        ("correction", "GPU-a", 10),
        ("other programs", "node1", 4),
        ("correction", "GPU-a", 8),
        ("classification", "GPU-a", 40),
        ("classification", "GPU-b", 40),
    ]
    use, devices = devices_tables(spans)
    assert use.headings == (
        "", "jobs", "held", "busy", "waited for", "peak memory", "planned memory",
    )  # fmt: skip
    assert use.rows[0] == (
        "GPU-aaaaaaaa (node1)", "3", "58.0 s", "6.0 s", "12.0 s", "2.00 GiB", "3.00 GiB",
    )  # fmt: skip
    assert devices.rows[1] == (
        "GPU-bbbbbbbb-0000", "NVIDIA H200", "00000000:1B:00.0", "580.82.07", "node1",
    )  # fmt: skip


def test_page(study):
    text = render_report(read_study(study))
    page = Page(text)
    assert {"devices"} <= set(page.ids)
    for words in ("GPU-aaaaaaaa (node1)", "CPUs of node1", "pauses over 10 min left out",
                  "from 2026-11-22 12:00:00 UTC"):  # fmt: skip
        assert words in page.text
    assert render_report(read_study(study)) == text


def test_the_manifest_keeps_the_jobs(study):
    read = read_study(study)
    assert json.loads(read.text(study.parent))["jobs"] == json.loads(study.read_text())["jobs"]


def test_without_gpus_there_is_a_timeline_by_host(tmp_path):
    jobs = {}
    for number, times in enumerate([("00:00", "00:10"), ("00:05", "00:15"), ("00:11", "00:12")]):
        path = write_json(tmp_path / f"{number}.json", {"backend": "cpu", "job": on_cpu(*times)})
        jobs[str(number)] = path.name
    study = read_study(
        write_json(
            tmp_path / "study.json",
            {"schema": "ngsgpu.study", "schema_version": 2, "jobs": {"all": jobs},
             "samples": [{"name": "x"}]},
        )
    )  # fmt: skip
    spans = read_spans(study)
    assert devices_tables(spans) == []
    assert "CPUs of node1" in devices_figure(spans).svg
    assert "No job used a GPU." in render_report(study)


def test_without_times_there_is_no_section(manifest):
    assert "devices" not in Page(render_report(read_study(manifest))).ids


def test_damaged_times_are_named(study):
    document = json.loads((study.parent / "x.json").read_text())
    document["job"]["gpus"][0]["until"] = "noon"
    write_json(study.parent / "x.json", document)
    with pytest.raises(InputError, match="until is not a time"):
        read_spans(read_study(study))
