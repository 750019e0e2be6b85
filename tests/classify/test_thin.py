"""Databases with a fraction of all features: built, thinned and queried, against plain Python."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.database.build import build_database
from ngsgpu.classify.database.change.add import add_references
from ngsgpu.classify.database.change.thin import thin_database
from ngsgpu.classify.database.change.update import update_database
from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.database.fit import kept_within
from ngsgpu.classify.database.plan import plan_database
from ngsgpu.classify.database.write import write_manifest
from ngsgpu.classify.index.cpu import build_index
from ngsgpu.classify.index.index import Limits, Pairs, keys_of_locations, stored_bytes
from ngsgpu.classify.index.thin import sizes_by_key, thinned
from ngsgpu.classify.params import (
    CALLS_BY_EVIDENCE,
    KEEP_ALL,
    METACACHE_CALLS,
    DatabaseParameters,
    PartitionRequest,
    QueryParameters,
    SketchParameters,
)
from ngsgpu.classify.query.engine import Engine
from ngsgpu.classify.sketch.cpu import expected_hits
from ngsgpu.cli import main
from ngsgpu.errors import InputError, UsageError
from ngsgpu.run.options import RunOptions
from tests.support.classify.oracle import Oracle
from tests.support.classify.runs import QUERY, expected_rows, run, shown, single
from tests.support.classify.world import SKETCH, World
from tests.support.properties import examples

PARAMETERS = [
    DatabaseParameters(SKETCH),
    DatabaseParameters(SketchParameters(4, 20, 90, 90)),
    DatabaseParameters(SKETCH, max_locations=3),
    DatabaseParameters(SKETCH, max_locations=3, remove_overfull=True),
    DatabaseParameters(SKETCH, ambiguous_rank="genus"),
]


def thin(parameters: DatabaseParameters, fraction: float) -> DatabaseParameters:
    return replace(parameters, sketch=replace(parameters.sketch, fraction=fraction))


def build(world: World, path: Path, parameters: DatabaseParameters, **more: Any) -> Database:
    return build_database(
        world.references, path, parameters=parameters, taxonomy=world.taxonomy, maps=[world.map],
        options=RunOptions(backend="cpu", threads=2), **more,
    )  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def size_on_disk(folder: Path) -> int:
    return sum(map(len, files(folder).values()))


@pytest.fixture
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many parts as such small indexes are worth, but several."""
    monkeypatch.setattr("ngsgpu.classify.index.thin._PART_BITS", 3)


@pytest.mark.usefixtures("few_parts")
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("partitions", [1, 3])
def test_thinning_equals_building(
    world: World, tmp_path: Path, parameters: DatabaseParameters, partitions: int
):
    request = PartitionRequest(number=partitions)
    build(world, tmp_path / "full", parameters, request=request)
    fuller = "full"
    for fraction in (1.0, 0.5, 0.3, 0.01):
        name = str(fraction)
        build(world, tmp_path / name, thin(parameters, fraction), request=request)
        for source in {"full", fuller}:
            thin_database(tmp_path / source, tmp_path / "thinned", fraction=fraction)
            assert files(tmp_path / "thinned") == files(tmp_path / name)
            shutil.rmtree(tmp_path / "thinned")
        fuller = name


@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 40)), max_size=120),
    st.integers(64, 1 << 16),
    st.sampled_from([2, KEEP_ALL]),
    st.integers(1, 3),
)
@examples(60)
def test_an_index_without_other_keys(
    drawn: list[tuple[int, int]], kept: int, most: int, threads: int
):
    # Small keys, with small lower halves, are among them; so are equal ones.
    pairs = sorted({(key & ~0xFF00 if window % 2 else key, window) for key, window in drawn},
                   key=lambda pair: pair[1])  # fmt: skip

    def index_of(some: list[tuple[int, int]]) -> Any:
        keys = np.array([key for key, _ in some], dtype=np.uint32)
        windows = np.array([window for _, window in some], dtype=np.uint32)
        start, zero = np.array([0, len(some)]), np.zeros(1, dtype=np.int64)
        return build_index([Pairs(keys, windows, start, zero)], [zero], Limits(most, 0, 0))

    full = index_of(pairs)
    left = index_of([pair for pair in pairs if pair[0] % (1 << 16) < kept])
    got = thinned(full, kept, threads)
    for name in ("directory", "entries", "locations"):
        assert np.array_equal(getattr(got, name), getattr(left, name)), name
    expected = [len(left.entries), len(left.locations)]
    assert sizes_by_key(full, threads)[kept].tolist() == expected


