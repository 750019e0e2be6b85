"""Plans on known topologies: they are proved by playing them through, and reach their bounds."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from ngsgpu.collectives import (
    KINDS,
    Plan,
    PlanError,
    check_plan,
    example_names,
    gossip_text,
    make_plan,
    parse_topology,
    plan_text,
    read_plan,
    read_topology,
)
from ngsgpu.collectives.plan import demands
from ngsgpu.collectives.schedule import find_rings
from ngsgpu.errors import InputError, UsageError
from tests.support.commands import Commands

MATRIX = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity
GPU0\t X \t{0}\t{1}\t{2}\tPIX\t0-19
GPU1\t{0}\t X \t{2}\t{1}\tPIX\t0-19
GPU2\t{1}\t{2}\t X \t{0}\tSYS\t20-39
GPU3\t{2}\t{1}\t{0}\t X \tSYS\t20-39
NIC0\tPIX\tPIX\tSYS\tSYS\t X

Legend:
  X    = Self
"""


def played(plan: Plan) -> dict[tuple[int, int], int]:
    """Where chunks are in the end, moved one by one: (from, to) of all that arrived."""
    arrived: dict[tuple[int, int], int] = {}
    for path in plan.paths:
        at = path[0]
        for step in range(len(plan.durations)):
            at = path[step + 1]
        arrived[path[0], at] = arrived.get((path[0], at), 0) + 1
    return arrived


@pytest.mark.parametrize("name", example_names())
@pytest.mark.parametrize("kind", KINDS)
def test_examples(name: str, kind: str) -> None:
    """Optimal plans reach the bound; no plan beats it; direct ones use the fewest transfers."""
    topology = read_topology(name)
    best = make_plan(kind, topology)  # type: ignore[arg-type]
    direct = make_plan(kind, topology, "direct")  # type: ignore[arg-type]
    assert best.efficiency == 1
    assert direct.efficiency <= 1
    for planned in (best, direct):
        plan = planned.plan
        wanted = dict.fromkeys(demands(plan.kind, plan.gpus, plan.main), plan.chunks)
        assert played(plan) == wanted


@pytest.mark.parametrize(
    ("name", "kind", "method", "chunks", "steps", "time"),
    [
        # Table 4.1: scatter on four P100 takes 6 steps of half a chunk.
        ("p100-quad", "scatter", "optimal", 4, 3, 3),
        ("p100-quad", "all2all", "optimal", 1, 1, 1),
        ("p100-quad", "scatter", "rings", 4, 3, 3),
        # Of Gossip's plans for the DGX-1: 6 and 3 chunks, 14 steps of half a chunk, 2 long steps.
        ("dgx1", "scatter", "optimal", 6, 7, 7),
        ("dgx1", "all2all", "optimal", 3, 8, 8),
        ("dgx1", "all2all", "buffered", 3, 2, 8),
        ("dgx1", "scatter", "rings", 6, 7, 7),
        ("dgx1", "all2all", "rings", 6, 16, 16),
    ],
)
def test_known_plans(name: str, kind: str, method: str, chunks: int, steps: int, time: int) -> None:
    planned = make_plan(kind, read_topology(name), method)  # type: ignore[arg-type]
    plan = planned.plan
    assert (plan.chunks, len(plan.durations), plan.time) == (chunks, steps, time)
    assert planned.efficiency == 1


def test_bound_is_that_of_the_narrowest_cut() -> None:
    """By hand: 16 pieces each way over 6 links; the source has 6 links for 7 pieces."""
    dgx1 = read_topology("dgx1")
    assert make_plan("all2all", dgx1, "direct").least == Fraction(16, 6)
    assert make_plan("scatter", dgx1, "direct", main=3).least == Fraction(7, 6)


def test_rings_use_every_lane_once() -> None:
    topology = read_topology("dgx1")
    rings = find_rings(topology)
    assert len(rings) == 3
    used: dict[tuple[int, int], int] = {}
    for ring in rings:
        assert sorted(ring) == list(range(8))
        for way in zip(ring, [*ring[1:], ring[0]], strict=True):
            for link in (way, way[::-1]):
                used[link] = used.get(link, 0) + 1
    assert used == topology.lanes
    with pytest.raises(UsageError, match="not made of rings"):
        make_plan("scatter", read_topology("pcie-4"), "rings")


