"""Packing of reads: bases, qualities, unknown letters, mates."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.io.text.batch import RecordBatch
from ngsgpu.readset import ReadSet, ReadSetBuilder
from ngsgpu.readset import cpu as kernels
from ngsgpu.readset import qualities as storage
from ngsgpu.readset import readset as module
from ngsgpu.sequence.codec import AMBIGUOUS, base_at, words_for
from tests.support.correct.alignment import SCORES_KEPT
from tests.support.io.random_fastq import assert_equal_reads
from tests.support.minhash.oracle import mix
from tests.support.properties import examples

LETTERS = "ACGTacgtNnRYKMSWBDHVU."
read_letters = st.text(st.sampled_from("ACGT" * 5 + LETTERS), max_size=140)


@st.composite
def records(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    uniform = draw(st.booleans())
    size = draw(st.integers(0, 130)) if uniform else None
    text = st.text(st.sampled_from("ACGT" * 5 + LETTERS), min_size=size or 0, max_size=size or 140)
    letters = draw(st.lists(text, max_size=6))
    scores = st.integers(33, 126).map(chr)
    qualities = [
        "".join(draw(st.lists(scores, min_size=len(item), max_size=len(item)))) for item in letters
    ]
    return letters, qualities


def stored_bases(reads: ReadSet, read: int) -> str:
    length = kernels.read_length(reads.arrays, read)
    start = kernels.plane_start(reads.arrays, read)
    words = words_for(length)
    return "".join("ACGT"[base_at(reads.arrays.planes, start, words, i)] for i in range(length))


def stored_codes(reads: ReadSet, read: int) -> list[int]:
    start = kernels.quality_start(reads.arrays, read)
    length = kernels.read_length(reads.arrays, read)
    return [kernels.quality_code(reads.arrays, start, i) for i in range(length)]


def expected_bases(read: int, letters: str) -> str:
    return "".join(
        letter if letter in "ACGT" else "ACGT"[mix((read << 15) + position) % 4]
        for position, letter in enumerate(letters.upper())
    )


def ambiguous_positions(letters: str) -> list[int]:
    return [i for i, letter in enumerate(letters.upper()) if letter not in "ACGT"]


def stored_unknown(reads: ReadSet) -> dict[int, list[int]]:
    ambiguous = reads.ambiguous
    return {
        int(read): ambiguous.positions[ambiguous.start[i] : ambiguous.start[i + 1]].tolist()
        for i, read in enumerate(ambiguous.reads)
    }


@given(records(), st.sampled_from([8, 2, 1, 0]))
@examples(120)
def test_reads_are_stored_as_described(
    drawn: tuple[list[str], list[str]], quality_bits: int
) -> None:
    letters, qualities = drawn
    reads = ReadSet.from_sequences(letters, qualities, quality_bits=quality_bits)
    lengths = [len(item) for item in letters]
    assert (reads.reads, reads.bases) == (len(letters), sum(lengths))
    assert (reads.min_length, reads.max_length) == (
        min(lengths, default=0),
        max(lengths, default=0),
    )
    assert (len(reads.arrays.lengths) == 0) == (len(set(lengths)) <= 1)
    for read, text in enumerate(letters):
        assert stored_bases(reads, read) == expected_bases(read, text)
        scores = [
            0 if i in ambiguous_positions(text) else ord(qualities[read][i]) - 33
            for i in range(len(text))
        ]
        stands_for = storage.BIN_SCORES.get(quality_bits, [None])
        for score, code in zip(scores, stored_codes(reads, read), strict=True):
            if quality_bits == 8:
                assert code == score
            elif quality_bits:
                kept = next(kept for bound, kept in SCORES_KEPT[quality_bits] if score <= bound)
                assert stands_for[code] == kept
            else:
                assert code == 0
    assert stored_unknown(reads) == {
        read: ambiguous_positions(text)
        for read, text in enumerate(letters)
        if ambiguous_positions(text)
    }
    planes = sum(2 * words_for(length) for length in lengths)
    assert len(reads.arrays.planes) == planes
    assert len(reads.arrays.qualities) == sum(-(-n * quality_bits // 8) for n in lengths)
    assert reads.nbytes >= planes * 8


@pytest.mark.parametrize(
    ("bits", "bounds", "scores"),
    [(2, [(0, 4), (5, 13), (14, 20), (21, 93)], [3, 7, 16, 24]), (1, [(0, 13), (14, 93)], [7, 20])],
)
def test_quality_classes(bits: int, bounds: list[tuple[int, int]], scores: list[int]) -> None:
    assert storage.BIN_SCORES[bits].tolist() == scores
    for code, (low, high) in enumerate(bounds):
        assert set(storage.QUALITY_BINS[bits][low : high + 1].tolist()) == {code}


def test_reads_without_qualities_keep_none() -> None:
    reads = ReadSet.from_sequences(["ACGT", "ACG"])
    assert reads.arrays.quality_bits == 0
    assert len(reads.arrays.qualities) == 0


@pytest.mark.parametrize("offset", [33, 64])
def test_offset_of_qualities(offset: int) -> None:
    scores = [0, 2, 40]
    quality = "".join(chr(offset + score) for score in scores)
    reads = ReadSet.from_sequences(["ACG"], [quality], phred_offset=offset)
    assert stored_codes(reads, 0) == scores
    # Solexa's scores go down to -5; nothing is worse than 0 here.
    assert stored_codes(ReadSet.from_sequences(["A"], [";"], phred_offset=64), 0) == [0]


def batch(letters: list[str], first_record: int = 0, width: int = 1000) -> RecordBatch:
    """A batch of FASTA records, wrapped, with CR LF line ends."""
    text = b""
    starts: list[tuple[int, int, int]] = []
    for item in letters:
        text += b">r\r\n"
        begin = len(text)
        pieces = [item[i : i + width].encode() for i in range(0, len(item), width)]
        text += b"\r\n".join(pieces)
        starts.append((begin, len(text), len(item)))
        text += b"\r\n"
    begins, ends, lengths = np.array(starts, dtype=np.int64).reshape(-1, 3).T
    return RecordBatch(
        data=np.frombuffer(text, dtype=np.uint8),
        begin=0,
        end=len(text),
        header_start=begins - 3,
        header_end=begins - 2,
        seq_start=begins,
        seq_end=ends,
        seq_len=lengths.astype(np.int32),
        qual_start=None,
        first_record=first_record,
        path="test.fa",
    )


def same(first: ReadSet, second: ReadSet) -> bool:
    pairs = zip((*first.arrays, *first.ambiguous), (*second.arrays, *second.ambiguous), strict=True)
    return all(np.array_equal(one, two) for one, two in pairs) and first.reads == second.reads


@given(
    st.lists(read_letters, min_size=1, max_size=12).map(lambda x: x[: len(x) // 2 * 2]),
    st.lists(st.integers(0, 6), max_size=3),
    st.integers(1, 70),
    st.sampled_from([1, 3]),
)
@examples(60)
def test_batches_mates_wrapping_and_threads_change_nothing(
    letters: list[str], cuts: list[int], width: int, threads: int
) -> None:
    expected = ReadSet.from_sequences(letters, quality_bits=0, paired=True)
    bounds = sorted({0, len(letters) // 2, *(cut for cut in cuts if cut <= len(letters) // 2)})
    pieces = list(pairwise(bounds))
    two_files = ReadSetBuilder(paired=True, quality_bits=0, threads=threads)
    one_file = ReadSetBuilder(paired=True, quality_bits=0, threads=threads)
    for low, high in pieces:
        mates = letters[2 * low : 2 * high]
        two_files.add(batch(mates[::2], width=width), batch(mates[1::2], width=width))
        one_file.add(batch(mates, width=width))
    assert same(two_files.finish(), expected)
    assert same(one_file.finish(), expected)


def test_no_reads() -> None:
    reads = ReadSetBuilder(paired=True).finish()
    assert (reads.reads, reads.bases, reads.min_length, reads.max_length) == (0, 0, 0, 0)
    assert reads.ambiguous.start.tolist() == [0]


def test_codes_of_letters() -> None:
    reads = ReadSet.from_sequences([LETTERS])
    assert stored_unknown(reads) == {0: list(range(8, len(LETTERS)))}
    assert AMBIGUOUS == 4


def test_qualities_must_fit_the_bases() -> None:
    with pytest.raises(InputError, match="sequence and quality string differ in length"):
        ReadSet.from_sequences(["ACGT", "AC"], ["IIII", "I"])
    with pytest.raises(InputError, match="sequence and quality string differ in length"):
        ReadSet.from_sequences(["ACGT", "AC"], ["IIII"])


def test_formats_are_not_mixed() -> None:
    fastq = replace(batch(["ACGT"]), qual_start=np.zeros(1, dtype=np.int64))
    builder = ReadSetBuilder(paired=False)
    builder.add(fastq)
    with pytest.raises(InputError, match="FASTA and FASTQ are mixed"):
        builder.add(batch(["ACGT"]))
    without = ReadSetBuilder(paired=False, quality_bits=0)
    without.add(fastq)
    without.add(batch(["ACGT"]))
    assert without.finish().reads == 2


def test_long_reads_are_refused() -> None:
    longest = module.MAX_READ_LENGTH
    assert ReadSet.from_sequences(["A" * longest]).max_length == longest
    builder = ReadSetBuilder(paired=False)
    with pytest.raises(InputError, match=r"test\.fa, record 9: the read has 32,768 bases"):
        builder.add(batch(["A", "A" * (longest + 1)], first_record=7))


def test_too_many_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_READS", 3)
    builder = ReadSetBuilder(paired=False)
    builder.add(batch(["A", "C"]))
    with pytest.raises(InputError, match="more than 3 reads"):
        builder.add(batch(["A", "C"]))


def batch_with_qualities(texts: list[tuple[str, str]]) -> RecordBatch:
    """Records of letters and quality characters."""
    lengths = np.array([len(bases) for bases, _ in texts], dtype=np.int64)
    starts = 2 * (np.cumsum(lengths) - lengths)
    return RecordBatch(
        data=np.frombuffer("".join(map("".join, texts)).encode(), dtype=np.uint8),
        begin=0,
        end=2 * int(lengths.sum()),
        header_start=starts,
        header_end=starts,
        seq_start=starts,
        seq_end=starts + lengths,
        seq_len=lengths.astype(np.int32),
        qual_start=starts + lengths,
        first_record=0,
        path="test.fq",
    )


@given(st.integers(0, 1 << 30), st.sampled_from([1, 3]), st.booleans())
@examples(40)
def test_few_levels_of_quality_take_two_bits(seed: int, threads: int, mixed: bool) -> None:
    """Nothing is lost, also where later reads have more levels than the first."""
    random = np.random.default_rng(seed)
    levels = random.choice(60, 5, replace=False)
    batches, every = [], []
    for first in range(0, 60, 10):
        count = 2 if first == 0 else int(random.integers(1, 6))
        later = random.random() < 0.3
        few = levels[: random.integers(1, 5) if first < 30 or not later else 5]
        texts = []
        for _ in range(count):
            length = int(random.integers(1, 90)) if mixed else 70
            bases = "".join(random.choice(list("ACGTACGTN"), length))
            texts.append((bases, "".join(chr(33 + q) for q in random.choice(few, length))))
        batches.append(texts)
        every += texts
    builder = ReadSetBuilder(paired=False, threads=threads, by_level=True)
    for _ in builder.add_all(iter([(batch_with_qualities(texts),) for texts in batches])):
        pass
    found = builder.finish()
    expected = ReadSet.from_sequences([text for text, _ in every], [text for _, text in every])
    stored = {q for _, text in every for q in text} | {"!"}
    if found.levels:
        assert found.arrays.quality_bits == 2
        assert {chr(33 + level) for level in found.levels} <= stored
        assert builder.nbytes < expected.nbytes + 4 * len(every)
    else:
        assert found.arrays.quality_bits == 8 and len(stored) > 2
    assert_equal_reads(found, expected)
