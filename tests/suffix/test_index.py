"""Suffix arrays, BWA's files, and matches, against slow oracles and what BWA itself wrote."""

from __future__ import annotations

import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ngsgpu.device.memory import format_size
from ngsgpu.errors import DeviceMemoryError, HostMemoryError, InputError, UsageError
from ngsgpu.run.options import RunOptions
from ngsgpu.sequence.codec import CODES
from ngsgpu.suffix import (
    QueryParameters,
    build_index,
    fm_index,
    is_index,
    is_suffix_array,
    open_index,
    plan_index,
    query_files,
    suffix_array,
)
from ngsgpu.suffix.bucket import plan_buckets
from ngsgpu.suffix.bucket.cover import cover_tables, difference_cover
from ngsgpu.suffix.bwa import ENDINGS
from ngsgpu.suffix.fasta import read_codes
from ngsgpu.suffix.reference import Lrand48, Reference, read_reference
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


@settings(deadline=None, max_examples=60)
@given(st.text("ACGT", min_size=1, max_size=400), st.data())
def test_proof_of_an_index(content: str, data: st.DataObject) -> None:
    text = CODES[np.frombuffer(content.encode(), dtype=np.uint8)]
    index = fm_index(text, suffix_array(text))
    assert is_index(index, text)
    assert not is_index(index, np.append(text, text[:1]))
    at = data.draw(st.integers(0, len(text) - 1))
    other = text.copy()
    other[at] ^= 1
    assert not is_index(index, other)
    words = index.words.copy()
    # The last word of bases may have bits that stand for nothing.
    places = [i for i in range(len(words)) if i != len(words) - 9 or len(text) % 16 == 0]
    words[data.draw(st.sampled_from(places))] ^= np.uint32(1 << data.draw(st.integers(0, 31)))
    assert not is_index(replace(index, words=words), text)
    sample = index.sample.copy()
    if len(sample) > 1:
        sample[data.draw(st.integers(1, len(sample) - 1))] += 1
        assert not is_index(replace(index, sample=sample), text)


@pytest.mark.parametrize("period", [32, 64, 256, 512, 1024, 2048])
def test_difference_covers(period: int) -> None:
    residues = set(difference_cover(period).tolist())
    assert len(residues) < 2 * period**0.5
    tables = cover_tables(period).tolist()
    for difference, residue in enumerate(tables[period:]):
        assert {residue, (residue + difference) % period} <= residues
    classes = {residue: number for number, residue in enumerate(sorted(residues))}
    assert tables[:period] == [classes.get(residue, -1) for residue in range(period)]


def test_plans_of_buckets() -> None:
    whole = plan_buckets(1_000_000, 1 << 30)
    assert whole.buckets == 1
    human = plan_buckets(6_200_000_000, 130 << 30)
    assert 1 < human.buckets < 10
    small = plan_buckets(6_200_000_000, 20 << 30)
    assert small.period > human.period
    assert human.buckets < small.buckets < 300
    for plan in (whole, human, small):
        assert plan.fits
        assert plan.line().startswith(format_size(plan.total))
    with pytest.raises(DeviceMemoryError, match="use `gpu_memory='"):
        plan_buckets(6_200_000_000, 1 << 30)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.text("ACGTacgtNnR", max_size=150), min_size=1, max_size=5),
    st.sampled_from([1, 7, 60, 1000]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([16, 23, 64, 1000]),
)
def test_codes_of_fasta(
    sequences: list[str], width: int, end: str, ends: bool, chunk: int
) -> None:  # fmt: skip
    """Chunks end anywhere: in lines, headers, line ends and runs of N."""
    lines = []
    for number, sequence in enumerate(sequences):
        lines += [f">s{number}  c {number}"]
        lines += [sequence[at : at + width] for at in range(0, len(sequence), width)]
    text = end.join(lines) + end * ends
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "r.fa")
        path.write_bytes(text.encode())
        found = read_codes(path, 2, chunk)
        with (
            patch("ngsgpu.suffix.reference.read_codes", lambda *_: None),
            contextlib.suppress(InputError),
        ):
            wanted = read_reference(path)
            own = read_reference_with(found)
            assert np.array_equal(own.codes, wanted.codes)
            for one, other in zip(own.sequences, wanted.sequences, strict=True):
                assert (one.name, one.comment, one.start, one.length) == (
                    other.name, other.comment, other.start, other.length,
                )  # fmt: skip
                assert np.array_equal(one.holes, other.holes)
                assert np.array_equal(one.letters, other.letters)
    assert found is not None
    assert len(found[0]) == sum(map(len, sequences))


