"""The benchmark of correction by k-mers: what became of reads, and the shares of the papers."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.accuracy.spectrum import fates, judged, simulate
from scripts.benchmark_tables import spectrum_tables


def test_fates_and_shares(tmp_path: Path) -> None:
    genome = np.frombuffer(b"ACGTTGCAACGTGGCATTACGATCAGCATTAACGGT" * 5, dtype=np.uint8)
    truth, reads = simulate(genome, 12, 1, 0.1, tmp_path / "reads.fq")
    assert truth.shape == reads.shape == (15, 12)
    texts = (tmp_path / "reads.fq").read_bytes().split(b"\n")
    assert texts[1::4][:15] == [read.tobytes() for read in reads] and texts[3] == b"+" * 12
    truth = np.frombuffer(b"AAAACCCCGGGG" * 6, dtype=np.uint8).reshape(6, 12)
    reads = truth.copy()
    reads[1:, 2] = ord("T")
    reads[2, 4] = ord("T")
    # As it is; corrected in lower case; trimmed; wrongly corrected; left as it is; left out.
    out = ["AAAACCCCGGGG", "AAaACCCCGGGG", "CCCGGGG", "AACACCCCGGGG", "AATACCCCGGGG"]
    file = tmp_path / "out.fq"
    file.write_text("".join(f"@{i} x\n{text}\n+\n{'I' * 12}\n" for i, text in enumerate(out)))
    classes, right = fates(truth, reads, [(file, None)])
    assert classes.tolist() == [0, 1, 2, 1, 0, 3]
    assert right.tolist() == [True, True, True, False, False, False]
    found = judged((truth != reads).sum(axis=1), classes, right)
    assert [found[key] for key in ("tp", "fp", "fn", "tn")] == [4, 0, 1, 1]
    assert [found[key] for key in ("sensitivity", "corrected", "trimmed")] == [80, 50, 25]
    assert (found["accuracy"], found["made_right"]) == (66.6667, 20)
    # Right: the first left as it is, the second corrected, the third, with two errors, dropped.
    assert found["correct_decisions"] == 50
    program = {"program": "p", "wall_s": 1.0, **found}
    data = {"of": "shi", "name": "A", "read": 12, "rate": 0.1, "programs": [program]}
    assert "| A, 12, 10 % | p | 1.0 | 80.00 | 100.00 | 50.00 | 25.00 | 66.67 | 20.00 |" in (
        spectrum_tables({"sets": [data]})
    )
