"""The commands: which files they read and write, what they say, and what they refuse."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ngsgpu.deplete import DepletionParameters, IndexParameters, open_index, stage
from ngsgpu.deplete.build import index_files
from ngsgpu.deplete.index import HEADER_BYTES, _sealed
from ngsgpu.deplete.table import GROUP, contains
from ngsgpu.errors import InputError, OutputError, UsageError
from ngsgpu.jit import interpreted
from tests.support.commands import Commands, names
from tests.support.deplete.world import Unit, World, texts, write_sequences
from tests.support.io.records import fasta, write


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(1, 200, paired=True)


@pytest.fixture(scope="module")
def kept(world: World) -> list[Unit]:
    """What the oracle leaves, which is slow."""
    return world.kept(IndexParameters(), DepletionParameters())


@pytest.fixture
def index(tmp_path: Path, world: World, ngsgpu: Commands) -> Path:
    host = write_sequences(tmp_path / "host.fa", world.host)
    path = tmp_path / "host.idx"
    done = ngsgpu("deplete-index", host, "-o", path, "-t", 2)
    assert done.status == 0, done.err
    assert "k-mers of 3 sequences" in done.err
    return path


def refused(ngsgpu: Commands, *arguments: object) -> str:
    done = ngsgpu("deplete", "--backend", "cpu", *arguments)
    assert done.status == 2, done.err
    return done.error


def test_pairs_and_statistics(
    tmp_path: Path, world: World, kept: list[Unit], index: Path, ngsgpu: Commands
) -> None:
    first, second = (
        write(tmp_path / f"{mate}.fq.gz", gzip.compress(text))
        for mate, text in enumerate(texts(world.units, interleaved=False), 1)
    )
    host = [unit for unit in world.units if unit not in kept]
    assert len(kept) > 30 < len(host)
    for name, units, more in (("other", kept, []), ("host", host, ["--keep-host"])):
        out1, out2, stats = (tmp_path / f"{name}.{kind}" for kind in ("1.gz", "2.gz", "json"))
        done = ngsgpu(
            "deplete", "-d", index, "-i", first, "-I", second, "-o", out1, "-O", out2,
            "--stats", stats, "--backend", "cpu", "-t", 2, *more,
        )  # fmt: skip
        assert done.status == 0, done.err
        assert f"{2 * len(host)} of the host" in done.err
        found = [gzip.decompress(path.read_bytes()) for path in (out1, out2)]
        assert found == texts(units, interleaved=False)
        document = json.loads(stats.read_text())
        assert document["schema"] == "ngsgpu.deplete"
        assert document["reads"] == {
            "total": 400,
            "host": 2 * len(host),
            "other": 2 * len(kept),
            "kept": 2 * len(units),
        }
        bases = sum(len(record.bases) for unit in units for record in unit)
        assert document["bases"]["kept"] == bases
        assert document["index"]["sources"] == ["host.fa"]


def test_lanes_and_fasta(tmp_path: Path, world: World, index: Path, ngsgpu: Commands) -> None:
    """Lanes go to one output or to one each; FASTA may be wrapped."""
    records = [record for unit in world.units for record in unit]
    lanes = [
        write(tmp_path / f"{number}.fa", fasta(own, width=30))
        for number, own in enumerate((records[:150], records[150:]))
    ]
    common = ["deplete", "-d", index, "-i", lanes[0], "-i", lanes[1], "-q", "--backend", "cpu"]
    for outputs in (["-o", "one"], ["-o", "a", "-o", "b"]):
        done = ngsgpu(*common, *(tmp_path / o if o != "-o" else o for o in outputs))
        assert done.status == 0, done.err
    singles = World(world.host, world.others, [(record,) for record in records])
    kept = singles.kept(IndexParameters(), DepletionParameters())
    expected = fasta((unit[0] for unit in kept), width=30)
    assert (tmp_path / "one").read_bytes() == expected
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == expected


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_names_of_each_output_begin_with_one(
    tmp_path: Path, world: World, index: Path, ngsgpu: Commands, packed: str
) -> None:
    reads = write(tmp_path / "r.fq", texts(world.units, interleaved=True)[0])
    outs = [tmp_path / f"{name}.fq{packed}" for name in ("a", "b", "plain")]
    copy = write(tmp_path / "s.fq", reads.read_bytes())
    common = ["deplete", "-d", index, "--interleaved", "-q", "--backend", "cpu"]
    lanes = ["-i", reads, "-i", copy, "-o", outs[0], "-o", outs[1]]
    assert ngsgpu(*common, *lanes, "--rename").status == 0
    assert ngsgpu(*common, "-i", reads, "-o", outs[2]).status == 0
    made, same, plain = (
        gzip.decompress(path.read_bytes()) if packed else path.read_bytes() for path in outs
    )
    assert made == same
    lines = plain.splitlines()
    for number in range(len(lines) // 4):
        lines[4 * number] = b"@%d" % (number // 2 + 1)
    assert made.splitlines() == lines


@pytest.mark.parametrize(("share", "status"), [(0, 4), (0.2, 4), (0.9, 0), (1, 0), (None, 0)])
def test_more_of_the_host_than_allowed(
    tmp_path: Path, world: World, kept: list[Unit], index: Path, ngsgpu: Commands,
    share: float | None, status: int,
) -> None:  # fmt: skip
    """Outputs are those of any run; the last line says how many it were."""
    reads = write(tmp_path / "r.fq", texts(world.units, interleaved=True)[0])
    out, stats = tmp_path / "o.fq", tmp_path / "s.json"
    done = ngsgpu(
        "deplete", "-d", index, "-i", reads, "--interleaved", "-o", out, "--stats", stats,
        "--backend", "cpu", "-q", *(["--max-host", share] if share is not None else []),
    )  # fmt: skip
    assert done.status == status, done.err
    assert out.read_bytes() == texts(kept, interleaved=True)[0]
    counts = json.loads(stats.read_text())["reads"]
    found = f"{counts['host'] / counts['total']:.4g} of the reads are the host's, more than"
    assert (f"{found} --max-host {share}" in done.err) == (status == 4)


def test_dry_run(tmp_path: Path, index: Path, ngsgpu: Commands) -> None:
    before = names(tmp_path)
    done = ngsgpu("deplete-index", tmp_path / "host.fa", "-o", tmp_path / "x", "--dry-run")
    assert done.status == 0, done.err
    assert [line.split()[0] for line in done.out.splitlines()] == ["backend", "index", "memory"]
    assert names(tmp_path) == before
    missing = ngsgpu("deplete-index", tmp_path / "none", "-o", tmp_path / "x", "--dry-run")
    assert (missing.status, "there is no such file" in missing.error) == (2, True)


def test_damage(tmp_path: Path, index: Path) -> None:
    whole = index.read_bytes()
    assert open_index(index).kmers > 0
    cases = {
        "is not the index of a host": b"",
        "header has changed": whole.replace(b'"kmer": 24', b'"kmer": 26', 1),
        "of version 9 and": whole.replace(b'"version": 1', b'"version": 9', 1),
        "bytes where the index had": whole[:-4],
        "content has changed": whole[:-1] + bytes([whole[-1] ^ 1]),
    }
    for cause, text in cases.items():
        with pytest.raises(Exception, match=cause):
            open_index(write(tmp_path / "damaged", text))


def test_an_index_that_is_cut_while_it_is_used_ends_the_run(
    tmp_path: Path,
    world: World,
    index: Path,
    ngsgpu: Commands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = write(tmp_path / "r.fq", texts(world.units, interleaved=True)[0])
    before = sorted(path.name for path in tmp_path.iterdir())
    find_kept = stage.find_kept

    def cut(*arguments: Any) -> Any:
        os.truncate(index, 4096)
        return find_kept(*arguments)

    monkeypatch.setattr(stage, "find_kept", cut)
    said = refused(ngsgpu, "-d", index, "-i", reads, "--interleaved", "-o", tmp_path / "o.fq",
                   "--stats", tmp_path / "s.json")  # fmt: skip
    assert f"{index}: was cut short while it was read" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_table_without_room_is_searched_once() -> None:
    table = np.full(GROUP * 3, 7, dtype=np.uint32)
    with interpreted():
        assert not contains(table, np.uint64(1 << 63 | 8))
        assert contains(table, np.uint64(1 << 63 | 7))


def test_headers_with_other_values_are_refused(tmp_path: Path, index: Path) -> None:
    text = index.read_bytes()
    header = json.loads(text[:HEADER_BYTES])
    for field, value in (
        ("bytes", 0), ("bytes", header["bytes"] - 4), ("kmer", 99), ("kmer", "24"),
        ("sources", {}), ("kmers", None), ("version", [1]),
    ):  # fmt: skip
        damaged = write(
            tmp_path / "damaged", _sealed({**header, field: value}) + text[HEADER_BYTES:]
        )
        with pytest.raises(InputError, match=r"damaged|bytes where|header has changed"):
            open_index(damaged)


def test_refusals(tmp_path: Path, index: Path, ngsgpu: Commands) -> None:
    reads = write(tmp_path / "r.fq", b"@r\nACGT\n+\nFFFF\n")
    out = tmp_path / "out.fq"
    common = ["-i", reads, "-o", out]
    assert "cannot be read (No such file" in refused(ngsgpu, "-d", tmp_path / "none", *common)
    assert "not the index of a host; give an index" in refused(ngsgpu, "-d", reads, *common)
    assert "--min-bases must be auto or 1" in refused(ngsgpu, "-d", index, *common, "-a", 0)
    assert "--min-share must be" in refused(ngsgpu, "-d", index, *common, "-r", 1.5)
    assert "missing -o: name 1 file" in refused(ngsgpu, "-d", index, "-i", reads)
    assert not out.exists()


def test_an_index_and_its_statistics_appear_together(tmp_path: Path, index: Path) -> None:
    host, own = tmp_path / "host.fa", tmp_path / "own.idx"
    made = index_files(host, own, stats=tmp_path / "own.json")
    assert own.read_bytes() == index.read_bytes()
    assert json.loads((tmp_path / "own.json").read_text())["index"] == made.index
    before = names(tmp_path)
    with pytest.raises(OutputError, match="none"):
        index_files(host, tmp_path / "other.idx", stats=tmp_path / "none" / "own.json")
    with pytest.raises(UsageError, match="mapped into memory"):
        index_files(host, "/dev/null")
    with pytest.raises(UsageError, match="input and output"):
        index_files(host, host)
    assert names(tmp_path) == before


def test_index_refusals(tmp_path: Path, ngsgpu: Commands) -> None:
    host = write_sequences(tmp_path / "h.fa", ["ACGT" * 500_000])
    before = names(tmp_path)
    cases: dict[str, tuple[int, list[object]]] = {
        "--kmer must be an even number from 16 to 32, not 23": (2, [host, "-k", 23]),
        "--one-in must be from 1 to 1,000": (2, [host, "--one-in", 0]),
        "--max-repeats must be": (2, [host, "--max-repeats", -1]),
        "no sequence": (2, [write(tmp_path / "h2.fa", b"")]),
        "--one-in 8": (3, [host, "--memory", "100M"]),
    }
    for message, (status, arguments) in cases.items():
        done = ngsgpu("deplete-index", *arguments, "-o", tmp_path / "x", "-q")
        assert done.status == status, done.err
        assert message in done.error
    (tmp_path / "h2.fa").unlink()
    assert names(tmp_path) == before
