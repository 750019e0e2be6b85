"""The evaluation of extended reads: edit distances, the truth's files, mapped reads."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ngsgpu.errors import InputError
from ngsgpu.evaluate.extension import evaluate_extension, evaluate_mapped
from ngsgpu.evaluate.extension.cpu import edit_distance
from tests.support.commands import Commands
from tests.support.extend.data import LENGTH, Pairs, simulated_pairs
from tests.support.minhash.oracle import reverse_complement
from tests.support.properties import examples


def slow_distance(first: str, second: str) -> int:
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        before, row[0] = row[0], i
        for j, b in enumerate(second, 1):
            before, row[j] = row[j], min(before + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]


@given(st.text("AC", max_size=14), st.text("ACG", max_size=14))
@examples(300)
def test_edit_distance(first: str, second: str) -> None:
    arrays = [np.frombuffer(text.encode(), np.uint8) for text in (first, second)]
    assert edit_distance(*arrays) == slow_distance(first, second)


@pytest.fixture
def pairs() -> Pairs:
    return simulated_pairs()


def write_truth(folder: Path, pairs: Pairs) -> tuple[Path, Path]:
    (folder / "t.sam").write_text(pairs.truth())
    (folder / "g.fa").write_text(f">g a genome\n{pairs.genome}\n")
    return folder / "t.sam", folder / "g.fa"


def test_counts(tmp_path: Path, pairs: Pairs) -> None:
    truth, genome = write_truth(tmp_path, pairs)
    fragments = list(pairs.fragments[:6])
    middle = len(fragments[1]) // 2
    other = "C" if fragments[1][middle] != "C" else "G"
    fragments[1] = fragments[1][:middle] + other + fragments[1][middle + 1 :]
    fragments[2] = fragments[2][:middle] + fragments[2][middle + 3 :]
    # Outside of the pair: right on the left, one error on the right.
    lines = [f">p{i}\n{f}\n" for i, f in enumerate(fragments[:4])]
    genome_strand = pairs.genome if not pairs.reverse[4] else reverse_complement(pairs.genome)
    begin = genome_strand.index(fragments[4])
    end = begin + len(fragments[4])
    left, right = genome_strand[max(0, begin - 7) : begin], genome_strand[end : end + 5]
    wrong = right[:-1] + ("A" if right[-1:] != "A" else "C") if right else ""
    n, m = len(left), len(fragments[4])
    lines.append(
        f">p4 read1={n}-{n + LENGTH} read2={n + m - LENGTH}-{n + m}\n{left}{fragments[4]}{wrong}\n"
    )
    (tmp_path / "e.fa").write_text("".join(lines))
    document = evaluate_extension([truth], genome, [tmp_path / "e.fa"]).document()
    counts = document["counts"]
    assert document["pairs"] == len(pairs.first)
    assert counts["reads"] == 5
    assert counts["error_free"] == 3
    assert counts["few_edits"] == 4
    assert counts["edits"] == 1 + 3
    assert counts["edits_without_length"] == 1
    assert counts["gap_bases"] == sum(len(f) - 2 * LENGTH for f in pairs.fragments[:5])
    assert counts["outward_bases"] == len(left) + len(right)
    assert counts["outward_edits"] == (1 if right else 0)
    assert document["length_differences"]["-3"] == 1
    assert document["length_differences"]["0"] == 4


def test_reads_without_truth(tmp_path: Path, pairs: Pairs) -> None:
    truth, genome = write_truth(tmp_path, pairs)
    (tmp_path / "e.fa").write_text(">stranger\nACGT\n")
    with pytest.raises(InputError, match="stranger"):
        evaluate_extension([truth], genome, [tmp_path / "e.fa"])
    (tmp_path / "other.fa").write_text(">h\nACGT\n")
    with pytest.raises(InputError, match="not in the reference"):
        evaluate_extension([truth], tmp_path / "other.fa", [tmp_path / "e.fa"])


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("g.fa", "", "it contains no sequences"),
        ("t.sam", "@SQ\tSN:g\tLN:9\n", "no alignment records"),
    ],
)
def test_nothing_to_compare_with(
    tmp_path: Path, pairs: Pairs, file: str, content: str, told: str
) -> None:
    truth, genome = write_truth(tmp_path, pairs)
    (tmp_path / file).write_text(content)
    (tmp_path / "e.fa").write_text(">p0\nACGT\n")
    with pytest.raises(InputError, match=f"{file}: .*{told}"):
        evaluate_extension([truth], genome, [tmp_path / "e.fa"])


def test_mapped_reads(tmp_path: Path, pairs: Pairs) -> None:
    _, genome = write_truth(tmp_path, pairs)
    lines = [f"@SQ\tSN:g\tLN:{len(pairs.genome)}"]
    texts = []
    for i, (fragment, start) in enumerate(zip(pairs.fragments[:5], pairs.starts, strict=False)):
        size = len(fragment)
        cigar, flag, bases = f"{size}M", 0, fragment
        if i == 1:  # two bases of the gap are missing
            bases = fragment[:120] + fragment[122:]
            cut = 120 if not pairs.reverse[i] else size - 122
            cigar = f"{cut}M2D{size - 2 - cut}M"
        if i == 2:
            cigar = f"5S{size - 5}M"
        if i == 3:
            flag, cigar = 4, "*"
        texts.append(f">p{i} read1=0-{LENGTH} read2={len(bases) - LENGTH}-{len(bases)}\n{bases}\n")
        if pairs.reverse[i]:
            bases, flag = reverse_complement(bases), flag | 0x10
        position = 0 if flag & 4 else start + 1
        name = "*" if flag & 4 else "g"
        lines.append(f"p{i}\t{flag}\t{name}\t{position}\t60\t{cigar}\t*\t0\t0\t{bases}\t*")
    (tmp_path / "m.sam").write_text("\n".join(lines) + "\n")
    (tmp_path / "e.fa").write_text("".join(texts))
    result = evaluate_mapped(tmp_path / "m.sam", genome, [tmp_path / "e.fa"], pairs=10)
    assert (result.clipped, result.unmapped, result.counts.reads) == (1, 1, 3)
    assert result.counts.error_free == 2
    assert result.counts.edits == 2
    assert result.counts.edits_without_length == 0


def test_command(tmp_path: Path, pairs: Pairs, capsys: pytest.CaptureFixture[str]) -> None:
    truth, genome = write_truth(tmp_path, pairs)
    (tmp_path / "e.fa").write_text(f">p0\n{pairs.fragments[0]}\n")
    ngsgpu = Commands(capsys)
    arguments = ("evaluate", "extension", "--reference", genome, "--extended", tmp_path / "e.fa")
    done = ngsgpu(*arguments, "--truth", truth, "--json", tmp_path / "o.json")
    assert done.status == 0, done.err
    assert "error-free gaps" in done.out
    assert json.loads((tmp_path / "o.json").read_text())["counts"]["error_free"] == 1
    assert ngsgpu(*arguments).status == 2
