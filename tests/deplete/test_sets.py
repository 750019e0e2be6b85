"""Indexes made of others: they are those of the sequences together, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ngsgpu.deplete import IndexParameters, combine_indexes, open_index
from ngsgpu.deplete.index import HEADER_BYTES, _sealed
from ngsgpu.errors import HostMemoryError, InputError
from ngsgpu.run.options import RunOptions
from tests.support.commands import Commands, names
from tests.support.deplete.oracle import kmers_of
from tests.support.deplete.world import World, write_sequences
from tests.support.io.records import write

Build = Callable[..., Path]
KEEP = "--keep-kmers"


@pytest.fixture(scope="module")
def sequences() -> dict[str, list[str]]:
    """Three sets of which some share stretches."""
    one, two = (World.of(seed, 0, paired=False) for seed in (11, 12))
    return {"a": one.host, "b": [*two.host, one.host[1][:700]], "c": [*two.others, one.host[1]]}


@pytest.fixture
def build(tmp_path: Path, sequences: dict[str, list[str]], ngsgpu: Commands) -> Build:
    """Index some of the sets."""
    for name, own in sequences.items():
        write_sequences(tmp_path / f"{name}.fa", own)

    def function(name: str, of: str, *options: object) -> Path:
        paths = [tmp_path / f"{own}.fa" for own in of]
        done = ngsgpu("deplete-index", *paths, "-o", tmp_path / name, *options, "-q")
        assert done.status == 0, done.err
        return tmp_path / name

    return function


@pytest.mark.parametrize("more", [(), (KEEP,)])
def test_sets_are_those_of_the_sequences(
    tmp_path: Path, ngsgpu: Commands, build: Build, more: tuple[str, ...]
) -> None:
    parts = [build(f"{own}.idx", own, KEEP) for own in "abc"]
    expected = {
        "union": build("all", "abc", *more),
        "diff": build("rest", "a", "-x", tmp_path / "b.fa", "-x", tmp_path / "c.fa", *more),
    }
    for operation, whole in expected.items():
        out = tmp_path / operation
        done = ngsgpu("deplete-index", operation, *parts, "-o", out, *more, "-t", 2)
        assert done.status == 0, done.err
        assert out.read_bytes() == whole.read_bytes()
        assert f"{open_index(out).kmers:,} k-mers of" in done.err


def test_shared_kmers(
    tmp_path: Path, ngsgpu: Commands, build: Build, sequences: dict[str, list[str]]
) -> None:
    parts = [build(f"{own}.idx", own, KEEP) for own in "abc"]
    out = tmp_path / "shared"
    done = ngsgpu("deplete-index", "intersect", *parts, "-o", out, "-q")
    assert done.status == 0, done.err
    sets = [kmers_of(own, IndexParameters()) for own in sequences.values()]
    assert open_index(out).kmers == len(sets[0] & sets[1] & sets[2]) > 0
    # What is in all is in the first, and nothing is left of it without these.
    done = ngsgpu("deplete-index", "intersect", parts[0], parts[0], "-o", out, KEEP, "-q")
    assert done.status == 2
    assert "named as input twice" in done.error
    rest = tmp_path / "rest"
    assert ngsgpu("deplete-index", "diff", *parts[:2], "-o", rest, KEEP, "-q").status == 0
    assert ngsgpu("deplete-index", "union", rest, parts[1], "-o", out, "-q").status == 0
    assert out.read_bytes()[HEADER_BYTES:] == build("ab", "ab").read_bytes()[HEADER_BYTES:]
    before = out.read_bytes()
    done = ngsgpu("deplete-index", "diff", rest, parts[0], "-o", out, "-q")
    assert done.status == 2
    assert "no k-mer of 24 bases is left" in done.error
    assert out.read_bytes() == before


def test_a_list_changes_nothing_else(build: Build, tmp_path: Path) -> None:
    """An index without it is as ever, and depletion takes either."""
    plain, kept = build("plain", "ab"), build("kept", "ab", KEEP)
    assert json.loads(plain.read_bytes()[:HEADER_BYTES])["version"] == 1
    table = open_index(plain).table.tobytes()
    assert kept.read_bytes()[HEADER_BYTES:].startswith(table)
    opened = open_index(kept)
    assert opened.table.tobytes() == table
    assert opened.hashes is None
    hashes = open_index(kept, with_kmers=True).hashes
    assert hashes is not None
    assert len(hashes) == opened.kmers
    assert (hashes[1:] > hashes[:-1]).all()


def test_info(ngsgpu: Commands, build: Build) -> None:
    path = build("x", "ab", KEEP, "-k", 20)
    done = ngsgpu("deplete-index", "info", path)
    rows = dict(line.split(maxsplit=1) for line in done.out.splitlines())
    assert (rows["kmer"], rows["sources"]) == ("20", "a.fa, b.fa")
    found = json.loads(ngsgpu("deplete-index", "info", path, "--json").out)
    assert found["sources"] == ["a.fa", "b.fa"]
    assert found["keeps_kmers"]
    assert found["kmers"] == open_index(path).kmers


def test_refusals(tmp_path: Path, ngsgpu: Commands, build: Build) -> None:
    kept, plain = build("kept", "a", KEEP), build("plain", "b")
    other = build("other", "b", KEEP, "--one-in", 2)
    before = names(tmp_path)
    cases: dict[str, list[object]] = {
        "plain: has no list of its k-mers; build it again with": [kept, plain],
        "has other parameters": [kept, other],
        "give two indexes or more": [kept],
        "is not the index of a host": [kept, tmp_path / "a.fa"],
    }
    for message, arguments in cases.items():
        done = ngsgpu("deplete-index", "union", *arguments, "-o", tmp_path / "x", "-q")
        assert done.status == 2, done.err
        assert message in done.error
    done = ngsgpu("deplete-index", "union", kept, other, "-o", kept)
    assert (done.status, "input and output" in done.error) == (2, True)
    assert names(tmp_path) == before
    with pytest.raises(HostMemoryError):
        combine_indexes("union", [kept, kept], options=RunOptions(memory=1 << 20))


def test_damage(tmp_path: Path, build: Build) -> None:
    whole = build("kept", "ab", KEEP).read_bytes()
    header = json.loads(whole[:HEADER_BYTES])
    plain = {name: value for name, value in header.items() if name != "kmers_crc32"}
    cases = {
        "list of k-mers has changed": whole[:-1] + bytes([whole[-1] ^ 1]),
        "bytes where the index had": whole[:-8],
        "header has changed": _sealed({**header, "version": 1}) + whole[HEADER_BYTES:],
        "the header has": _sealed(plain) + whole[HEADER_BYTES:],
    }
    for cause, text in cases.items():
        with pytest.raises(InputError, match=cause):
            open_index(write(tmp_path / "damaged", text), with_kmers=True)
