"""Evaluation from files: all ways to give the same reads give the same result."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import pysam
import pytest

from ngsgpu.errors import InputError, UsageError
from ngsgpu.evaluate import CorrectionEvaluation, evaluate_arrays, evaluate_correction
from ngsgpu.evaluate.truth import records
from tests.support.evaluate import files

Files = dict[str, Path]


@pytest.fixture(scope="module")
def pairs() -> files.Pairs:
    return files.make_pairs(157, seed=1)


@pytest.fixture
def paths(tmp_path: Path, pairs: files.Pairs) -> Files:
    return files.write_pairs(tmp_path, pairs)


@pytest.fixture(scope="module")
def expected(pairs: files.Pairs) -> CorrectionEvaluation:
    flat = [
        [read for pair in zip(*mates, strict=True) for read in pair]
        for mates in (pairs.before, pairs.after, pairs.truth)
    ]
    mates = np.tile(np.array([0, 1], dtype=np.uint8), len(pairs.names))
    return evaluate_arrays(*flat, qualities=[b"I" * len(r) for r in flat[0]], mates=mates)


def assert_same(found: CorrectionEvaluation, expected: CorrectionEvaluation) -> None:
    for name in ("bases", "positions", "qualities", "reads"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def evaluate(paths: Files, **changes: object) -> CorrectionEvaluation:
    arguments: dict[str, object] = {**paths, **changes}
    return evaluate_correction(**arguments)  # type: ignore[arg-type]


def test_pairs_in_step(paths: Files, expected: CorrectionEvaluation) -> None:
    found = evaluate(paths)
    assert found.truth_in_step
    assert_same(found, expected)


@pytest.mark.parametrize("block_bytes", [300, 1000, 5000])
def test_truth_in_small_blocks(
    paths: Files,
    expected: CorrectionEvaluation,
    block_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(records.read_tables, "__defaults__", (block_bytes,))
    found = evaluate(paths)
    assert found.truth_in_step
    assert_same(found, expected)


TRUE_READS = {
    "two FASTQ files": (2, "fastq", "{name} {mate}:N:0", False),
    "two FASTA files": (2, "fasta", "{name}", False),
    "interleaved": (1, "fastq", "{name}", False),
    "interleaved, wrapped, compressed": (1, "fasta", "{name}", True),
    "in another order": (-1, "fastq", "{name}/{mate}", False),
}


@pytest.mark.parametrize("form", TRUE_READS)
def test_truth_as_reads(
    form: str, paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation
) -> None:
    count, kind, header, compressed = TRUE_READS[form]

    def record(row: int, mate: int) -> str:
        name = header.format(name=pairs.names[row], mate=mate + 1)
        read = pairs.truth[mate][row].decode()
        if kind == "fastq":
            return f"@{name}\n{read}\n+\n{'I' * len(read)}\n"
        return f">{name}\n{read[:7]}\n{read[7:]}\n" if len(read) > 7 else f">{name}\n{read}\n"

    rows = range(len(pairs.names))
    if count == 2:
        texts = ["".join(record(row, mate) for row in rows) for mate in range(2)]
    else:
        texts = ["".join(record(row, mate) for row in rows[::count] for mate in range(2))]
    truth = []
    for number, text in enumerate(texts):
        truth.append(paths["truth"].with_name(f"truth{number}.{kind}"))
        data = text.encode()
        truth[-1].write_bytes(gzip.compress(data) if compressed else data)
    found = evaluate(paths, truth=truth)
    assert_same(found, expected)
    assert found.truth_in_step is form.startswith("interleaved")


def test_truth_as_reads_of_interleaved_pairs(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation
) -> None:
    both = {}
    for name, reads in (("in1", pairs.before), ("out1", pairs.after), ("truth", pairs.truth)):
        both[name] = paths["truth"].with_name(f"{name}.both.fq")
        names = [name for name in pairs.names for _ in range(2)]
        in_order = [read for mates in zip(*reads, strict=True) for read in mates]
        both[name].write_bytes(files.fastq(names, in_order))
    found = evaluate_correction(**both, interleaved=True)
    assert_same(found, expected)


def test_truth_in_another_order(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation
) -> None:
    lines = files.sam_records(pairs)
    random.Random(2).shuffle(lines)
    paths["truth"].write_text(files.HEADER + "".join(lines))
    found = evaluate(paths)
    assert found.truth_in_step is False
    assert_same(found, expected)


def test_second_mate_first(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation
) -> None:
    lines = files.sam_records(pairs)
    lines[40], lines[41] = lines[41], lines[40]
    paths["truth"].write_text("".join(lines))
    assert_same(evaluate(paths), expected)


def test_reads_are_a_part_of_the_truth(paths: Files, pairs: files.Pairs) -> None:
    for name in ("in1", "in2", "out1", "out2"):
        lines = paths[name].read_text().splitlines(keepends=True)
        paths[name].write_text("".join(lines[40 * 4 : 90 * 4]))
    assert evaluate(paths).read_counts.total == 100


def test_interleaved(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation, tmp_path: Path
) -> None:
    names = [f"{name}/{mate}" for name in pairs.names for mate in (1, 2)]
    for file, mates in (("in", pairs.before), ("out", pairs.after)):
        reads = [read for pair in zip(*mates, strict=True) for read in pair]
        (tmp_path / f"{file}.fq").write_bytes(files.fastq(names, reads))
    found = evaluate_correction(
        paths["truth"], tmp_path / "in.fq", tmp_path / "out.fq", interleaved=True
    )
    assert_same(found, expected)


def test_lanes_and_gzip(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation, tmp_path: Path
) -> None:
    lanes: dict[str, list[Path]] = {}
    for name in ("in1", "in2", "out1"):
        lines = paths[name].read_bytes().splitlines(keepends=True)
        cut = 4 * 61 if name != "out1" else 4 * 30
        for part, content in enumerate((lines[:cut], lines[cut:])):
            lane = tmp_path / f"{name}.{part}.fq.gz"
            lane.write_bytes(gzip.compress(b"".join(content)))
            lanes.setdefault(name, []).append(lane)
    text = files.sam_records(pairs)
    truths = [tmp_path / "a.sam.gz", tmp_path / "b.sam"]
    truths[0].write_bytes(gzip.compress((files.HEADER + "".join(text[:100])).encode()))
    truths[1].write_text(files.HEADER + "".join(text[100:]))
    found = evaluate(paths, truth=truths, **lanes)
    assert found.truth_in_step
    assert_same(found, expected)


def test_crlf_comments_and_wrapped_fasta(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation
) -> None:
    names = [f"{name} 1:N:0:ACGT" for name in pairs.names]
    paths["in1"].write_bytes(files.fastq(names, pairs.before[0], ending="\r\n"))
    records = []
    for name, read in zip(names, pairs.after[0], strict=True):
        text = read.decode()
        records.append(f">{name}\n" + "".join(f"{text[i : i + 7]}\n" for i in range(0, 40, 7)))
    paths["out1"].write_text("\n".join("".join(records).split("\n\n")).replace("\n\n", "\n"))
    found = evaluate(paths)
    assert_same(found, expected)


def test_single_reads_of_one_mate(paths: Files, pairs: files.Pairs) -> None:
    found = evaluate_correction(paths["truth"], paths["in2"], paths["out2"])
    alone = evaluate_arrays(pairs.before[1], pairs.after[1], pairs.truth[1])
    assert np.array_equal(found.bases, alone.bases)
    assert not found.paired


def test_bam_equals_sam(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation, tmp_path: Path
) -> None:
    bam = tmp_path / "truth.bam"
    header = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "chr", "LN": 1000}]})
    with pysam.AlignmentFile(str(bam), "wb", header=header) as file:
        for line in files.sam_records(pairs):
            file.write(pysam.AlignedSegment.fromstring(line.rstrip("\n"), header))
    found = evaluate(paths, truth=bam)
    assert found.truth_in_step
    assert_same(found, expected)


def test_secondary_and_supplementary_records_are_left_out(
    paths: Files, pairs: files.Pairs, expected: CorrectionEvaluation
) -> None:
    lines = files.sam_records(pairs)
    extra = [files.sam_line(pairs.names[0], b"ACGT", 99 | flag) for flag in (0x100, 0x800)]
    paths["truth"].write_text("".join([extra[0], *lines[:5], extra[1], *lines[5:]]))
    found = evaluate(paths)
    assert found.truth_in_step
    assert_same(found, expected)


def test_alignments_say_which_reads_have_indels(paths: Files, pairs: files.Pairs) -> None:
    lines = []
    for row, name in enumerate(pairs.names):
        for mate, flag in enumerate((99, 147)):
            read = pairs.before[mate][row]
            cigar = f"2={len(read) - 3}I1=" if row in (3, 8) and mate == 0 else None
            lines.append(files.sam_line(name, read, flag, cigar))
    alignments = paths["truth"].with_name("alignments.sam")
    alignments.write_text("".join(lines))
    found = evaluate(paths, alignments=alignments)
    assert found.indels_from == "alignments"
    by_rule = evaluate(paths).indel_read_counts.total
    assert found.indel_read_counts.total in (by_rule + 1, by_rule + 2)


def claim(cigar: str, bases: int = 10) -> int:
    text = cigar.encode()
    data = np.frombuffer(text, dtype=np.uint8).copy()
    return int(records._cigar_claim(data, 0, len(text), bases))


def test_claims_of_cigars() -> None:
    from ngsgpu.evaluate.truth import indels

    assert claim("10=") == 0
    assert claim("3=2X4=1X") == 3
    assert claim("10M") == indels.CLAIM_NONE
    assert claim("*") == indels.CLAIM_NONE
    assert claim("4=1I5=") == indels.CLAIM_INDEL
    assert claim("4=1D6=") == indels.CLAIM_INDEL
    # ART's CIGAR of a read from the reverse strand with a deletion.
    assert claim("11=") == indels.CLAIM_INDEL


class TestRefusals:
    def test_other_number_of_records(self, paths: Files) -> None:
        lines = paths["out2"].read_text().splitlines(keepends=True)
        paths["out2"].write_text("".join(lines[:-4]))
        with pytest.raises(InputError, match=r"out2\.fq: it has fewer records than"):
            evaluate(paths)

    def test_other_names(self, paths: Files) -> None:
        text = paths["out1"].read_text().replace("@chr-100/1", "@other")
        paths["out1"].write_text(text)
        with pytest.raises(InputError, match=r"out1\.fq, record 58: the read is 'other' where"):
            evaluate(paths)

    def test_other_length(self, paths: Files, pairs: files.Pairs) -> None:
        reads = list(pairs.after[0])
        reads[4] += b"A"
        names = [f"{name}/1" for name in pairs.names]
        paths["out1"].write_bytes(files.fastq(names, reads))
        with pytest.raises(InputError, match=r"out1\.fq, record 5: .*keeps the length"):
            evaluate(paths)

    def test_truth_of_other_length(self, paths: Files, pairs: files.Pairs) -> None:
        lines = files.sam_records(pairs)
        lines[6] = files.sam_line(pairs.names[3], pairs.truth[0][3] + b"A", 99)
        paths["truth"].write_text("".join(lines))
        with pytest.raises(InputError, match=r"in1\.fq, record 4: .*its true read"):
            evaluate(paths)

    @pytest.mark.parametrize("missing", [slice(10, 12), slice(-2, None), slice(0, None)])
    def test_read_without_truth(self, paths: Files, pairs: files.Pairs, missing: slice) -> None:
        lines = files.sam_records(pairs)
        del lines[missing]
        paths["truth"].write_text(files.HEADER + "".join(lines))
        with pytest.raises(InputError, match=r"no record|no alignment records"):
            evaluate(paths)

    def test_truth_twice(self, paths: Files, pairs: files.Pairs) -> None:
        lines = files.sam_records(pairs)
        paths["truth"].write_text("".join([*lines[2:], *lines]))
        with pytest.raises(InputError, match="several records"):
            evaluate(paths)

    def test_truth_is_no_sam(self, paths: Files) -> None:
        paths["truth"].write_text(f"{files.HEADER}name 1\n")
        with pytest.raises(InputError, match=r"truth\.sam, line 3: this is not a SAM record"):
            evaluate(paths)

    def test_truth_of_other_reads(self, paths: Files) -> None:
        with pytest.raises(InputError, match=r"record 2: .* no record among the true reads"):
            evaluate(paths, truth=paths["in1"])

    def test_truncated_sam(self, paths: Files) -> None:
        lines = paths["truth"].read_text().splitlines(keepends=True)
        paths["truth"].write_text("".join([*lines[:-1], lines[-1][:15]]))
        with pytest.raises(InputError, match=r"truth\.sam, line 316: this is not a SAM record"):
            evaluate(paths)

    def test_empty_truth(self, paths: Files) -> None:
        paths["truth"].write_text("")
        with pytest.raises(InputError, match="no alignment records"):
            evaluate(paths)

    def test_half_a_pair_of_options(self, paths: Files) -> None:
        with pytest.raises(UsageError, match="belong together"):
            evaluate(paths, out2=None)
        with pytest.raises(UsageError, match="both mates"):
            evaluate(paths, interleaved=True)

    def test_odd_interleaved_file(self, paths: Files) -> None:
        with pytest.raises(InputError):
            evaluate_correction(paths["truth"], paths["in1"], paths["out1"], interleaved=True)
