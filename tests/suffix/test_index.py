"""Suffix arrays, BWA's files, and matches, against slow oracles and what BWA itself wrote."""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.errors import HostMemoryError, InputError, UsageError
from ngsgpu.run.options import RunOptions
from ngsgpu.suffix import (
    QueryParameters,
    build_index,
    is_suffix_array,
    open_index,
    query_files,
    suffix_array,
)
from ngsgpu.suffix.bwa import ENDINGS
from ngsgpu.suffix.reference import Lrand48
from tests.support.suffix import oracle

DATA = Path(__file__).parents[1] / "data" / "bwa_index"


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=40) | st.text("AC", max_size=60).map(str.encode))
def test_suffix_array(content: bytes) -> None:
    text = np.frombuffer(content, dtype=np.uint8)
    places = suffix_array(text)
    assert places.tolist() == oracle.suffix_array(content)
    assert is_suffix_array(text, places)


@settings(deadline=None, max_examples=60)
@given(st.text("AC", min_size=1, max_size=8), st.data())
def test_other_arrays_are_none(content: str, data: st.DataObject) -> None:
    text = np.frombuffer(content.encode(), dtype=np.uint8)
    own = oracle.suffix_array(content.encode())
    size = len(own)
    other = data.draw(
        st.permutations(own) | st.lists(st.integers(-1, size), min_size=size, max_size=size)
    )
    assert is_suffix_array(text, np.array(other, dtype=np.int32)) == (list(other) == own)
    assert not is_suffix_array(text, np.array([*own, size], dtype=np.int32))


def test_random_bases_are_those_of_the_c_library() -> None:
    """``srand48(11)``, then ``lrand48() & 3``, as glibc 2.36 has them."""
    drawn = Lrand48(11)
    assert [*drawn.bases(3), *drawn.bases(9)] == [1, 2, 2, 2, 0, 0, 1, 0, 2, 1, 3, 1]


@pytest.mark.parametrize("threads", [1, 3])
def test_files_of_bwa(tmp_path: Path, threads: int) -> None:
    """Several sequences, comments, lower case, CR LF, holes of one and of several letters."""
    build_index(DATA / "reference.fa", tmp_path / "own", options=RunOptions(threads=threads))
    for ending in ENDINGS:
        own = (tmp_path / f"own{ending}").read_bytes()
        assert own == (DATA / f"reference{ending}").read_bytes(), ending