def test_only_kept_keys_are_there(world: World, tmp_path: Path):
    sketch = replace(SKETCH, fraction=0.25)
    database = build(world, tmp_path / "db", DatabaseParameters(sketch))
    keys = keys_of_locations(database.load_partition(0).index)
    oracle = Oracle(world.sequences, [{}] * len(world.sequences), sketch)
    full = Oracle(world.sequences, [{}] * len(world.sequences), SKETCH)
    assert (keys & 0xFFFF).max() < 1 << 14
    assert len(keys) == sum(map(len, oracle.locations.values()))
    assert oracle.locations == {key: full.locations[key] for key in oracle.locations}
    assert 0.15 < len(oracle.locations) / len(full.locations) < 0.35


@pytest.mark.parametrize("fraction", [0.5, 0.25])
@pytest.mark.parametrize("parameters", [*QUERY, CALLS_BY_EVIDENCE])
def test_calls(
    world: World, tmp_path: Path, backend: str, parameters: QueryParameters, fraction: float
):
    sketch = replace(SKETCH, fraction=fraction)
    database = build(world, tmp_path / "db", DatabaseParameters(sketch))
    thin_world = replace(world, oracle=replace(world.oracle, sketch=sketch))
    options = RunOptions(backend=backend)  # type: ignore[arg-type]
    sample = single(world.fasta("s.fa", world.reads))
    got = run(database, sample, tmp_path / "o", parameters, options)
    expected = expected_rows(thin_world, [[read] for read in world.reads], parameters)
    assert shown(got["reads.tsv"]) == expected


def test_hits_that_are_needed():
    sketches = [SketchParameters(fraction=fraction) for fraction in (1, 0.75, 0.5, 0.125)]
    for parameters, expected in (
        (CALLS_BY_EVIDENCE, [(3, 2), (2, 2), (2, 2), (2, 1)]),
        (QueryParameters(), [(3, 3), (2, 2), (2, 2), (2, 2)]),
        (QueryParameters(min_hits=8), [(8, 8), (6, 6), (4, 4), (2, 2)]),
        (QueryParameters(min_hits=1), [(1, 1)] * 4),
        (METACACHE_CALLS, [(6, 6), (5, 5), (3, 3), (2, 2)]),
    ):
        found = [
            (parameters.hits_needed(sketch), parameters.hits_near(sketch)) for sketch in sketches
        ]
        assert found == expected


@pytest.mark.parametrize(("sketch", "scale"), [(None, (11, 11, 2)), (21, (112, 112, 21))])
def test_hits_that_are_expected(sketch: int | None, scale: tuple[int, ...]):
    """Of half of the features half, and half as many by chance."""
    lengths = np.array([10, 60, 100, 250], dtype=np.int32)
    none = np.zeros(4, dtype=np.int32)
    full, half = SketchParameters(sketch=sketch), SketchParameters(sketch=sketch, fraction=0.5)
    ones, twos = full.hit_scale, half.hit_scale
    assert ones == scale
    assert twos.chance * 2 == twos.unit
    shares = expected_hits(lengths, none, full.kmer, full.hit_scale) / ones.unit
    assert (expected_hits(lengths, none, half.kmer, half.hit_scale) / twos.unit == shares / 2).all()


@pytest.mark.parametrize("partitions", [1, 2])
def test_size(world: World, tmp_path: Path, partitions: int):
    build(world, tmp_path / "full", DatabaseParameters(SKETCH),
          request=PartitionRequest(number=partitions))  # fmt: skip
    full = size_on_disk(tmp_path / "full")
    least = full - 4000 * partitions  # directories do not shrink in so small a database
    thinned_to = thin_database(tmp_path / "full", tmp_path / "fit", size=least)
    assert least - 200 * partitions < size_on_disk(tmp_path / "fit") <= least
    fraction = thinned_to.parameters.sketch.fraction
    build(world, tmp_path / "built", thin(DatabaseParameters(SKETCH), fraction),
          request=PartitionRequest(number=partitions))  # fmt: skip
    assert files(tmp_path / "built") == files(tmp_path / "fit")
    thin_database(tmp_path / "full", tmp_path / "all", size=full + 1000)
    assert files(tmp_path / "all") == files(tmp_path / "full")


