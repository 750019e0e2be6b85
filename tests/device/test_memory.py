import os
import resource

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ngsgpu.device import memory as module
from ngsgpu.device.memory import available_memory, format_size, memory, parse_size, usable_cpus
from ngsgpu.errors import UsageError

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1048576", MIB),
        ("8G", 8 * GIB),
        ("8g", 8 * GIB),
        ("8GB", 8 * GIB),
        ("8GiB", 8 * GIB),
        ("8 gib", 8 * GIB),
        (" 500M ", 500 * MIB),
        ("1.5K", 1536),
        ("0.25k", 256),
        ("2T", 2 << 40),
        ("17B", 17),
    ],
)
def test_parse_size(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "G", "8X", "-1G", "1e9", "8 G B", "1,5G", "8GG", "0", "0G", "0.0001K", "nan"],
)
def test_parse_size_refuses(text):
    with pytest.raises(UsageError, match="8G"):
        parse_size(text)


@given(st.integers(1, 1 << 40), st.sampled_from(["K", "M", "G", "T", "KiB", "mb"]))
def test_whole_numbers_of_units_are_exact(number, unit):
    factor = {"k": KIB, "m": MIB, "g": GIB, "t": 1 << 40}[unit[0].lower()]
    assume(number * factor <= 1 << 60)
    assert parse_size(f"{number}{unit}") == number * factor


def test_format_size():
    assert [format_size(size) for size in (0, 1, 1023, 1024, 1 << 40)] == [
        "0 bytes",
        "1 byte",
        "1,023 bytes",
        "1.0 KiB",
        "1.0 TiB",
    ]


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A folder that poses as the root of a machine with 16 GiB, of which 10 are available."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))

    def write(**files: str):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    write(
        **{
            "proc/meminfo": "MemTotal:       16777216 kB\nMemFree:        4194304 kB\n"
            "MemAvailable:   10485760 kB\nBuffers: 0 kB\nCached: 1048576 kB\nHugePages_Total: 0\n",
            "proc/self/statm": "262144 100 10 1 0 10 0\n",
        }
    )
    return write


def test_memory_without_limits(machine):
    found = memory(machine())
    assert (found.total, found.available, found.limit) == (16 * GIB, 10 * GIB, None)
    assert usable_cpus(machine()) == 8


def test_old_kernel_without_estimate(machine):
    root = machine(**{"proc/meminfo": "MemTotal: 2048 kB\nMemFree: 512 kB\nCached: 256 kB\n"})
    assert available_memory(root) == 768 * KIB


def test_version_2_group_limits_and_page_cache_counts_as_free(machine):
    root = machine(
        **{
            "proc/self/cgroup": "0::/jobs/one\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/jobs/one/memory.max": str(4 * GIB),
            "sys/fs/cgroup/jobs/one/memory.current": str(3 * GIB),
            "sys/fs/cgroup/jobs/one/memory.stat": f"anon 5\ninactive_file {2 * GIB}\n",
            "sys/fs/cgroup/jobs/one/cpu.max": "150000 100000\n",
        }
    )
    found = memory(root)
    assert (found.available, found.limit) == (3 * GIB, 4 * GIB)
    assert usable_cpus(root) == 2


def test_outer_group_limits_too(machine):
    root = machine(
        **{
            "proc/self/cgroup": "0::/jobs/one\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/jobs/one/memory.max": "max\n",
            "sys/fs/cgroup/jobs/one/cpu.max": "max 100000\n",
            "sys/fs/cgroup/jobs/memory.max": str(2 * GIB),
            "sys/fs/cgroup/jobs/memory.current": str(GIB),
            "sys/fs/cgroup/jobs/cpu.max": "300000 100000\n",
        }
    )
    assert available_memory(root) == GIB
    assert usable_cpus(root) == 3


def test_container_that_sees_its_group_as_the_root(machine):
    root = machine(
        **{
            "proc/self/cgroup": "0::/../docker/8f1c\n",
            "sys/fs/cgroup/cgroup.controllers": "cpu memory",
            "sys/fs/cgroup/memory.max": str(GIB),
            "sys/fs/cgroup/memory.current": "0",
        }
    )
    assert available_memory(root) == GIB


def test_version_1_groups(machine):
    root = machine(
        **{
            "proc/self/cgroup": "9:memory:/job\n3:cpu,cpuacct:/job\n1:name=systemd:/\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(GIB),
            "sys/fs/cgroup/memory/job/memory.stat": f"total_inactive_file {GIB // 2}\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        }
    )
    found = memory(root)
    assert (found.available, found.limit) == (GIB + GIB // 2, 2 * GIB)
    assert usable_cpus(root) == 1


def test_use_above_the_limit_leaves_nothing(machine):
    root = machine(
        **{
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/cgroup.controllers": "",
            "sys/fs/cgroup/memory.max": str(GIB),
            "sys/fs/cgroup/memory.current": str(2 * GIB),
        }
    )
    assert available_memory(root) == 0


def test_resource_limit(machine, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (2 * GIB, 2 * GIB))
    pages = 262144 * os.sysconf("SC_PAGE_SIZE")
    found = memory(machine())
    assert (found.available, found.limit) == (max(0, 2 * GIB - pages), 2 * GIB)


def test_rubbish_in_the_files_is_no_limit(machine):
    root = machine(
        **{
            "proc/self/cgroup": "what\n0::\n::\n7:memory\n",
            "sys/fs/cgroup/cgroup.controllers": "",
            "sys/fs/cgroup/memory.max": "lots",
            "sys/fs/cgroup/cpu.max": "x y z",
        }
    )
    assert available_memory(root) == 10 * GIB
    assert usable_cpus(root) == 8


def test_a_machine_without_any_of_it(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert memory(tmp_path).total > 0
    assert usable_cpus(tmp_path) == (os.cpu_count() or 1)


def test_this_machine():
    found = memory()
    assert 0 < found.available <= found.total
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)


def test_module_has_runnable_examples():
    import doctest

    assert doctest.testmod(module).failed == 0