def _reference(tmp_path: Path, size: int) -> tuple[Path, dict[str, str]]:
    draw = random.Random(size)
    unit = "".join(draw.choice("ACGT") for _ in range(size))
    other = "".join(draw.choice("AC") for _ in range(size // 2))
    sequences = {"one": unit, "two": other + oracle.turned(unit[: size // 2]), "three": "ACGTAC"}
    path = tmp_path / "r.fa"
    path.write_text("".join(f">{name} x\n{text}\n" for name, text in sequences.items()))
    return path, sequences


def _lines(path: Path) -> dict[tuple[str, int, int], list[list[str]]]:
    found = defaultdict(list)
    for line in path.read_text().splitlines():
        fields = line.split("\t")
        found[fields[0], int(fields[2]), int(fields[3])].append(fields)
    return found


@pytest.mark.parametrize("kind", ["bwa", "fm"])
@pytest.mark.parametrize("whole", [False, True])
def test_matches(tmp_path: Path, kind: str, whole: bool) -> None:
    path, sequences = _reference(tmp_path, 300)
    build_index(path, tmp_path / "i", kind)  # type: ignore[arg-type]
    both = "".join(sequences.values())
    text = both + oracle.turned(both)
    draw = random.Random(1)
    reads = {"short": "A", "n": "N" * 9, "none": "", "all": sequences["one"], "mix": both[290:320]}
    for number in range(40):
        begin = draw.randrange(len(text) - 60)
        read = list(text[begin : begin + draw.randrange(8, 60)])
        for _ in range(draw.randrange(4)):
            read[draw.randrange(len(read))] = draw.choice("ACGTN")
        reads[f"r{number}"] = "".join(read)
    (tmp_path / "q.fa").write_text("".join(f">{n} c\n{read}\n" for n, read in reads.items()))
    parameters = QueryParameters(min_length=7, whole=whole, max_places=3)
    summary = query_files(
        tmp_path / "i", [tmp_path / "q.fa"], tmp_path / "o.paf", parameters, RunOptions(threads=2)
    )
    assert summary.reads == len(reads)
    lines = _lines(tmp_path / "o.paf")
    wanted = set()
    for name, read in reads.items():
        if whole:
            matches = [(0, len(read))] if read and read in text else []
        else:
            matches = oracle.maximal_matches(read, text, 7)
        for begin, end in matches:
            piece = read[begin:end]
            occurrences = sum(text.startswith(piece, at) for at in range(len(text)))
            places = oracle.places_of(piece, sequences)
            if occurrences > 3:
                (only,) = lines[name, begin, end]
                assert only[4:] == [*"**", *"00000", "255", f"nh:i:{occurrences}"]
            elif places:
                own = lines[name, begin, end]
                assert sorted((f[5], f[4], int(f[7])) for f in own) == places
                for fields in own:
                    size = str(len(sequences[fields[5]]))
                    assert fields[1] == str(len(read))
                    assert fields[6] == size
                    assert int(fields[8]) - int(fields[7]) == end - begin
                    assert fields[9:] == [*[str(end - begin)] * 2, "255", f"nh:i:{len(places)}"]
            else:
                continue  # over the end of a sequence
            wanted.add((name, begin, end))
    assert set(lines) == wanted
    assert summary.matches == len(wanted)


def test_texts_and_arrays(tmp_path: Path) -> None:
    (tmp_path / "r.fa").write_text(">a\nacgtNNry\n>b\nTT\n")
    build_index(tmp_path / "r.fa", tmp_path / "sa", "sa")
    text = np.load(tmp_path / "sa" / "text.npy").tobytes()
    assert text == b"ACGTNNRY$TT$"
    places = np.load(tmp_path / "sa" / "places.npy").tolist()
    assert places == oracle.suffix_array(text)
    build_index(tmp_path / "r.fa", tmp_path / "bwt", "bwt")
    rows = [len(text), *places]
    wanted = bytes(text[place - 1] if place else 0 for place in rows)
    assert np.load(tmp_path / "bwt" / "transform.npy").tobytes() == wanted
    with pytest.raises(InputError, match="no FM index"):
        open_index(tmp_path / "sa")


@pytest.mark.parametrize("ending", [".bwt", ".sa", ".ann"])
def test_damaged_files_of_bwa(tmp_path: Path, ending: str) -> None:
    for own in ENDINGS:
        shutil.copy(DATA / f"reference{own}", tmp_path / f"i{own}")
    open_index(tmp_path / "i")
    path = tmp_path / f"i{ending}"
    content = path.read_bytes()
    for wrong in (content[:-8], content[:20], b"", b"\xff" * len(content)):
        path.write_bytes(wrong)
        with pytest.raises(InputError, match=r"ngsgpu index build"):
            open_index(tmp_path / "i")
    path.unlink()
    with pytest.raises(InputError, match=ending):
        open_index(tmp_path / "i")


def test_damaged_folder(tmp_path: Path) -> None:
    build_index(DATA / "reference.fa", tmp_path / "fm", "fm")
    path = tmp_path / "fm" / "words.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"words\.npy"):
        open_index(tmp_path / "fm")


def test_refusals(tmp_path: Path) -> None:
    (tmp_path / "e.fa").write_text(">a\n>b\n")
    with pytest.raises(InputError, match="no bases"):
        build_index(tmp_path / "e.fa", tmp_path / "e")
    assert not list(tmp_path.glob("e.*[!a]"))
    with pytest.raises(HostMemoryError):
        build_index(DATA / "reference.fa", tmp_path / "e", options=RunOptions(memory=1 << 20))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    with pytest.raises(InputError, match="mine"):
        build_index(DATA / "reference.fa", tmp_path / "folder", "fm")
    shutil.copy(DATA / "reference.fa", tmp_path / "x.bwt")
    with pytest.raises(UsageError, match="input and output"):
        build_index(tmp_path / "x.bwt", tmp_path / "x")
    for wrong in ({"min_length": 0}, {"max_places": -1}):
        with pytest.raises(UsageError):
            QueryParameters(**wrong)