def test_size_of_a_build(world: World, tmp_path: Path):
    request = PartitionRequest(size=545_000)
    database = build(world, tmp_path / "db", DatabaseParameters(SKETCH), request=request)
    sketch = database.parameters.sketch
    assert 0.1 < sketch.fraction < 1
    assert 535_000 < size_on_disk(tmp_path / "db") <= 545_000
    # In parts, planned beforehand, and by a fraction: the same.
    planned = plan_database(
        world.references, tmp_path / "plan", parameters=DatabaseParameters(SKETCH),
        taxonomy=world.taxonomy, maps=[world.map], request=request,
    )  # fmt: skip
    assert planned.parameters == database.parameters
    build(world, tmp_path / "same", DatabaseParameters(sketch))
    assert files(tmp_path / "same") == files(tmp_path / "db")


def test_a_size_per_partition(world: World, tmp_path: Path):
    request = PartitionRequest(size=1_700_000, bytes=555_000)
    database = build(world, tmp_path / "db", DatabaseParameters(SKETCH), request=request)
    assert len(database.partitions) == 2
    assert size_on_disk(tmp_path / "db") <= 1_700_000


def test_the_largest_that_fits():
    assert kept_within(10_000, 65_536, lambda kept: kept) == 10_000
    assert kept_within(1 << 20, 50_000, lambda kept: kept) == 50_000
    with pytest.raises(UsageError, match=r"1 in 1,024, the database has 64 bytes"):
        kept_within(63, 65_536, lambda kept: kept)


@given(st.integers(0, 200_000), st.integers(0, 200_000))
@examples(20)
def test_stored_bytes(entries: int, more: int):
    assert stored_bytes(entries, entries + more) <= stored_bytes(entries + 1, entries + more + 1)


def test_updates(world: World, tmp_path: Path):
    path, request = tmp_path / "db", PartitionRequest(size=545_000)
    settings = {
        "parameters": DatabaseParameters(SKETCH), "taxonomy": world.taxonomy, "maps": [world.map],
    }  # fmt: skip
    build(world, path, DatabaseParameters(SKETCH), request=request)
    before = files(path)

    def update(references: list[Path], request: PartitionRequest) -> Any:
        return update_database(references, path, request=request, **settings)  # type: ignore[arg-type]

    assert update(world.references, request) is not None
    assert files(path) == before
    assert update(world.references, PartitionRequest(size=544_000)) is None
    assert update(world.references, PartitionRequest()) is None
    more = tmp_path / "more.fa"
    more.write_text(">more\n" + world.sequences[4] + "\n")
    assert update([*world.references, more], request) is None


def test_adding_keeps_the_fraction(world: World, tmp_path: Path):
    parameters = DatabaseParameters(replace(SKETCH, fraction=0.4))
    build_database(world.references[:2], tmp_path / "db", parameters=parameters)
    add_references(tmp_path / "db", world.references[2:], into_last=True)
    build_database(world.references, tmp_path / "all", parameters=parameters)
    partitions = [open_database(tmp_path / name).load_partition(0) for name in ("db", "all")]
    one, two = (own.index for own in partitions)
    assert np.array_equal(one.entries, two.entries)
    assert np.array_equal(one.locations, two.locations)
    with pytest.raises(UsageError, match="omit `max_size`"):
        add_references(tmp_path / "db", world.references, request=PartitionRequest(size=1))


def test_a_manifest_says_which_are_kept(database: Database, tmp_path: Path):
    def sketch_of(path: Path) -> dict[str, Any]:
        return json.loads((path / "manifest.json").read_text())["parameters"]["sketch"]

    assert "fraction" not in sketch_of(database.path)
    thin_database(database.path, tmp_path / "thin", fraction=0.3)
    assert sketch_of(tmp_path / "thin")["fraction"] == round(0.3 * 65536) / 65536
    assert Engine(open_database(tmp_path / "thin"), QueryParameters()).rules.min_hits == 2