@pytest.mark.parametrize(
    ("cells", "gpus", "lanes"),
    [
        (("NV2", "NV1", "SYS"), 4, {(0, 1): 2, (0, 2): 1, (1, 3): 1, (2, 3): 2}),
        (("NV18", "NV18", "NV18"), 4, {(gpu, 4): 18 for gpu in range(4)}),
        (("NV4", "SYS", "SYS"), 4, {**{(g, 4): 1 for g in range(4)}, (0, 1): 4, (2, 3): 4}),
        (
            ("PIX", "SYS", "SYS"),
            4,
            {**{(g, 4 + g // 2): 1 for g in range(4)}, (4, 6): 1, (5, 6): 1},
        ),
        (("PHB", "PHB", "PHB"), 4, {(gpu, 4): 1 for gpu in range(4)}),
    ],
)
def test_what_nvidia_smi_prints(
    cells: tuple[str, str, str], gpus: int, lanes: dict[tuple[int, int], int]
) -> None:
    topology = parse_topology(MATRIX.format(*cells), "host")
    assert topology.gpus == gpus
    assert {link: own for link, own in topology.lanes.items() if link[0] < link[1]} == lanes


def test_broken_plans_are_found() -> None:
    topology = read_topology("p100-quad")
    good = make_plan("scatter", topology).plan
    check_plan(good, topology)
    paths = list(good.paths)
    for wrong, message in (
        (paths[1:], "3 of 4 chunks of GPU 0 get to GPU 1"),
        ([*paths, (2, 2, 2, 1)], "GPU 2 has nothing for GPU 1"),
        ([(0, 1, 1), *paths[1:]], "2 of 3 steps"),
        ([(0, *path[1:2] * 2, path[-1]) for path in paths], "chunks go from"),
    ):
        plan = Plan("scatter", 4, 0, 4, good.durations, tuple(sorted(wrong)))
        with pytest.raises(PlanError, match=message):
            check_plan(plan, topology)
    with pytest.raises(PlanError, match="no link goes from GPU 0 to GPU 5"):
        check_plan(Plan("scatter", 8, 0, 1, (Fraction(9),), tuple((0, i) for i in range(1, 8))),
                   read_topology("dgx1"))  # fmt: skip
    with pytest.raises(PlanError, match="has 8"):
        check_plan(good, read_topology("dgx1"))


@pytest.mark.parametrize("kind", KINDS)
def test_files(tmp_path: Path, kind: str) -> None:
    plan = make_plan(kind, read_topology("dgx1"), main=2).plan  # type: ignore[arg-type]
    for text in (plan_text(plan), gossip_text(plan)):
        (tmp_path / "p.json").write_text(text)
        read = read_plan(tmp_path / "p.json")
        assert read == plan
    values = json.loads(gossip_text(plan))
    stays = 8 if kind == "all2all" else 1
    assert sum(values["chunks"]) == len(plan.paths) + stays * plan.chunks
    assert all(len(path) == values["num_steps"] + 1 for path in values["plan"])


def test_command(tmp_path: Path, ngsgpu: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    done = ngsgpu("gpu", "plan", "all2all", "--topology", "dgx1", "-o", tmp_path / "p.json")
    assert done.status == 0, done.err
    assert "8 steps, time 8, at least 8: 100 % of what the links can" in done.err
    done = ngsgpu("gpu", "plan", "--check", tmp_path / "p.json", "--topology", "dgx1")
    assert done.status == 0, done.err
    assert "time 8" in done.err
    done = ngsgpu("gpu", "plan", "--check", tmp_path / "p.json", "--topology", "hgx-4")
    assert done.status == 2
    assert "the plan is for 8 GPUs" in done.error
    (tmp_path / "t.txt").write_text(MATRIX.format("NV1", "SYS", "SYS").replace("SYS", "-"))
    (tmp_path / "one.json").write_text('{"gpus": 3, "links": [[0, 1, 1]]}')
    for arguments, message in (
        (["ring", "--topology", "dgx1"], "all2all, scatter or gather"),
        (["all2all", "--topology", "dgx3"], "one of dgx1"),
        (["all2all", "--topology", tmp_path / "t.txt"], "is no topology"),
        (["all2all", "--topology", tmp_path / "one.json"], "not all GPUs are connected"),
        (["scatter", "--topology", "dgx1", "--main", 8], "--main must be from 0 to 7"),
        (["scatter", "--topology", "dgx1", "--chunks", 0], "--chunks must be"),
        (["scatter", "--topology", "dgx1", "--method", "fast"], "--method must be"),
        (["--check", tmp_path / "t.txt", "--topology", "dgx1"], "is no transfer plan"),
        (["--topology", "dgx1"], "name what to plan"),
    ):
        done = ngsgpu("gpu", "plan", *arguments)
        assert done.status == 2
        assert message in done.error
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "nvidia-smi" in ngsgpu("gpu", "plan", "all2all").error


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_plan(tmp_path / "nothing.json")
