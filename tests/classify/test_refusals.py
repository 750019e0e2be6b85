"""What cannot be used is refused by one clear line and status 2, and nothing is left behind."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.classify.database.database import Database
from ngsgpu.classify.database.info import verify_database
from ngsgpu.cli import main
from ngsgpu.errors import InputError
from tests.support.classify.world import World
from tests.support.properties import examples


def fasta(text: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "bad.fa").write_text(text)
        return folder / "bad.fa"

    return make


def truncated(folder: Path) -> Path:
    sequence = "".join("ACGT"[(at * at) % 7 % 4] for at in range(5000))
    packed = gzip.compress(f">a\n{sequence}\n".encode())
    (folder / "cut.fa.gz").write_bytes(packed[: len(packed) // 2])
    return folder / "cut.fa.gz"


REFERENCES = {
    "empty": (fasta(""), "the file contains no sequence"),
    "a record without bases": (fasta(">a\n>b\nACGTACGT\n"), "the sequence 'a' has no bases"),
    "protein": (fasta(">a\nMKVLAAGIVGLLLAQWERTY\n"), "this may be protein"),
    "a name twice": (fasta(">a\nACGTACGT\n>a\nACGTACGT\n"), "the name 'a' is already used"),
    "truncated": (truncated, "truncated"),
}


@pytest.mark.parametrize("name", REFERENCES)
def test_references(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, message = REFERENCES[name]
    path = make(tmp_path)
    assert main(["db", "build", str(path), "-d", str(tmp_path / "db"), "-q", "-t1"]) == 2
    refused(capsys, path.name, message)
    assert not (tmp_path / "db").exists()


NODES = "1\t|\t1\t|\tno rank\t|\n2\t|\t1\t|\tdomain\t|\n5\t|\t2\t|\tspecies\t|\n"
TAXONOMIES = {
    "a cycle": NODES.replace("2\t|\t1\t|", "2\t|\t5\t|"),
    "a missing parent": NODES.replace("2\t|\t1\t|", "2\t|\t77\t|"),
    "a line cut short": NODES[:-4],
    "no root": NODES.replace("1\t|\t1\t|\tno rank\t|\n", "").replace("2\t|\t1\t|", "2\t|\t5\t|"),
}


@pytest.mark.parametrize("name", TAXONOMIES)
def test_taxonomies(
    name: str, world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nodes.dmp").write_text(TAXONOMIES[name])
    (tmp_path / "names.dmp").write_text(
        "".join(f"{taxid}\t|\tname {taxid}\t|\t\t|\tscientific name\t|\n" for taxid in (1, 2, 5))
    )
    where = ["-d", str(tmp_path / "db"), "--taxonomy", str(tmp_path), "-q", "-t1"]
    assert main(["db", "build", str(world.references[0]), *where]) == 2
    refused(capsys, "nodes.dmp", "")
    assert not (tmp_path / "db").exists()


def cut_short(copy: Path) -> None:
    path = next(copy.glob("partition-*/entries.npy"))
    path.write_bytes(path.read_bytes()[:-8])


def another_version(copy: Path) -> None:
    values = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(values | {"version": 99}))


def another_taxonomy(copy: Path) -> None:
    path = next(copy.glob("taxonomy-*/taxid.npy"))
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


DATABASES = {
    "cut short": (cut_short, "was cut short"),
    "another version": (another_version, "is of version 99"),
    "another taxonomy": (another_taxonomy, "is not the taxonomy the database was built with"),
}


@pytest.mark.parametrize("name", DATABASES)
def test_databases(
    name: str,
    world: World,
    database: Database,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(database.path, tmp_path / "db")
    change, message = DATABASES[name]
    change(tmp_path / "db")
    reads = str(world.fasta("refused.fa", world.reads[:3]))
    out = tmp_path / "calls.tsv"
    assert main(["classify", "-d", str(tmp_path / "db"), "-i", reads, "-o", str(out), "-q"]) == 2
    refused(capsys, str(tmp_path / "db"), message)
    assert not out.exists()


def refused(capsys: pytest.CaptureFixture[str], place: str, message: str) -> None:
    said = capsys.readouterr().err
    assert place in said
    assert message in said
    assert "Traceback" not in said
    assert said.count("\n") <= 3


@pytest.fixture(scope="module")
def copy(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(database.path, tmp_path_factory.mktemp("verify") / "db"))


@given(data=st.data())
@examples(60)
def test_verify_finds_any_byte(copy: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(path for path in copy.rglob("*") if path.is_file())))
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[at] ^ data.draw(st.integers(1, 255))
    path.write_bytes(whole[:at] + bytes([flipped]) + whole[at + 1 :])
    try:
        found = verify_database(copy)[1]
    except InputError as error:
        found = [str(error)]
    path.write_bytes(whole)
    assert found
