"""Databases and files of candidates with changed bytes: noticed, or of no consequence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from isal import isal_zlib

from ngsgpu.classify.database.database import Database, open_database
from ngsgpu.classify.index.index import Index, block_sums, check_blocks
from ngsgpu.cli import main
from ngsgpu.errors import InputError
from ngsgpu.io.output.manifest import MANIFEST, save_manifest
from tests.support.classify.damage import (
    build_healthy,
    classify,
    files_of,
    flip_all,
    garbled,
    reads_of,
)
from tests.support.classify.world import World


@pytest.fixture(scope="module")
def healthy(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of two partitions, and beside it what runs over them one by one found."""
    folder = tmp_path_factory.mktemp("healthy")
    build_healthy(world, folder)
    for number in range(2):
        only = ["--only-partition", str(number), "--candidates", str(folder / f"{number}.cand")]
        assert main(["classify", "-d", str(folder / "db"), *reads_of(world), *only, "-q"]) == 0
    return folder


def merge(folder: Path, out: Path, *more: str) -> int:
    files = [str(path) for path in sorted(folder.glob("*.cand"))]
    outputs = ["-o", str(out / "calls.tsv"), "--report", str(out / "report.txt")]
    return main(["classify-merge", "-d", str(folder / "db"), *files, *outputs, "-q", *more])


