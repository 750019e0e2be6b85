"""Leases of GPUs that a stand-in for nvidia-smi lists: processes never share one."""

from __future__ import annotations

import json
import logging
import os
import signal
import stat
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import pytest

from ngsgpu.cli import main
from ngsgpu.device import backend, startup
from ngsgpu.device.backend import choose_backend
from ngsgpu.device.gpus import gpus_of_driver
from ngsgpu.device.leases import (
    FolderUnusableError,
    LockFolder,
    holders,
    keep_gpus,
    lease_entry,
    lease_gpus,
    pool,
)
from ngsgpu.errors import DeviceError, UsageError

UUIDS = tuple(f"GPU-{letter * 8}-0000" for letter in "abc")
NGSGPU = [sys.executable, "-m", "ngsgpu"]
PATIENCE = 30.0


@pytest.fixture(autouse=True)
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with three GPUs and a folder for locks that is not there yet."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    rows = [f"{i}, {uuid}, NVIDIA H200, 143771, 143167, 9.0, 580.82.07, 00000000:{i}B:00.0"
            for i, uuid in enumerate(UUIDS)]  # fmt: skip
    program.write_text("#!/bin/sh\ncat <<END\n" + "\n".join(rows) + "\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("NGSGPU_LOCK_DIR", str(tmp_path / "locks"))
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NGSGPU_LEASE"):
        monkeypatch.delenv(name, raising=False)
    gpus_of_driver.cache_clear()
    yield tmp_path / "locks"
    gpus_of_driver.cache_clear()


def wait_until(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def run(*arguments: str, **options) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*NGSGPU, "gpu", "run", *arguments], stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize(
    ("visible", "entries", "uuids"),
    [
        (None, UUIDS, UUIDS),
        ("2,0", ("2", "0"), (UUIDS[2], UUIDS[0])),
        ("GPU-bbbb,1,0", ("GPU-bbbb", "0"), UUIDS[1::-1]),
        ("MIG-12ab,MIG-GPU-x/1/0", ("MIG-12ab", "MIG-GPU-x/1/0"), ("MIG-12ab", "MIG-GPU-x/1/0")),
        ("", (), ()),
        ("1,9,2", ("1",), UUIDS[1:2]),
    ],
)
def test_pool(monkeypatch, visible, entries, uuids):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert tuple(device.entry for device in pool()) == entries
    assert tuple(device.uuid for device in pool()) == uuids


def test_pool_without_a_driver(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert pool() == ()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,GPU-x,odd,1")
    assert [device.uuid for device in pool()] == ["0", "GPU-x"]


def test_environment_keeps_the_spelling(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,MIG-GPU-x/1/0,GPU-aaaa")
    with lease_gpus(2), lease_gpus(1):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"
    with lease_gpus(3) as lease:
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,MIG-GPU-x/1/0,GPU-aaaa"
        assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
        assert lease.locked
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2,MIG-GPU-x/1/0,GPU-aaaa"
    assert "CUDA_DEVICE_ORDER" not in os.environ
    assert "NGSGPU_LEASE" not in os.environ


def test_all_or_none(caplog):
    first = lease_gpus(2)
    with pytest.raises(
        DeviceError, match=rf"2 GPUs of 3 could not .*{UUIDS[0]} is held by .*{os.getpid()}"
    ):
        lease_gpus(2, wait=0)
    second = lease_gpus(1, wait=0)
    assert second.devices[0].uuid == UUIDS[2]
    with pytest.raises(DeviceError, match=r"within 0\.1 s"):
        lease_gpus(1, wait=0.1)
    first.release()
    assert [device.uuid for device in lease_gpus(2, wait=0).devices] == list(UUIDS[:2])
    second.release()


def test_the_same_gpu_by_number_and_by_name(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    lease = lease_gpus(1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", UUIDS[1])
    with pytest.raises(DeviceError):
        lease_gpus(1, wait=0)
    lease.release()
    lease_gpus(1, wait=0).release()


def test_more_than_there_are():
    assert main(["gpu", "run", "-n", "4", "--", "true"]) == 2
    with pytest.raises(UsageError, match="4 GPUs are asked for and 3 can be seen"):
        lease_gpus(4)
    with pytest.raises(UsageError, match="at least 1"):
        lease_gpus(0)


def test_folder_is_for_all_users(locks):
    old = os.umask(0o077)
    try:
        lease_gpus(1).release()
    finally:
        os.umask(old)
    assert stat.S_IMODE(locks.stat().st_mode) == 0o1777
    assert {stat.S_IMODE(path.stat().st_mode) for path in locks.iterdir()} == {0o666}


@pytest.mark.parametrize("kind", ["file", "link", "below a file", "read-only"])
def test_unusable_folder_is_a_warning(locks, caplog, monkeypatch, kind):
    if kind == "file":
        locks.write_text("")
    elif kind == "link":
        locks.symlink_to(locks.parent)
    elif kind == "below a file":
        locks.write_text("")
        monkeypatch.setenv("NGSGPU_LOCK_DIR", str(locks / "deeper"))
    else:
        # As root, tests may write everywhere: let the system refuse.
        def refuse(*_, **__):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(os, "open", refuse)
    lease = lease_gpus(2)
    assert [device.uuid for device in lease.devices] == list(UUIDS[:2])
    assert not lease.locked
    assert "programs of other containers may use the same GPUs" in caplog.text
    # On this host nobody gets them twice all the same, and what is started inside may have them.
    with pytest.raises(DeviceError, match="2 GPUs of 3 could not be leased now"):
        lease_gpus(2, wait=0)
    with lease, lease_gpus(2, wait=0):
        pass
    lease_gpus(3, wait=0).release()


def test_files_of_others_are_opened_without_creating(locks, monkeypatch):
    """Linux refuses O_CREAT on them in /tmp, and they may be read-only for us."""
    lease_gpus(3).release()
    real = os.open

    def guarded(path, flags, *rest):
        if Path(path).suffix == ".lock":
            if flags & os.O_CREAT or flags & os.O_ACCMODE != os.O_RDONLY:
                raise PermissionError(13, "Permission denied")
            assert flags & os.O_NOFOLLOW
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", guarded)
    lease = lease_gpus(2, wait=0)
    with pytest.raises(DeviceError):
        lease_gpus(2, wait=0)
    lease.release()
    lease_gpus(3, wait=0).release()


def test_list(capsys):
    lease = lease_gpus(1, command=["train", "two words"])
    assert main(["gpu", "list"]) == 0
    held, free, _ = capsys.readouterr().out.splitlines()
    assert held.startswith(f"{UUIDS[0]} (NVIDIA H200), 139.8 GiB free of 140.4 GiB: held by ")
    assert held.endswith(f"process {os.getpid()}: train 'two words'")
    assert free.endswith(": free")
    assert main(["gpu", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["gpus"]
    assert [one["uuid"] for one in listed] == list(UUIDS)
    assert [bool(one["held_by"]) for one in listed] == [True, False, False]
    lease.release()
    assert holders(pool()) == [None] * 3


def test_list_shows_the_outer_lease_inside_of_one():
    with lease_gpus(1):
        assert [bool(one) for one in holders(pool())] == [True]


def test_lease_in_a_lease():
    with lease_gpus(2):
        inner = lease_gpus(1, wait=0)
        assert inner.devices[0].uuid == UUIDS[0]
        with pytest.raises(DeviceError):
            lease_gpus(2, wait=0)
        inner.release()
        with lease_gpus(2, wait=0), lease_gpus(1, wait=0):
            pass
    # Back outside, and nothing of the inner locks is left.
    lease_gpus(3, wait=0).release()


def test_what_is_not_needed_is_given_back():
    keep_gpus(1)  # without a lease nothing happens
    with lease_gpus(3) as lease:
        keep_gpus(4)
        assert len(lease.devices) == 3
        keep_gpus(2)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS[:2])
        assert os.environ["NGSGPU_LEASE"].endswith(",".join(UUIDS[:2]))
        assert [bool(one) for one in lease_holders()] == [True, True, False]
        keep_gpus(0)
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ""
        assert "NGSGPU_LEASE" not in os.environ
        assert not any(lease_holders())
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def lease_holders() -> list[str | None]:
    """Who holds the GPUs of the machine, seen from outside of the lease."""
    found = LockFolder(Path(os.environ["NGSGPU_LOCK_DIR"])).holders(UUIDS)
    return [str(found[uuid]) if uuid in found else None for uuid in UUIDS]


def test_no_more_are_leased_than_can_take_part(monkeypatch, caplog):
    monkeypatch.setattr(backend, "missing_for_cuda", lambda gpus: None)
    caplog.set_level(logging.INFO, "ngsgpu")
    for asked, taken in ((None, 1), (1, 1), (2, 2), (3, 2), (100, 2)):
        with choose_backend("cuda", asked, lease=True, most=2) as chosen:
            assert len(chosen.gpus) == taken
            assert sum(map(bool, lease_holders())) == taken
    assert "3 GPUs requested, but this run can use at most 2" in caplog.text


def test_cuda_is_not_touched_after_the_lease(monkeypatch):
    """Threads that make it ready begin nothing when the lease has ended."""
    touched = []
    monkeypatch.setattr(startup.ctypes, "CDLL", touched.append)
    with lease_gpus(1):
        pass
    startup._prepare(0, ("ngsgpu.no_such_module",))
    # The meter of a lease, in a thread of its own, may be loading NVML at that moment.
    assert startup._LIBRARY not in touched


def test_a_foreign_lease_variable_protects_nothing(monkeypatch):
    outer = lease_gpus(1)
    for stale in ("0123456789ab:GPU-gone", "../../x:" + UUIDS[0], "junk"):
        monkeypatch.setenv("NGSGPU_LEASE", stale)
        with pytest.raises(DeviceError):
            lease_gpus(3, wait=0)
    outer.release()


def test_program_runs_as_if_alone(capfd):
    assert main(["gpu", "run", "-n", "2", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES; exit 7"]) == 7
    assert capfd.readouterr().out.strip() == ",".join(UUIDS[:2])
    assert main(["gpu", "run", "-n", "0", "--", "sh", "-c", "echo [$CUDA_VISIBLE_DEVICES]"]) == 0
    assert capfd.readouterr().out.strip() == "[]"
    assert main(["gpu", "run", "--", "sh", "-c", "kill -9 $$"]) == 128 + 9
    assert main(["gpu", "run", "no-such-program"]) == 127
    assert "no-such-program cannot be run" in capfd.readouterr().err
    assert main(["gpu", "run", "--wait", "-1", "true"]) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_reach_the_program(tmp_path, number):
    name = number.name.removeprefix("SIG")
    script = f"trap 'exit 42' {name}; : >started; while :; do sleep 0.02; done"
    process = run("--", "sh", "-c", script, cwd=tmp_path)
    wait_until((tmp_path / "started").exists)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 42


def test_killed_wrapper_keeps_the_lease_until_the_program_ends(tmp_path):
    script = ": >started; while ! [ -e end ]; do sleep 0.02; done"
    process = run("-n", "3", "--", "sh", "-c", script, cwd=tmp_path)
    wait_until((tmp_path / "started").exists)
    process.kill()
    process.wait()
    try:
        with pytest.raises(DeviceError, match=r"ended; what it started still runs"):
            lease_gpus(1, wait=0)
    finally:
        (tmp_path / "end").touch()
    process.communicate(timeout=PATIENCE)
    lease_gpus(3, wait=PATIENCE).release()


def test_killed_without_a_child_frees_at_once(tmp_path):
    code = (
        "import pathlib, time; from ngsgpu.device.leases import lease_gpus; "
        "lease = lease_gpus(3); pathlib.Path('have').touch(); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path)
    wait_until((tmp_path / "have").exists)
    assert all(holders(pool()))
    process.kill()
    process.wait()
    assert holders(pool()) == [None] * 3


def test_waiting_is_told_and_terminated_waiters_leave_no_trace(tmp_path, locks):
    lease = lease_gpus(3)
    process = run("--", "true", cwd=tmp_path)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert f"lease: waiting for 1 GPU of 3 ({UUIDS[0]} is held by " in line
    assert list(locks.glob("*.ticket"))
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert not list(locks.glob("*.ticket"))
    lease.release()


def waiting(locks: Path) -> int:
    return len(list(locks.glob("*.ticket")))


def test_who_wants_many_is_not_passed_by_those_who_want_one(tmp_path, locks):
    first, second = lease_gpus(2), lease_gpus(1)
    many = run("-n", "3", "--", "sh", "-c", "echo many >>order; sleep 0.2", cwd=tmp_path)
    wait_until(lambda: waiting(locks) == 1)
    one = run("-n", "1", "--", "sh", "-c", "echo one >>order", cwd=tmp_path)
    wait_until(lambda: waiting(locks) == 2)
    second.release()
    with pytest.raises(DeviceError):
        lease_gpus(1, wait=0.5)
    first.release()
    many.communicate(timeout=PATIENCE)
    one.communicate(timeout=PATIENCE)
    assert (tmp_path / "order").read_text().split() == ["many", "one"]


def test_killed_and_stopped_waiters_are_passed(tmp_path, locks):
    lease = lease_gpus(3)
    killed = run("-n", "3", "--", "true", cwd=tmp_path)
    wait_until(lambda: waiting(locks) == 1)
    killed.kill()
    killed.communicate(timeout=PATIENCE)
    assert waiting(locks) == 1
    stopped = run("-n", "3", "--", "true", cwd=tmp_path)
    wait_until(lambda: waiting(locks) == 2)
    # Not while it is alone in the folder: it would keep everybody out.
    with LockFolder(locks)._gate(PATIENCE) as blocked:
        assert not blocked
        stopped.send_signal(signal.SIGSTOP)
        os.waitpid(stopped.pid, os.WUNTRACED)
    try:
        lease.release()
        with pytest.raises(DeviceError):
            lease_gpus(1, wait=0)
        assert waiting(locks) == 1
        for ticket in locks.glob("*.ticket"):
            os.utime(ticket, (time.time() - 60,) * 2)
        lease_gpus(1, wait=0).release()
    finally:
        stopped.send_signal(signal.SIGCONT)
        stopped.communicate(timeout=PATIENCE)
    assert stopped.returncode == 0


SCHEDULER = """
import subprocess, sys
first, command = int(sys.argv[1]), sys.argv[2:]
jobs = [subprocess.Popen([*command, "-n", str(1 + (first + job) % 2), "--", "sh", "-c",
        'echo "start $0 $CUDA_VISIBLE_DEVICES" >>log; sleep 0.05; echo "end $0" >>log',
        str(first + job)], stderr=subprocess.DEVNULL) for job in range(5)]
sys.exit(any([job.wait() for job in jobs]))
"""


def test_two_schedulers_at_once(tmp_path, locks):
    schedulers = [
        subprocess.Popen([sys.executable, "-c", SCHEDULER, first, *NGSGPU, "gpu", "run"],
                         cwd=tmp_path)
        for first in ("0", "5")
    ]  # fmt: skip
    assert [scheduler.wait(timeout=4 * PATIENCE) for scheduler in schedulers] == [0, 0]
    users: dict[str, set[str]] = defaultdict(set)
    gpus: dict[str, list[str]] = {}
    for line in (tmp_path / "log").read_text().splitlines():
        event, job, *rest = line.split()
        if event == "start":
            gpus[job] = rest[0].split(",")
            assert len(gpus[job]) == 1 + int(job) % 2
        for uuid in gpus[job]:
            if event == "start":
                assert not users[uuid], f"{uuid} is used by {users[uuid]} and {job}"
                users[uuid].add(job)
            else:
                users[uuid].remove(job)
    assert len(gpus) == 10
    assert not waiting(locks)


def test_locks_that_cannot_be_had_say_why(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderUnusableError, match="not a directory"):
        LockFolder(tmp_path / "file").take(["a"], 1, wait=0, holder={})


def test_backend_leases(monkeypatch, caplog):
    monkeypatch.setattr(backend, "missing_for_cuda", lambda gpus: None)
    caplog.set_level(logging.INFO, "ngsgpu")
    with choose_backend("auto", 2, lease=True) as chosen:
        assert [gpu.uuid for gpu in chosen.gpus] == list(UUIDS[:2])
        assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS[:2])
        # Not by monkeypatch, which would set them to the lease's values at the end.
        for name in ("NGSGPU_LEASE", "CUDA_VISIBLE_DEVICES"):
            del os.environ[name]
        with choose_backend("auto", 2, lease=True) as other:
            assert (other.name, other.reason) == ("cpu", "all GPUs are in use")
            assert "continuing on the CPU: 2 GPUs of 3 could not be leased now" in caplog.text
        with pytest.raises(DeviceError):
            choose_backend("cuda", 2, lease=True, wait=0)
        # To look does not take a lease.
        assert choose_backend("auto", 2).name == "cuda"
    lease_gpus(3, wait=0).release()


def test_statistics_tell_when_a_gpu_was_held(tmp_path, locks, capfd):
    lease = ["gpu", "run", "-n", "2", "--stats"]
    assert main([*lease, str(tmp_path / "1.json"), "sleep", "0.3"]) == 0
    words = capfd.readouterr().err
    assert f"{UUIDS[0]} (NVIDIA H200), {UUIDS[1]} (NVIDIA H200), driver 580.82.07\n" in words
    assert f"lease: given back: {UUIDS[0]} (NVIDIA H200) after 0." in words
    outer = lease_gpus(2)
    waiting = run("-n", "3", "--stats", str(tmp_path / "2.json"), "sh", "-c", "exit 3")
    wait_until(lambda: len(list(locks.glob("*.ticket"))) == 1)
    time.sleep(0.2)
    outer.release()
    assert waiting.wait(PATIENCE) == 3
    assert ", after waiting " in waiting.communicate()[1]
    first, second = (json.loads((tmp_path / f"{i}.json").read_text()) for i in (1, 2))
    assert (first["schema"], first["exit_status"], second["exit_status"]) == (
        "ngsgpu.gpu_run",
        0,
        3,
    )
    held, other = first["job"]["gpus"], second["job"]["gpus"]
    assert [gpu["uuid"] for gpu in other] == list(UUIDS)
    assert held[1] | {"until": "", "leased": "", "held_s": 0} == {
        "uuid": UUIDS[1], "name": "NVIDIA H200", "driver": "580.82.07",
        "pci": "00000000:1B:00.0", "memory_bytes": 143771 << 20, "leased": "", "until": "",
        "held_s": 0, "busy_s": None, "peak_bytes": None,
    }  # fmt: skip
    assert held[0]["held_s"] >= 0.3
    assert first["job"]["started"] <= held[0]["leased"] < held[0]["until"] <= first["job"]["ended"]
    assert held[0]["until"] < second["job"]["asked"] < other[0]["leased"]
    assert second["job"]["waited_s"] > 0
    assert main(["gpu", "run", "-n", "0", "--stats", str(tmp_path / "3.json"), "true"]) == 0
    job = json.loads((tmp_path / "3.json").read_text())["job"]
    assert (job["gpus"], job["lease"], job["waited_s"]) == ([], None, 0)


def test_a_gpu_given_back_early_stays_in_the_statistics():
    with lease_gpus(2):
        keep_gpus(1)
        time.sleep(0.05)
        first, second = lease_entry()["gpus"]
        assert first["held_s"] > second["held_s"]
        keep_gpus(0)
        assert [gpu["uuid"] for gpu in lease_entry()["gpus"]] == list(UUIDS[:2])
    assert lease_entry()["gpus"] == []


def test_statistics_of_a_run_that_the_cpu_took_over(monkeypatch, tmp_path, capfd):
    """CUDA does not work here: the GPU was held for a while, the CPU did the work."""
    monkeypatch.setattr(backend, "missing_for_cuda", lambda gpus: None)
    (tmp_path / "reads.fq").write_text("@r\nACGTACGTACGTACGTACGTACGTACGT\n+\n" + "I" * 28 + "\n")
    command = ["correct", "-i", str(tmp_path / "reads.fq"), "-o", str(tmp_path / "out.fq"), "-q"]
    assert main([*command, "--stats", str(tmp_path / "stats.json")]) == 0
    assert "continuing on the CPU" in capfd.readouterr().err
    stats = json.loads((tmp_path / "stats.json").read_text())
    (gpu,) = stats["job"]["gpus"]
    assert (stats["backend"], gpu["uuid"]) == ("cpu", UUIDS[0])
    assert gpu["until"] < stats["job"]["ended"]