def read_reference_with(found: Any) -> Reference:
    """The reference of codes that were read."""
    with patch("ngsgpu.suffix.reference.read_codes", lambda *_: found):
        return read_reference("-")


def test_what_is_no_plain_fasta(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for content in ("", "ACGT\n", ">a\nAC GT\n", ">a\nAC>b\n", "@a\nAC\n+\nII\n", ">\0\nA\n"):
        path.write_text(content)
        assert read_codes(path, 1) is None
    assert read_codes("-", 1) is None
    assert read_codes(tmp_path / "none", 1) is None
    path.write_text(">a\nAC-GT\n>b\nA C\n")
    with pytest.raises(InputError, match="line"):
        build_index(path, tmp_path / "i")


def test_plan(tmp_path: Path) -> None:
    plan = plan_index(DATA / "reference.fa", "bwa")
    assert plan.notes == ("input    3 sequences of 371 bases",)
    with pytest.raises(HostMemoryError, match=r"try bwa index, or `memory='"):
        plan_index(DATA / "reference.fa", "sa", RunOptions(memory=1 << 20)).check()


def test_random_bases_are_those_of_the_c_library() -> None:
    """``srand48(11)``, then ``lrand48() & 3``, as glibc 2.36 has them."""
    drawn = Lrand48(11)
    assert [*drawn.bases(3), *drawn.bases(9)] == [1, 2, 2, 2, 0, 0, 1, 0, 2, 1, 3, 1]


def test_random_bases_in_parts() -> None:
    """Many at once are those of one step after the other."""
    state, wanted = (11 << 16) | 0x330E, []
    for _ in range(10_000):
        state = (state * 0x5DEECE66D + 0xB) % (1 << 48)
        wanted.append(state >> 17 & 3)
    drawn = Lrand48(11)
    assert [*drawn.bases(4096), *drawn.bases(5000), *drawn.bases(904)] == wanted


def test_an_index_is_built_without_numba(tmp_path: Path) -> None:
    """Numba would take more memory than the index of a bacterium; the codes are not copied."""
    program = (
        "import sys; from ngsgpu.run.options import RunOptions; "
        "from ngsgpu.suffix.build import build_index; "
        "build_index(*sys.argv[1:], options=RunOptions(backend='cpu')); "
        "sys.exit('numba' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(DATA / "reference.fa"), str(tmp_path / "i")]
    assert subprocess.run(command, check=False).returncode == 0
    reference = read_reference(DATA / "reference.fa")
    assert np.shares_memory(reference.both_strands(), reference.codes)


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
    build_index(DATA / "reference.fa", tmp_path / "bwa")
    build_index(DATA / "reference.fa", tmp_path / "fm", "fm")
    for prefix, name, cause in (
        ("bwa", "bwa.sa", "input and output"), ("fm", "fm/words.npy", "lies in the database"),
    ):  # fmt: skip
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(tmp_path / name)
        with pytest.raises(UsageError, match=cause):
            query_files(tmp_path / prefix, [DATA / "reference.fa"], tmp_path / "link")
        open_index(tmp_path / prefix)
    for wrong in ({"min_length": 0}, {"max_places": -1}):
        with pytest.raises(UsageError):
            QueryParameters(**wrong)