def test_a_changed_byte_of_a_database_is_noticed(
    world: World, healthy: Path, tmp_path: Path, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    (cpu := tmp_path / "cpu").mkdir()
    assert classify(world, tmp_path, cpu) == 0

    def run(folder: Path, out: Path) -> int:
        return classify(world, folder, out, backend=backend)

    files = files_of(tmp_path / "db", "*")
    assert len(files) > 20
    flip_all(tmp_path, files, 240, run, capsys)
    for path in cpu.iterdir():
        assert (tmp_path / "right" / path.name).read_bytes() == path.read_bytes()


def test_a_changed_byte_of_a_file_of_candidates_is_noticed(
    healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(healthy, tmp_path / "copy"))
    flip_all(copy, files_of(copy, "*.cand"), 100, merge, capsys)


def test_a_database_of_an_earlier_version_is_compared_as_a_whole(
    world: World, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    for path in files_of(tmp_path / "db", "blocks.npy"):
        path.unlink()
        manifest = path.parent / MANIFEST
        values = json.loads((manifest).read_text())
        del values["files"]["blocks.npy"]
        save_manifest(manifest, values)
    files = files_of(tmp_path / "db" / "partition-0001-0001", "*.npy")
    assert len(files) == 3
    flip_all(tmp_path, files, 12, lambda folder, out: classify(world, folder, out), capsys)


@pytest.mark.parametrize("name", ["directory", "entries", "locations"])
def test_without_verification_no_look_up_leaves_its_arrays(
    world: World, healthy: Path, tmp_path: Path, backend: str, name: str
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    path = tmp_path / "db" / "partition-0000-0001" / f"{name}.npy"
    whole = np.load(path)
    for share in (0.001, 0.1, 1):
        np.save(path, garbled(whole, share))
        (out := tmp_path / f"{share}").mkdir()
        for more in ((), ("--species-identity", "0"), ("--metacache", "--coverage-filter", "0.1")):
            assert classify(world, tmp_path, out, "--no-verify", *more, backend=backend) == 0
        assert classify(world, tmp_path, out, backend=backend) == 2


def test_sums_of_blocks_are_those_of_their_words() -> None:
    source = np.random.default_rng(3)
    directory = np.zeros(((1 << 16) + 1, 2), dtype=np.uint32)
    entries = source.integers(0, 1 << 32, 9000, dtype=np.uint32)
    locations = source.integers(0, 1 << 32, 70_000, dtype=np.uint32)
    for column, size in enumerate((len(entries), len(locations))):
        directory[1:-1, column] = np.sort(source.integers(0, size + 1, (1 << 16) - 1))
        directory[-1, column] = size
    directory[20_000:60_000] = directory[20_000]  # blocks without entries
    index = Index(directory, entries, locations)
    sums = block_sums(index)
    assert (block_sums(index, threads=3) == sums).all()
    blocks, lines = len(sums), (1 << 16) // len(sums)
    for block in range(blocks):
        begin, end = block * lines, (block + 1) * lines
        spans = [(directory.reshape(-1), 2 * begin, 2 * end + 2)]
        spans += [(entries, directory[begin, 0], directory[end, 0])]
        spans += [(locations, directory[begin, 1], directory[end, 1])]
        factors = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9)
        expected = sum(
            factor * sum(int(words[i]) * (i + 1) for i in range(int(first), int(last)))
            for factor, (words, first, last) in zip(factors, spans, strict=True)
        )
        assert int(sums[block]) == expected % (1 << 64)
    keys = np.arange(blocks, dtype=np.uint32) << np.uint32(33 - blocks.bit_length())
    checked = np.zeros(blocks, dtype=np.uint8)
    assert check_blocks(keys[3:5], directory, entries, locations, sums, checked)
    assert np.flatnonzero(checked).tolist() == [3, 4]
    assert check_blocks(keys, directory, entries, locations, sums, checked)
    assert checked.all()
    locations[-1] ^= 1
    assert check_blocks(keys, directory, entries, locations, sums, checked)
    assert not check_blocks(keys, directory, entries, locations, sums, np.zeros_like(checked))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("name_start", lambda a: a[::-1], "name_start.npy: does not match the rest"),
        ("length", lambda a: -a, "length.npy: does not match the rest"),
        ("length", lambda a: a * 10**12, "the targets are not those of partition-0000"),
        ("node", lambda a: a + 1000, "node.npy: does not match the rest"),
        ("node", lambda a: a - 1000, "node.npy: does not match the rest"),
        ("partition", lambda a: 1 - a, "the targets are not those of partition-0000"),
        ("file", lambda a: a + 100, "file.npy: does not match the rest"),
    ],
)
def test_targets_that_do_not_fit_are_refused_without_verification(
    healthy: Path,
    tmp_path: Path,
    name: str,
    change: Callable[[np.ndarray], np.ndarray],
    message: str,
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    path = next((tmp_path / "db").glob(f"targets-*/{name}.npy"))
    array = np.load(path)
    np.save(path, change(array).astype(array.dtype))
    with pytest.raises(InputError, match=message):
        open_database(tmp_path / "db", verified=False)
    with pytest.raises(InputError, match=rf"{name}.npy: the content has changed"):
        open_database(tmp_path / "db")


def test_a_taxon_above_itself_is_refused(database: Database) -> None:
    taxonomy = database.taxonomy
    assert taxonomy is not None
    parent = taxonomy.parent.copy()
    leaf = int(taxonomy.depth.argmax())
    parent[parent[leaf]] = leaf
    looped = type(taxonomy)(**{**vars_of(taxonomy), "parent": parent})
    for look in (lambda: looped.depth, looped.ranked_lineages, lambda: looped.lineage(leaf)):
        with pytest.raises(InputError, match="a taxon is its own ancestor"):
            look()


def vars_of(taxonomy: object) -> dict[str, object]:
    names = ("taxid", "parent", "rank", "name_bytes", "name_start", "merged_taxid", "merged_index")
    return {name: getattr(taxonomy, name) for name in names}


def test_blocks_that_do_not_fit_the_index_are_damage(
    world: World, healthy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(healthy / "db", tmp_path / "db")
    folder = tmp_path / "db" / "partition-0000-0001"
    sums = np.load(folder / "blocks.npy")
    np.save(folder / "blocks.npy", sums[::-1])
    values = json.loads((folder / MANIFEST).read_text())
    data = (folder / "blocks.npy").read_bytes()
    values["files"]["blocks.npy"]["crc32"] = isal_zlib.crc32(data)
    save_manifest(folder / MANIFEST, values)
    assert classify(world, tmp_path, tmp_path) == 2
    said = capsys.readouterr().err
    assert f"{folder}: its block checksums do not match its index" in said