@pytest.mark.parametrize("fraction", [0, -1, 2, "0.5", True, None, 1e-9])
def test_a_manifest_with_a_wrong_fraction(database: Database, tmp_path: Path, fraction: object):
    from ngsgpu.io.output.manifest import save_manifest

    thin_database(database.path, tmp_path / "thin", fraction=0.5)
    values = json.loads((tmp_path / "thin" / "manifest.json").read_text())
    values["parameters"]["sketch"]["fraction"] = fraction
    save_manifest(tmp_path / "thin" / "manifest.json", values)
    with pytest.raises((InputError, UsageError)):
        open_database(tmp_path / "thin")


def test_refusals(database: Database, copy: Path, world: World, tmp_path: Path):
    thin_database(copy, tmp_path / "half", fraction=0.5)
    before = files(tmp_path)
    for more, why in (
        ({"fraction": 0.6}, r"at most 0\.5, which .*half has"),
        ({"fraction": 0.5, "size": 9}, "and not both"),
        ({}, "and not both"),
        ({"fraction": 0.0}, "`fraction` must be from"),
        ({"size": 1000}, "`max_size` 1,000 bytes is too small"),
    ):
        with pytest.raises(UsageError, match=why):
            thin_database(tmp_path / "half", tmp_path / "new", **more)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is this very folder"):
        thin_database(tmp_path / "half", tmp_path / "half", fraction=0.2)
    plan = plan_database(world.references, tmp_path / "plan")
    write_manifest(plan)
    with pytest.raises(InputError, match="not built yet"):
        thin_database(tmp_path / "plan", tmp_path / "new", fraction=0.5)
    shutil.rmtree(tmp_path / "plan")
    assert files(tmp_path) == before
    entries = copy / "partition-0000-0001" / "entries.npy"
    data = bytearray(entries.read_bytes())
    data[-3] ^= 1
    entries.write_bytes(data)
    with pytest.raises(InputError, match=r"is damaged .*entries\.npy"):
        thin_database(copy, tmp_path / "new", fraction=0.5)
    with pytest.raises(UsageError, match="`fraction` or `max_size`, not both"):
        build(world, tmp_path / "new", thin(DatabaseParameters(SKETCH), 0.5),
              request=PartitionRequest(size=1 << 20))  # fmt: skip
    with pytest.raises(UsageError, match="for databases on the disk"):
        build_database(world.references, None, request=PartitionRequest(size=1 << 20))
    assert not (tmp_path / "new").exists()


def test_commands(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    references = [str(path) for path in world.references]
    full, small, built = (str(tmp_path / name) for name in ("full", "small", "built"))
    common = [*references, "--taxonomy", str(world.taxonomy), "--map", str(world.map)]
    assert main(["db", "build", *common, "-d", full, "--gpus", "0", "-q"]) == 0
    assert main(["db", "thin", "-d", full, "-o", small, "--fraction", "0.25"]) == 0
    assert "fraction 0.25\n" in capsys.readouterr().err
    build_again = ["db", "build", *common, "-d", built, "--gpus", "0", "-q"]
    assert main([*build_again, "--fraction", "0.25"]) == 0
    assert files(Path(small)) == files(Path(built))
    assert main(["db", "info", "-d", small]) == 0
    assert "fraction          0.25\n" in capsys.readouterr().out
    assert main([*build_again, "--max-size", "600K"]) == 0
    assert size_on_disk(Path(built)) <= 600 << 10
    assert main(["db", "thin", "-d", full, "-o", small, "--max-size", "530K"]) == 0
    assert size_on_disk(Path(small)) <= 530 << 10
    assert main(["db", "thin", "-d", full, "-o", small]) == 2
    assert "--fraction or --max-size" in capsys.readouterr().err
    assert main(["db", "thin", "-d", full, "-o", full, "--fraction", "0.5"]) == 2
    only = ["db", "build", "-d", full, "--only-partition", "0", "--max-size", "1G"]
    assert main(only) == 2
    assert "give only -d" in capsys.readouterr().err
